//! Azure Table storage, Cosmos DB's Table API and the storage emulator.
//!
//! This module encodes and signs requests, sends them through a [`Transport`], and decodes and checks the answers. The
//! module `wire` defines the wire format. Only `reqwest_transport`, or the folder `data_tables` for `azure_data_tables`
//! 0.21, depends on the library that carries the bytes.

mod transport;
mod account_key;
mod call;
#[cfg_attr(
    not(any(feature = "azure", feature = "azure-data-tables")),
    allow(dead_code, reason = "a source of tokens comes with a transport")
)]
mod tokens;

mod credential;
mod endpoint;
mod connection_string;

mod http_settings;
#[cfg(feature = "azure")]
mod reqwest_transport;
#[cfg(feature = "azure-data-tables")]
mod data_tables;

mod options;
#[cfg(feature = "azure")]
mod identity;

mod account;
mod errors;

mod read;
mod screen;
mod scan;
mod apply;
mod tables;

mod backend;
mod primary_then_secondary;

mod policy_requests;
mod delegation_key;
#[cfg(feature = "azure-queue")]
mod queue;

pub use account_key::AccountKey;
pub(crate) use account_key::EMULATOR_KEY;
pub use backend::Azure;
pub use delegation_key::UserDelegationKey;
pub use options::{AzureOptions, Carrier};
pub use primary_then_secondary::PrimaryThenSecondary;
#[cfg(feature = "azure-queue")]
pub(crate) use queue::{AzureQueues, QueueMessage};
pub use transport::{AnswerBody, HttpAnswer, HttpRequest, Method, SendFailure, Transport};
