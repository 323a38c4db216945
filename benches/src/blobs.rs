//! Blobs of fields and logs in blobs, beside the store alone.

use std::{
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use entable::{
    Blob, Flush, Keyring, LogRecord,
    backend::Memory,
    object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
        ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
        Result as StoreResult, WriteMultipart, local::LocalFileSystem, memory::InMemory,
        path::Path,
    },
    prelude::*,
};
use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use time::{OffsetDateTime, macros::datetime};
use tokio::runtime::Runtime;

use crate::figure::{figure, in_turns, note};

const MIB: usize = 1 << 20;
/// MiB of the blob whose memory is measured.
const LARGE: usize = 1024;
/// MiB of the blobs whose throughput is measured.
const USUAL: usize = 128;
/// Records of a log.
const RECORDS: u32 = 1_000_000;
/// Bytes at which a buffer of a log is stored unless it is told otherwise.
const BUFFER: u64 = 4 << 20;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Scans", partition_key = "{folder}", row_key = "scan_{id:06}")]
struct Scan {
    folder: String,
    id: u32,
    #[table(blob)]
    plain: Option<Blob>,
    #[table(blob, encrypt)]
    encrypted: Option<Blob>,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Plain,
    Encrypted,
}

/// Prints all figures.
pub(crate) fn run(runtime: &Runtime) {
    streams(runtime);
    puts_of_an_hour(runtime);
    windows_of_a_day(runtime);
}

fn pieces(count: usize) -> impl stream::Stream<Item = std::io::Result<Bytes>> {
    let piece = Bytes::from(vec![0x5a; MIB]);
    stream::iter((0..count).map(move |_| Ok(piece.clone())))
}

async fn upload(scans: &Table<Scan>, field: Field, mebibytes: usize) -> Blob {
    let scan = Scan { folder: "f".into(), id: 1, plain: None, encrypted: None };
    let uploaded = match field {
        Field::Plain => scans.upload(&scan, Scan::PLAIN, pieces(mebibytes)).await,
        Field::Encrypted => scans.upload(&scan, Scan::ENCRYPTED, pieces(mebibytes)).await,
    };
    uploaded.unwrap()
}

async fn read(scans: &Table<Scan>, blob: &Blob, mebibytes: usize) {
    let sum = |sum: usize, piece: Bytes| async move { Ok(sum + piece.len()) };
    let read = scans.blob(blob).stream().try_fold(0, sum).await.unwrap();
    assert_eq!(read, mebibytes * MIB);
}

async fn bare_upload(store: &dyn ObjectStore, path: &Path, mebibytes: usize) {
    let open = store.put_multipart(path).await.unwrap();
    let mut open = WriteMultipart::new_with_chunk_size(open, 8 * MIB);
    let mut pieces = std::pin::pin!(pieces(mebibytes));
    while let Some(piece) = pieces.next().await {
        open.wait_for_capacity(3).await.unwrap();
        open.put(piece.unwrap());
    }
    open.finish().await.unwrap();
}

async fn bare_read(store: &dyn ObjectStore, path: &Path, mebibytes: usize) {
    let pieces = store.get(path).await.unwrap().into_stream();
    let sum = |sum: usize, piece: Bytes| async move { Ok(sum + piece.len()) };
    assert_eq!(pieces.try_fold(0, sum).await.unwrap(), mebibytes * MIB);
}

/// Streams blobs to and from a directory: memory, and the rate beside that of the directory alone.
fn streams(runtime: &Runtime) {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let client = Client::builder().backend(Memory::new()).blobs(store.clone());
    let client = client.keys(Keyring::from_bytes([7; 32])).build().unwrap();
    let scans = client.table::<Scan>();
    runtime.block_on(scans.create()).unwrap();
    let remove = |blob: &Blob| {
        let path = Path::parse(blob.name().unwrap()).unwrap();
        runtime.block_on(store.delete(&path)).unwrap();
    };
    for (field, name) in [(Field::Plain, "plain"), (Field::Encrypted, "encrypted")] {
        let before = reset_peak();
        let blob = runtime.block_on(upload(&scans, field, LARGE));
        let written = peak_mebibytes() - before;
        let before = reset_peak();
        runtime.block_on(read(&scans, &blob, LARGE));
        let peak = written.max(peak_mebibytes() - before);
        figure(&format!("models.blob {name}, MiB held to stream 1 GiB both ways"), peak, "< 64");
        remove(&blob);
    }
    let bare = Path::from("bare");
    let rate = |time: Duration| USUAL as f64 / time.as_secs_f64();
    for (field, name, goal) in
        [(Field::Plain, "plain", ">= 0.8"), (Field::Encrypted, "encrypted", ">= 0.4")]
    {
        let (ours, theirs) = in_turns(
            || remove(&runtime.block_on(upload(&scans, field, USUAL))),
            || {
                runtime.block_on(bare_upload(&*store, &bare, USUAL));
                runtime.block_on(store.delete(&bare)).unwrap();
            },
        );
        let ratio = rate(ours) / rate(theirs);
        figure(&format!("models.blob {name}, upload beside the store"), ratio, goal);
        note(&format!("models.blob {name}, uploaded MiB/s"), format!("{:.0}", rate(ours)));
        let blob = runtime.block_on(upload(&scans, field, USUAL));
        runtime.block_on(bare_upload(&*store, &bare, USUAL));
        let (ours, theirs) = in_turns(
            || runtime.block_on(read(&scans, &blob, USUAL)),
            || runtime.block_on(bare_read(&*store, &bare, USUAL)),
        );
        let ratio = rate(ours) / rate(theirs);
        figure(&format!("models.blob {name}, read beside the store"), ratio, goal);
        note(&format!("models.blob {name}, read MiB/s"), format!("{:.0}", rate(ours)));
        remove(&blob);
    }
}

/// Sets the peak of the process's memory back, and returns what it holds now, in MiB.
fn reset_peak() -> f64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    status("VmRSS:")
}

fn peak_mebibytes() -> f64 {
    status("VmHWM:")
}

fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes / 1024.0
}

const SIX: OffsetDateTime = datetime!(2014-07-31 18:00 UTC);
const MIDNIGHT: OffsetDateTime = datetime!(2014-07-31 0:00 UTC);

fn record(at: OffsetDateTime, number: u32) -> LogRecord {
    let level = if number.is_multiple_of(97) { "error" } else { "info" };
    LogRecord::new(at, [level.to_owned(), format!("request {number} of the queue was answered")])
}

/// Writes a million records that are `step` apart. Returns the store with its counts.
fn write_log(runtime: &Runtime, from: OffsetDateTime, step: time::Duration) -> Arc<Counting> {
    let store = Arc::new(Counting::default());
    runtime.block_on(async {
        let client = client_of(&store);
        let writer = client.blob_log("queue").writer(Flush::buffered());
        for number in 0..RECORDS {
            writer.append(record(from + step * number, number)).await.unwrap();
        }
        writer.close().await.unwrap();
    });
    store
}

fn client_of(store: &Arc<Counting>) -> Client {
    Client::builder().backend(Memory::new()).blobs(store.clone()).build().unwrap()
}

/// A million buffered records of one hour: a put for each buffer that is full.
fn puts_of_an_hour(runtime: &Runtime) {
    let store = write_log(runtime, SIX, time::Duration::milliseconds(3));
    let sizes: Vec<u64> = runtime.block_on(store.sizes());
    let bytes: u64 = sizes.iter().sum();
    // The buffer of the last flush, which `close` makes, is not full.
    let full = bytes.div_ceil(BUFFER).max(u64::from(RECORDS / 100_000));
    let puts = store.puts.load(Ordering::Relaxed);
    figure("models.log, puts beside full buffers", puts as f64 / full as f64, "<= 1");
    note("models.log, puts of a million records", puts);
    note("models.log, MiB of a million records", bytes / MIB as u64);
}

/// Windows of two minutes in a day of a million records: names and blobs that a reader asks for.
fn windows_of_a_day(runtime: &Runtime) {
    let store = write_log(runtime, MIDNIGHT, time::Duration::microseconds(86_400));
    let log = client_of(&store).blob_log("queue");
    let puts = store.puts.load(Ordering::Relaxed);
    note("models.log, puts of a day of a million records", puts);
    let (mut lists, mut blobs, mut heads) = (0, 0, 0);
    // In the middle of hours, at their edges, across midnight.
    for minute in (0..1440).step_by(29).chain([59, 719, 779, 1439]) {
        let from = MIDNIGHT + time::Duration::minutes(minute);
        let window: Range<OffsetDateTime> = from..from + time::Duration::minutes(2);
        store.reset();
        let found = runtime.block_on(log.read(window.clone()).collect()).unwrap();
        let expected = (0..RECORDS)
            .filter(|number| {
                let at = MIDNIGHT + time::Duration::microseconds(86_400) * *number;
                window.contains(&at)
            })
            .count();
        assert_eq!(found.len(), expected);
        lists = lists.max(store.lists.load(Ordering::Relaxed));
        blobs = blobs.max(store.gets.lock().unwrap().len());
        heads = heads.max(store.heads.load(Ordering::Relaxed));
    }
    figure("models.log, hours whose names a window of two minutes lists", lists as f64, "<= 2");
    figure("models.log, blobs that a window of two minutes reads", blobs as f64, "<= 3");
    note("models.log, blobs whose metadata a window of two minutes reads", heads);
}

/// A store in memory that counts requests.
#[derive(Debug, Default)]
struct Counting {
    inner: InMemory,
    puts: AtomicUsize,
    lists: AtomicUsize,
    heads: AtomicUsize,
    gets: Mutex<std::collections::BTreeSet<Path>>,
}

impl Counting {
    async fn sizes(&self) -> Vec<u64> {
        let listed: Vec<ObjectMeta> = self.inner.list(None).try_collect().await.unwrap();
        listed.iter().map(|blob| blob.size).collect()
    }

    fn reset(&self) {
        self.lists.store(0, Ordering::Relaxed);
        self.heads.store(0, Ordering::Relaxed);
        self.gets.lock().unwrap().clear();
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        if options.head {
            self.heads.fetch_add(1, Ordering::Relaxed);
        } else {
            self.gets.lock().unwrap().insert(path.clone());
        }
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
