//! What a program talks to: clients, tables, queries, transactions, bulk writes.

mod atomic;
mod backoff;
mod bulk;
mod check;
mod client;
mod commit;
mod dynamic;
mod handle;
mod lists;
mod many;
mod query;
mod rebuild;
mod request;
mod write;

pub use atomic::{Atomic, Committed};
pub use bulk::{
    Bulk, BulkChange, BulkReport, BulkVerb, Deletable, Failure, Progress, Writable, bulk_change,
};
pub use check::{Check, CheckProgress, CheckReport, Finding, FindingKind};
pub use client::{Client, ClientBuilder};
pub use dynamic::{DynamicTable, Selection};
pub use handle::Table;
pub use many::QueryMany;
pub use query::{Condition, Explain, Items, PartialQuery, Queried, Query};
pub use rebuild::{Rebuild, RebuildProgress, RebuildReport};
