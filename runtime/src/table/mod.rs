//! What a program talks to: clients, tables, queries, transactions, bulk writes.

#[cfg(feature = "azure")]
mod account;
mod asked;
mod transaction;
pub(crate) mod backoff;
mod blind;
mod builder;
mod bulk;
mod check;
mod claimable;
mod client;
mod commit;
mod decode;
mod dynamic;
mod explain;
mod handle;
mod lists;
mod lookup;
mod many;
mod moving;
mod partial;
pub(crate) mod outbox;
mod query;
mod queue;
mod rebuild;
#[cfg(feature = "encrypt")]
mod reencrypt;
mod request;
mod resolve;
mod run;
mod set;
mod taken;
mod transfer;
mod upgrade;
mod variants;
mod vouched;
#[cfg_attr(not(feature = "encrypt"), allow(dead_code, reason = "used where rows are sealed"))]
pub(crate) mod vault;
mod write;

pub use builder::ClientBuilder;
pub use bulk::{
    Bulk, BulkChange, BulkReport, BulkVerb, Deletable, Failure, Progress, Rewritable, Writable,
    bulk_change,
};
pub use check::{Check, CheckProgress, CheckReport, Finding, FindingKind};
pub use client::Client;
pub use dynamic::{DynamicTable, Selection};
pub use explain::Explain;
pub use handle::Table;
pub use lookup::Lookup;
pub use many::QueryMany;
pub use moving::Moving;
pub use outbox::{Guard, OutboxOptions};
pub use partial::PartialQuery;
pub use query::{Condition, Items, Queried, Query};
pub use rebuild::{Rebuild, RebuildProgress, RebuildReport};
#[cfg(feature = "encrypt")]
pub use reencrypt::{Reencrypt, ReencryptProgress, ReencryptReport, Unsealed};
pub use set::{SetOf, SetTable, reread_set};
pub use transaction::{Committed, Transaction};
pub use transfer::Target;
pub use upgrade::Upgrade;
pub use variants::{other_removal, other_replacement, removal_of, replacement_of};
pub use vault::PlaintextPolicy;
