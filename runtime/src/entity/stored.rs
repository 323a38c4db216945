//! An entity together with the row that it came from.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use time::OffsetDateTime;

use crate::row::{ETag, Row};

/// A value as it is stored: what was read or written, with keys, ETag and Timestamp.
///
/// It derefs to the value, so that fields are read and changed in place; the row that it came from
/// stays beside it and knows the old keys.
#[derive(Clone)]
pub struct Stored<T> {
    value: T,
    row: Row,
    status: u16,
}

impl<T> Stored<T> {
    pub(crate) fn new(value: T, row: Row, status: u16) -> Self {
        Self { value, row, status }
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

    /// The value alone.
    pub fn into_inner(self) -> T {
        self.value
    }

    pub(crate) fn try_map<U>(
        self,
        map: impl FnOnce(T) -> crate::Result<U>,
    ) -> crate::Result<Stored<U>> {
        Ok(Stored { value: map(self.value)?, row: self.row, status: self.status })
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
