//! Defines [`Batch`], a single operation or several as one entity group transaction.

use std::sync::Arc;

use super::{Deadline, Operation};
use crate::{
    edm::Ticks,
    error::{Error, ErrorKind, Result, ServiceCode},
    limits,
    row::{ETag, Row},
};

/// One write to a table: a single operation, or an entity group transaction of several.
///
/// [`push`](Self::push) adds operations and refuses what the service would refuse: a row of another
/// partition, a row that the batch writes already, more than 100 operations, or 4 MiB and more.
///
/// ```
/// use entable_core::{Batch, Operation, Row};
///
/// let mut batch = Batch::new("Staff");
/// batch.push(Operation::insert(Row::build("Sales", "1").finish()?))?;
/// let error = batch.push(Operation::insert(Row::build("Sales", "1").finish()?)).unwrap_err();
/// assert_eq!(error.code(), Some("InvalidDuplicateRow"));
/// assert_eq!(error.failed_index(), Some(1));
/// assert_eq!(batch.len(), 1);
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batch {
    table: String,
    /// The operations, in an `Arc` that a store can keep after the batch is dropped.
    operations: Arc<Vec<Operation>>,
    /// Indices of the operations, sorted by RowKey, to find rows that are written twice.
    by_row: Vec<usize>,
    bytes: usize,
    deadline: Option<Deadline>,
}

/// Most bytes of the request body around the operations.
const ENVELOPE_BYTES: usize = 512;

impl Batch {
    /// Creates an empty batch for a table.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            operations: Arc::default(),
            by_row: Vec::new(),
            bytes: ENVELOPE_BYTES,
            deadline: None,
        }
    }

    /// Creates a batch of one operation.
    ///
    /// # Errors
    ///
    /// Fails like [`push`](Self::push), but the error names no operation.
    pub fn single(table: impl Into<String>, operation: Operation) -> Result<Self> {
        let mut batch = Self::new(table);
        batch.add(operation)?;
        Ok(batch)
    }

    /// Sets the latest time to send the batch.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Deadline>) -> Self {
        Self { deadline, ..self }
    }

    /// Returns the latest time to send the batch, if one was set.
    pub fn deadline(&self) -> Option<&Deadline> {
        self.deadline.as_ref()
    }

    /// Fails if the batch may not be sent any more. Backends call this right before the bytes of a
    /// request leave, or before they change a row.
    ///
    /// # Errors
    ///
    /// `is_contended` after the deadline.
    pub fn check_deadline(&self) -> Result<()> {
        self.deadline.as_ref().map_or(Ok(()), Deadline::check)
    }

    /// Adds an operation.
    ///
    /// # Errors
    ///
    /// `is_invalid` if the row is in another partition or is written by the batch already;
    /// `is_too_large` for the 101st operation, for a batch of 4 MiB and more, and for a row above the
    /// service's limits. [`Error::failed_index`] is the operation's index; for the 101st operation, it
    /// is 99, as in the service's own error.
    pub fn push(&mut self, operation: Operation) -> Result<()> {
        let index = self.operations.len();
        self.add(operation).map_err(|error| match error.failed_index() {
            Some(_) => error,
            None => error.at_operation(index),
        })
    }

    fn add(&mut self, operation: Operation) -> Result<()> {
        let row = operation.row();
        let place =
            |error: Error| error.in_table(&self.table).at_keys(row.partition_key(), row.row_key());
        let bytes = operation.request_bytes().map_err(place)?;
        self.check_count().map_err(place)?;
        self.check_partition(row).map_err(place)?;
        // Sorted by key, to find a row that is written twice without searching all operations.
        let slot = self.insert_position(row).map_err(place)?;
        self.bytes = self.size_with(bytes).map_err(place)?;
        self.by_row.insert(slot, self.operations.len());
        // Copied only if a store still shares the operations.
        Arc::make_mut(&mut self.operations).push(operation);
        Ok(())
    }

    fn check_count(&self) -> Result<()> {
        let (count, limit) = (self.operations.len() + 1, limits::BATCH_OPERATIONS);
        if count <= limit {
            return Ok(());
        }
        let message = format!("the batch has {count} operations, the limit is {limit}");
        // The service's code is `InvalidInput`, but the caller has to make the batch smaller. The service
        // names the last operation that it takes, not the first one that is too many.
        let error = Error::new(ErrorKind::TooLarge, message).with_code(ServiceCode::InvalidInput);
        Err(error.at_operation(limit - 1))
    }

    fn check_partition(&self, row: &Row) -> Result<()> {
        match self.operations.first() {
            Some(first) if partition_of(first.row()) != partition_of(row) => {
                let message = format!(
                    "all operations of a batch must be in one partition, and operation 0 is in `{}`",
                    first.row().partition_key().escape_debug()
                );
                Err(Error::service(ServiceCode::CommandsInBatchActOnDifferentPartitions, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the row's position among the batch's rows in RowKey order. Fails if the batch already writes
    /// the row.
    fn insert_position(&self, row: &Row) -> Result<usize> {
        // Keys are compared as bytes: they are valid UTF-8, which sorts as its characters do.
        let key_at = |position: usize| self.operations.get(position)?.row().key_bytes();
        let sought = row.key_bytes();
        let found = self.by_row.binary_search_by(|position| key_at(*position).cmp(&sought));
        let earlier = match found {
            Err(slot) => return Ok(slot),
            Ok(slot) => self.by_row.get(slot).copied().unwrap_or_default(),
        };
        let message = format!(
            "operations {earlier} and {} write the same row, but a batch may write a row only once",
            self.operations.len()
        );
        Err(Error::service(ServiceCode::InvalidDuplicateRow, message))
    }

    /// Returns the size of the batch with one more operation of `bytes` bytes. Fails at 4 MiB.
    fn size_with(&self, bytes: usize) -> Result<usize> {
        let (bytes, limit) = (self.bytes + bytes, limits::REQUEST_BYTES);
        if bytes < limit {
            return Ok(bytes);
        }
        let message =
            format!("the batch may take {bytes} bytes on the wire, but must stay below {limit}");
        Err(Error::service(ServiceCode::RequestBodyTooLarge, message))
    }

    /// Returns an upper bound of the bytes that the batch takes in a request body.
    pub fn request_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether this many more operations, of this many bytes together, still fit.
    pub fn has_room_for(&self, operations: usize, bytes: usize) -> bool {
        self.operations.len() + operations <= limits::BATCH_OPERATIONS
            && self.bytes + bytes < limits::REQUEST_BYTES
    }

    /// Returns the name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Returns the PartitionKey of all operations, or an empty text for an empty batch.
    pub fn partition_key(&self) -> &str {
        self.operations.first().map(|first| first.row().partition_key()).unwrap_or_default()
    }

    /// Returns the operations in the order they were added.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns the operations for a store that keeps them longer than the request, without copying
    /// them.
    ///
    /// ```
    /// use entable_core::{Batch, Operation, Row};
    ///
    /// let batch = Batch::single("Staff", Operation::insert(Row::build("Sales", "223").finish()?))?;
    /// assert_eq!(*batch.operations_arc(), batch.operations());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn operations_arc(&self) -> Arc<Vec<Operation>> {
        self.operations.clone()
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

fn partition_of(row: &Row) -> Option<&[u8]> {
    row.key_bytes().map(|(partition_key, _)| partition_key)
}

/// The result of one operation of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The HTTP status of the operation: 201 or 204.
    pub status: u16,
    /// The row's new ETag. `None` after a delete, or if the answer was lost and another writer may have
    /// changed the row since.
    pub etag: Option<ETag>,
    /// The time of the write. `None` after a delete, or if the ETag does not contain it.
    pub timestamp: Option<Ticks>,
}

impl Written {
    /// Creates the answer from an HTTP status and the row's new ETag. The Timestamp is read from
    /// the ETag, and is `None` if the ETag does not contain it.
    pub fn new(status: u16, etag: Option<ETag>) -> Self {
        let timestamp = etag.as_ref().and_then(ETag::timestamp);
        Self { status, etag, timestamp }
    }

    /// Returns the answer to a write of one operation.
    ///
    /// ```
    /// use entable_core::Written;
    ///
    /// let written = Written::of_single_operation(vec![Written::new(204, None)])?;
    /// assert_eq!(written.status, 204);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Backend`] if the backend returned no answer.
    pub fn of_single_operation(mut written: Vec<Self>) -> Result<Self> {
        written
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::Backend, "the backend returned no answer"))
    }

    /// Returns the written row with its new ETag. The row has no Timestamp until it is read again.
    ///
    /// ```
    /// use entable_core::{ETag, Row, Ticks, Written};
    ///
    /// let etag = ETag::from_timestamp(Ticks::UNIX_EPOCH);
    /// let row = Written::new(204, Some(etag.clone())).row_with_written_etag(Row::build("Sales", "223").finish()?);
    /// assert_eq!(row.etag(), Some(etag));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn row_with_written_etag(&self, row: Row) -> Row {
        match &self.etag {
            Some(etag) => row.with_etag(etag.clone()),
            None => row,
        }
    }
}
