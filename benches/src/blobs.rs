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
use xaes_256_gcm::{
    Key, Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};

use crate::{
    figure::{figure, in_turns, note, timed},
    memory::{peak_mebibytes, reset_peak},
};

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

/// The bytes of a blob: pieces of 1 MiB, no two of which share a buffer.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// Each piece is made when it is asked for.
    Made(usize),
    /// The pieces are there before.
    Ready(&'a [Bytes]),
}

impl<'a> Source<'a> {
    fn pieces(self) -> impl stream::Stream<Item = std::io::Result<Bytes>> + use<'a> {
        let count = match self {
            Self::Made(count) => count,
            Self::Ready(pieces) => pieces.len(),
        };
        stream::iter((0..count).map(move |at| {
            Ok(match self {
                Self::Made(_) => piece(at),
                Self::Ready(pieces) => pieces[at].clone(),
            })
        }))
    }
}

fn piece(at: usize) -> Bytes {
    Bytes::from(vec![u8::try_from(at % 251).unwrap(); MIB])
}

async fn upload(scans: &Table<Scan>, field: Field, source: Source<'_>) -> Blob {
    let scan = Scan { folder: "f".into(), id: 1, plain: None, encrypted: None };
    let uploaded = match field {
        Field::Plain => scans.upload(&scan, Scan::PLAIN, source.pieces()).await,
        Field::Encrypted => scans.upload(&scan, Scan::ENCRYPTED, source.pieces()).await,
    };
    uploaded.unwrap()
}

async fn read(scans: &Table<Scan>, blob: &Blob, mebibytes: usize) {
    let sum = |sum: usize, piece: Bytes| async move { Ok(sum + piece.len()) };
    let read = scans.blob(blob).stream().try_fold(0, sum).await.unwrap();
    assert_eq!(read, mebibytes * MIB);
}

async fn bare_upload(store: &dyn ObjectStore, path: &Path, source: Source<'_>) {
    let open = store.put_multipart(path).await.unwrap();
    let mut open = WriteMultipart::new_with_chunk_size(open, 8 * MIB);
    let mut pieces = std::pin::pin!(source.pieces());
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

/// A directory, the tables beside it, and what removes a blob.
struct Place {
    store: Arc<LocalFileSystem>,
    scans: Table<Scan>,
    _directory: tempfile::TempDir,
}

impl Place {
    /// Opens a new directory. Files are on the disk before a write returns if `is_synced`.
    fn new(runtime: &Runtime, is_synced: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        let store = Arc::new(store.with_fsync(is_synced));
        let client = Client::builder().backend(Memory::new()).blobs(store.clone());
        let client = client.keys(Keyring::from_bytes([7; 32])).build().unwrap();
        let scans = client.table::<Scan>();
        runtime.block_on(scans.create()).unwrap();
        Self { store, scans, _directory: directory }
    }

    async fn remove(&self, blob: &Blob) {
        self.store.delete(&Path::parse(blob.name().unwrap()).unwrap()).await.unwrap();
    }
}

/// Streams blobs to and from a directory: memory, and rates beside those of the directory alone.
fn streams(runtime: &Runtime) {
    let place = Place::new(runtime, false);
    for (field, name) in [(Field::Plain, "plain"), (Field::Encrypted, "encrypted")] {
        let before = reset_peak().unwrap();
        let blob = runtime.block_on(upload(&place.scans, field, Source::Made(LARGE)));
        let written = peak_mebibytes().unwrap() - before;
        let before = reset_peak().unwrap();
        runtime.block_on(read(&place.scans, &blob, LARGE));
        let peak = written.max(peak_mebibytes().unwrap() - before);
        figure(&format!("models.blob {name}, MiB held to stream 1 GiB both ways"), peak, "< 64");
        runtime.block_on(place.remove(&blob));
    }
    drop(place);
    rates(runtime, &Place::new(runtime, true), "synced directory");
    rates(runtime, &Place::new(runtime, false), "page cache");
    costs();
}

/// Streams blobs to and from a directory, in turns with the directory alone.
fn rates(runtime: &Runtime, place: &Place, kind: &str) {
    let Place { store, scans, .. } = place;
    let made: Vec<Bytes> = (0..USUAL).map(piece).collect();
    let source = Source::Ready(&made);
    let bare = Path::from("bare");
    let rate = |time: Duration| USUAL as f64 / time.as_secs_f64();
    let print = |what: &str, (ours, theirs): (Duration, Duration), goal: &str| {
        figure(&format!("models.blob {what}, beside a {kind}"), rate(ours) / rate(theirs), goal);
        let both = format!("{:.0}, the {kind} alone {:.0}", rate(ours), rate(theirs));
        note(&format!("models.blob {what}, MiB/s"), both);
    };
    for (field, name, goal) in
        [(Field::Plain, "plain", ">= 0.8"), (Field::Encrypted, "encrypted", ">= 0.4")]
    {
        let times = in_turns(
            || runtime.block_on(async { place.remove(&upload(scans, field, source).await).await }),
            || {
                runtime.block_on(bare_upload(&**store, &bare, source));
                runtime.block_on(store.delete(&bare)).unwrap();
            },
        );
        print(&format!("{name} upload"), times, goal);
        let blob = runtime.block_on(upload(scans, field, source));
        runtime.block_on(bare_upload(&**store, &bare, source));
        let times = in_turns(
            || runtime.block_on(read(scans, &blob, USUAL)),
            || runtime.block_on(bare_read(&**store, &bare, USUAL)),
        );
        print(&format!("{name} read"), times, goal);
        runtime.block_on(place.remove(&blob));
    }
}

/// Measures what an upload computes for each MiB, by one thread.
fn costs() {
    let bytes = piece(1);
    let shortest = |work: &mut dyn FnMut()| (0..200).map(|_| timed(&mut *work)).min().unwrap();
    let hash = shortest(&mut || drop(std::hint::black_box(Blob::new(bytes.clone()))));
    note("models.blob, shortest time of SHA-256, us/MiB", hash.as_micros());
    let cipher = Xaes256Gcm::new(&<Key>::from([7; 32]));
    let mut chunk = vec![1; 64 << 10];
    let seal = shortest(&mut || {
        for at in 0..16 {
            let nonce = <Nonce>::from([at; 24]);
            let tag: Tag =
                cipher.encrypt_inout_detached(&nonce, b"", chunk.as_mut_slice().into()).unwrap();
            std::hint::black_box(tag);
        }
    });
    note("models.blob, shortest time of XAES-256-GCM, us/MiB", seal.as_micros());
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
