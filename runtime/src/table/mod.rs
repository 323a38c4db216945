//! The types that programs call: clients, tables, sets, transactions, bulk writes.
//!
//! A file uses only files whose `mod` lines come before its own.

#[cfg(feature = "azure-wire")]
mod account;
pub(crate) mod client;
mod builder;
#[cfg(feature = "azure-wire")]
mod sas;
mod queue;
#[cfg(feature = "blob")]
mod log;
pub(crate) mod job;
pub(crate) mod writable;
pub(crate) mod bulk;
pub(crate) mod transaction;
mod row_verbs;
pub(crate) mod typed;
pub(crate) mod every_table;
mod typed_write;
#[cfg(feature = "blob")]
mod blob_content;
#[cfg(feature = "blob")]
mod sweep_blobs;
pub(crate) mod move_to;
mod transfer;
#[cfg(feature = "blob")]
mod blob_target;
pub(crate) mod dynamic;
pub(crate) mod set;
pub(crate) mod set_write;

#[cfg(feature = "blob")]
pub use blob_content::BlobReader;
#[cfg(feature = "blob")]
pub use blob_target::BlobTarget;
pub use builder::ClientBuilder;
pub use bulk::{Bulk, BulkReport, DeleteAll, Failure, Progress};
pub use client::Client;
pub use dynamic::{DynamicTable, RowSelection};
pub use move_to::Moving;
pub use set::{SetOf, SetTable};
#[cfg(feature = "blob")]
pub use sweep_blobs::{SweepBlobs, SweptBlobs};
pub use transaction::{Committed, Transaction};
pub use transfer::Target;
pub use typed::Table;
pub use writable::{BulkChange, BulkVerb, Deletable, Rewritable, Writable};
