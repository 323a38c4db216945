//! The protocol of Azure Table storage, and its client: a backend for [entable] on Azure, on Cosmos DB's Table API and on
//! the storage emulator, shared access signatures, and Azure Storage queues.
//!
//! Programs use `entable`, which re-exports these types in its modules `backend::azure`, `sas` and `queue`. A server of
//! the protocol uses the module [`wire`], which needs no HTTP client.
//!
//! [entable]: https://docs.rs/entable

// The client encodes and signs requests, sends them through a `Transport`, and decodes and checks the answers. Only
// `reqwest_transport`, or the folder `data_tables` for `azure_data_tables` 0.21, depends on the library that carries
// the bytes.

// The published documentation shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module uses only modules listed above it.
mod access_policy;
pub mod wire;

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
#[cfg(feature = "azure-data-tables")]
mod storage_credentials;

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
pub mod sas;
#[cfg(feature = "azure-queue")]
mod queue;

#[cfg(feature = "azure-queue")]
pub use crate::queue::AzureQueue;
pub use crate::{
    access_policy::AccessPolicy,
    account_key::{AccountKey, EMULATOR_KEY},
    backend::Azure,
    delegation_key::UserDelegationKey,
    options::{AzureOptions, Carrier},
    primary_then_secondary::PrimaryThenSecondary,
    transport::{AnswerBody, HttpAnswer, HttpRequest, Method, SendFailure, Transport},
};
#[cfg(feature = "azure")]
#[doc(no_inline)]
pub use azure_core::credentials::TokenCredential;
