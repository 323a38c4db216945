//! The range of sort keys that a scan has to examine, from the key conditions of its filter and its
//! continuation.

use std::ops::{Bound, RangeBounds};

use crate::{
    filter::{Filter, KeyBounds},
    key::{BOUNDARY, push_sort_key},
    page::Continuation,
};

/// A range of sort keys, from `start` up to but not including `end`. A store that keeps rows in the order of
/// [`Row::sort_key`](crate::Row::sort_key) reads this range, such as with `BTreeMap::range`.
///
/// ```
/// use std::collections::BTreeMap;
/// use entable_core::{Filter, backend::rules::ScanRange, key::encode_sort_key};
///
/// let keys = [("Sales", "1"), ("Sales", "2"), ("Travel", "1")];
/// let rows = BTreeMap::from(keys.map(|(partition, row)| (encode_sort_key(partition, row), row)));
/// let filter = Filter::parse("PartitionKey eq 'Sales' and RowKey gt '1'")?;
/// let range = ScanRange::for_scan(&filter, None);
/// assert!(rows.range::<[u8], _>(range).map(|(_, row)| *row).eq(["2"]));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRange {
    /// The first sort key.
    pub start: Vec<u8>,
    /// The sort key after the last one, or `None` if the range has no end.
    pub end: Option<Vec<u8>>,
}

impl ScanRange {
    /// Returns a range that contains every row that the filter matches from the continuation on. It may
    /// contain other rows.
    pub fn for_scan(filter: &Filter, from: Option<&Continuation>) -> Self {
        let bounds = KeyBounds::of_filter(filter);
        let mut range = match bounds.single_partition_key() {
            Some(partition_key) => rows_within(partition_key, &bounds.row),
            None => partitions_within(&bounds.partition),
        };
        if let Some(from) = from {
            // The service may leave out the RowKey. The page then begins with the partition.
            let from = sort_key(&from.partition_key, from.row_key.as_deref().unwrap_or_default());
            range.start = range.start.max(from);
        }
        range
    }

    /// Returns whether the range contains no sort key.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

// A range that ends before it starts is given as an empty one, since `BTreeMap::range` panics on the former.
impl RangeBounds<[u8]> for ScanRange {
    fn start_bound(&self) -> Bound<&[u8]> {
        Bound::Included(&self.start)
    }

    fn end_bound(&self) -> Bound<&[u8]> {
        self.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(end.max(&self.start)))
    }
}

fn sort_key(partition_key: &str, row_key: &str) -> Vec<u8> {
    let mut bytes = partition_edge(partition_key, BOUNDARY);
    push_sort_key(&mut bytes, row_key);
    bytes
}

/// Returns the sort key of the PartitionKey and one more byte: [`BOUNDARY`] for the place where its rows
/// begin, [`AFTER_BOUNDARY`] for the place where they end.
fn partition_edge(partition_key: &str, last: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(partition_key.len() + 1);
    push_sort_key(&mut bytes, partition_key);
    bytes.push(last);
    bytes
}

/// The byte after [`BOUNDARY`]: it sorts after all rows of a partition.
const AFTER_BOUNDARY: u8 = BOUNDARY + 1;

fn rows_within(partition_key: &str, (lower, upper): &(Bound<String>, Bound<String>)) -> ScanRange {
    let at = |row_key: &str| sort_key(partition_key, row_key);
    // No key contains U+0000: the first sort key after a key is the key with that character.
    let after = |row_key: &str| [at(row_key), vec![0]].concat();
    ScanRange {
        start: match lower {
            Bound::Unbounded => partition_edge(partition_key, BOUNDARY),
            Bound::Included(row_key) => at(row_key),
            Bound::Excluded(row_key) => after(row_key),
        },
        end: Some(match upper {
            Bound::Unbounded => partition_edge(partition_key, AFTER_BOUNDARY),
            Bound::Included(row_key) => after(row_key),
            Bound::Excluded(row_key) => at(row_key),
        }),
    }
}

fn partitions_within((lower, upper): &(Bound<String>, Bound<String>)) -> ScanRange {
    ScanRange {
        start: match cut_before_nul(lower, Bound::Excluded) {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => partition_edge(key, BOUNDARY),
            Bound::Excluded(key) => partition_edge(key, AFTER_BOUNDARY),
        },
        end: match cut_before_nul(upper, Bound::Included) {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(partition_edge(key, AFTER_BOUNDARY)),
            Bound::Excluded(key) => Some(partition_edge(key, BOUNDARY)),
        },
    }
}

/// Cuts the text of a bound before its first U+0000, which would be taken for the boundary, and makes
/// the rest an included or excluded bound, as `cut` does. No stored key contains U+0000. Keys above
/// such a text are therefore the keys above the rest, and keys below it are the keys up to the rest.
/// A bound without U+0000 is unchanged.
fn cut_before_nul<'a>(
    bound: &'a Bound<String>,
    cut: impl FnOnce(&'a str) -> Bound<&'a str>,
) -> Bound<&'a str> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => match key.split_once('\0') {
            Some((before, _)) => cut(before),
            None => bound.as_ref().map(String::as_str),
        },
        Bound::Unbounded => Bound::Unbounded,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{filter::Comparison, key::encode_sort_key, row::Row};

    fn text() -> impl Strategy<Value = String> {
        let edges = vec!['\0', 'a', 'b', '\u{e000}', '\u{10000}'];
        proptest::collection::vec(proptest::sample::select(edges), 0..4).prop_map(String::from_iter)
    }

    fn condition() -> impl Strategy<Value = Filter> {
        use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
        let property = proptest::sample::select(vec!["PartitionKey", "RowKey"]);
        let comparison = proptest::sample::select(vec![Eq, Ne, Gt, Ge, Lt, Le]);
        (property, comparison, text()).prop_map(|(p, c, text)| Filter::compare(p, c, text))
    }

    proptest! {
        #[test]
        fn no_match_is_outside(
            conditions in proptest::collection::vec(condition(), 0..4),
            partition_key in text(),
            row_key in text(),
        ) {
            let (partition_key, row_key) =
                (partition_key.replace('\0', ""), row_key.replace('\0', ""));
            let filter = Filter::all(conditions);
            let range = ScanRange::for_scan(&filter, None);
            let row = Row::build(&partition_key, &row_key).finish().unwrap();
            let at = encode_sort_key(&partition_key, &row_key);
            let within = range.start <= at && range.end.as_ref().is_none_or(|end| at < *end);
            prop_assert!(within || !filter.matches(&row).unwrap(), "{filter} {range:?} {at:?}");
        }
    }

    #[test]
    fn a_partition_with_row_bounds_is_exact() {
        let filter = Filter::parse("PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd'");
        let range = ScanRange::for_scan(&filter.unwrap(), None);
        assert_eq!((range.start, range.end), (b"p\0b".to_vec(), Some(b"p\0d".to_vec())));
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_empty() {
        let rows = std::collections::BTreeMap::from([(b"p\0b".to_vec(), ())]);
        let filter = Filter::parse("PartitionKey eq 'p' and RowKey ge 'd' and RowKey lt 'a'");
        let range = ScanRange::for_scan(&filter.unwrap(), None);
        assert!(range.is_empty());
        assert_eq!(rows.range::<[u8], _>(range).count(), 0);
    }

    #[test]
    fn a_continuation_without_row_key_is_the_partition_begin() {
        let from = Continuation { partition_key: "p".into(), row_key: None };
        let range = ScanRange::for_scan(&Filter::Constant(true), Some(&from));
        assert_eq!((range.start, range.end), (b"p\0".to_vec(), None));
    }
}
