//! A client: a backend and what to do with it.

use std::{fmt, sync::Arc};

#[cfg(feature = "conformance")]
use super::Guard;
#[cfg(feature = "azure")]
use super::account::Account;
use super::{
    Atomic, Bulk, DynamicTable, SetTable, Table,
    outbox::{Guards, Outbox, OutboxOptions},
    vault::{Placed, PlaintextPolicy, Reading, Vault},
};
use crate::{
    backend::{
        Backend, Capabilities, Read, Rows, Scan, TableNames, TableRequest,
        layer::{Retry, RetryPolicy},
    },
    batch::{Batch, Written},
    chance::Chance,
    clock::{Clock, SystemClock},
    entity::{Schema, Set, TableEntity},
    error::{Error, ErrorKind, Result},
    limits,
    plan::Tokens,
    row::Row,
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
/// client.create_table_if_missing("Staff").await?;
/// assert_eq!(client.tables().await?, ["Staff"]);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    backend: Arc<dyn Backend>,
    #[cfg(feature = "azure")]
    pub(super) account: Option<Account>,
    outbox: Arc<Outbox>,
    pub(super) vault: Arc<Vault>,
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
        }
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
    pub fn atomic(&self) -> Atomic {
        Atomic::new(self.clone(), None)
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
    pub async fn create_table_if_missing(&self, name: &str) -> Result<bool> {
        match self.create_table(name).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("TableAlreadyExists") => Ok(false),
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

/// Puts a client together.
///
/// ```
/// use entable::{backend::{Memory, layer::Recorder}, prelude::*};
///
/// let recorder = Recorder::around(Memory::new());
/// let client = Client::builder().backend(recorder.clone()).build()?;
/// assert_eq!(recorder.count(), 0);
/// # let _ = client;
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct ClientBuilder {
    backend: Option<Arc<dyn Backend>>,
    retry: Option<RetryPolicy>,
    #[cfg(feature = "azure")]
    account: Option<crate::Azure>,
    outbox: OutboxOptions,
    clock: Option<Arc<dyn Clock>>,
    seed: Option<u64>,
    guards: Guards,
    vault: Vault,
}

impl ClientBuilder {
    /// The backend, or a layer around one.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        #[cfg(feature = "azure")]
        if let Some(azure) = (&backend as &dyn std::any::Any).downcast_ref::<crate::Azure>() {
            self.account.get_or_insert_with(|| azure.clone());
        }
        self.backend = Some(Arc::new(backend));
        self
    }

    /// The account that signatures and stored access policies are asked of, where the backend is
    /// not itself one but a layer around it.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions, backend::layer::Recorder, prelude::*};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// let recorder = Recorder::around(azure.clone());
    /// let client = Client::builder().backend(recorder).account(&azure).build()?;
    /// assert_eq!(client.table_url("Staff")?, "http://127.0.0.1:10002/devstoreaccount1/Staff");
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(feature = "azure")]
    #[must_use]
    pub fn account(mut self, azure: &crate::Azure) -> Self {
        self.account = Some(azure.clone());
        self
    }

    /// Requests that fail for a moment are tried again by this policy; a write whose answer was lost
    /// is looked at first, never sent again blindly.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Where the keys of encrypted properties come from: a [`Keyring`](crate::Keyring), or a key
    /// store behind [`CachedKeys`](crate::CachedKeys). It also says which rows have which scope of
    /// keys.
    ///
    /// ```
    /// use entable::{Keyring, backend::Memory, prelude::*};
    ///
    /// let keys = Keyring::parse(&Keyring::generate_text()?)?;
    /// let client = Client::builder().backend(Memory::new()).keys(keys).build()?;
    /// # let _ = client;
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(feature = "encrypt")]
    #[must_use]
    pub fn keys(mut self, keys: impl crate::seal::KeyProvider) -> Self {
        self.vault.keys = Some(Arc::new(keys));
        self
    }

    /// What becomes of a plain value where an encrypted one is declared: refused, unless told.
    #[must_use]
    pub fn plaintext(mut self, policy: PlaintextPolicy) -> Self {
        self.vault.plaintext = policy;
        self
    }

    /// Encrypts further properties than those that are declared: the closure is given PartitionKey,
    /// RowKey and property of each one that is written, of dynamic entities as well. It is not asked
    /// for the property that says a row's type.
    ///
    /// Readers need the keys alone: a stored value says itself that it is encrypted.
    ///
    /// ```
    /// use entable::{Client, backend::Memory};
    ///
    /// let builder = Client::builder()
    ///     .backend(Memory::new())
    ///     .encrypt_if(|partition_key, _, property| property == "Ssn" || partition_key == "HR");
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn encrypt_if(
        mut self,
        choose: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.vault.encrypt_if = Some(Arc::new(choose));
        self
    }

    /// How work in other partitions is done.
    #[must_use]
    pub fn outbox(mut self, options: OutboxOptions) -> Self {
        self.outbox = options;
        self
    }

    /// Where the client takes the time from; nothing depends on it but the order in which workers
    /// find work. Stores have clocks of their own.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Ids and waits from a seed, so that a history can be played again. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Leaves a guard of the protocols out, to show what goes wrong then. For tests.
    #[doc(hidden)]
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn without_guard(mut self, guard: Guard) -> Self {
        self.guards = Guards::without(guard);
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// `is_invalid` where no backend was given, or times that leave none for work in other
    /// partitions.
    pub fn build(self) -> Result<Client> {
        let Some(backend) = self.backend else {
            let message = "a client needs a backend: call `backend(..)`";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        #[cfg(feature = "azure")]
        let account = self.account.map(|azure| Account::new(azure, self.retry.clone()));
        let backend = match self.retry {
            Some(policy) => Arc::new(Retry::around(backend, policy)),
            None => backend,
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let chance = self.seed.map_or_else(Chance::default, Chance::seeded);
        let outbox = Outbox::new(self.outbox.checked()?, clock, chance, self.guards);
        Ok(Client {
            backend,
            #[cfg(feature = "azure")]
            account,
            outbox: Arc::new(outbox),
            vault: Arc::new(self.vault),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}
