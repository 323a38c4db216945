//! Defines stored rows: their bytes, how they are built, read and checked, and their ETags.

mod etag;
pub(crate) mod read;
pub(crate) mod row_bytes;
pub(crate) mod compact_row;
mod build;
mod column_set;
mod columns;
mod column_values;
mod row_buffer;
mod check;
pub(crate) mod json;

pub use build::RowBuilder;
pub(crate) use check::json_text_length;
pub use column_set::{ColumnSet, MAX_COLUMNS};
pub use column_values::ColumnValues;
pub use columns::{Columns, RowColumn, ValuePlace};
pub use compact_row::Row;
pub use etag::{ETag, Location};
pub(crate) use read::corrupt_row_error;
pub use read::{PropertyReader, RawProperty};
pub use row_buffer::RowBuffer;
pub use row_bytes::RowBytes;

use crate::{edm::ValueRef, error::Error};

/// Adds the row's keys to an error.
pub fn error_with_row_keys(row: &Row, error: Error) -> Error {
    error.at_keys(row.partition_key(), row.row_key())
}

/// The property with the id of the request that wrote a row, if the client adds such ids.
pub const OPERATION_ID: &str = "OpId";

/// The length of the id of a request in bytes.
pub(crate) const OPERATION_ID_BYTES: usize = 12;

/// Returns whether a property is the id of the request that wrote its row: `OpId`, a Binary of 12 bytes. The
/// id belongs to the request, not to the entity, so equal entities can have different ids. An `OpId` of
/// another type or length is a property of the entity.
pub fn is_operation_id(name: &[u8], value: ValueRef<'_>) -> bool {
    name == OPERATION_ID.as_bytes()
        && matches!(value, ValueRef::Binary(id) if id.len() == OPERATION_ID_BYTES)
}
