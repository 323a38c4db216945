//! Azure Table storage, Cosmos DB's Table API and the emulator.
//!
//! This folder alone knows `azure_data_tables`, `azure_core` and `azure_storage`. Every request is
//! made by `azure_data_tables`; rows, batches and answers have their own wire forms, and the faults
//! of that crate are cured or refused here: `docs/azure.md` lists them.

mod account;
mod acl;
mod apply;
mod call;
mod connection;
mod credential;
mod endpoint;
mod fault;
mod key;
mod options;
#[cfg(feature = "azure-queue")]
mod queue;
mod read;
mod scan;
mod tables;
mod transport;
mod wire;

use std::{fmt, sync::Arc};

pub use acl::AccessPolicy;
pub use key::AccountKey;
pub use options::AzureOptions;
#[cfg(feature = "azure-queue")]
pub(crate) use queue::{Queues, Text};
pub(crate) use wire::query_value;

use self::account::Account;
use super::{Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest};
use crate::{
    batch::{Batch, Written},
    error::Result,
    row::Row,
};

/// Rows in an account of Azure Table storage.
///
/// Cheap to clone; connections are pooled and shared by the clones. Nothing is sent again from here:
/// put a [`Retry`](crate::backend::layer::Retry) around it.
#[derive(Clone)]
pub struct Azure(Arc<Account>);

impl Azure {
    /// The account that the options name. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `is_invalid` for options without an endpoint or without an account.
    pub fn new(options: AzureOptions) -> Result<Self> {
        Account::new(options).map(|account| Self(Arc::new(account)))
    }

    /// The account's key, where the options hold one.
    pub fn account_key(&self) -> Option<&AccountKey> {
        self.0.credential.key()
    }

    /// The address of the account's tables, without `/` at its end.
    pub fn endpoint(&self) -> &str {
        &self.0.endpoint
    }

    /// Whether the account is Cosmos DB's Table API.
    pub fn is_cosmos(&self) -> bool {
        self.0.cosmos
    }
}

impl fmt::Debug for Azure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Azure")
            .field("endpoint", &self.0.endpoint)
            .field("credential", &self.0.credential)
            .finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Azure {
    fn capabilities(&self) -> Capabilities {
        if self.0.cosmos {
            Capabilities::new("cosmos", true).unordered()
        } else {
            Capabilities::new("azure", true)
        }
    }

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(self.0.read(request))
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(self.0.scan(request))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(self.0.apply(batch))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(self.0.tables(request))
    }
}
