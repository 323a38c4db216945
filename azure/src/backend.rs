//! The Azure backend.

use std::{fmt, sync::Arc};

use entable_core::{
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, Snapshot, TableNames,
        TableRequest, no_settings_error, no_snapshots_error,
    },
    batch::{Batch, Written},
    error::Result,
    row::Row,
};

use crate::{account::AccountConnection, account_key::AccountKey, options::AzureOptions};

/// A backend for an account of Azure Table storage, Cosmos DB's Table API or the storage emulator.
///
/// It is cheap to clone, and clones share a pool of connections. It never repeats a request: put a
/// [`Retry`](entable_core::backend::layer::Retry) around it.
#[derive(Clone)]
pub struct Azure(pub(crate) Arc<AccountConnection>);

impl Azure {
    /// Makes the backend for the account that the options name, without sending a request.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// assert_eq!(azure.endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
    /// let elsewhere = AzureOptions::from_sas("sv=2019-02-02&tn=Staff&sp=r&sig=c2ln")?;
    /// assert!(Azure::new(elsewhere).is_err_and(|error| error.is_invalid()), "no account");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the options contain no endpoint or no account.
    pub fn new(options: AzureOptions) -> Result<Self> {
        AccountConnection::new(options).map(|account| Self(Arc::new(account)))
    }

    /// Returns the account key, if the options contain one.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// assert_eq!(azure.account_key().map(|key| key.account()), Some("devstoreaccount1"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn account_key(&self) -> Option<&AccountKey> {
        self.0.credential.account_key()
    }

    /// Returns the address of the account's tables, without `/` at the end.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::from_account_key("myaccount", "AAECAwQ=")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn endpoint(&self) -> &str {
        &self.0.endpoint.url
    }

    /// Returns whether the account belongs to Cosmos DB's Table API.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// assert!(!Azure::new(options.clone())?.is_cosmos());
    /// let options = options.endpoint("https://myaccount.table.cosmos.azure.com")?;
    /// assert!(Azure::new(options)?.is_cosmos());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn is_cosmos(&self) -> bool {
        self.0.cosmos
    }
}

impl fmt::Debug for Azure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Azure")
            .field("endpoint", &self.0.endpoint.url)
            .field("credential", &self.0.credential)
            .field("transport", &self.0.transport)
            .finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Azure {
    fn capabilities(&self) -> Capabilities {
        let azure = if self.0.cosmos {
            // Cosmos DB promises no order of keys in the answer to a query.
            Capabilities::new("cosmos", true).unordered()
        } else {
            Capabilities::new("azure", true)
        };
        let azure = azure.with_table_case(self.0.table_case);
        if self.0.strong_reads { azure } else { azure.lagging_reads() }
    }

    fn server_address(&self) -> Option<&str> {
        Some(self.0.endpoint.host())
    }

    fn server_port(&self) -> Option<u16> {
        self.0.endpoint.port
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(self.0.read_row(request))
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(self.0.scan_page(request))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(self.0.apply_batch(batch))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(self.0.send_table_request(request))
    }

    fn settings<'a>(&'a self, _table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(async { Err(no_settings_error()) })
    }

    fn set_settings<'a>(
        &'a self,
        _table: Option<&'a str>,
        _text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(no_settings_error()) })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async { Err(no_snapshots_error()) })
    }
}
