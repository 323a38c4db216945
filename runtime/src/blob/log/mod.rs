//! Logs in blobs: one folder for each hour, one line for each record. `docs/patterns/log-data.md`
//! specifies names and lines.
//!
//! Each module here uses only the modules that are declared above it.

mod hour;
mod name;
mod record;
mod flush;
mod buffer;
mod source;
mod store_part;
mod writer;
mod reader;
mod blob_log;

pub use blob_log::BlobLog;
pub use flush::Flush;
pub use name::LogBlobName;
pub use reader::{DamagedLine, LogReader, LogRecords};
pub use record::LogRecord;
pub use writer::LogWriter;
