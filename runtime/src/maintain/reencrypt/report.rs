//! The progress and the report of a re-encryption.

use crate::{error::Error, page::Cursor, row::Row};

/// The counts of a re-encryption so far, and the cursor to resume it from.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ReencryptProgress {
    /// Rows that were read, including copies.
    pub rows: u64,
    /// Rows that were encrypted again.
    pub rewritten: u64,
    /// The cursor for [`Reencrypt::resume`](super::Reencrypt::resume). `None` at the end.
    pub cursor: Option<Cursor>,
}

/// A row that was not encrypted again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReencryptFailure {
    /// The PartitionKey of the row. Empty if the row cannot be decoded and the error has no keys.
    pub partition_key: String,
    /// The RowKey of the row. Empty if the row cannot be decoded and the error has no keys.
    pub row_key: String,
    /// Why the row was not encrypted again.
    pub error: Error,
}

impl ReencryptFailure {
    /// Creates the report of a row that does not decode, with the keys in the error. The keys are empty if the
    /// error has none.
    pub(super) fn undecodable(error: Error) -> Self {
        let (partition_key, row_key) = error.keys().unwrap_or_default();
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        Self { partition_key, row_key, error }
    }

    /// Creates the report of a row that was not encrypted again because of `error`.
    pub(super) fn of_row(row: &Row, error: Error) -> Self {
        let (partition_key, row_key) = row.keys();
        Self { partition_key: partition_key.to_owned(), row_key: row_key.to_owned(), error }
    }
}

/// The result of a re-encryption.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReencryptReport {
    /// Rows that were read, including copies.
    pub rows: u64,
    /// Rows that were encrypted again.
    pub rewritten: u64,
    /// Rows that still have to be encrypted again: the rows in [`failed`](Self::failed), and in a
    /// [dry run](super::Reencrypt::dry_run) also the rows that would be written.
    pub remaining: u64,
    /// Rows that were left unchanged because they cannot be decoded or decrypted, their encryption keys are
    /// unavailable, or they are too large when encrypted.
    pub failed: Vec<ReencryptFailure>,
}

impl ReencryptReport {
    /// Returns whether no row still has to be encrypted again, which means that [`remaining`](Self::remaining) is 0.
    /// The earlier encryption key is then no longer needed, if every writer used the new one before the
    /// re-encryption began.
    pub fn is_complete(&self) -> bool {
        self.remaining == 0
    }
}
