//! A durable, transactional backend in one file that follows the service's rules.
//!
//! Only this folder knows the storage engine, redb. One thread writes. Readers share a snapshot, which the writer
//! replaces after each commit. Readers and the writer never wait for each other.

mod layout;
mod engine_panic;
mod store_file;
mod options;

mod engine_header;
mod file_copy;
mod watched_file;
mod overlay;
mod mark;

mod catalog;
mod unfinished_file;
mod open_file;
mod row_changes;

mod group;
mod job;
mod snapshot;

mod scan;
mod backup;
mod frozen;
mod writer_store;

mod maintenance;
mod writer;

mod handle;
mod verify_copy;

#[cfg(test)]
mod tests;

pub use handle::Embedded;
pub use options::{Durability, EmbeddedOptions};
pub use verify_copy::{VerifyCopy, VerifyProgress, VerifyReport};
