//! Defines access paths: the rows of an entity that they address, and their keys.

use std::{fmt, marker::PhantomData};

use super::{
    FullRow, FullView, PathDraft, PrimaryRow, TableEntity, UntypedPath, View, dated::TimeWindow,
    into_point::PathInCompilerMessage,
};
use crate::{
    access::{KeyFault, Keys},
    edm::InvalidValue,
    key::RowFamily,
};

/// A path to some of an entity's rows, such as `Employee::primary().department("Sales")`. A path builder becomes
/// a path once it has the PartitionKey.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a complete path yet",
    label = "keys are missing",
    note = "give a value for every field of the PartitionKey, such as `Employee::primary().department(\"Sales\")`; to scan the whole table, use `E::scan()`"
)]
pub trait Path: Sized {
    /// The entity that the path leads to.
    type Entity: TableEntity;
    /// The kind of rows that the path leads to: primary rows, full or partial copies, lists.
    type View: View;

    /// Converts the path to its untyped form.
    fn access(self) -> UntypedPath;

    /// Returns the keys that the path addresses.
    fn keys(&self) -> Keys
    where
        Self: Clone,
    {
        self.clone().access().into_keys()
    }

    /// Returns the keys of the path's whole partition, without bounds on the RowKey. Sets and aggregates take
    /// these keys because they read rows of several types.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{town}_{floor}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub town: String, pub floor: u8, pub id: u32 }
    ///
    /// let keys = Employee::primary().town("Kiel/1").floor(2).whole_partition();
    /// assert_eq!(keys.filter().to_string(), "PartitionKey eq 'Kiel~2F1_002'");
    /// ```
    fn whole_partition(&self) -> Keys
    where
        Self: Clone,
    {
        self.keys().without_row_key_bounds()
    }

    /// Returns the path as an [`AnyPath`], the common type of all paths to whole entities. Use it in the arms of an
    /// `if` or a `match`, or in a list of paths.
    fn any(self) -> AnyPath<Self::Entity>
    where
        Self::View: FullView,
    {
        AnyPath::from_access(self.access())
    }
}

/// A path builder with any number of values. A builder without values, such as `Employee::by_name()`, can name
/// an index.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a path builder",
    note = "write the path without its keys, such as `Employee::by_name()`"
)]
pub trait PathBuilder: Clone {
    /// The entity that the builder belongs to.
    type Entity: TableEntity;

    /// Returns the row family that the path reads.
    fn family(&self) -> &'static RowFamily {
        self.clone().into_draft().family()
    }

    /// Returns the keys given so far.
    #[doc(hidden)]
    fn into_draft(self) -> PathDraft;
}

/// A path builder with the whole PartitionKey, which makes it a [`Path`].
///
/// A builder that lacks a part of the PartitionKey has an impl under a bound that no `T` meets. The message of
/// that bound names the missing step.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a complete path yet",
    label = "keys are missing",
    note = "give a value for every field of the PartitionKey, such as `Employee::primary().department(\"Sales\")`; to scan the whole table, use `E::scan()`"
)]
pub trait PartitionPathBuilder<T = PathInCompilerMessage>: PathBuilder {
    /// The rows that the path leads to.
    type View: View;
}

/// A bound that no type meets. It is on the method named after a field if keys hold both a period of the field
/// and its value, because the method could mean either.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this step is ambiguous: the keys contain both the period and the exact value",
    label = "period or exact value?",
    note = "for all rows of a period, such as a day, write `at_period(..)`; for one exact value write `at_exact(..)`; replace `at` with the name of the field"
)]
pub trait PeriodOrExact {}

impl<S: PartitionPathBuilder> Path for S {
    type Entity = S::Entity;
    type View = S::View;

    fn access(self) -> UntypedPath {
        self.into_draft().into_untyped_path()
    }
}

#[diagnostic::do_not_recommend]
impl<S: PartitionPathBuilder> From<S> for Partition<S::Entity, S::View> {
    fn from(step: S) -> Self {
        Self::from_path_draft(step.into_draft())
    }
}

#[diagnostic::do_not_recommend]
impl<S: PartitionPathBuilder> From<S> for Range<S::Entity, S::View> {
    fn from(step: S) -> Self {
        Self::from_path_draft(step.into_draft())
    }
}

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident of $view:ident)*) => {
        $(
            $(#[$doc])*
            pub struct $name<E, V = $view> {
                access: UntypedPath,
                of: PhantomData<fn() -> (E, V)>,
            }

            impl<E, V> $name<E, V> {
                /// Creates the path from a builder's draft.
                #[doc(hidden)]
                pub fn from_path_draft(draft: PathDraft) -> Self {
                    Self { access: draft.into_untyped_path(), of: PhantomData }
                }

                #[allow(dead_code, reason = "of some of the paths")]
                pub(super) fn from_access(access: UntypedPath) -> Self {
                    Self { access, of: PhantomData }
                }

                /// Returns the keys that the path addresses.
                pub fn keys(&self) -> Keys {
                    self.access.clone().into_keys()
                }
            }

            impl<E, V> Clone for $name<E, V> {
                fn clone(&self) -> Self {
                    Self { access: self.access.clone(), of: PhantomData }
                }
            }

            impl<E, V> fmt::Debug for $name<E, V> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_tuple(stringify!($name)).field(&self.access.keys).finish()
                }
            }

            impl<E: TableEntity, V: View> Path for $name<E, V> {
                type Entity = E;
                type View = V;

                fn access(self) -> UntypedPath {
                    self.access
                }
            }
        )*
    };
}

paths! {
    /// A path to one row, by both of its keys.
    Point of PrimaryRow
    /// A path to rows of one partition with bounds on the RowKey.
    Range of FullRow
    /// A path to the rows of one type in one partition.
    Partition of FullRow
}

/// Any path to whole entities of one type, returned by [`Path::any`].
///
/// ```
/// use entable::{AnyPath, prelude::*};
///
/// #[derive(Debug, TableEntity)]
/// #[table(
///     name = "Staff",
///     partition_key = "{department}",
///     row_key = "p_{id:06}",
///     index(ByName, row_key = "n_{name}_{id:06}")
/// )]
/// struct Employee {
///     department: String,
///     id: u32,
///     name: String,
/// }
///
/// fn staff(department: &str, name: Option<&str>) -> AnyPath<Employee> {
///     match name {
///         Some(name) => Employee::by_name().department(department).name(name).any(),
///         None => Employee::primary().department(department).any(),
///     }
/// }
///
/// assert_eq!(staff("Sales", None).keys(), Keys::partition("Sales").prefix("p_"));
/// assert_eq!(staff("Sales", Some("Jones")).keys(), Keys::partition("Sales").prefix("n_Jones_"));
/// ```
pub struct AnyPath<E> {
    access: UntypedPath,
    of: PhantomData<fn() -> E>,
}

impl<E> AnyPath<E> {
    const fn from_access(access: UntypedPath) -> Self {
        Self { access, of: PhantomData }
    }
}

impl<E> Clone for AnyPath<E> {
    fn clone(&self) -> Self {
        Self::from_access(self.access.clone())
    }
}

impl<E> fmt::Debug for AnyPath<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyPath").field(&self.access.keys).finish()
    }
}

impl<E: TableEntity> Path for AnyPath<E> {
    type Entity = E;
    // The family in `access` determines the rows, each of which holds the whole entity.
    type View = FullRow;

    fn access(self) -> UntypedPath {
        self.access
    }
}

impl<E: TableEntity> Point<E> {
    /// Creates the path to the primary row with keys `partition_key` and `row_key`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let point: Point<Employee> = Point::at("Sales", "empid_000223");
    /// assert_eq!((point.partition_key(), point.row_key()), ("Sales", "empid_000223"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn at(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        let keys = Keys::point(partition_key, row_key);
        Self::from_access(UntypedPath::of_keys(E::SCHEMA.families.first(), keys))
    }
}

impl<E: TableEntity> Point<E> {
    /// Creates a path with a faulty property, which every verb refuses.
    pub(super) fn with_fault(property: &'static str, invalid: InvalidValue) -> Self {
        let mut point = Self::at("", "");
        point.access.fault = Some(KeyFault::new(property, invalid));
        point
    }
}

impl<E, V> Point<E, V> {
    pub(crate) fn with_window(self, window: Option<TimeWindow>) -> Self {
        Self { access: UntypedPath { window, ..self.access }, of: PhantomData }
    }

    /// Returns the PartitionKey.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// assert_eq!(at(223).partition_key(), "Sales");
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_key(&self) -> &str {
        // A `Point` always has both keys, so the fallback is unreachable.
        self.access.keys.as_point().unwrap_or_default().0
    }

    /// Returns the RowKey.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// assert_eq!(at(223).row_key(), "empid_000223");
    /// # Ok(())
    /// # }
    /// ```
    pub fn row_key(&self) -> &str {
        self.access.keys.as_point().unwrap_or_default().1
    }

    pub(crate) fn as_access(&self) -> &UntypedPath {
        &self.access
    }
}

/// A path to every entity of a type, in all partitions of its table.
pub struct Scan<E>(PhantomData<fn() -> E>);

impl<E> Scan<E> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<E> Clone for Scan<E> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Scan<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scan")
    }
}

impl<E: TableEntity> Path for Scan<E> {
    type Entity = E;
    type View = PrimaryRow;

    fn access(self) -> UntypedPath {
        UntypedPath::of_keys(E::SCHEMA.families.first(), Keys::whole_table())
    }
}
