//! The public handle of an embedded store, which passes writes to the writer thread and reads a
//! snapshot.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread::JoinHandle,
};

use entable_core::{
    backend::{
        Backend, BackupReport, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, Snapshot,
        TableNames, TableRequest, rules,
    },
    batch::{Batch, Written},
    clock::Clock,
    error::{Error, ErrorKind, Result},
    limits,
    row::Row,
};
use tokio::sync::{oneshot, watch};

use crate::{
    at_once::WayToWriter,
    backup,
    frozen::FrozenStore,
    job::{BatchAnswer, QueuedBatch, WriterJob},
    mark,
    open_file::{self, OpenedFile, Opening},
    options::EmbeddedOptions,
    scan,
    shared_store::SharedStore,
    snapshot::{self, ReaderState},
    store_file::StoreFile,
    writer,
    writer_store::WriterStore,
};

/// A backend that keeps rows in one file by the service's rules. Dropping it finishes the waiting
/// writes and closes the file.
///
/// ```
/// use entable_core::{
///     Batch, Operation, Row,
///     backend::{Backend, ReadRequest, TableRequest},
/// };
/// use entable_embedded::Embedded;
/// # let directory = std::env::temp_dir().join(format!("entable-embedded-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("staff.db");
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Embedded::open(&path)?;
/// store.tables(TableRequest::Create("Staff")).await?;
/// let row = Row::build("Sales", "empid_000223").finish()?;
/// store.apply(&Batch::single("Staff", Operation::insert(row))?).await?;
/// drop(store);
///
/// let store = Embedded::open(&path)?;
/// let read =
///     ReadRequest { table: "staff", partition_key: "Sales", row_key: "empid_000223", select: None };
/// assert!(store.read(read).await?.is_some());
/// # Ok::<(), entable_core::Error>(())
/// # })?;
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Embedded {
    file: StoreFile,
    reader_state: watch::Receiver<ReaderState>,
    clock: Arc<dyn Clock>,
    way: WayToWriter,
    /// `None` once the writer thread has been asked to stop.
    jobs: Option<Arc<Sender<WriterJob>>>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Opens the store in a file, or creates the file. Every write is on disk before it is
    /// acknowledged. To open a store with other settings, use [`options`](Self::options).
    ///
    /// ```
    /// use entable_core::{
    ///     BoxError,
    ///     backend::{Backend, TableRequest},
    /// };
    /// use entable_embedded::Embedded;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// let store = Embedded::open(&path)?;
    /// store.tables(TableRequest::Create("Staff")).await?;
    /// assert!(Embedded::open(&path).is_err_and(|error| error.is_locked()), "one handle at a time");
    /// # Ok::<(), BoxError>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * `is_invalid`: the path is empty;
    /// * `is_locked`: another process or another handle has the file open;
    /// * `is_not_found`: the directory does not exist;
    /// * `is_denied`: the file or its directory cannot be written;
    /// * `is_corrupt`: the file is not a store, or is damaged;
    /// * `is_rolled_back`: acknowledged writes are missing, and [`accept_rolled_back`](EmbeddedOptions::accept_rolled_back) was not set;
    /// * `is_unsupported`: a newer version of this crate wrote it;
    /// * `is_backend`: the disk is full or fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Returns the default options, to open a store with other durability, memory or clock.
    ///
    /// ```
    /// use entable_core::BoxError;
    /// use entable_embedded::Embedded;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// let store = Embedded::options().cache_bytes(64 << 20).open(&path)?;
    /// store.verify().await?;
    /// assert!(path.exists());
    /// # Ok::<(), BoxError>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn options() -> EmbeddedOptions {
        EmbeddedOptions::new()
    }

    fn with_options(path: &Path, options: EmbeddedOptions) -> Result<Self> {
        if path.as_os_str().is_empty() {
            let message = "the path of the store's file is empty; give a path such as `staff.db`";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // The journal and the mark are made later, when the program may have changed its directory.
        let path = &*std::path::absolute(path)
            .map_err(|error| StoreFile::new(path).opening_io_error(error))?;
        let file = StoreFile::new(path);
        let opened = file.catch_panic(|| {
            let mark = if options.accepts_older { None } else { mark::read_mark(path) };
            let opening = Opening { mark, ..Opening::from_options(&options) };
            open_file::open_or_create(&file, opening)
        })?;
        Self::with_opened_file(file, opened, options)
    }

    /// Starts the writer thread of an open file.
    pub(crate) fn with_opened_file(
        file: StoreFile,
        opened: OpenedFile,
        options: EmbeddedOptions,
    ) -> Result<Self> {
        let clock = options.clock.clone();
        let durability = options.durability;
        let (jobs, waiting) = channel();
        let jobs = Arc::new(jobs);
        let to_writer = Arc::downgrade(&jobs);
        let (store, reader_state) = WriterStore::new(file.clone(), opened, options, to_writer)?;
        let gate = store.gate.clone();
        let store = Arc::new(SharedStore::new(store));
        let way = WayToWriter::new(durability, &store, &jobs, gate);
        let thread = std::thread::Builder::new().name("entable writer".to_owned());
        let writer = thread.spawn(move || writer::run_writer(&store, &waiting));
        let writer = writer.map_err(|error| file.io_error(error))?;
        let (jobs, writer) = (Some(jobs), Some(writer));
        Ok(Self { file, reader_state, clock, way, jobs, writer })
    }

    /// Waits until all writes acknowledged before the call are on disk. Only a store with
    /// [`Durability::Relaxed`](crate::Durability::Relaxed) has to wait.
    ///
    /// ```
    /// use entable_core::BoxError;
    /// use entable_embedded::{Durability, Embedded};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// let delay = std::time::Duration::from_secs(1);
    ///
    /// let store = Embedded::options().durability(Durability::Relaxed { delay }).open(&path)?;
    /// // .. writes, each acknowledged before it is on disk ..
    /// assert!(store.flush().await.is_ok());
    /// # Ok::<(), BoxError>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_backend` if the disk fails, or if it failed since the last flush and acknowledged writes are
    /// lost; the errors of [`open`](Self::open) if the file did not open again after a failure of the
    /// disk, and still does not.
    pub async fn flush(&self) -> Result<()> {
        self.ask_writer(WriterJob::Flush).await?
    }

    /// Returns the space of deleted rows and tables to the file system. Reads and writes wait
    /// meanwhile, some seconds for a million rows.
    ///
    /// ```
    /// use entable_core::BoxError;
    /// use entable_embedded::Embedded;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// let store = Embedded::open(&path)?;
    /// let before = path.metadata()?.len();
    /// store.compact().await?;
    /// assert!(path.metadata()?.len() <= before);
    /// # Ok::<(), BoxError>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_backend` if the disk fails, or if a scan still holds a page after a wait of 5 s, because
    /// nobody polls the scan.
    pub async fn compact(&self) -> Result<()> {
        self.ask_writer(WriterJob::Compact).await?
    }

    /// Checks every page of the file against its checksum. Reads and writes wait meanwhile, about a second
    /// for a file of 2 GB in the system's cache.
    ///
    /// Each row is checked when it is read; this call finds damage in rows that nobody has read yet.
    ///
    /// ```
    /// use entable_core::BoxError;
    /// use entable_embedded::Embedded;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// let store = Embedded::open(&path)?;
    /// assert!(store.verify().await.is_ok());
    /// # Ok::<(), BoxError>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_corrupt` if the file is damaged; also the errors of [`compact`](Self::compact).
    pub async fn verify(&self) -> Result<()> {
        self.ask_writer(WriterJob::Verify).await?
    }

    /// Writes a snapshot of the store into a new file, which opens as a store. Reads and writes go on
    /// meanwhile; what is written after the call began is not in the backup. Timestamps and ETags stay, and
    /// so do the rows of the outbox. Every row and every page of the new file is checked before it gets its name.
    ///
    /// The snapshot keeps the space of the rows that it contains: a store that is written meanwhile grows by what is
    /// replaced and deleted until the backup ends. Memory is bounded, whatever the size of the store.
    ///
    /// ```
    /// use entable_embedded::Embedded;
    ///
    /// # let directory = std::env::temp_dir().join(format!("entable-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let store = Embedded::open(directory.join("staff.db"))?;
    /// let report = store.backup(directory.join("backup.db")).await?;
    /// assert_eq!(report.rows, 0);
    /// let copy = Embedded::open(directory.join("backup.db"))?;
    /// # Ok::<(), entable_core::Error>(()) })?;
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * `is_conflict`: the path is taken;
    /// * `is_not_found`, `is_denied`: its directory does not exist, or cannot be written;
    /// * `is_corrupt`: a row of the store is damaged;
    /// * `is_backend`: the disk is full or fails.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<BackupReport> {
        let snapshot = self.newest_snapshot().await?;
        backup::write_in_thread(snapshot, path.as_ref().to_owned()).await
    }

    pub(crate) const fn store_file(&self) -> &StoreFile {
        &self.file
    }

    /// Returns a snapshot with everything that was acknowledged. Waits while reads are paused.
    async fn newest_snapshot(&self) -> Result<Arc<snapshot::Snapshot>> {
        if !self.way.make_writes_visible().await {
            return Err(self.unanswered_error());
        }
        snapshot::newest_snapshot(&self.file, &self.reader_state).await
    }

    /// Sends a job to the writer thread and waits for its answer.
    pub(crate) async fn ask_writer<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<T>) -> WriterJob,
    ) -> Result<T> {
        let (sender, answer) = oneshot::channel();
        self.way.send(job(sender));
        answer.await.map_err(|_| self.unanswered_error())
    }

    /// Returns the error for a job whose answer does not come, because the writer thread has ended.
    fn unanswered_error(&self) -> Error {
        snapshot::stopped_error(&self.file, &self.reader_state.borrow())
    }
}

/// Adds the keys of the failed operation, or the table, to the error of a batch.
fn with_keys_of_operation(answer: BatchAnswer, batch: &Batch) -> Result<Vec<Written>> {
    answer.map_err(|(index, error)| match index {
        Some(index) => rules::name_operation_in_error(error, batch, index),
        None => error.in_table(batch.table()),
    })
}

impl EmbeddedOptions {
    /// Opens the store in a file with the options, or creates the file.
    ///
    /// # Errors
    ///
    /// The errors of [`Embedded::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Embedded> {
        Embedded::with_options(path.as_ref(), self)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The writer ends when no sender of jobs is left. Joined with the sender alive, it would
        // wait for ever.
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            // The result is ignored: a writer that panicked has printed that to standard error.
            drop(writer.join());
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Embedded {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("embedded", true).exclusive()
    }

    fn server_address(&self) -> Option<&str> {
        None
    }

    fn server_port(&self) -> Option<u16> {
        None
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            rules::check_read_keys(request.table, request.partition_key, request.row_key)?;
            if let Some(answer) = self.way.read_open_writes(request) {
                return answer;
            }
            let snapshot = self.newest_snapshot().await?;
            snapshot.read_row(request)
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            let snapshot = self.newest_snapshot().await?;
            let date = self.clock.now();
            let page = scan::read_page(snapshot, request).await?;
            Ok(Rows { date: Some(date), ..page })
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            rules::check_not_empty(batch)?;
            let caller = self.way.enter();
            let (batch_to_apply, answer) = QueuedBatch::new(batch);
            if let Some(parked) = self.way.park_or_send(batch_to_apply, &caller)
                && let Some(answer) = parked.apply_or_send().await
            {
                return with_keys_of_operation(answer, batch);
            }
            let answer = answer.await.map_err(|_| self.unanswered_error())?;
            with_keys_of_operation(answer, batch)
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(name) => {
                    limits::check_table_name(name)?;
                    self.ask_writer(|answer| WriterJob::Create(name.to_owned(), answer)).await??;
                }
                TableRequest::Delete(name) => {
                    // The name is not checked: like the service, treat an invalid name as a missing table.
                    self.ask_writer(|answer| WriterJob::Delete(name.to_owned(), answer)).await??;
                }
                TableRequest::List { from, within } => {
                    let snapshot = self.newest_snapshot().await?;
                    return Ok(snapshot.catalog().list_tables(from, within));
                }
            }
            Ok(TableNames::default())
        })
    }

    fn settings<'a>(&'a self, table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(async move { self.newest_snapshot().await?.settings(table) })
    }

    fn set_settings<'a>(
        &'a self,
        table: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (table, text) = (table.map(str::to_owned), text.to_owned());
            self.ask_writer(|answer| WriterJob::Configure(table, text, answer)).await?
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.ask_writer(WriterJob::Close).await? })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async move {
            let snapshot = self.newest_snapshot().await?;
            Ok(FrozenStore::new(snapshot, self.clock.now()).into_backend_snapshot())
        })
    }
}
