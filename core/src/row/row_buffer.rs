//! Makes rows that share their columns, and mostly their buffer, with other rows.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::{
    Row,
    column_set::ColumnSet,
    column_values::ColumnValues,
    columns::Columns,
    row_bytes::{HEADER, header_of},
};
use crate::edm::Ticks;

/// The size of the pieces of memory that rows of a page share. Whoever keeps one row keeps its piece, so it is small. The
/// cache that a thread has in glibc also holds no larger ones.
const SHARED_BYTES: usize = 1_024;

/// Memory for rows that are made one after the other. Small rows share it in pieces of 1 KiB.
///
/// ```
/// use std::sync::Arc;
///
/// use entable_core::{
///     EdmType, Ticks, ValueRef,
///     row::{RowColumn, ColumnValues, Columns, RowBuffer},
/// };
///
/// let Some(columns) = Columns::new(vec![RowColumn::new("Age", EdmType::Int32)]) else { return Ok(()) };
/// let columns = Arc::new(columns);
/// let Some(values) = ColumnValues::parse(&columns, &[1, 34, 0, 0, 0]) else { return Ok(()) };
/// let mut rows = RowBuffer::shared();
/// let row = rows.add(("Sales", "223"), Ticks::UNIX_EPOCH, &columns, &values, columns.all());
/// assert_eq!(row.unwrap().get("Age")?, Some(ValueRef::Int32(34)));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RowBuffer {
    free: BytesMut,
    /// The size of the next piece, if the next row is not larger.
    piece: usize,
}

impl RowBuffer {
    /// Creates a buffer for the rows of a page.
    pub fn shared() -> Self {
        Self { free: BytesMut::new(), piece: SHARED_BYTES }
    }

    /// Creates a buffer for one row, which takes no more memory than it needs.
    pub fn single() -> Self {
        Self::default()
    }

    /// Makes a row from values by columns, with the selected properties. Returns `None` for a key of over 65,535 bytes.
    pub fn add(
        &mut self,
        (partition_key, row_key): (&str, &str),
        timestamp: Ticks,
        columns: &Arc<Columns>,
        values: &ColumnValues<'_>,
        selected: ColumnSet,
    ) -> Option<Row> {
        let header = header_of(timestamp, partition_key, row_key)?;
        let keys = partition_key.len() + row_key.len();
        let bytes = HEADER + keys + values.selected_bytes(selected);
        if self.free.capacity() < bytes {
            self.free = BytesMut::with_capacity(self.piece.max(bytes));
        }
        self.free.extend_from_slice(&header);
        self.free.extend_from_slice(partition_key.as_bytes());
        self.free.extend_from_slice(row_key.as_bytes());
        values.put_selected(selected, &mut self.free);
        Some(Row::from_columns(self.take_written(), columns))
    }

    /// Takes what was written, and leaves the rest of the piece for other rows.
    fn take_written(&mut self) -> Bytes {
        let written = if self.free.len() == self.free.capacity() {
            std::mem::take(&mut self.free)
        } else {
            self.free.split()
        };
        written.freeze()
    }
}
