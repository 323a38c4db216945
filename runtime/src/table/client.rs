//! A client: a backend and what to do with it.

use std::{fmt, sync::Arc};

#[cfg(feature = "azure")]
use super::account::Account;
use super::{
    builder::ClientBuilder, bulk::Bulk, dynamic::DynamicTable, set::SetTable,
    transaction::Transaction, typed::Table,
};
#[cfg(feature = "azure")]
use crate::backend::layer::RetryPolicy;
use crate::{
    backend::{Backend, Capabilities, Read, Rows, Scan, TableNames, TableRequest},
    batch::{Batch, Written},
    clock::SystemClock,
    entity::{Schema, Set, TableEntity},
    error::{Error, ErrorKind, Result},
    limits,
    outbox::{guard::Guards, options::OutboxOptions, state::Outbox},
    plan::Tokens,
    random::Chance,
    row::Row,
    store::sealing::{Vault, open::Reading, plan::Placed},
};

/// A store of tables: in memory, in a file, or a service.
///
/// Cheap to clone; all clones are one client.
///
/// ```
/// use entable::prelude::*;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// client.create_table_if_not_exists("Staff").await?;
/// assert_eq!(client.tables().await?, ["Staff"]);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) backend: Arc<dyn Backend>,
    #[cfg(feature = "azure")]
    pub(super) account: Option<Account>,
    pub(super) outbox: Arc<Outbox>,
    pub(crate) vault: Arc<Vault>,
    #[cfg(feature = "blob")]
    pub(crate) blobs: Option<crate::blob::blobs::Blobs>,
}

impl Client {
    /// A client of a store in memory: for tests.
    pub fn memory() -> Self {
        Self::of(Arc::new(crate::backend::Memory::new()))
    }

    /// A client of the durable store in that file, which is created where there is none.
    ///
    /// # Errors
    ///
    /// `is_locked` where another process has it open; `is_corrupt` for a file of another format;
    /// `is_backend` where it cannot be read or created.
    #[cfg(feature = "embedded")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Ok(Self::of(Arc::new(crate::backend::Embedded::open(path)?)))
    }

    /// A client of the service, an emulator, or a store that speaks its protocol; what may be tried
    /// again is, see [`Retry`](crate::backend::layer::Retry).
    ///
    /// # Errors
    ///
    /// `is_invalid` for an endpoint that is no address.
    #[cfg(feature = "azure")]
    pub fn azure(options: crate::AzureOptions) -> Result<Self> {
        let azure = crate::Azure::new(options)?;
        Self::builder().backend(azure).retry(RetryPolicy::default()).build()
    }

    fn of(backend: Arc<dyn Backend>) -> Self {
        let outbox = Outbox::new(
            OutboxOptions::default(),
            Arc::new(SystemClock),
            Chance::default(),
            Guards::default(),
        );
        Self {
            backend,
            #[cfg(feature = "azure")]
            account: None,
            outbox: Arc::new(outbox),
            vault: Arc::default(),
            #[cfg(feature = "blob")]
            blobs: None,
        }
    }

    /// Whether it has a place for blobs.
    pub(crate) const fn has_blobs(&self) -> bool {
        #[cfg(feature = "blob")]
        let has_blobs = self.blobs.is_some();
        #[cfg(not(feature = "blob"))]
        let has_blobs = false;
        has_blobs
    }

    /// What it keeps for its work in other partitions.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns when nothing goes on in the background any more: what this client's writes left to
    /// be done in other partitions is done, or left to a worker.
    pub async fn wait_for_copies(&self) {
        self.outbox.background.settled().await;
    }

    /// A client put together from its parts.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// The table of an entity, under the name that the entity declares.
    pub fn table<E: TableEntity>(&self) -> Table<E> {
        self.table_named(E::SCHEMA.table)
    }

    /// The table of an entity under another name.
    pub fn table_named<E: TableEntity>(&self, name: impl Into<String>) -> Table<E> {
        self.outbox.meet(E::SCHEMA);
        Table::new(self.clone(), name.into())
    }

    /// A table whose entities are read and written without a type.
    pub fn dynamic(&self, table: impl Into<String>) -> DynamicTable {
        DynamicTable::new(self.clone(), table.into())
    }

    /// A table whose rows are read as a set of types.
    pub fn set<S: Set>(&self, table: impl Into<String>) -> SetTable<S> {
        SetTable::new(self.clone(), table.into())
    }

    /// An entity group transaction in the table of the first entity that is added: all or nothing.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.clone(), None)
    }

    /// Many writes, grouped into as few transactions as they fit in; not atomic as a whole.
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.clone(), None)
    }

    /// What the backend can do.
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// The backend.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Creates a table.
    ///
    /// # Errors
    ///
    /// `is_conflict` where it exists, `is_invalid` for a name that the service refuses.
    pub async fn create_table(&self, name: &str) -> Result<()> {
        limits::check_table_name(name)?;
        self.tables_request(TableRequest::Create(name)).await.map(drop)
    }

    /// Creates a table where there is none; `true`: it was created.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a name that the service refuses.
    pub async fn create_table_if_not_exists(&self, name: &str) -> Result<bool> {
        match self.create_table(name).await {
            Ok(()) => Ok(true),
            Err(error) if error.table_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a table with all its entities, in one request.
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is none.
    pub async fn delete_table(&self, name: &str) -> Result<()> {
        self.tables_request(TableRequest::Delete(name)).await.map(drop)
    }

    /// Deletes a table where there is one; `true`: it was there.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn delete_table_if_exists(&self, name: &str) -> Result<bool> {
        match self.delete_table(name).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names of the tables.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn tables(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let page = self.backend.tables(TableRequest::List { from: from.as_deref() }).await?;
            names.extend(page.names);
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(names),
            }
        }
    }

    async fn tables_request(&self, request: TableRequest<'_>) -> Result<TableNames> {
        let (TableRequest::Create(name) | TableRequest::Delete(name)) = request else {
            return self.backend.tables(request).await;
        };
        self.backend.tables(request).await.map_err(|error| error.in_table(name))
    }

    /// What makes the tokens of keys.
    pub(crate) async fn tokens(&self) -> Result<Tokens> {
        self.vault.tokens().await
    }

    /// What makes the tokens of an entity's keys, if it has any.
    pub(crate) async fn tokens_of(&self, schema: &'static Schema) -> Result<Tokens> {
        if schema.has_tokens() { self.tokens().await } else { Ok(Tokens::none()) }
    }

    /// A row as programs see it.
    pub(crate) async fn read_as(&self, request: Read<'_>, reading: Reading) -> Result<Option<Row>> {
        let Some(row) = self.read(request).await? else { return Ok(None) };
        let opened = self.vault.open_one(request.table, row, reading, request.select).await;
        opened.map(Some).map_err(|error| error.in_table(request.table))
    }

    /// A stored row of that type as programs see it.
    pub(crate) async fn opened(
        &self,
        table: &str,
        row: Row,
        schema: &'static Schema,
    ) -> Result<Row> {
        let opened = self.vault.open_one(table, row, Reading::Typed(schema), None).await;
        opened.map_err(|error| error.in_table(table))
    }

    /// A row as it is stored.
    pub(crate) async fn read(&self, request: Read<'_>) -> Result<Option<Row>> {
        self.backend.read(request).await.map_err(|error| {
            error.in_table(request.table).at_keys(request.partition_key, request.row_key)
        })
    }

    /// Rows as they are stored.
    pub(crate) async fn scan(&self, request: Scan<'_>) -> Result<Rows> {
        self.backend.scan(request).await.map_err(|error| error.in_table(request.table))
    }

    /// Writes all operations or none: each is sealed, once, for what is sent.
    pub(crate) async fn write(&self, table: &str, placed: Vec<Placed>) -> Result<Vec<Written>> {
        let operations = self.vault.seal(table, placed).await;
        let operations = operations.map_err(|error| error.in_table(table))?;
        let is_single = operations.len() == 1;
        let mut batch = Batch::new(table);
        for operation in operations {
            let pushed = batch.push(operation);
            pushed.map_err(|e| if is_single { e.without_operation() } else { e })?;
        }
        if batch.is_empty() { Ok(Vec::new()) } else { self.apply(&batch).await }
    }

    /// Writes rows of the framework, which are stored as they are.
    pub(crate) async fn apply(&self, batch: &Batch) -> Result<Vec<Written>> {
        let written = self.backend.apply(batch).await.map_err(|error| {
            let failed = batch.operations().get(error.failed_index().unwrap_or(0));
            let error = error.in_table(batch.table());
            match failed {
                Some(failed) => error.at_keys(failed.row().partition_key(), failed.row().row_key()),
                None => error,
            }
        })?;
        if written.len() == batch.len() {
            return Ok(written);
        }
        let message = format!(
            "the backend answered {} operations of {}; whether they were applied is unknown",
            written.len(),
            batch.len()
        );
        Err(Error::new(ErrorKind::Ambiguous, message).in_table(batch.table()))
    }

    /// Writes one operation.
    pub(crate) async fn write_one(&self, table: &str, placed: Placed) -> Result<Written> {
        let mut written = self.write(table, vec![placed]).await?;
        written.pop().ok_or_else(|| Error::new(ErrorKind::Backend, "the backend gave no answer"))
    }

    /// Writes one row of the framework.
    pub(crate) async fn apply_one(
        &self,
        table: &str,
        operation: crate::batch::Operation,
    ) -> Result<Written> {
        let batch = Batch::single(table, operation)?;
        let mut written = self.apply(&batch).await?;
        written.pop().ok_or_else(|| Error::new(ErrorKind::Backend, "the backend gave no answer"))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("backend", &self.capabilities().name).finish_non_exhaustive()
    }
}
