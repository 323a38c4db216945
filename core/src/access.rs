//! Defines [`Keys`], an untyped selection of rows by their keys, and [`CostClass`], what a query
//! costs.

use std::{
    fmt,
    ops::{Bound, RangeBounds},
};

use crate::{
    edm::InvalidValue,
    error::Error,
    filter::{Filter, KeyBounds, compare_utf16},
    key::successor,
    limits::is_forbidden_in_key,
};

/// The cost of a query: which rows the service has to read to answer it.
///
/// Source: the classes of queries in the table design guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostClass {
    /// PartitionKey and RowKey are given: the service looks up one row.
    Point,
    /// The PartitionKey and bounds of the RowKey are given: the service reads the rows between the
    /// bounds.
    Range,
    /// The PartitionKey is given: the service reads all rows of the partition.
    PartitionScan,
    /// No PartitionKey is given: the service reads the whole table.
    TableScan,
}

impl CostClass {
    /// Returns the cost class of a filter, from its conditions on PartitionKey and RowKey.
    ///
    /// ```
    /// use entable_core::{CostClass, Filter};
    ///
    /// let class = |text| Filter::parse(text).map(|filter| CostClass::of_filter(&filter));
    /// assert_eq!(class("PartitionKey eq 'Sales' and RowKey eq '2'")?, CostClass::Point);
    /// assert_eq!(class("PartitionKey eq 'Sales' and RowKey ge 'S'")?, CostClass::Range);
    /// assert_eq!(class("RowKey eq '2'")?, CostClass::TableScan);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn of_filter(filter: &Filter) -> Self {
        let bounds = KeyBounds::of_filter(filter);
        match (bounds.single_partition_key(), bounds.one_row(), bounds.bounds_row_key()) {
            (None, _, _) => Self::TableScan,
            (Some(_), Some(_), _) => Self::Point,
            (Some(_), None, true) => Self::Range,
            (Some(_), None, false) => Self::PartitionScan,
        }
    }
}

impl fmt::Display for CostClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Point => "Point",
            Self::Range => "Range",
            Self::PartitionScan => "PartitionScan",
            Self::TableScan => "TableScan",
        })
    }
}

/// A selection of rows by their keys: one row, a range, a prefix, a partition.
///
/// ```
/// use entable_core::Keys;
///
/// let keys = Keys::partition("Sales").prefix("empid_000123");
/// assert_eq!(
///     keys.filter().to_string(),
///     "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The PartitionKey, or `None` for all partitions.
    #[doc(hidden)]
    pub partition: Option<String>,
    /// The RowKeys.
    #[doc(hidden)]
    pub rows: RowKeys,
    /// The name of the first invalid key, `PartitionKey` or `RowKey`, and the fault in its text.
    /// The verb that receives the keys reports the fault.
    #[doc(hidden)]
    pub fault: Option<KeyFault>,
}

/// Why keys, or a value that a path was given for them, are invalid.
// Boxed: few keys are, and all paths are moved through the steps that build them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct KeyFault(Box<FaultyKey>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct FaultyKey {
    /// The field or key that the fault is in.
    name: &'static str,
    invalid: InvalidValue,
}

impl KeyFault {
    /// Creates the fault of a field, a key or another part of a path.
    pub fn new(name: &'static str, invalid: InvalidValue) -> Self {
        Self(Box::new(FaultyKey { name, invalid }))
    }

    /// Returns the error of the verb that is given the path.
    pub fn to_error(&self) -> Error {
        self.0.invalid.clone().into_write_error(self.0.name)
    }
}

/// The RowKeys that a selection contains.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub enum RowKeys {
    /// One RowKey.
    One(String),
    /// All RowKeys between a lower and an upper bound. Bounds that leave one RowKey are
    /// [`One`](Self::One).
    Between(Bound<String>, Bound<String>),
}

impl RowKeys {
    /// All RowKeys.
    pub const ALL: Self = Self::Between(Bound::Unbounded, Bound::Unbounded);

    /// Returns the RowKeys between two bounds.
    pub fn between(lower: Bound<String>, upper: Bound<String>) -> Self {
        match (lower, upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Self::One(lower),
            (lower, upper) => Self::Between(lower, upper),
        }
    }

    /// Returns the lower bound.
    pub fn lower(&self) -> Bound<&str> {
        match self {
            Self::One(key) => Bound::Included(key),
            Self::Between(lower, _) => lower.as_ref().map(String::as_str),
        }
    }

    fn filter_of_lower_bound(&self) -> Option<Filter> {
        match self.lower() {
            Bound::Included(key) => Some(Filter::ge("RowKey", key)),
            Bound::Excluded(key) => Some(Filter::gt("RowKey", key)),
            Bound::Unbounded => None,
        }
    }

    fn filter_of_upper_bound(&self) -> Option<Filter> {
        match self.upper() {
            Bound::Included(key) => Some(Filter::le("RowKey", key)),
            Bound::Excluded(key) => Some(Filter::lt("RowKey", key)),
            Bound::Unbounded => None,
        }
    }

    /// Returns the upper bound.
    pub fn upper(&self) -> Bound<&str> {
        match self {
            Self::One(key) => Bound::Included(key),
            Self::Between(_, upper) => upper.as_ref().map(String::as_str),
        }
    }
}

/// Returns what is wrong with the text of a key that was not escaped.
fn key_text_fault(name: &'static str, text: &str) -> Option<KeyFault> {
    let forbidden = text.chars().find(|c| is_forbidden_in_key(*c))?;
    let message = format!(
        "`{}` contains {forbidden:?}, which the service forbids in keys, so no row has this key; typed paths escape \
         it",
        text.escape_debug()
    );
    Some(KeyFault::new(name, InvalidValue::new(message)))
}

impl Keys {
    /// Selects all rows of a partition. If the key contains a character that the service forbids in keys, the
    /// verb that receives the keys returns an error.
    /// `Path::whole_partition` of entable escapes such characters.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// assert_eq!(Keys::partition("Sales").filter().to_string(), "PartitionKey eq 'Sales'");
    /// ```
    pub fn partition(partition_key: impl Into<String>) -> Self {
        let partition_key = partition_key.into();
        let fault = key_text_fault("PartitionKey", &partition_key);
        Self { partition: Some(partition_key), fault, ..Self::whole_table() }
    }

    /// Selects one row.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// assert_eq!(Keys::point("Sales", "a").as_point(), Some(("Sales", "a")));
    /// ```
    pub fn point(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self::partition(partition_key).row(row_key)
    }

    /// Selects all rows of a table.
    #[doc(hidden)]
    pub const fn whole_table() -> Self {
        Self { partition: None, rows: RowKeys::ALL, fault: None }
    }

    /// Selects the row with this RowKey in the partition.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// assert_eq!(Keys::partition("Sales").row("a").as_point(), Some(("Sales", "a")));
    /// ```
    #[must_use]
    pub fn row(self, row_key: impl Into<String>) -> Self {
        let row_key = row_key.into();
        let fault = self.fault.or_else(|| key_text_fault("RowKey", &row_key));
        Self { rows: RowKeys::One(row_key), fault, ..self }
    }

    /// Selects the rows of the partition whose RowKey begins with `prefix`.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// assert_eq!(
    ///     Keys::partition("Sales").prefix("email_a").filter().to_string(),
    ///     "(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')"
    /// );
    /// ```
    #[must_use]
    pub fn prefix(self, prefix: impl AsRef<str>) -> Self {
        let prefix = prefix.as_ref();
        let lower = match prefix {
            // Every RowKey begins with the empty prefix.
            "" => Bound::Unbounded,
            _ => Bound::Included(prefix.to_owned()),
        };
        let upper = successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        let fault = self.fault.or_else(|| key_text_fault("RowKey", prefix));
        Self { rows: RowKeys::between(lower, upper), fault, ..self }
    }

    /// Drops the bounds of the RowKey.
    #[doc(hidden)]
    pub fn without_row_key_bounds(self) -> Self {
        Self { rows: RowKeys::ALL, ..self }
    }

    /// Selects the rows of the partition whose RowKey is in `range`, in the order of UTF-16 units.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// let l = Keys::partition("Sales").rows("lastname_l".."lastname_m");
    /// assert_eq!(
    ///     l.filter().to_string(),
    ///     "(PartitionKey eq 'Sales') and (RowKey ge 'lastname_l') and (RowKey lt 'lastname_m')"
    /// );
    /// ```
    #[must_use]
    pub fn rows<'k>(self, range: impl RangeBounds<&'k str>) -> Self {
        let lower = range.start_bound().map(|key| (*key).to_owned());
        let upper = range.end_bound().map(|key| (*key).to_owned());
        Self { rows: RowKeys::between(lower, upper), ..self }
    }

    /// Returns whether the selection bounds the RowKey on either side.
    #[doc(hidden)]
    pub fn bounds_row_key(&self) -> bool {
        self.rows != RowKeys::ALL
    }

    /// Returns PartitionKey and RowKey if the selection is one row.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// assert_eq!(Keys::partition("Sales").as_point(), None);
    /// ```
    pub fn as_point(&self) -> Option<(&str, &str)> {
        match (&self.partition, &self.rows) {
            (Some(partition), RowKeys::One(row_key)) => Some((partition, row_key)),
            _ => None,
        }
    }

    /// Returns whether the selection contains the row with keys `partition_key` and `row_key`.
    ///
    /// ```
    /// use entable_core::Keys;
    ///
    /// assert!(Keys::point("Sales", "223").contains("Sales", "223"));
    /// assert!(!Keys::point("Sales", "223").contains("Sales", "224"));
    /// ```
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        // The service sorts keys by UTF-16 units, and `str` compares bytes of UTF-8.
        let is_above = match self.rows.lower() {
            Bound::Included(lower) => compare_utf16(lower, row_key).is_le(),
            Bound::Excluded(lower) => compare_utf16(lower, row_key).is_lt(),
            Bound::Unbounded => true,
        };
        let is_below = match self.rows.upper() {
            Bound::Included(upper) => compare_utf16(row_key, upper).is_le(),
            Bound::Excluded(upper) => compare_utf16(row_key, upper).is_lt(),
            Bound::Unbounded => true,
        };
        let is_there = self.partition.as_ref().is_none_or(|partition| partition == partition_key);
        is_there && is_above && is_below
    }

    /// Returns the filter that matches exactly the selected rows.
    ///
    /// ```
    /// # use entable_core::Keys;
    /// assert_eq!(
    ///     Keys::point("Sales", "a").filter().to_string(),
    ///     "(PartitionKey eq 'Sales') and (RowKey eq 'a')"
    /// );
    /// ```
    pub fn filter(&self) -> Filter {
        let partition = self.partition.as_ref().map(|key| Filter::eq("PartitionKey", key.as_str()));
        let (lower, upper) = match (&self.partition, &self.rows) {
            (Some(_), RowKeys::One(row_key)) => {
                (Some(Filter::eq("RowKey", row_key.as_str())), None)
            }
            (_, rows) => (rows.filter_of_lower_bound(), rows.filter_of_upper_bound()),
        };
        let rows = lower.into_iter().chain(upper);
        Filter::all(partition.into_iter().chain(rows))
    }
}
