//! Makes rows that share their columns with other rows. Small rows also share memory.

use std::sync::Arc;

use bytes::BytesMut;

use super::{
    Row,
    column_set::ColumnSet,
    column_values::ColumnValues,
    columns::Columns,
    row_bytes::{HEADER, header_of},
};
use crate::edm::Ticks;

/// The size of the pieces of memory that rows of a page share. Whoever keeps one row keeps its piece, so it is small. In
/// glibc, each thread caches freed memory of up to this size.
const SHARED_BYTES: usize = 1_024;

/// Memory for rows that are made one after the other. Rows of up to 256 bytes share it in pieces of 1 KiB.
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
    /// The unused end of the last piece.
    free: BytesMut,
    /// The size of a piece. A row that takes more than a quarter has memory of its own.
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

    /// Makes a row from values of these columns, with the selected properties. Returns `None` for a key of over 65,535
    /// bytes, and if the values are of other columns.
    pub fn add(
        &mut self,
        (partition_key, row_key): (&str, &str),
        timestamp: Ticks,
        columns: &Arc<Columns>,
        values: &ColumnValues<'_>,
        selected: ColumnSet,
    ) -> Option<Row> {
        if !std::ptr::eq(&**columns, values.columns()) {
            return None;
        }
        let header = header_of(timestamp, partition_key, row_key)?;
        let keys = partition_key.len() + row_key.len();
        let bytes = HEADER + keys + values.selected_bytes(selected);
        let is_shared = bytes <= self.piece / 4;
        let mut own = BytesMut::new();
        if !is_shared {
            own.reserve(bytes);
        } else if self.free.capacity() < bytes {
            self.free = BytesMut::with_capacity(self.piece);
        }
        let memory = if is_shared { &mut self.free } else { &mut own };
        memory.extend_from_slice(&header);
        memory.extend_from_slice(partition_key.as_bytes());
        memory.extend_from_slice(row_key.as_bytes());
        values.put_selected(selected, memory);
        let written = if is_shared { self.free.split() } else { own };
        Some(Row::from_columns(written.freeze(), columns))
    }
}
