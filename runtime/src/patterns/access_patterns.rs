//! Defines [`AccessPatterns`], and [`access_patterns!`](crate::access_patterns!), which declares them.

use super::{pattern::Pattern, plan::Plan};
use crate::error::{Error, ErrorKind, Result};

/// Declares the [`AccessPatterns`](crate::patterns::AccessPatterns) of a program: each question with its name,
/// the cost class that it claims, the call that answers it, and its load.
///
/// A pattern is `"name" claim call options;`. The claim is `point`, `range`, `partition_scan`, `table_scan` or
/// `write`. The call is one of the functions of [`patterns`](crate::patterns) with a path of example values.
/// Options, in any order: `rows 40` entities found, `at 500/s` (`/min`, `/h`, `/day`), `over 50` partitions,
/// `tables 30` that exist of a window of dated tables, `requests 3` at most.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
///         index(ByName, row_key = "name_{last_name}_{id:06}"))]
/// pub struct Employee { pub department: String, pub id: u32, pub last_name: String }
///
/// entable::access_patterns! {
///     /// Questions of the personnel office.
///     pub STAFF;
///     "employee by id"      point get(Employee::primary().department("Sales").id(223)) at 500/s over 40;
///     "people by last name" range query(Employee::by_name().department("Sales").last_name("Jones")) rows 40 at 20/s;
///     "hire"                write insert::<Employee>() requests 1 at 2/h;
/// }
///
/// // A test of the program; it needs no store.
/// assert!(STAFF.check().is_ok());
/// assert_eq!(STAFF.patterns().len(), 3);
/// ```
#[macro_export]
macro_rules! access_patterns {
    (
        $(#[$attribute:meta])* $visibility:vis $name:ident;
        $(
            $question:literal $claim:ident
            $verb:ident $(:: <$($generic:ty),+>)? ($($argument:tt)*)
            $(. $method:ident $(:: <$($selected:ty),+>)? ($($passed:tt)*))*
            $($option:ident $value:literal $(/ $unit:ident)?)* ;
        )+
    ) => {
        $(#[$attribute])*
        $visibility const $name: $crate::patterns::AccessPatterns =
            $crate::patterns::AccessPatterns::new(::core::stringify!($name), || ::std::vec![$(
                $crate::patterns::Pattern::$claim(
                    $question,
                    $crate::patterns::$verb $(::<$($generic),+>)? ($($argument)*)
                        $(.$method $(::<$($selected),+>)? ($($passed)*))*
                )
                $(.$option(($value $(, $crate::patterns::Per::$unit)?)))*
            ),+]);
        // A plan finds a pattern by its name.
        const _: () = {
            let names = &[$($question),+];
            $(::core::assert!(
                $crate::patterns::is_named_once($question, names),
                "{}",
                ::core::concat!("two patterns are named ", ::core::stringify!($question), ": give each a name of its own")
            );)+
        };
    };
}

/// Returns whether the list contains the name exactly once.
#[doc(hidden)]
#[allow(
    clippy::indexing_slicing,
    reason = "a const function has no iterators; the bounds are in the loops"
)]
pub const fn is_named_once(name: &str, names: &[&str]) -> bool {
    let (mut found, mut at) = (0, 0);
    while at < names.len() {
        if is_equal(name.as_bytes(), names[at].as_bytes()) {
            found += 1;
        }
        at += 1;
    }
    found == 1
}

#[allow(
    clippy::indexing_slicing,
    reason = "a const function has no iterators; the bounds are in the loops"
)]
const fn is_equal(first: &[u8], second: &[u8]) -> bool {
    let mut at = 0;
    while at < first.len() && at < second.len() && first[at] == second[at] {
        at += 1;
    }
    at == first.len() && at == second.len()
}

/// The questions that a program asks its tables. [`access_patterns!`](crate::access_patterns!) declares them.
#[derive(Debug, Clone, Copy)]
pub struct AccessPatterns {
    name: &'static str,
    make: fn() -> Vec<Pattern>,
}

impl AccessPatterns {
    /// Creates the patterns that `make` returns, under a name for messages.
    pub const fn new(name: &'static str, make: fn() -> Vec<Pattern>) -> Self {
        Self { name, make }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the patterns.
    pub fn patterns(&self) -> Vec<Pattern> {
        (self.make)()
    }

    /// Returns the plan of the patterns: how many requests each call sends, the load of partitions, storage and prices.
    pub fn plan(&self) -> Plan {
        Plan::of_patterns(self.name, &self.patterns())
    }

    /// Fails if the plan of a pattern's call is not what the pattern claims, for example another cost class or more
    /// requests. Needs no store.
    ///
    /// # Errors
    ///
    /// `is_invalid` if a pattern does not hold. The message names each such pattern, what it claims, and what
    /// it is.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "people over 30" range query(Employee::primary().department("Sales")).filter(Employee::AGE.ge(30));
    /// }
    /// let error = STAFF.check().unwrap_err();
    /// assert!(error.message().contains("\"people over 30\""));
    /// assert!(error.message().contains("claims to be a Range and is a PartitionScan"));
    /// ```
    pub fn check(&self) -> Result<()> {
        let patterns = self.patterns();
        let broken: Vec<String> = patterns
            .iter()
            .filter_map(|pattern| Some((&pattern.name, pattern.find_broken_claim()?)))
            .map(|(name, why)| format!("\n- {name:?}: {why}"))
            .collect();
        if broken.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} of {} patterns of {} do not hold; change the path or what the pattern claims{}",
            broken.len(),
            patterns.len(),
            self.name,
            broken.concat()
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}
