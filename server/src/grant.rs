//! What a request may do, once its signature is checked.

use std::cmp::Ordering;

use entable_core::{Comparison, Filter, Operation, Verb, page::Continuation};

use crate::failure::Failure;

/// The permissions of a request, which follow from its signature. By default there are none.
#[derive(Debug, Clone, Default)]
pub(crate) enum Grant {
    #[default]
    Nothing,
    /// The request is signed with the key.
    Everything,
    /// The request has a signature for the rows of one table.
    Table { table: String, permissions: String, rows: RowRange },
    /// The request has a signature for the account.
    Account { resources: String, permissions: String },
}

/// Something that a request does with anything but rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    ReadService,
    WriteService,
    ListTables,
    CreateTable,
    DeleteTable,
    /// Reads or sets the policies that signatures name, which no signature permits.
    Policies,
}

impl Grant {
    /// Refuses an action that the signature does not permit.
    pub(crate) fn check(&self, action: Action) -> Result<(), Failure> {
        let (resources, permissions) = match self {
            Self::Everything => return Ok(()),
            Self::Account { resources, permissions } => (resources, permissions),
            Self::Nothing | Self::Table { .. } => return Err(outside()),
        };
        let (resource, letters) = match action {
            Action::ReadService => ('s', "r"),
            Action::WriteService => ('s', "w"),
            Action::ListTables => ('c', "l"),
            // Either letter is enough.
            Action::CreateTable => ('c', "cw"),
            Action::DeleteTable => ('c', "d"),
            Action::Policies => return Err(outside()),
        };
        check_resource(resources, resource)?;
        if permissions.contains(|letter| letters.contains(letter)) {
            Ok(())
        } else {
            Err(lacking())
        }
    }

    /// Refuses to read rows of a table. The rows are checked by [`check_row`](Self::check_row) or
    /// [`narrow`](Self::narrow).
    pub(crate) fn check_reading(&self, table: &str) -> Result<(), Failure> {
        self.check_entities(table, "r")
    }

    /// Refuses a write that the signature does not permit.
    pub(crate) fn check_write(&self, table: &str, operation: &Operation) -> Result<(), Failure> {
        let letters = match operation.verb() {
            Verb::Insert => "a",
            Verb::Replace | Verb::Merge => "u",
            Verb::Delete => "d",
            // An insert-or-replace does one or the other, so it needs both letters; so does a verb yet unknown.
            _ => "au",
        };
        self.check_entities(table, letters)?;
        self.check_row(operation.row().keys())
    }

    /// Refuses a row outside the range of the signature.
    pub(crate) fn check_row(&self, (partition_key, row_key): (&str, &str)) -> Result<(), Failure> {
        match self {
            Self::Table { rows, .. } if !rows.contains(partition_key, row_key) => Err(outside()),
            _ => Ok(()),
        }
    }

    /// Adds the range of the signature to the filter of a query.
    pub(crate) fn narrow(&self, filter: Filter) -> Filter {
        match self {
            Self::Table { rows, .. } => rows.filter().and_all(filter),
            _ => filter,
        }
    }

    /// Returns the continuation of a page, unless nothing after it is in the range of the signature. A key outside
    /// the range must not be shown.
    pub(crate) fn within(&self, next: Option<Continuation>) -> Option<Continuation> {
        let Self::Table { rows, .. } = self else { return next };
        next.filter(|next| {
            rows.is_before_end(&next.partition_key, next.row_key.as_deref().unwrap_or(""))
        })
    }

    fn check_entities(&self, table: &str, letters: &str) -> Result<(), Failure> {
        let permissions = match self {
            Self::Everything => return Ok(()),
            Self::Nothing => return Err(outside()),
            Self::Table { table: own, .. } if !own.eq_ignore_ascii_case(table) => {
                return Err(outside());
            }
            Self::Table { permissions, .. } => permissions,
            Self::Account { resources, permissions } => {
                check_resource(resources, 'o')?;
                permissions
            }
        };
        if letters.chars().all(|letter| permissions.contains(letter)) {
            Ok(())
        } else {
            Err(lacking())
        }
    }
}

fn check_resource(resources: &str, needed: char) -> Result<(), Failure> {
    if resources.contains(needed) {
        return Ok(());
    }
    Err(Failure::new(403, "AuthorizationResourceTypeMismatch"))
}

fn outside() -> Failure {
    Failure::new(403, "AuthorizationFailure")
}

fn lacking() -> Failure {
    Failure::new(403, "AuthorizationPermissionMismatch")
}

/// The rows that a signature for a table permits. An end without PartitionKey is none. An end without RowKey is the
/// first or last row of its partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowRange {
    pub(crate) from: (String, String),
    pub(crate) to: (String, String),
}

impl RowRange {
    fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let (first, from) = &self.from;
        let is_after_start = match compare(partition_key, first) {
            Ordering::Less => false,
            Ordering::Equal => compare(row_key, from).is_ge(),
            Ordering::Greater => true,
        };
        is_after_start && self.is_before_end(partition_key, row_key)
    }

    fn is_before_end(&self, partition_key: &str, row_key: &str) -> bool {
        let (last, to) = &self.to;
        if last.is_empty() {
            return true;
        }
        match compare(partition_key, last) {
            Ordering::Less => true,
            Ordering::Equal => to.is_empty() || compare(row_key, to).is_le(),
            Ordering::Greater => false,
        }
    }

    /// Returns a filter for the rows of the range. Its first conditions are those that let a store read no other
    /// partitions.
    fn filter(&self) -> Filter {
        let key = |comparison, value: &str| Filter::compare("PartitionKey", comparison, value);
        let row = |comparison, value: &str| Filter::compare("RowKey", comparison, value);
        let ((first, from), (last, to)) = (&self.from, &self.to);
        let mut all = Filter::Constant(true);
        if first == last && !first.is_empty() {
            all = all.and_all(key(Comparison::Eq, first));
            all = all.and_all(row(Comparison::Ge, from));
            return if to.is_empty() { all } else { all.and_all(row(Comparison::Le, to)) };
        }
        if !first.is_empty() {
            all = all.and_all(key(Comparison::Ge, first));
            all = all.and_all(Filter::any([key(Comparison::Gt, first), row(Comparison::Ge, from)]));
        }
        if !last.is_empty() {
            all = all.and_all(key(Comparison::Le, last));
            if !to.is_empty() {
                all =
                    all.and_all(Filter::any([key(Comparison::Lt, last), row(Comparison::Le, to)]));
            }
        }
        all
    }
}

/// Compares keys in the service's order, by UTF-16 units.
fn compare(one: &str, other: &str) -> Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

#[cfg(test)]
mod tests {
    use entable_core::Row;

    use super::*;

    fn range(from: (&str, &str), to: (&str, &str)) -> RowRange {
        let owned = |(partition, row): (&str, &str)| (partition.to_owned(), row.to_owned());
        RowRange { from: owned(from), to: owned(to) }
    }

    #[test]
    fn a_range_and_its_filter_agree_on_every_key() -> entable_core::Result<()> {
        // U+1F600 is a surrogate pair, so it sorts below U+E000.
        let keys = ["", "a", "b", "c", "\u{1f600}", "\u{e000}"];
        for from in keys.iter().flat_map(|p| keys.iter().map(move |r| (*p, *r))) {
            for to in keys.iter().flat_map(|p| keys.iter().map(move |r| (*p, *r))) {
                // A signature with such an end is refused.
                if [from, to].iter().any(|(p, r)| p.is_empty() && !r.is_empty()) {
                    continue;
                }
                let range = range(from, to);
                let filter = range.filter();
                for (p, r) in keys.iter().flat_map(|p| keys.iter().map(move |r| (*p, *r))) {
                    let row = Row::build(p, r).finish()?;
                    assert_eq!(
                        filter.matches(&row)?,
                        range.contains(p, r),
                        "{range:?} {p:?} {r:?}"
                    );
                }
            }
        }
        Ok(())
    }

    #[test]
    fn ends_belong_to_the_range() {
        let some = range(("b", "m"), ("d", "m"));
        let inside = [("b", "m"), ("b", "z"), ("c", ""), ("c", "z"), ("d", ""), ("d", "m")];
        let outside = [("b", "l"), ("a", "z"), ("d", "n"), ("e", "")];
        assert!(inside.iter().all(|(p, r)| some.contains(p, r)));
        assert!(!outside.iter().any(|(p, r)| some.contains(p, r)));
        let partition = range(("b", ""), ("b", ""));
        assert!(partition.contains("b", "") && partition.contains("b", "z"));
        assert!(!partition.contains("a", "") && !partition.contains("c", ""));
        let units = range(("\u{1f600}", ""), ("\u{e000}", ""));
        assert!(units.contains("\u{1f600}", "") && units.contains("\u{1f601}", ""));
        assert!(!range(("\u{e000}", ""), ("", "")).contains("\u{1f600}", ""));
    }
}
