//! What a program talks to: clients, tables, sets, transactions, bulk writes.

#[cfg(feature = "azure")]
mod account;
mod builder;
pub(crate) mod bulk;
pub(crate) mod client;
pub(crate) mod dynamic;
pub(crate) mod move_to;
mod queue;
pub(crate) mod set;
pub(crate) mod set_write;
pub(crate) mod transaction;
mod transfer;
pub(crate) mod typed;
mod typed_write;

pub use builder::ClientBuilder;
pub use bulk::{
    Bulk, BulkChange, BulkReport, BulkVerb, Deletable, Failure, Progress, Rewritable, Writable,
    bulk_change,
};
pub use client::Client;
pub use dynamic::{DynamicTable, Selection};
pub use move_to::Moving;
pub use set::{SetOf, SetTable, reread_set};
pub use set_write::{other_removal, other_replacement, removal_of, replacement_of};
pub use transaction::{Committed, Transaction};
pub use transfer::Target;
pub use typed::Table;
