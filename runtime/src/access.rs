//! Access paths by key, and what they cost.

use std::{
    cmp::Ordering,
    fmt,
    ops::{Bound, RangeBounds},
};

use crate::{
    filter::{Filter, KeyBounds},
    key::successor,
};

/// What a query costs: which rows the service has to look at.
///
/// Source: the design guide's classes of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostClass {
    /// Both keys are given: one row is looked up.
    Point,
    /// One partition and bounds of the RowKey: the rows between them are read.
    Range,
    /// One partition: all of its rows are read.
    PartitionScan,
    /// Every partition is read.
    TableScan,
}

impl CostClass {
    /// The class of a filter.
    ///
    /// ```
    /// use entable::{CostClass, Filter};
    ///
    /// let class = |text| Filter::parse(text).map(|filter| CostClass::of(&filter));
    /// assert_eq!(class("PartitionKey eq 'Sales' and RowKey eq '2'")?, CostClass::Point);
    /// assert_eq!(class("PartitionKey eq 'Sales' and RowKey ge 'S'")?, CostClass::Range);
    /// assert_eq!(class("RowKey eq '2'")?, CostClass::TableScan);
    /// # Ok::<(), entable::Error>(())
    /// ```
    pub fn of(filter: &Filter) -> Self {
        let bounds = KeyBounds::of(filter);
        match (bounds.one_partition(), bounds.one_row(), bounds.bounds_rows()) {
            (None, _, _) => Self::TableScan,
            (Some(_), Some(_), _) => Self::Point,
            (Some(_), None, true) => Self::Range,
            (Some(_), None, false) => Self::PartitionScan,
        }
    }
}

/// The service's order of keys: by UTF-16 units.
fn cmp_keys(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
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

/// Rows by their keys, untyped: one row, a range or prefix, a partition.
///
/// ```
/// use entable::Keys;
///
/// let keys = Keys::partition("Sales").prefix("empid_000123");
/// assert_eq!(
///     keys.filter().to_string(),
///     "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    pub(crate) partition: Option<String>,
    pub(crate) lower: Bound<String>,
    pub(crate) upper: Bound<String>,
}

impl Keys {
    /// All rows of a partition.
    pub fn partition(partition_key: impl Into<String>) -> Self {
        Self {
            partition: Some(partition_key.into()),
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        }
    }

    /// One row.
    pub fn point(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self::partition(partition_key).row(row_key)
    }

    pub(crate) fn everything() -> Self {
        Self { partition: None, lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The row with that RowKey.
    #[must_use]
    pub fn row(self, row_key: impl Into<String>) -> Self {
        let row_key = row_key.into();
        Self { lower: Bound::Included(row_key.clone()), upper: Bound::Included(row_key), ..self }
    }

    /// The rows whose RowKey begins so.
    #[must_use]
    pub fn prefix(self, prefix: impl AsRef<str>) -> Self {
        let prefix = prefix.as_ref();
        let lower = match prefix {
            // Every RowKey begins so.
            "" => Bound::Unbounded,
            _ => Bound::Included(prefix.to_owned()),
        };
        let upper = successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Self { lower, upper, ..self }
    }

    /// The rows whose RowKey is in the range, in ordinal order.
    #[must_use]
    pub fn rows<'k>(self, range: impl RangeBounds<&'k str>) -> Self {
        Self {
            lower: range.start_bound().map(|key| (*key).to_owned()),
            upper: range.end_bound().map(|key| (*key).to_owned()),
            ..self
        }
    }

    /// Whether the RowKey is bounded at all.
    pub(crate) fn is_row_bounded(&self) -> bool {
        (&self.lower, &self.upper) != (&Bound::Unbounded, &Bound::Unbounded)
    }

    /// The row's keys, if it is one row.
    pub fn as_point(&self) -> Option<(&str, &str)> {
        match (&self.partition, &self.lower, &self.upper) {
            (Some(partition), Bound::Included(lower), Bound::Included(upper)) if lower == upper => {
                Some((partition, lower))
            }
            _ => None,
        }
    }

    /// Whether a row with those keys is among them.
    pub(crate) fn hold(&self, partition_key: &str, row_key: &str) -> bool {
        let is_above = match &self.lower {
            Bound::Included(lower) => cmp_keys(lower, row_key).is_le(),
            Bound::Excluded(lower) => cmp_keys(lower, row_key).is_lt(),
            Bound::Unbounded => true,
        };
        let is_below = match &self.upper {
            Bound::Included(upper) => cmp_keys(row_key, upper).is_le(),
            Bound::Excluded(upper) => cmp_keys(row_key, upper).is_lt(),
            Bound::Unbounded => true,
        };
        let is_there = self.partition.as_ref().is_none_or(|partition| partition == partition_key);
        is_there && is_above && is_below
    }

    /// The filter that selects exactly these rows.
    pub fn filter(&self) -> Filter {
        let partition = self.partition.as_ref().map(|key| Filter::eq("PartitionKey", key.as_str()));
        let rows = match (self.as_point(), &self.lower, &self.upper) {
            (Some((_, row_key)), _, _) => vec![Filter::eq("RowKey", row_key)],
            (None, lower, upper) => {
                let lower = match lower {
                    Bound::Included(key) => Some(Filter::ge("RowKey", key.as_str())),
                    Bound::Excluded(key) => Some(Filter::gt("RowKey", key.as_str())),
                    Bound::Unbounded => None,
                };
                let upper = match upper {
                    Bound::Included(key) => Some(Filter::le("RowKey", key.as_str())),
                    Bound::Excluded(key) => Some(Filter::lt("RowKey", key.as_str())),
                    Bound::Unbounded => None,
                };
                lower.into_iter().chain(upper).collect()
            }
        };
        Filter::all(partition.into_iter().chain(rows))
    }
}
