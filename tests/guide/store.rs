//! Runs a test on each backend, with layers that count requests, inject faults and interleave
//! writers.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use entable::{
    Batch, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Embedded, Memory, ReadRequest, Rows, ScanRequest,
        TableNames, TableRequest,
        layer::{FaultInjector, Recorder, Request},
    },
    prelude::*,
};

#[cfg(feature = "azure-wire")]
#[path = "emulator.rs"]
pub mod emulator;

pub type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A fresh store and what stands in front of it.
pub struct Store {
    /// The client under test: a recorder, then what happens between, then faults, then the backend.
    pub client: Client,
    /// Another program on the same store, without the layers.
    pub other: Client,
    pub recorder: Recorder,
    pub fault: FaultInjector,
    /// The file of the embedded store.
    pub file: Option<PathBuf>,
    /// Whether it is the service's emulator, which differs from the service here and there.
    pub is_emulator: bool,
    between: Between,
}

impl Store {
    /// A store on that backend.
    pub fn on(backend: Arc<dyn Backend>, file: Option<PathBuf>) -> Self {
        let fault = FaultInjector::around(backend.clone());
        let between = Between {
            inner: fault.clone(),
            steps: Arc::default(),
            sent: Arc::default(),
            rows_of_page: Arc::new(AtomicU32::new(1_000)),
        };
        let recorder = Recorder::around(between.clone());
        let client = |backend: Arc<dyn Backend>| Client::builder().backend(backend).build();
        Self {
            client: client(Arc::new(recorder.clone())).unwrap(),
            other: client(backend).unwrap(),
            recorder,
            fault,
            file,
            is_emulator: false,
            between,
        }
    }

    /// The table of an entity, created; the log is empty afterwards.
    pub async fn table<E: TableEntity>(&self) -> Table<E> {
        let table = self.client.table::<E>();
        table.create_if_not_exists().await.unwrap();
        self.recorder.clear();
        table
    }

    /// Runs a step of another program right before the next write arrives.
    pub fn before_next_write(&self, step: impl Future<Output = ()> + Send + 'static) {
        self.between.steps.lock().unwrap().push_back(Box::pin(step));
    }

    /// The batches that were sent since the last look, with their rows.
    pub fn batches(&self) -> Vec<Batch> {
        std::mem::take(&mut *self.between.sent.lock().unwrap())
    }

    /// Ends each page after `rows` rows, as the service does when a query takes five seconds.
    pub fn shorten_pages(&self, rows: u32) {
        self.between.rows_of_page.store(rows, Ordering::SeqCst);
    }

    /// The requests since the last look.
    pub fn requests(&self) -> Vec<Request> {
        self.recorder.take()
    }

    /// How many requests there were since the last look.
    pub fn count(&self) -> usize {
        self.requests().len()
    }

    /// All rows of a partition, framework rows and copies too, as another program sees them.
    pub async fn rows(&self, table: &str, partition_key: &str) -> Vec<Stored<DynamicEntity>> {
        let rows = self.other.dynamic(table).query(Keys::partition(partition_key));
        rows.collect().await.unwrap()
    }

    /// The RowKeys of a partition.
    pub async fn row_keys(&self, table: &str, partition_key: &str) -> Vec<String> {
        let rows = self.rows(table, partition_key).await;
        rows.iter().map(|row| Stored::row_key(row).to_owned()).collect()
    }
}

/// Runs a test on a store in memory, on one in a file, and on the emulator where there is one.
pub async fn on_both(body: impl AsyncFn(Store) -> TestResult) -> TestResult {
    on_local(&body).await?;
    #[cfg(feature = "azure-wire")]
    if let Some(backend) = emulator::backend() {
        eprintln!("emulator:");
        let store = Store::on(Arc::new(backend), None);
        named("emulated", body(Store { is_emulator: true, ..store }).await)?;
    }
    Ok(())
}

/// Runs a test on a store in memory and on one in a file. Tests on paused time use it: a timeout of a
/// request to the emulator would end as soon as everything waits for the network.
pub async fn on_local(body: impl AsyncFn(Store) -> TestResult) -> TestResult {
    eprintln!("memory:");
    named("memory", body(Store::on(Arc::new(Memory::new()), None)).await)?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("staff.db");
    eprintln!("embedded:");
    named("embedded", body(Store::on(Arc::new(embedded(&file)?), Some(file.clone()))).await)
}

fn named(backend: &str, result: TestResult) -> TestResult {
    Ok(result.map_err(|error| format!("on the {backend} store: {error}"))?)
}

/// The embedded store in a file.
pub fn embedded(file: &Path) -> Result<Embedded, Error> {
    Embedded::open(file)
}

/// Lets another program's step run right before a write, keeps what is sent, and shortens pages.
#[derive(Clone)]
struct Between {
    inner: FaultInjector,
    steps: Arc<Mutex<VecDeque<BoxFuture<'static, ()>>>>,
    sent: Arc<Mutex<Vec<Batch>>>,
    rows_of_page: Arc<AtomicU32>,
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Between").finish_non_exhaustive()
    }
}

impl Backend for Between {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(
        &'a self,
        request: ReadRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<entable::Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        let most = self.rows_of_page.load(Ordering::SeqCst);
        let top = Some(request.top.map_or(most, |top| top.min(most)));
        self.inner.scan(ScanRequest { top, ..request })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let step = self.steps.lock().unwrap().pop_front();
            if let Some(step) = step {
                step.await;
            }
            self.sent.lock().unwrap().push(batch.clone());
            self.inner.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}
