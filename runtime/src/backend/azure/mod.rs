//! Azure Table storage, Cosmos DB's Table API and the storage emulator.
//!
//! Only this folder knows the crates `azure_data_tables`, `azure_core` and `azure_storage`. Every
//! request goes through `azure_data_tables`. Rows, batches and answers have wire forms of their own in
//! `wire`, and this folder works around the faults of `azure_data_tables`, or returns an error where it
//! cannot; `docs/azure.md` lists them.

mod access_policy;
mod account_key;
mod wire;

mod credential;
mod endpoint;

mod call;
mod connection_string;

mod options;
mod transport;

mod account;
mod errors;

mod raw_request;

mod apply;
mod read;
mod screen;
mod scan;
mod tables;

mod backend;

mod policy_requests;
#[cfg(feature = "azure-queue")]
mod queue;

pub use access_policy::AccessPolicy;
pub use account_key::AccountKey;
pub use backend::Azure;
pub use options::AzureOptions;
#[cfg(feature = "azure-queue")]
pub(crate) use queue::{AzureQueues, QueueMessage};
pub(crate) use wire::encode_query_value;
