//! Findings: copies and list entries that differ from what their primary derives, and the rule that
//! classifies the difference.

use std::fmt;

use crate::{
    address::Names,
    error::Result,
    key::RowFamily,
    plan::outbox::{CopyAddress, equal_except_version},
    row::{ETag, Row},
};

/// How a copy or a list entry differs from what its primary entity derives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A primary derives it, but it does not exist.
    Missing,
    /// It differs from what its primary derives. For a list entry, the list contains it more than once.
    Stale,
    /// It exists, but no primary derives it.
    Orphan,
    /// Several primaries derive it, and it is the copy of another one. This happens if a program that does not
    /// know the index wrote one of them. Repair leaves it. Give one of the entities a different value.
    Contested,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Stale => "stale",
            Self::Orphan => "orphan",
            Self::Contested => "contested",
        })
    }
}

/// A copy or a list entry that differs from what its primary entity derives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How the copy or list entry differs from what its primary derives.
    pub kind: FindingKind,
    /// The name of the index or list.
    pub index: &'static str,
    /// The table of the copy or list.
    pub table: String,
    /// The PartitionKey of the copy or list.
    pub partition_key: String,
    /// The RowKey of the copy, or of the list's head row.
    pub row_key: String,
    /// The PartitionKey of the primary, if known.
    pub primary_partition_key: Option<String>,
    /// The RowKey of the primary, if known.
    pub primary: Option<String>,
    /// The table of the primary.
    pub(in crate::maintain) primary_table: String,
    /// Whether this is a list entry. `false` for a copy.
    pub(in crate::maintain) is_entry: bool,
    /// The ETag of the stored copy, or `None` if there is none.
    pub(in crate::maintain) copy_etag: Option<ETag>,
    /// The address of a remote copy or list in a dirty row, or `None` for a local one.
    pub(in crate::maintain) remote_address: Option<Box<CopyAddress>>,
}

impl Finding {
    /// Creates a finding about a copy or list entry in its primary's partition.
    pub(in crate::maintain) fn local_finding(
        family: &'static RowFamily,
        table: &str,
        (partition_key, row_key): (&str, &str),
        kind: FindingKind,
        primary: Option<&str>,
    ) -> Self {
        Self {
            kind,
            index: family.name,
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
            primary_partition_key: primary.map(|_| partition_key.to_owned()),
            primary: primary.map(str::to_owned),
            primary_table: table.to_owned(),
            is_entry: false,
            copy_etag: None,
            remote_address: None,
        }
    }

    /// Creates a finding about a local copy that differs from what its primary derives.
    pub(in crate::maintain) fn stale_local_copy(
        family: &'static RowFamily,
        table: &str,
        copy: &Row,
        primary: &str,
    ) -> Self {
        let stale =
            Self::local_finding(family, table, copy.keys(), FindingKind::Stale, Some(primary));
        Self { copy_etag: copy.etag(), ..stale }
    }

    /// Returns whether the copy or list is in a different partition or table than its primary. Repair records
    /// such a finding in the outbox and leaves the write to workers.
    pub fn is_remote(&self) -> bool {
        self.remote_address.is_some()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_entry { "list entry" } else { "copy" };
        write!(
            f,
            "{} {what} of `{}` in table {} at (`{}`, `{}`)",
            self.kind, self.index, self.table, self.partition_key, self.row_key
        )?;
        match (&self.primary_partition_key, &self.primary) {
            (Some(partition_key), Some(row_key)) => {
                write!(f, " for the primary (`{partition_key}`, `{row_key}`)")
            }
            _ => Ok(()),
        }
    }
}

/// The owner of a stored copy, relative to the primary that the check compares it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalOrRemoteOwner {
    /// A local copy. Its properties do not contain its primary.
    Local,
    /// A remote copy that belongs to this primary.
    OfPrimary,
    /// A remote copy without the keys of its primary, or with the keys of a different primary than the one that derives
    /// it.
    OfAnother,
}

/// Compares the copy stored under a key with the copy that a primary derives for it. Returns `Missing`, `Stale`,
/// `Contested` or `Orphan`. Returns `None` if both are equal, or if the stored copy belongs to another primary and this
/// primary derives none.
pub(crate) fn copy_difference(
    wanted: Option<&Row>,
    found: Option<&Row>,
    ownership: LocalOrRemoteOwner,
    names: Names,
) -> Result<Option<FindingKind>> {
    Ok(match (wanted, found) {
        (Some(_), None) => Some(FindingKind::Missing),
        (Some(_), Some(_)) if ownership == LocalOrRemoteOwner::OfAnother => {
            Some(FindingKind::Contested)
        }
        (Some(wanted), Some(found)) => {
            let is_equal = match ownership {
                LocalOrRemoteOwner::Local => wanted.has_same_content(found),
                // The primary's ETag in a copy shows when the copy was written, not what it contains.
                _ => equal_except_version(found, wanted, names)?,
            };
            (!is_equal).then_some(FindingKind::Stale)
        }
        // Another primary's copy under a key that this primary does not derive is not a finding.
        (None, Some(_)) if ownership != LocalOrRemoteOwner::OfAnother => Some(FindingKind::Orphan),
        (None, _) => None,
    })
}

/// Returns how a list that contains the entry of a primary `times` times differs from its correct content, if
/// it does.
pub(crate) const fn entry_mismatch(is_wanted: bool, times: usize) -> Option<FindingKind> {
    match (is_wanted, times) {
        (true, 0) => Some(FindingKind::Missing),
        (false, 1..) => Some(FindingKind::Orphan),
        (true, 2..) => Some(FindingKind::Stale),
        (true, 1) | (false, 0) => None,
    }
}
