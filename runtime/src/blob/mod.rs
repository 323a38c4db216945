//! Blobs: logs, lists and large values that are stored outside of the table, in a store of the crate
//! `object_store`.
//!
//! A writer replaces a list's blob only in the version that it read. It writes a value's blob only once.
//! `docs/outbox.md` specifies names and formats.

mod beside;
mod store_error;
mod parts;
pub(crate) mod object;
pub(crate) mod in_process;
pub(crate) mod blobs;
pub(crate) mod archive;
pub(crate) mod log;
pub(crate) mod content;
mod as_port;
pub(crate) mod sealed;

pub(crate) use self::blobs::{Blobs, UserBlobStore};
pub use log::{
    BlobLog, DamagedLine, Flush, LogBlobName, LogReader, LogRecord, LogRecords, LogWriter,
};
