//! What a filter says of the keys: the rows that a store has to look at.

use std::{cmp::Ordering, ops::Bound};

use super::{Comparison, Filter, eval::compare_text};
use crate::edm::Value;

/// Bounds of PartitionKey and RowKey that every matching row keeps.
///
/// They come from the conditions that stand in `and` at the top; a store reads the rows within and
/// evaluates the filter on each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBounds {
    /// The least and greatest PartitionKey.
    pub partition: (Bound<String>, Bound<String>),
    /// The least and greatest RowKey; exact within one partition.
    pub row: (Bound<String>, Bound<String>),
}

impl KeyBounds {
    /// The bounds of a filter.
    ///
    /// ```
    /// use entable::{Filter, KeyBounds};
    /// use std::ops::Bound;
    ///
    /// let filter = Filter::parse("PartitionKey eq 'Sales' and RowKey ge 'S' and Age ge 30")?;
    /// let bounds = KeyBounds::of(&filter);
    /// assert_eq!(bounds.one_partition(), Some("Sales"));
    /// assert_eq!(bounds.row, (Bound::Included("S".to_owned()), Bound::Unbounded));
    /// # Ok::<(), entable::Error>(())
    /// ```
    pub fn of(filter: &Filter) -> Self {
        let unbounded = (Bound::Unbounded, Bound::Unbounded);
        let mut bounds = Self { partition: unbounded.clone(), row: unbounded };
        let mut rest = vec![filter];
        while let Some(filter) = rest.pop() {
            match filter {
                Filter::And(all) => rest.extend(all),
                Filter::Compare { property, comparison, value: Value::String(value) } => {
                    match property.as_str() {
                        "PartitionKey" => narrow(&mut bounds.partition, *comparison, value),
                        "RowKey" => narrow(&mut bounds.row, *comparison, value),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        bounds
    }

    /// The partition, if there is only one.
    pub fn one_partition(&self) -> Option<&str> {
        one(&self.partition)
    }

    /// The RowKey, if there is only one.
    pub fn one_row(&self) -> Option<&str> {
        one(&self.row)
    }

    /// Whether the RowKey is bounded at all.
    pub fn bounds_rows(&self) -> bool {
        self.row != (Bound::Unbounded, Bound::Unbounded)
    }

    /// Whether no key can be within.
    pub fn is_empty(&self) -> bool {
        [&self.partition, &self.row].into_iter().any(|(lower, upper)| match (lower, upper) {
            (Bound::Included(lower), Bound::Included(upper)) => {
                compare_text(lower, upper) == Ordering::Greater
            }
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => compare_text(lower, upper) != Ordering::Less,
            // The empty key is the least.
            (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
            _ => false,
        })
    }
}

fn one(bounds: &(Bound<String>, Bound<String>)) -> Option<&str> {
    match bounds {
        (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
        _ => None,
    }
}

fn narrow(bounds: &mut (Bound<String>, Bound<String>), comparison: Comparison, value: &str) {
    let value = || value.to_owned();
    match comparison {
        Comparison::Eq => {
            raise(&mut bounds.0, Bound::Included(value()));
            lower(&mut bounds.1, Bound::Included(value()));
        }
        Comparison::Ge => raise(&mut bounds.0, Bound::Included(value())),
        Comparison::Gt => raise(&mut bounds.0, Bound::Excluded(value())),
        Comparison::Le => lower(&mut bounds.1, Bound::Included(value())),
        Comparison::Lt => lower(&mut bounds.1, Bound::Excluded(value())),
        Comparison::Ne => {}
    }
}

fn raise(bound: &mut Bound<String>, to: Bound<String>) {
    if tighter(bound, &to, Ordering::Less) {
        *bound = to;
    }
}

fn lower(bound: &mut Bound<String>, to: Bound<String>) {
    if tighter(bound, &to, Ordering::Greater) {
        *bound = to;
    }
}

/// Whether `to` is tighter than `bound`, whose side `outer` is the loose one.
fn tighter(bound: &Bound<String>, to: &Bound<String>, outer: Ordering) -> bool {
    match (bound, to) {
        (Bound::Unbounded, _) => true,
        (_, Bound::Unbounded) => false,
        (
            Bound::Included(old) | Bound::Excluded(old),
            Bound::Included(new) | Bound::Excluded(new),
        ) => match compare_text(old, new) {
            Ordering::Equal => matches!((bound, to), (Bound::Included(_), Bound::Excluded(_))),
            order => order == outer,
        },
    }
}
