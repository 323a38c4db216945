//! An entity together with the row that it came from.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use time::OffsetDateTime;

use super::Pending;
use crate::{
    error::Result,
    key::{Family, FamilyKind},
    row::{ETag, Row},
};

/// A value as it is stored: what was read or written, with keys, ETag and Timestamp.
///
/// It derefs to the value, so that fields are read and changed in place; the row that it came from
/// stays beside it and knows the old keys.
#[derive(Clone)]
pub struct Stored<T> {
    value: T,
    row: Row,
    status: u16,
    /// The family of the row, where it is not the primary.
    copy: Option<&'static Family>,
    /// What the write that it came from still does.
    pending: Pending,
}

impl<T> Stored<T> {
    pub(crate) fn new(value: T, row: Row, status: u16) -> Self {
        Self { value, row, status, copy: None, pending: Pending::default() }
    }

    /// A value that was read from a row of that family.
    pub(crate) fn read(value: T, row: Row, family: &'static Family) -> Self {
        let copy = (family.kind != FamilyKind::Primary).then_some(family);
        Self { value, row, status: 200, copy, pending: Pending::default() }
    }

    /// The same value, of a write that goes on.
    pub(crate) fn with_pending(self, pending: Pending) -> Self {
        Self { pending, ..self }
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Returns when the copies in other partitions of the write that it came from are written; at
    /// once for a value that was read.
    ///
    /// # Errors
    ///
    /// `is_contended` where they were left to a worker; what stopped the writer otherwise. The write
    /// itself was committed.
    pub async fn wait_for_copies(&self) -> Result<()> {
        self.pending.wait().await
    }

    /// The index whose copy it was read through; `None`: it is the entity's own row.
    ///
    /// A copy carries no token for writing: writing it reads the primary first.
    pub fn index(&self) -> Option<&'static str> {
        self.copy.map(|family| family.name)
    }

    pub(crate) fn copy(&self) -> Option<&'static Family> {
        self.copy
    }

    /// The PartitionKey that it is stored under.
    pub fn partition_key(&self) -> &str {
        self.row.partition_key()
    }

    /// The RowKey that it is stored under.
    pub fn row_key(&self) -> &str {
        self.row.row_key()
    }

    /// The version that was read or written.
    pub fn etag(&self) -> ETag {
        self.row.etag().unwrap_or_else(|| ETag::from(""))
    }

    /// When it was written last; `None` right after a write, whose answer does not tell.
    pub fn timestamp(&self) -> Option<OffsetDateTime> {
        self.row.timestamp().map(OffsetDateTime::from)
    }

    /// The HTTP status of the request that it came from: 200 for a read, 201 or 204 for a write.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The row that it was read from or written as.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// The same row with a value that is made of its value.
    pub(crate) fn try_map<U>(self, change: impl FnOnce(T, &Row) -> Result<U>) -> Result<Stored<U>> {
        let value = change(self.value, &self.row)?;
        Ok(Stored {
            value,
            row: self.row,
            status: self.status,
            copy: self.copy,
            pending: self.pending,
        })
    }

    /// The value alone.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Stored<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("value", &self.value)
            .field("row", &self.row)
            .field("status", &self.status)
            .finish()
    }
}
