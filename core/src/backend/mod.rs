//! Backends, which keep rows: the trait [`Backend`], the store in memory, and layers that wrap a backend.
//!
//! A backend moves rows and knows no entity types.

mod not_sent;
mod request;
mod snapshot;

pub(crate) mod port;
pub mod rules;

mod memory;
pub mod layer;

pub use memory::Memory;
pub use not_sent::NotSent;
pub use port::{Backend, BoxFuture, no_settings_error, no_snapshots_error};
pub use request::{
    BackupReport, Capabilities, NameRange, ReadRequest, Rows, ScanRequest, TableCase, TableNames,
    TableRequest,
};
pub use snapshot::{FrozenRows, Snapshot};
