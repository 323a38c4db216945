//! Reads and writes rows. Every request of the library to its backend is sent here.

use std::{
    ops::Deref,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use crate::{
    address::{Names, RowAt},
    backend::{
        Backend, BoxFuture, Capabilities, NameRange, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest, layer::AdaptiveRate,
    },
    batch::{Batch, Deadline, Written},
    blob_port::BlobStore,
    entity::{Schema, UntypedPath},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    limits,
    page::PageLoop,
    plan::{TokenMaker, TokenScope},
    random::RandomSource,
    row::Row,
    server_clock::ServerClock,
};

use super::{
    sealing::{RowSealer, open::ReadAs, plan::OperationToSeal, shredded::ShreddedScopes},
    usage::UsageCounters,
};

/// A backend, with the encryption keys and counters of a client. Clones share them, and are cheap.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) backend: Arc<dyn Backend>,
    shared: Arc<StoreParts>,
}

/// The keys, counters and clock of a client, which a [`Store`] shares with its clones. A store derefs to it.
#[derive(Debug)]
pub(crate) struct StoreParts {
    pub(crate) sealing: RowSealer,
    /// The source of random ids and waiting times.
    pub(crate) random: Arc<RandomSource>,
    pub(crate) usage: UsageCounters,
    /// The store's time, estimated from the dates of its pages after
    /// [`estimate_store_time_if_expiring`](Store::estimate_store_time_if_expiring) was called.
    pub(crate) time: ServerClock,
    /// Whether this client reads or writes entities that expire.
    pub(crate) is_time_watched: AtomicBool,
    /// The blob store, if the client has one.
    pub(crate) blobs: Option<Arc<dyn BlobStore>>,
    /// The layer that adapts the client's rate, if the client has one. It also determines how many requests may be in
    /// flight.
    pub(crate) adaptive_rate: Option<AdaptiveRate>,
}

impl Deref for Store {
    type Target = StoreParts;

    fn deref(&self) -> &StoreParts {
        &self.shared
    }
}

impl Store {
    pub(crate) fn new(backend: Arc<dyn Backend>, shared: StoreParts) -> Self {
        Self { backend, shared: Arc::new(shared) }
    }
}

impl Store {
    /// Returns whether the client has a blob store.
    pub(crate) fn has_blobs(&self) -> bool {
        self.blobs.is_some()
    }

    /// Returns the client's handle to its object store, if it has one.
    #[cfg(feature = "blob")]
    pub(crate) fn object_blobs(&self) -> Option<&crate::blob::Blobs> {
        self.blobs.as_ref()?.as_any().downcast_ref()
    }

    /// Switches on the estimate of the store's time if entities of any of these types can expire. The client then
    /// learns the store's time from the dates of the pages that it reads. Called before the first request for a type.
    /// Without the estimate, times of expiry are compared with the local clock, and a fast clock hides entities that
    /// have not expired.
    pub(crate) fn estimate_store_time_if_expiring(
        &self,
        schemas: impl IntoIterator<Item = &'static Schema>,
    ) {
        if schemas.into_iter().any(Schema::can_expire) {
            self.estimate_store_time();
        }
    }

    /// Switches on the estimate of the store's time, which an entity that can expire is compared with.
    pub(crate) fn estimate_store_time(&self) {
        self.is_time_watched.store(true, Ordering::Relaxed);
    }

    /// Returns the backend's capabilities.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// Fails on a store whose reads may lag, for a feature that depends on current reads. `what` names the feature
    /// in the plural.
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` on a store without strong reads.
    pub(crate) fn require_strong_reads(&self, what: &str) -> Result<()> {
        let capabilities = self.capabilities();
        if capabilities.strong_reads {
            return Ok(());
        }
        let name = capabilities.name;
        let message = format!(
            "{what} need strongly consistent reads, but reads from `{name}` may lag; if the account's consistency \
             level is strong, set `strong_reads(true)` in its options"
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Returns the store's rule for names of tables, which makes a name from a text.
    pub(crate) fn names(&self) -> Names {
        Names::with_case(self.capabilities().table_case)
    }

    /// Creates a table. Fails if the table exists.
    pub(crate) fn create_table<'r>(&'r self, name: &'r str) -> BoxFuture<'r, Result<()>> {
        Box::pin(async move {
            // Checked here for an error that explains which rule the name breaks.
            limits::check_table_name(name)?;
            self.send_table_request(TableRequest::Create(name)).await.map(drop)
        })
    }

    /// Creates a table if it does not exist. Returns `true` if it was created.
    pub(crate) fn create_table_if_not_exists<'r>(
        &'r self,
        name: &'r str,
    ) -> BoxFuture<'r, Result<bool>> {
        Box::pin(async move {
            match self.create_table(name).await {
                Ok(()) => Ok(true),
                Err(error) if error.table_exists() => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Deletes a table. Fails if it does not exist.
    pub(crate) fn delete_table<'r>(&'r self, name: &'r str) -> BoxFuture<'r, Result<()>> {
        Box::pin(async move { self.send_table_request(TableRequest::Delete(name)).await.map(drop) })
    }

    /// Deletes a table if it exists. Returns `true` if it existed.
    pub(crate) fn delete_table_if_exists<'r>(
        &'r self,
        name: &'r str,
    ) -> BoxFuture<'r, Result<bool>> {
        Box::pin(async move {
            match self.delete_table(name).await {
                Ok(()) => Ok(true),
                Err(error) if error.is_not_found() => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Returns the names of all tables or of the tables in a range of names, page by page. A store may also return
    /// names outside the range.
    pub(crate) async fn list_table_names(
        &self,
        within: Option<NameRange<'_>>,
    ) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut pages = PageLoop::<String>::from_start();
        while let Some(from) = pages.take_position() {
            let request = TableRequest::List { from: from.as_deref(), within };
            let page = self.send_table_request(request).await?;
            names.extend(page.names);
            pages.continue_at(page.next);
        }
        Ok(names)
    }

    /// Sends a request about tables. Errors contain the table's name.
    pub(crate) async fn send_table_request(&self, request: TableRequest<'_>) -> Result<TableNames> {
        let (TableRequest::Create(name) | TableRequest::Delete(name)) = request else {
            let answer = self.backend.tables(request).await;
            self.usage.count_table_request("", &answer);
            return answer;
        };
        refuse_template(name)?;
        let answer = self.backend.tables(request).await;
        self.usage.count_table_request(name, &answer);
        answer.map_err(|error| error.in_table(name))
    }

    /// Returns the maker of blind tokens in keys (`{..:hmac}` parts). Must be used within
    /// [`run_with_blind_token_keys`](Self::run_with_blind_token_keys).
    pub(crate) async fn shared_token_maker(&self) -> Result<TokenMaker> {
        self.sealing.shared_token_maker().await
    }

    /// Returns the maker of blind tokens for a type's keys. It has no blind token key if the type has no blind tokens in
    /// keys.
    pub(crate) async fn token_maker_of_type(&self, schema: &'static Schema) -> Result<TokenMaker> {
        if schema.has_key_tokens() {
            self.shared_token_maker().await
        } else {
            Ok(TokenMaker::for_types_without_tokens())
        }
    }

    /// Returns whether a lookup by blind token failed because all keys of its scope are destroyed, and counts such
    /// lookups. `named` is the scope from the caller, which is used if it follows neither from the error nor from
    /// the path. The caller then returns no rows, as for a value that is not stored. An error would reveal which
    /// values the tenant of the scope had.
    pub(crate) async fn is_lookup_of_shredded_scope(
        &self,
        error: &Error,
        access: &UntypedPath,
        named: &TokenScope,
    ) -> bool {
        let is_lookup_of_shredded_scope =
            self.sealing.is_lookup_of_shredded_scope(error, access, named).await;
        self.usage.count_if_shredded(is_lookup_of_shredded_scope);
        is_lookup_of_shredded_scope
    }

    /// Returns whether a row that was found by blind token cannot be decrypted because all keys of its scope are
    /// permanently deleted, and counts it. `scopes` stores the results for the other rows of the page.
    pub(crate) async fn is_row_shredded(&self, scopes: &mut ShreddedScopes, error: &Error) -> bool {
        let is_shredded = scopes.is_row_scope_shredded(&self.sealing, error).await;
        self.usage.count_if_shredded(is_shredded);
        is_shredded
    }

    /// Removes the rows of a page that cannot be decrypted because all keys of their scopes are permanently deleted.
    pub(crate) async fn without_shredded(&self, rows: Vec<Result<Row>>) -> Vec<Result<Row>> {
        // Most pages have no failed row and need no check.
        if rows.iter().all(Result::is_ok) {
            return rows;
        }
        let (mut scopes, mut kept) = (ShreddedScopes::default(), Vec::with_capacity(rows.len()));
        for row in rows {
            match &row {
                Err(error) if self.is_row_shredded(&mut scopes, error).await => {}
                _ => kept.push(row),
            }
        }
        kept
    }

    /// Calls `make`, which makes blind tokens. While it fails for lack of blind token keys, fetches these and calls it again.
    /// `make` must have no side effects before its tokens are made.
    pub(crate) async fn run_with_blind_token_keys<T>(
        &self,
        tokens: &TokenMaker,
        mut make: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        // The scopes are only known once values are read and keys are made from them. An entity has few scopes, each
        // of which is fetched once.
        loop {
            let made = make();
            let missing = made.is_err().then(|| tokens.take_missing_scopes()).flatten();
            let Some((provider, missing)) = missing else { return made };
            for scope in missing {
                let key = provider.fetch_blind_token_key(&scope, None).await;
                tokens.store_blind_token_key(scope, key);
            }
        }
    }

    /// Reads a row and decrypts the properties that `read_as` declares as encrypted. For a wide entity, reads the parts
    /// with the selected properties and joins them.
    pub(crate) async fn read_decrypted(
        &self,
        request: ReadRequest<'_>,
        read_as: ReadAs,
    ) -> Result<Option<Row>> {
        if let ReadAs::Typed(schema) = read_as
            && schema.is_wide()
        {
            return self.read_and_join_parts(request, schema).await;
        }
        if let ReadAs::Members(members) = read_as
            && members.has_wide()
        {
            return self.read_row_of_entity_set(request, members).await;
        }
        self.read_row_decrypted(request, read_as).await
    }

    /// Reads one row and decrypts the properties that `read_as` declares as encrypted.
    pub(crate) async fn read_row_decrypted(
        &self,
        request: ReadRequest<'_>,
        read_as: ReadAs,
    ) -> Result<Option<Row>> {
        let read = self
            .read(request)
            .await
            .map_err(|error| replace_by_table_name_error(error, request.table));
        let Some(row) = read? else { return Ok(None) };
        let opened = self.sealing.unseal_one_row(request.table, row, read_as, request.select).await;
        opened.map(Some).map_err(|error| error.in_table(request.table))
    }

    /// Returns whether a row from a typed read has expired by the store's time. `expected` is the row's most likely
    /// family. It is tried first to save time, and does not change the result.
    pub(crate) fn is_row_expired(
        &self,
        row: &Row,
        read_as: ReadAs,
        expected: Option<&'static RowFamily>,
    ) -> bool {
        let expiry = match read_as {
            ReadAs::Typed(schema) => schema.expiry_of(row, expected),
            ReadAs::Members(members) => members.expiry_of(row),
            ReadAs::Untyped => None,
        };
        expiry.is_some_and(|expiry| expiry <= self.time.now())
    }

    /// Decrypts a stored row of the type `schema`.
    pub(crate) async fn decrypt_row_of_type(
        &self,
        table: &str,
        row: Row,
        schema: &'static Schema,
    ) -> Result<Row> {
        let opened = self.sealing.unseal_one_row(table, row, ReadAs::Typed(schema), None).await;
        opened.map_err(|error| error.in_table(table))
    }

    /// Reads a stored row without decrypting it. Returns `None` if it does not exist.
    pub(crate) async fn read(&self, request: ReadRequest<'_>) -> Result<Option<Row>> {
        self.send_read(request)?.await
    }

    /// Sends the read of a stored row.
    pub(crate) fn send_read<'r>(&'r self, request: ReadRequest<'r>) -> Result<RowRead<'r>> {
        refuse_template(request.table)?;
        Ok(RowRead { usage: &self.usage, request, answer: self.backend.read(request) })
    }

    /// Reads a whole row without decrypting it. Returns `None` if it does not exist.
    pub(crate) async fn read_row(&self, at: RowAt<'_>) -> Result<Option<Row>> {
        let [table, partition_key, row_key] = at.table_and_key_texts();
        self.read(ReadRequest { table, partition_key, row_key, select: None }).await
    }

    /// Reads a whole row without decrypting it. Returns `None` if the row or its table does not
    /// exist.
    pub(crate) async fn row_if_table_exists(&self, at: RowAt<'_>) -> Result<Option<Row>> {
        match self.read_row(at).await {
            Err(error) if error.is_table_missing() => Ok(None),
            read => read,
        }
    }

    /// Reads one page of rows without decrypting them.
    pub(crate) async fn scan(&self, request: ScanRequest<'_>) -> Result<Rows> {
        refuse_template(request.table)?;
        // Costs two clock reads per page, which only clients with expiring entities need.
        let sent = self.is_time_watched.load(Ordering::Relaxed).then(|| self.time.local_ticks());
        let answer = self.backend.scan(request).await;
        if let (Some(sent), Ok(Some(date))) = (sent, answer.as_ref().map(|page| page.date)) {
            self.time.correct_by_date(date, sent);
        }
        self.usage.count_scan(request.table, &answer);
        answer.map_err(|error| error.in_table(request.table))
    }

    /// Encrypts the rows of all operations and writes all of them, or none. After the deadline, fails with
    /// `is_contended` and writes nothing.
    pub(crate) async fn seal_and_write(
        &self,
        table: &str,
        to_seal: Vec<OperationToSeal>,
        deadline: Option<&Deadline>,
    ) -> Result<Vec<Written>> {
        // Encrypted once: a retry below sends the same bytes.
        let operations = self.sealing.seal_operations(table, to_seal).await;
        let operations = operations.map_err(|error| error.in_table(table))?;
        let is_single = operations.len() == 1;
        let mut batch = Batch::new(table).with_deadline(deadline.cloned());
        for operation in operations {
            let pushed = batch.push(operation);
            // The caller of a single write knows nothing of operation positions.
            pushed.map_err(|e| if is_single { e.without_operation() } else { e })?;
        }
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.apply(&batch).await
    }

    /// Writes rows unencrypted, all or none. The library's own rows are never encrypted.
    pub(crate) async fn apply(&self, batch: &Batch) -> Result<Vec<Written>> {
        refuse_template(batch.table())?;
        let answer = self.backend.apply(batch).await;
        self.usage.count_write(batch, &answer);
        let written = answer.map_err(|error| {
            // An error without a position concerns the first operation, or all of them.
            let failed = batch.operations().get(error.failed_index().unwrap_or(0));
            let error = replace_by_table_name_error(error, batch.table()).in_table(batch.table());
            match failed {
                Some(failed) => error.at_keys(failed.row().partition_key(), failed.row().row_key()),
                None => error,
            }
        })?;
        // A user's backend may return fewer answers than operations. Do not assign an answer to the wrong
        // operation.
        if written.len() == batch.len() {
            return Ok(written);
        }
        let message = format!(
            "the backend answered {} of {} operations; whether they were applied is unknown",
            written.len(),
            batch.len()
        );
        Err(Error::new(ErrorKind::Ambiguous, message).in_table(batch.table()))
    }
}

/// A read of one row.
// Not an async function, so that programs do not compile it: they only call `poll`.
pub(crate) struct RowRead<'r> {
    usage: &'r UsageCounters,
    request: ReadRequest<'r>,
    answer: BoxFuture<'r, Result<Option<Row>>>,
}

impl Future for RowRead<'_> {
    type Output = Result<Option<Row>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.as_mut().poll(context));
        let ReadRequest { table, partition_key, row_key, .. } = self.request;
        self.usage.count_read(table, &answer);
        Poll::Ready(answer.map_err(|error| error.in_table(table).at_keys(partition_key, row_key)))
    }
}

/// If a table is missing and no table can have its name, replaces the error by an error about the name.
pub(crate) fn replace_by_table_name_error(error: Error, table: &str) -> Error {
    if !error.is_table_missing() {
        return error;
    }
    limits::check_table_name(table).err().map_or(error, |named| named.in_table(table))
}

/// Refuses the name template of an entity's dated tables. Every request passes here, so a verb that has not chosen one
/// of the tables sends nothing.
fn refuse_template(table: &str) -> Result<()> {
    if table.contains('{') { limits::check_table_name(table) } else { Ok(()) }
        .map_err(|error| error.in_table(table))
}
