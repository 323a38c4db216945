//! The in-memory backend.

use std::{
    collections::BTreeMap,
    fmt, iter,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use tokio::task::{coop::consume_budget, yield_now};

use crate::{
    backend::{
        Backend, BoxFuture, Capabilities, NameRange, ReadRequest, Rows, ScanRequest, Snapshot,
        TableCase, TableNames, TableRequest, no_snapshots_error,
        rules::{self, PageRoom, ScanRange},
    },
    batch::{Batch, Written},
    clock::{Clock, SystemClock},
    edm::Ticks,
    error::{Error, Result, ServiceCode},
    key::encode_sort_key,
    limits,
    page::Continuation,
    row::Row,
};

/// A backend that keeps rows in memory by the service's rules. The rows are lost when it is dropped.
///
/// ```
/// use entable_core::{
///     Batch, Operation, Row,
///     backend::{Backend, Memory, ReadRequest, TableRequest},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let memory = Memory::new();
/// memory.tables(TableRequest::Create("Staff")).await?;
/// let row = Row::build("Sales", "empid_000223").finish()?;
/// memory.apply(&Batch::single("Staff", Operation::insert(row))?).await?;
/// let read =
///     ReadRequest { table: "staff", partition_key: "Sales", row_key: "empid_000223", select: None };
/// assert!(memory.read(read).await?.is_some());
/// # Ok::<(), entable_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Memory {
    clock: Arc<dyn Clock>,
    deleting_takes: Duration,
    table_case: TableCase,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// The tables, by the text that all names of a table share.
    tables: BTreeMap<String, Table>,
    /// Names of deleted tables that stay taken, with the end of that time.
    names_being_deleted: BTreeMap<String, Ticks>,
    /// The settings of the store.
    settings: String,
    /// The Timestamp of the last write.
    last: Ticks,
}

/// A table, with its settings and its rows by sort key.
struct Table {
    name: String,
    settings: String,
    rows: BTreeMap<Vec<u8>, Row>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.tables.values().map(|t| (&t.name, t.rows.len()))).finish()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// Makes an empty store with the clock of the system.
    ///
    /// ```
    /// use entable_core::{Error, backend::{Backend, Memory, TableRequest}};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let store = Memory::new();
    /// store.tables(TableRequest::Create("Staff")).await?;
    /// let listed = store.tables(TableRequest::List { from: None, within: None }).await?;
    /// assert_eq!(listed.names, ["Staff"]);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// Makes an empty store that takes its Timestamps from `clock`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use entable_core::{
    ///     Batch, Error, Operation, Row, SteppedClock, Ticks,
    ///     backend::{Backend, Memory, ReadRequest, TableRequest},
    /// };
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
    /// let store = Memory::with_clock(clock);
    /// store.tables(TableRequest::Create("Staff")).await?;
    /// let row = Row::build("Sales", "empid_000223").finish()?;
    /// store.apply(&Batch::single("Staff", Operation::insert(row))?).await?;
    /// let (partition_key, row_key) = ("Sales", "empid_000223");
    /// let request = ReadRequest { table: "Staff", partition_key, row_key, select: None };
    /// let read = store.read(request).await?;
    /// assert_eq!(read.and_then(|row| row.timestamp()), Some(Ticks::UNIX_EPOCH));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let table_case = TableCase::Insensitive;
        Self { clock, deleting_takes: Duration::ZERO, table_case, state: RwLock::default() }
    }

    /// Sets how long the name of a deleted table stays taken: creating the table again fails with
    /// `TableBeingDeleted`, as on the service for about 40 s. Zero by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable_core::{Error, backend::{Backend, Memory, TableRequest}};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let store = Memory::new().deleting_takes(Duration::from_secs(40));
    /// store.tables(TableRequest::Create("Staff")).await?;
    /// store.tables(TableRequest::Delete("Staff")).await?;
    /// let error = store.tables(TableRequest::Create("Staff")).await.unwrap_err();
    /// assert_eq!(error.code(), Some("TableBeingDeleted"));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn deleting_takes(self, time: Duration) -> Self {
        Self { deleting_takes: time, ..self }
    }

    /// Makes `Staff` and `staff` two tables, as they are on the storage emulator and on Cosmos DB.
    ///
    /// ```
    /// use entable_core::{Error, backend::{Backend, Memory, TableRequest}};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let store = Memory::new().case_sensitive_tables();
    /// store.tables(TableRequest::Create("Staff")).await?;
    /// store.tables(TableRequest::Create("staff")).await?;
    /// let listed = store.tables(TableRequest::List { from: None, within: None }).await?;
    /// assert_eq!(listed.names.len(), 2);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn case_sensitive_tables(self) -> Self {
        Self { table_case: TableCase::Sensitive, ..self }
    }

    // A poisoned lock is used on: a write changes the maps only after everything that can fail.
    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_row(&self, request: ReadRequest<'_>) -> Result<Option<Row>> {
        let ReadRequest { table, partition_key, row_key, select } = request;
        rules::check_read_keys(table, partition_key, row_key)?;
        let state = self.read_state();
        let row = state
            .find_table(table, self.table_case)?
            .rows
            .get(&encode_sort_key(partition_key, row_key));
        row.map(|row| rules::select_properties(row, select)).transpose()
    }

    fn scan_page(&self, scan: ScanRequest<'_>) -> Result<Rows> {
        let mut room = PageRoom::for_scan(&scan)?;
        let range = ScanRange::for_scan(scan.filter, scan.from);
        let state = self.read_state();
        let table = state.find_table(scan.table, self.table_case)?;
        // Timestamps run ahead of a clock that does not advance. The date is never earlier than a row of the page.
        let now = self.clock.now().max(state.last);
        let mut page = Rows { date: Some(now), ..Rows::default() };
        if room.is_full() {
            return Ok(page);
        }
        for row in table.rows.range::<[u8], _>(range).map(|(_, row)| row) {
            if room.is_full() {
                page.next = Some(Continuation {
                    partition_key: row.partition_key().to_owned(),
                    row_key: Some(row.row_key().to_owned()),
                });
                break;
            }
            room.take_examined();
            if scan.filter.matches(row)? {
                let row = rules::select_properties(row, scan.select)?;
                room.take_returned(row.byte_len());
                page.rows.push(Ok(row));
            }
        }
        Ok(page)
    }

    fn apply_batch(&self, batch: &Batch) -> Result<Vec<Written>> {
        rules::check_not_empty(batch)?;
        let mut state = self.state_mut();
        // Checked under the lock, since the batch may have waited for it.
        batch.check_deadline()?;
        let now = rules::next_write_time(&*self.clock, state.last);
        let table = state
            .table_mut(batch.table(), self.table_case)
            .map_err(|e| rules::name_operation_in_error(e, batch, 0))?;
        // All outcomes are known before the first row changes: a refused operation leaves no trace.
        // No operation depends on another, since each row is in a batch once.
        let mut outcomes = Vec::with_capacity(batch.len());
        for (index, operation) in batch.operations().iter().enumerate() {
            let sort_key = operation.row().sort_key();
            let outcome = rules::resulting_row(table.rows.get(&sort_key), operation, now)
                .map_err(|error| rules::name_operation_in_error(error, batch, index))?;
            outcomes.push((sort_key, outcome));
        }
        let answers = iter::zip(batch.operations(), &outcomes);
        let written =
            answers.map(|(op, (_, outcome))| rules::written_answer(op, outcome.as_ref())).collect();
        for (sort_key, outcome) in outcomes {
            match outcome {
                Some(row) => table.rows.insert(sort_key, row),
                None => table.rows.remove(&sort_key),
            };
        }
        state.last = now;
        Ok(written)
    }

    pub(super) fn create_table(&self, name: &str) -> Result<TableNames> {
        limits::check_table_name(name)?;
        let mut state = self.state_mut();
        let key = self.table_case.canonical_table_name(name);
        let refuse = |code, why| Err(Error::service(code, why).in_table(name));
        if state.tables.contains_key(&key) {
            return refuse(ServiceCode::TableAlreadyExists, "the table already exists");
        }
        let now = self.clock.now();
        state.names_being_deleted.retain(|_, until| *until > now);
        if state.names_being_deleted.contains_key(&key) {
            let why = "the table is still being deleted; try again later";
            return refuse(ServiceCode::TableBeingDeleted, why);
        }
        state.tables.insert(
            key,
            Table { name: name.to_owned(), settings: String::new(), rows: BTreeMap::new() },
        );
        Ok(TableNames::default())
    }

    fn delete_table(&self, name: &str) -> Result<TableNames> {
        let key = self.table_case.canonical_table_name(name);
        let mut state = self.state_mut();
        let Some(dropped) = state.tables.remove(&key) else {
            let why = "the table does not exist";
            return Err(Error::service(ServiceCode::ResourceNotFound, why).in_table(name));
        };
        // A time that is too long for ticks keeps the name taken as long as the store lives.
        let ticks = limits::saturating_i64(self.deleting_takes.as_nanos() / 100);
        let until = self.clock.now().get().saturating_add(ticks);
        state.names_being_deleted.insert(key, Ticks::new(until).unwrap_or(Ticks::MAX));
        drop(state);
        // Freed after the lock, because freeing a million rows takes a while.
        drop(dropped);
        Ok(TableNames::default())
    }

    fn list_tables(&self, from: Option<&str>, within: Option<NameRange<'_>>) -> TableNames {
        let state = self.read_state();
        let from = from.or(within.map(|range| range.first)).unwrap_or_default();
        let first = self.table_case.canonical_table_name(from);
        let last = within.map(|range| self.table_case.canonical_table_name(range.last));
        let mut names = TableNames::default();
        for (key, table) in state.tables.range(first..) {
            if last.as_ref().is_some_and(|last| key > last) {
                break;
            }
            // 1,000 fits on every platform.
            if names.names.len() == usize::try_from(limits::PAGE_ROWS).unwrap_or(1) {
                names.next = Some(key.clone());
                break;
            }
            names.names.push(table.name.clone());
        }
        names
    }
}

impl State {
    fn find_table(&self, name: &str, case: TableCase) -> Result<&Table> {
        let table = self.tables.get(&case.canonical_table_name(name));
        table.ok_or_else(|| rules::table_missing_error(name))
    }

    fn table_mut(&mut self, name: &str, case: TableCase) -> Result<&mut Table> {
        let table = self.tables.get_mut(&case.canonical_table_name(name));
        table.ok_or_else(|| rules::table_missing_error(name))
    }
}

// No function here waits for anything: without the explicit yields, a long query or a busy writer would
// keep its thread from other tasks.
#[deny(clippy::missing_trait_methods)]
impl Backend for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("memory", false).exclusive().with_table_case(self.table_case)
    }

    fn server_address(&self) -> Option<&str> {
        None
    }

    fn server_port(&self) -> Option<u16> {
        None
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            consume_budget().await;
            self.read_row(request)
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            yield_now().await;
            self.scan_page(request)
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            consume_budget().await;
            self.apply_batch(batch)
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(name) => self.create_table(name),
                TableRequest::Delete(name) => self.delete_table(name),
                TableRequest::List { from, within } => Ok(self.list_tables(from, within)),
            }
        })
    }

    fn settings<'a>(&'a self, table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(async move {
            let state = self.read_state();
            let text = match table {
                Some(name) => &state.find_table(name, self.table_case)?.settings,
                None => &state.settings,
            };
            Ok(Some(text.clone()).filter(|text| !text.is_empty()))
        })
    }

    fn set_settings<'a>(
        &'a self,
        table: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut state = self.state_mut();
            match table {
                Some(name) => {
                    text.clone_into(&mut state.table_mut(name, self.table_case)?.settings);
                }
                None => text.clone_into(&mut state.settings),
            }
            Ok(())
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async { Err(no_snapshots_error()) })
    }
}
