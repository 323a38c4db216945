//! Computes key bounds from a filter. A store then reads only rows within them.

use std::{cmp::Ordering, ops::Bound};

use super::{Comparison, Filter, eval::compare_utf16};
use crate::edm::Value;

/// Bounds of PartitionKey and RowKey that every matching row is within.
///
/// They come from the conditions that are joined by `and` at the top of the filter. A store reads
/// the rows within them and evaluates the filter on each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBounds {
    /// Lower and upper bound of the PartitionKey.
    pub partition: (Bound<String>, Bound<String>),
    /// Lower and upper bound of the RowKey. They apply within each partition.
    pub row: (Bound<String>, Bound<String>),
}

impl KeyBounds {
    /// Computes the bounds of the keys that a filter can match.
    ///
    /// ```
    /// use entable_core::{Filter, KeyBounds};
    /// use std::ops::Bound;
    ///
    /// let filter = Filter::parse("PartitionKey eq 'Sales' and RowKey ge 'S' and Age ge 30")?;
    /// let bounds = KeyBounds::of_filter(&filter);
    /// assert_eq!(bounds.single_partition_key(), Some("Sales"));
    /// assert_eq!(bounds.row, (Bound::Included("S".to_owned()), Bound::Unbounded));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn of_filter(filter: &Filter) -> Self {
        let unbounded = (Bound::Unbounded, Bound::Unbounded);
        let mut bounds = Self { partition: unbounded.clone(), row: unbounded };
        let mut rest = vec![filter];
        while let Some(filter) = rest.pop() {
            match filter {
                Filter::And(all) => rest.extend(all),
                Filter::Compare { property, comparison, value: Value::String(value) } => {
                    match property.as_str() {
                        "PartitionKey" => narrow_bounds(&mut bounds.partition, *comparison, value),
                        "RowKey" => narrow_bounds(&mut bounds.row, *comparison, value),
                        _ => {}
                    }
                }
                // Any other condition can only exclude more rows, so the bounds stay true without
                // it.
                _ => {}
            }
        }
        bounds
    }

    /// Returns the PartitionKey if the bounds allow only one.
    pub fn single_partition_key(&self) -> Option<&str> {
        single_value(&self.partition)
    }

    /// Returns the RowKey if the bounds allow only one.
    pub fn one_row(&self) -> Option<&str> {
        single_value(&self.row)
    }

    /// Returns whether the RowKey has a lower or an upper bound.
    pub fn bounds_row_key(&self) -> bool {
        self.row != (Bound::Unbounded, Bound::Unbounded)
    }

    /// Returns whether no key is within the bounds.
    pub fn is_empty(&self) -> bool {
        [&self.partition, &self.row].into_iter().any(|(lower, upper)| match (lower, upper) {
            (Bound::Included(lower), Bound::Included(upper)) => {
                compare_utf16(lower, upper) == Ordering::Greater
            }
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => compare_utf16(lower, upper) != Ordering::Less,
            // The empty key is the least, so nothing is below it.
            (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
            _ => false,
        })
    }
}

fn single_value(bounds: &(Bound<String>, Bound<String>)) -> Option<&str> {
    match bounds {
        (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
        _ => None,
    }
}

fn narrow_bounds(bounds: &mut (Bound<String>, Bound<String>), comparison: Comparison, value: &str) {
    let value = || value.to_owned();
    match comparison {
        Comparison::Eq => {
            raise_lower_bound(&mut bounds.0, Bound::Included(value()));
            lower_upper_bound(&mut bounds.1, Bound::Included(value()));
        }
        Comparison::Ge => raise_lower_bound(&mut bounds.0, Bound::Included(value())),
        Comparison::Gt => raise_lower_bound(&mut bounds.0, Bound::Excluded(value())),
        Comparison::Le => lower_upper_bound(&mut bounds.1, Bound::Included(value())),
        Comparison::Lt => lower_upper_bound(&mut bounds.1, Bound::Excluded(value())),
        // An excluded key leaves the ends of the range where they are.
        Comparison::Ne => {}
    }
}

fn raise_lower_bound(bound: &mut Bound<String>, to: Bound<String>) {
    if is_tighter_bound(bound, &to, Ordering::Less) {
        *bound = to;
    }
}

fn lower_upper_bound(bound: &mut Bound<String>, to: Bound<String>) {
    if is_tighter_bound(bound, &to, Ordering::Greater) {
        *bound = to;
    }
}

/// Returns whether `to` is tighter than `bound`: it excludes more values. `outer` is `Less` for
/// lower bounds, since the looser one has the smaller value, and `Greater` for upper bounds.
fn is_tighter_bound(bound: &Bound<String>, to: &Bound<String>, outer: Ordering) -> bool {
    match (bound, to) {
        (Bound::Unbounded, _) => true,
        (_, Bound::Unbounded) => false,
        (
            Bound::Included(old) | Bound::Excluded(old),
            Bound::Included(new) | Bound::Excluded(new),
        ) => match compare_utf16(old, new) {
            Ordering::Equal => matches!((bound, to), (Bound::Included(_), Bound::Excluded(_))),
            order => order == outer,
        },
    }
}
