//! What a program talks to: clients, tables, queries, transactions, bulk writes.

mod atomic;
mod backoff;
mod blind;
mod bulk;
mod check;
mod client;
mod commit;
mod decode;
mod dynamic;
mod handle;
mod lists;
mod lookup;
mod many;
mod query;
mod rebuild;
#[cfg(feature = "encrypt")]
mod reencrypt;
mod request;
mod resolve;
mod set;
mod upgrade;
#[cfg_attr(not(feature = "encrypt"), allow(dead_code, reason = "used where rows are sealed"))]
mod vault;
mod write;

pub use atomic::{Atomic, Committed};
pub use bulk::{
    Bulk, BulkChange, BulkReport, BulkVerb, Deletable, Failure, Progress, Rewritable, Writable,
    bulk_change, removal_of, replacement_of,
};
pub use check::{Check, CheckProgress, CheckReport, Finding, FindingKind};
pub use client::{Client, ClientBuilder};
pub use dynamic::{DynamicTable, Selection, other_removal, other_replacement};
pub use handle::Table;
pub use lookup::Lookup;
pub use many::QueryMany;
pub use query::{Condition, Explain, Items, PartialQuery, Queried, Query};
pub use rebuild::{Rebuild, RebuildProgress, RebuildReport};
#[cfg(feature = "encrypt")]
pub use reencrypt::{Reencrypt, ReencryptProgress, ReencryptReport, Unsealed};
pub use set::{SetOf, SetTable};
pub use upgrade::Upgrade;
pub use vault::PlaintextPolicy;
