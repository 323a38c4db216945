//! Writes: single operations and entity group transactions, as one shape.

use std::collections::HashMap;

use crate::{
    error::{Error, Result, ServiceCode},
    limits,
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
    /// `is_corrupt` for a damaged row.
    pub fn request_bytes(&self) -> Result<usize> {
        const HEADERS: usize = 640;
        let row = &self.row;
        let keys = row.partition_key().len() + row.row_key().len();
        let mut bytes = HEADERS + 6 * keys;
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            bytes += 2 * name.len() + 32 + json_bytes(value);
        }
        Ok(bytes)
    }
}

/// Bytes of the value as JSON, an upper bound.
fn json_bytes(value: crate::edm::ValueRef<'_>) -> usize {
    use crate::edm::ValueRef;
    match value {
        ValueRef::String(text) => {
            let escaped = text.bytes().filter(|b| *b < 0x20 || matches!(b, b'"' | b'\\')).count();
            2 + text.len() + 5 * escaped
        }
        ValueRef::Binary(bytes) => 2 + bytes.len().div_ceil(3) * 4,
        _ => 40,
    }
}

/// One write: a single operation, or an entity group transaction of several.
///
/// Built empty and filled with [`push`](Self::push), which refuses what the service would refuse:
/// another partition, the same row twice, more than 100 operations, 4 MiB or more.
#[derive(Debug, Clone)]
pub struct Batch {
    table: String,
    operations: Vec<Operation>,
    rows: HashMap<String, usize>,
    bytes: usize,
}

/// Bytes around the operations of a batch.
const ENVELOPE: usize = 512;

impl Batch {
    /// An empty batch for that table.
    pub fn new(table: impl Into<String>) -> Self {
        Self { table: table.into(), operations: Vec::new(), rows: HashMap::new(), bytes: ENVELOPE }
    }

    /// A write of one operation.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn single(table: impl Into<String>, operation: Operation) -> Result<Self> {
        let table = table.into();
        operation.row.check().map_err(|error| error.in_table(&table))?;
        let bytes = ENVELOPE + operation.request_bytes()?;
        Ok(Self { table, operations: vec![operation], rows: HashMap::new(), bytes })
    }

    /// Adds an operation.
    ///
    /// # Errors
    ///
    /// `is_invalid` for another partition or the same row twice; `is_too_large` for the 101st
    /// operation, 4 MiB, or a row over the limits. [`Error::failed_index`] is its position.
    pub fn push(&mut self, operation: Operation) -> Result<()> {
        let index = self.operations.len();
        let bytes = self.admit(&operation).map_err(|error| {
            let row = operation.row();
            error
                .at_operation(index)
                .in_table(&self.table)
                .at_keys(row.partition_key(), row.row_key())
        })?;
        if let (1, Some(first)) = (index, self.operations.first()) {
            self.rows.insert(first.row.row_key().to_owned(), 0);
        }
        if index > 0 {
            self.rows.insert(operation.row.row_key().to_owned(), index);
        }
        self.bytes += bytes;
        self.operations.push(operation);
        Ok(())
    }

    fn admit(&self, operation: &Operation) -> Result<usize> {
        let row = operation.row();
        row.check()?;
        if let Some(first) = self.operations.first() {
            self.admit_beside(first, row)?;
        }
        if self.operations.len() == limits::BATCH_OPERATIONS {
            return Err(Error::service(
                ServiceCode::InvalidInput,
                format!(
                    "an entity group transaction has at most {} operations",
                    limits::BATCH_OPERATIONS
                ),
            ));
        }
        let bytes = operation.request_bytes()?;
        if self.bytes + bytes >= limits::REQUEST_BYTES {
            return Err(Error::service(
                ServiceCode::RequestBodyTooLarge,
                format!(
                    "the operations take {} bytes, an entity group transaction stays below {}",
                    self.bytes + bytes,
                    limits::REQUEST_BYTES
                ),
            ));
        }
        Ok(bytes)
    }

    fn admit_beside(&self, first: &Operation, row: &Row) -> Result<()> {
        if first.row.partition_key() != row.partition_key() {
            return Err(Error::service(
                ServiceCode::CommandsInBatchActOnDifferentPartitions,
                format!(
                    "an entity group transaction stays in one partition, and its first operation is in `{}`",
                    first.row.partition_key().escape_debug()
                ),
            ));
        }
        let earlier = if self.operations.len() == 1 {
            (first.row.row_key() == row.row_key()).then_some(0)
        } else {
            self.rows.get(row.row_key()).copied()
        };
        match earlier {
            None => Ok(()),
            Some(earlier) => Err(Error::service(
                ServiceCode::InvalidDuplicateRow,
                format!(
                    "an entity group transaction writes a row once, and operations {earlier} and {} write the same",
                    self.operations.len()
                ),
            )),
        }
    }

    /// Whether an operation on that row is in it.
    pub fn writes(&self, row_key: &str) -> bool {
        self.operations.iter().any(|operation| operation.row().row_key() == row_key)
    }

    /// Whether an operation of so many bytes still fits by count and size.
    pub fn has_room_for(&self, operations: usize, bytes: usize) -> bool {
        self.operations.len() + operations <= limits::BATCH_OPERATIONS
            && self.bytes + bytes < limits::REQUEST_BYTES
    }

    /// The table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The partition; empty for an empty batch.
    pub fn partition_key(&self) -> &str {
        self.operations.first().map(|first| first.row.partition_key()).unwrap_or_default()
    }

    /// The operations, in the order in which they were added.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// What became of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The HTTP status that the service answers with: 201 or 204.
    pub status: u16,
    /// The row's new version; `None` after a delete.
    pub etag: Option<ETag>,
}
