//! A store that counts the requests and round trips of a call, and compares them with a pattern.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use entable::{
    Client, ClientBuilder, OutboxOptions,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
        layer::{Recorder, Request},
    },
    batch::{Batch, Written},
    error::Result,
    object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
        PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
        memory::InMemory, path::Path,
    },
    patterns::{Pattern, Per, Plan, Question},
    row::Row,
};
use futures_util::stream::BoxStream;
use tokio::time::{Instant, sleep};

/// The time that each request takes. Time is paused: it moves when every task waits for a timer.
const LATENCY: Duration = Duration::from_millis(100);

/// A layer that delays each request by [`LATENCY`].
#[derive(Debug)]
struct Slow(Memory);

impl Backend for Slow {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            sleep(LATENCY).await;
            self.0.read(request).await
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            sleep(LATENCY).await;
            self.0.scan(request).await
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            sleep(LATENCY).await;
            self.0.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            sleep(LATENCY).await;
            self.0.tables(request).await
        })
    }
}

/// Keeps blobs in memory, counts the requests and delays each.
#[derive(Debug, Default)]
struct SlowBlobs(InMemory, AtomicUsize);

impl SlowBlobs {
    async fn wait(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        sleep(LATENCY).await;
    }
}

impl fmt::Display for SlowBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlowBlobs")
    }
}

#[async_trait]
impl ObjectStore for SlowBlobs {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.wait().await;
        self.0.put_opts(location, payload, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.wait().await;
        self.0.get_opts(location, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        // Every caller deletes one blob.
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.wait().await;
        self.0.copy_opts(from, to, options).await
    }
}

/// Requests to the table store, operations of the largest write, requests to the blob store, and round trips.
type Measured = [u64; 4];

pub(crate) struct Store {
    pub(crate) client: Client,
    recorder: Recorder,
    blobs: Arc<SlowBlobs>,
    begun: Instant,
    /// The names of calls whose requests were not predicted.
    pub(crate) wrong: Vec<String>,
}

impl Store {
    pub(crate) fn new(options: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let (recorder, blobs) =
            (Recorder::around(Slow(Memory::new())), Arc::<SlowBlobs>::default());
        let outbox = OutboxOptions::default().copies_before_answer(false);
        let builder = Client::builder().backend(recorder.clone()).outbox(outbox);
        let client = options(builder).blobs(blobs.clone()).build().unwrap();
        Self { client, recorder, blobs, begun: Instant::now(), wrong: Vec::new() }
    }

    /// Forgets the requests that prepare a call.
    pub(crate) async fn begin(&mut self) {
        self.client.wait_for_copies().await;
        self.recorder.clear();
        self.blobs.1.store(0, Ordering::SeqCst);
        self.begun = Instant::now();
    }

    /// Compares the requests since the last call of `begin` or `compare` with those of the pattern.
    pub(crate) async fn compare(&mut self, what: &str, question: impl Into<Question>, rows: u64) {
        self.compare_pattern(Pattern::table_scan(what, question).rows(rows)).await;
    }

    pub(crate) async fn compare_pattern(&mut self, pattern: Pattern) {
        let round_trips = self.begun.elapsed().as_millis() / LATENCY.as_millis();
        self.client.wait_for_copies().await;
        let sent = self.recorder.take();
        let operations = sent.iter().filter(|request| request.is_apply()).map(Request::operations);
        let largest = operations.max().unwrap_or(0);
        let blobs = self.blobs.1.swap(0, Ordering::SeqCst);
        let measured: Measured =
            [sent.len() as u64, largest as u64, blobs as u64, round_trips as u64];
        let predicted: Measured = [
            pattern.request_count(),
            pattern.operation_count(),
            pattern.blob_request_count(),
            pattern.round_trips(),
        ];
        if predicted != measured {
            self.wrong.push(format!(
                "{}: predicted {predicted:?}, sent {measured:?} (requests, operations, blobs, round trips)",
                pattern.name()
            ));
            self.wrong.extend(sent.iter().map(|request| format!("    {request}")));
        }
        self.compare_simulation(pattern).await;
        self.begun = Instant::now();
    }

    /// Compares the requests that a simulation sends for the pattern with those that it predicts.
    async fn compare_simulation(&mut self, pattern: Pattern) {
        let plan = Plan::of_patterns("one", &[pattern.at((5, Per::s)).over(3)]);
        let simulation = plan.simulate(1, Duration::from_secs(1)).await.unwrap();
        let calls = &simulation.calls[0];
        assert_eq!(calls.calls, 5);
        let (predicted, simulated) = (5 * calls.predicted_requests, calls.requests);
        if calls.refused == 0 && predicted != simulated {
            let pattern = &calls.pattern;
            self.wrong.push(format!("{pattern}: predicted {predicted}, simulated {simulated}"));
        }
    }
}
