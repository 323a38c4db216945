//! Writes: single operations and entity group transactions, as one shape.

mod operation;

use std::sync::Arc;

pub use operation::{Condition, Operation, Verb};

use crate::{
    error::{Error, ErrorKind, Result, ServiceCode},
    limits,
    row::{ETag, Row},
};

/// One write: a single operation, or an entity group transaction of several.
///
/// Built empty and filled with [`push`](Self::push), which refuses what the service would refuse:
/// another partition, the same row twice, more than 100 operations, 4 MiB or more.
///
/// ```
/// use entable::{Batch, Operation, Row};
///
/// let mut batch = Batch::new("Staff");
/// batch.push(Operation::insert(Row::build("Sales", "1").finish()?))?;
/// let error = batch.push(Operation::insert(Row::build("Sales", "1").finish()?)).unwrap_err();
/// assert_eq!(error.code(), Some("InvalidDuplicateRow"));
/// assert_eq!(error.failed_index(), Some(1));
/// assert_eq!(batch.len(), 1);
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batch {
    table: String,
    /// Shared with the store that a batch waits for.
    operations: Arc<Vec<Operation>>,
    /// Positions of the operations, sorted by RowKey: how a row that comes twice is found.
    by_row: Vec<usize>,
    bytes: usize,
}

/// Bytes around the operations of a batch.
const ENVELOPE: usize = 512;

impl Batch {
    /// An empty batch for that table.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            operations: Arc::default(),
            by_row: Vec::new(),
            bytes: ENVELOPE,
        }
    }

    /// A write of one operation.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), without a position.
    pub fn single(table: impl Into<String>, operation: Operation) -> Result<Self> {
        let mut batch = Self::new(table);
        batch.add(operation)?;
        Ok(batch)
    }

    /// Adds an operation.
    ///
    /// # Errors
    ///
    /// `is_invalid` for another partition or the same row twice; `is_too_large` for 4 MiB or a row
    /// over the limits, `is_invalid` for the 101st operation. [`Error::failed_index`] is its
    /// position.
    pub fn push(&mut self, operation: Operation) -> Result<()> {
        let index = self.operations.len();
        self.add(operation).map_err(|error| error.at_operation(index))
    }

    fn add(&mut self, operation: Operation) -> Result<()> {
        let row = operation.row();
        let place =
            |error: Error| error.in_table(&self.table).at_keys(row.partition_key(), row.row_key());
        let bytes = operation.request_bytes().map_err(place)?;
        self.check_count().map_err(place)?;
        self.check_partition(row).map_err(place)?;
        let slot = self.slot_of(row).map_err(place)?;
        self.bytes = self.grown_by(bytes).map_err(place)?;
        self.by_row.insert(slot, self.operations.len());
        Arc::make_mut(&mut self.operations).push(operation);
        Ok(())
    }

    fn check_count(&self) -> Result<()> {
        let (count, limit) = (self.operations.len() + 1, limits::BATCH_OPERATIONS);
        if count <= limit {
            return Ok(());
        }
        let message = format!("the batch has {count} operations, the limit is {limit}");
        // The service says `InvalidInput`; what a caller acts on is the size.
        Err(Error::new(ErrorKind::TooLarge, message).with_code(ServiceCode::InvalidInput))
    }

    fn check_partition(&self, row: &Row) -> Result<()> {
        match self.operations.first() {
            Some(first) if partition_of(first.row()) != partition_of(row) => {
                let message = format!(
                    "a batch stays in one partition, and operation 0 is in `{}`",
                    first.row().partition_key().escape_debug()
                );
                Err(Error::service(ServiceCode::CommandsInBatchActOnDifferentPartitions, message))
            }
            _ => Ok(()),
        }
    }

    /// Where the row belongs in the order of RowKeys, if it is not there yet.
    fn slot_of(&self, row: &Row) -> Result<usize> {
        // Bytes, not text: they were checked, and UTF-8 sorts as its characters do.
        let key_at = |position: usize| self.operations.get(position)?.row().key_bytes();
        let sought = row.key_bytes();
        let found = self.by_row.binary_search_by(|position| key_at(*position).cmp(&sought));
        let earlier = match found {
            Err(slot) => return Ok(slot),
            Ok(slot) => self.by_row.get(slot).copied().unwrap_or_default(),
        };
        let message = format!(
            "a batch writes a row once, and operations {earlier} and {} write the same",
            self.operations.len()
        );
        Err(Error::service(ServiceCode::InvalidDuplicateRow, message))
    }

    /// The size with an operation of so many bytes.
    fn grown_by(&self, bytes: usize) -> Result<usize> {
        let (bytes, limit) = (self.bytes + bytes, limits::REQUEST_BYTES);
        if bytes < limit {
            return Ok(bytes);
        }
        let message =
            format!("the batch may take {bytes} bytes on the wire, and has to stay below {limit}");
        Err(Error::service(ServiceCode::RequestBodyTooLarge, message))
    }

    /// Bytes that the batch may take in the body of a request: an upper bound.
    pub fn request_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether so many operations of so many bytes together still fit.
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
        self.operations.first().map(|first| first.row().partition_key()).unwrap_or_default()
    }

    /// The operations, in the order in which they were added.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations, for a store that keeps them beyond the request.
    #[cfg(feature = "embedded")]
    pub(crate) fn shared(&self) -> Arc<Vec<Operation>> {
        self.operations.clone()
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

fn partition_of(row: &Row) -> Option<&[u8]> {
    row.key_bytes().map(|(partition_key, _)| partition_key)
}

/// What became of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The HTTP status that the service answers with: 201 or 204.
    pub status: u16,
    /// The row's new version; `None` after a delete.
    pub etag: Option<ETag>,
}
