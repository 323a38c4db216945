//! Backends, which keep rows: the trait [`Backend`], its implementations, and layers that wrap a backend.
//!
//! A backend moves rows and knows no entity types.

mod not_sent;
mod request;

mod port;
mod row_rules;
mod page_bounds;
mod scan_range;

mod memory;

#[cfg(feature = "embedded")]
mod embedded;

#[cfg(feature = "azure-wire")]
pub mod azure;
pub mod layer;

#[cfg(feature = "embedded")]
pub use embedded::{
    Durability, Embedded, EmbeddedOptions, VerifyCopy, VerifyProgress, VerifyReport,
};
pub use memory::Memory;
pub use not_sent::NotSent;
pub use port::{Backend, BoxFuture, Snapshot};
pub(crate) use port::{no_backups_error, no_snapshots_error};
pub use request::{
    BackupReport, Capabilities, NameRange, ReadRequest, Rows, ScanRequest, TableCase, TableNames,
    TableRequest,
};
