//! One operation on one row.

use crate::{
    error::Result,
    row::{ETag, Row},
};

/// What an operation does to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Create; fails where the row exists.
    Insert,
    /// Put in place of the existing row.
    Replace,
    /// Set the given properties of the existing row, leave the others.
    Merge,
    /// Create, or put in place of what is there.
    InsertOrReplace,
    /// Create, or set the given properties.
    InsertOrMerge,
    /// Remove.
    Delete,
}

/// The condition on the existing row: replace, merge and delete have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `If-Match: *`: the row has to exist, in any version.
    Any,
    /// `If-Match`: the row has to be in that version.
    Match(ETag),
}

impl Condition {
    /// On the version that was read; on any, where none is known.
    pub(crate) fn on(version: Option<ETag>) -> Self {
        version.map_or(Self::Any, Self::Match)
    }
}

/// One operation on one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    verb: Verb,
    row: Row,
    condition: Condition,
}

impl Operation {
    /// Creates the row.
    pub fn insert(row: Row) -> Self {
        Self { verb: Verb::Insert, row, condition: Condition::Any }
    }

    /// Creates the row or puts it in place of what is there.
    pub fn insert_or_replace(row: Row) -> Self {
        Self { verb: Verb::InsertOrReplace, row, condition: Condition::Any }
    }

    /// Creates the row or sets its properties.
    pub fn insert_or_merge(row: Row) -> Self {
        Self { verb: Verb::InsertOrMerge, row, condition: Condition::Any }
    }

    /// Puts the row in place of the existing one.
    pub fn replace(row: Row, condition: Condition) -> Self {
        Self { verb: Verb::Replace, row, condition }
    }

    /// Sets the row's properties on the existing one.
    pub fn merge(row: Row, condition: Condition) -> Self {
        Self { verb: Verb::Merge, row, condition }
    }

    /// Removes the row with these keys.
    ///
    /// # Errors
    ///
    /// `is_too_large` for keys that no row could have.
    pub fn delete(partition_key: &str, row_key: &str, condition: Condition) -> Result<Self> {
        let row = Row::build(partition_key, row_key).finish()?;
        Ok(Self { verb: Verb::Delete, row, condition })
    }

    /// The same operation with another form of its row.
    #[must_use]
    pub(crate) fn with_row(&self, row: Row) -> Self {
        Self { verb: self.verb, row, condition: self.condition.clone() }
    }

    /// What it does.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The row with what is written; for a delete, the keys alone.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// The condition; `None` for insert and the two upserts, which have none.
    pub fn condition(&self) -> Option<&Condition> {
        match self.verb {
            Verb::Replace | Verb::Merge | Verb::Delete => Some(&self.condition),
            Verb::Insert | Verb::InsertOrReplace | Verb::InsertOrMerge => None,
        }
    }

    /// Bytes that the operation may take in the body of a request, headers included: an upper
    /// bound, so that a batch below the limit is below it on the wire.
    ///
    /// # Errors
    ///
    /// What [`Row::check`] says of its row.
    pub fn request_bytes(&self) -> Result<usize> {
        let row = &self.row;
        let keys = row.key_bytes().map_or(0, |(partition, row)| partition.len() + row.len());
        let version = match self.condition() {
            Some(Condition::Match(etag)) => etag.to_string().len(),
            _ => 0,
        };
        Ok(HEADERS + version + KEY_BYTE * keys + row.request_bytes()?)
    }
}

/// Boundary, headers and the URL of one operation, without keys and ETag: at most some 600 bytes
/// with the longest account and table names.
const HEADERS: usize = 768;
/// Bytes for a byte of a key: `'` is `%27%27` in the URL, and once more in the JSON.
const KEY_BYTE: usize = 7;
