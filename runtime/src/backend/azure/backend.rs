//! The Azure backend.

use std::{fmt, sync::Arc};

use super::{account::Account, account_key::AccountKey, options::AzureOptions};
use crate::{
    backend::{Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest},
    batch::{Batch, Written},
    error::Result,
    row::Row,
};

/// Rows in an account of Azure Table storage.
///
/// Cheap to clone; connections are pooled and shared by the clones. Nothing is sent again from here:
/// put a [`Retry`](crate::backend::layer::Retry) around it.
#[derive(Clone)]
pub struct Azure(pub(super) Arc<Account>);

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
