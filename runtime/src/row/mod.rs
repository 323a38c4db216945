//! Defines stored rows: their bytes, how they are built, read and checked, and their ETags.

mod etag;
mod read;
mod row_bytes;
mod compact_row;
mod build;
mod check;
pub(crate) mod json;

pub use build::RowBuilder;
pub(crate) use check::json_text_length;
pub use compact_row::Row;
pub(crate) use compact_row::property_name_from_utf8;
pub use etag::ETag;
pub use read::PropertyReader;
pub(crate) use read::corrupt_row_error;
pub(crate) use row_bytes::RowBytes;

/// The property with the id of the request that wrote a row, if the client adds such ids. It belongs to
/// the request and not to the entity, so that equal entities can differ in it.
pub(crate) const OPERATION_ID: &str = "OpId";
