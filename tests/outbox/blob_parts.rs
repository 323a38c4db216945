//! Tests uploads in parts: what is written, hashed and read at the same time, and how an upload ends when
//! one of these fails or nobody waits for it any more.

use std::{
    fmt,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use entable::{
    Blob, Keyring,
    backend::Memory,
    object_store::{
        CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload,
        ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
        Result as StoreResult, UploadPart, local::LocalFileSystem, memory::InMemory, path::Path,
    },
    prelude::*,
};
use futures_util::{Stream, StreamExt, TryStreamExt, future::join_all, stream, stream::BoxStream};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

const MIB: usize = 1 << 20;
/// Bytes of a part.
const PART: usize = 8 * MIB;

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

fn scan() -> Scan {
    Scan { folder: "letters".into(), id: 1, plain: None, encrypted: None }
}

async fn scans_in(store: Arc<impl ObjectStore>) -> Table<Scan> {
    let client = Client::builder().backend(Memory::new()).blobs(store);
    let client = client.keys(Keyring::from_bytes([7; 32])).build().unwrap();
    let scans = client.table::<Scan>();
    scans.create().await.unwrap();
    scans
}

async fn upload(
    scans: &Table<Scan>,
    field: Field,
    source: impl Stream<Item = std::io::Result<Bytes>> + Send,
) -> Result<Blob, Error> {
    match field {
        Field::Plain => scans.upload(&scan(), Scan::PLAIN, source).await,
        Field::Encrypted => scans.upload(&scan(), Scan::ENCRYPTED, source).await,
    }
}

/// Returns pieces whose bytes tell their place.
fn pieces(count: usize, bytes: usize) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::iter((0..count).map(move |number| Ok(piece(number, bytes))))
}

fn piece(number: usize, bytes: usize) -> Bytes {
    let mut piece = vec![u8::try_from(number % 251).unwrap(); bytes];
    for (at, place) in piece.chunks_exact_mut(512).enumerate() {
        place[..8].copy_from_slice(&at.to_le_bytes());
    }
    Bytes::from(piece)
}

/// Says how the store treats a part: the future ends when it has written it.
type Fate =
    Box<dyn Fn(usize) -> Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> + Send + Sync>;

/// A store in memory whose parts take as long as a test wants, and fail when it wants.
struct PartStore {
    inner: InMemory,
    fate: Arc<Fate>,
    log: Arc<Mutex<Vec<&'static str>>>,
    /// Whether the store forgets the bytes of parts once they are written.
    forgets: bool,
    fails_to_abort: Arc<AtomicBool>,
}

impl PartStore {
    fn new<F: Future<Output = StoreResult<()>> + Send + 'static>(
        fate: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner: InMemory::new(),
            fate: Arc::new(Box::new(move |part| Box::pin(fate(part)))),
            log: Arc::default(),
            forgets: false,
            fails_to_abort: Arc::default(),
        }
    }

    fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }

    /// Returns the bytes of a blob as they are stored.
    async fn stored(&self, blob: &Blob) -> Bytes {
        let path = Path::parse(blob.name().unwrap()).unwrap();
        let found = self.inner.get_opts(&path, GetOptions::default()).await.unwrap();
        found.bytes().await.unwrap()
    }

    async fn names(&self) -> Vec<String> {
        self.inner.list(None).map_ok(|meta| meta.location.to_string()).try_collect().await.unwrap()
    }
}

fn broken(what: &'static str) -> StoreError {
    StoreError::Generic { store: "test", source: what.into() }
}

/// An upload of a [`PartStore`].
struct Parts {
    inner: Box<dyn MultipartUpload>,
    begun: usize,
    fate: Arc<Fate>,
    log: Arc<Mutex<Vec<&'static str>>>,
    forgets: bool,
    fails_to_abort: Arc<AtomicBool>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let fate = (self.fate)(self.begun);
        self.begun += 1;
        self.log.lock().unwrap().push("part");
        // The store in memory takes a part's place when it is asked, so that parts may end in any order.
        let (put, held) =
            if self.forgets { (None, Some(data)) } else { (Some(self.inner.put_part(data)), None) };
        Box::pin(async move {
            fate.await?;
            drop(held);
            match put {
                Some(put) => put.await,
                None => Ok(()),
            }
        })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        self.log.lock().unwrap().push("complete");
        self.inner.complete().await
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.log.lock().unwrap().push("abort");
        if self.fails_to_abort.load(Ordering::Relaxed) {
            Err(broken("abort"))
        } else {
            self.inner.abort().await
        }
    }
}

impl fmt::Debug for PartStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartStore")
    }
}

impl fmt::Display for PartStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartStore")
    }
}

#[async_trait]
impl ObjectStore for PartStore {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.log.lock().unwrap().push("put");
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        Ok(Box::new(Parts {
            inner: self.inner.put_multipart_opts(path, options).await?,
            begun: 0,
            fate: self.fate.clone(),
            log: self.log.clone(),
            forgets: self.forgets,
            fails_to_abort: self.fails_to_abort.clone(),
        }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Parts end in another order than they begin, and the hash is that of the bytes in theirs.
#[tokio::test(flavor = "multi_thread")]
async fn the_hash_is_that_of_the_bytes_in_their_order() {
    // Of each three parts that are under way, the last one ends first.
    let store = Arc::new(PartStore::new(|part| async move {
        let turn = u64::try_from(2 - part % 3).unwrap();
        tokio::time::sleep(Duration::from_millis(20 * turn)).await;
        Ok(())
    }));
    let scans = scans_in(store.clone()).await;
    // Sizes around a part's and pieces that cross its bound or are longer than one.
    for (count, bytes, requests) in [
        (1, PART, 1),
        (1, PART + 1, 3),
        (2, PART, 3),
        (21, MIB + 12_345, 4),
        (1, 2 * PART + 5, 4),
        (8_200, 1_024, 3),
        (5, 100_000, 1),
        (0, 0, 1),
    ] {
        let expected: Vec<u8> = (0..count).flat_map(|number| piece(number, bytes)).collect();
        store.log.lock().unwrap().clear();
        let blob = upload(&scans, Field::Plain, pieces(count, bytes)).await.unwrap();
        let when = format!("{count} pieces of {bytes} bytes");
        assert_eq!(blob.len(), expected.len() as u64, "{when}");
        assert_eq!(store.log().len(), requests, "{when}: {:?}", store.log());
        assert!(store.stored(&blob).await == expected, "{when}");
        assert_eq!(blob.hash()[..], Sha256::digest(&expected)[..], "{when}");
    }
    // The hash of an encrypted blob is that of what is stored.
    for (count, bytes) in [(15, MIB + 12_345), (5, 100_000), (0, 0)] {
        let expected: Vec<u8> = (0..count).flat_map(|number| piece(number, bytes)).collect();
        let blob = upload(&scans, Field::Encrypted, pieces(count, bytes)).await.unwrap();
        let when = format!("{count} pieces of {bytes} bytes");
        assert_eq!(blob.hash()[..], Sha256::digest(store.stored(&blob).await)[..], "{when}");
        assert!(scans.blob(&blob).bytes().await.unwrap() == expected, "{when}");
    }
}

/// The first thing that fails is told at once, also while the source has nothing to give.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_fails_ends_the_upload_with_its_error() {
    for (field, fails_to_abort) in
        [(Field::Plain, false), (Field::Plain, true), (Field::Encrypted, false)]
    {
        let store = Arc::new(PartStore::new(|part| async move {
            if part == 0 { Err(broken("part 0 is lost")) } else { Ok(()) }
        }));
        store.fails_to_abort.store(fails_to_abort, Ordering::Relaxed);
        let scans = scans_in(store.clone()).await;
        // The source gives two parts and then nothing: an upload that looked at its parts only when there
        // are further bytes would wait for ever.
        let stalled = pieces(17, MIB).chain(stream::pending());
        let ended = tokio::time::timeout(Duration::from_secs(60), upload(&scans, field, stalled));
        let error = ended.await.expect("the part's error ends the upload").unwrap_err();
        assert!(error.is_backend() && error.keys().is_some(), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("part 0 is lost"), "{cause}");
        assert_eq!(store.log().last(), Some(&"abort"));
        assert!(!store.log().contains(&"complete"));
        assert!(store.names().await.is_empty(), "{:?}", store.names().await);
    }
}

/// A part that fails last of all is told too, and the error of the source is if it comes first.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_error_is_the_one_to_tell() {
    let last = |part: usize| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if part == 2 { Err(broken("the last part is lost")) } else { Ok(()) }
    };
    for field in [Field::Plain, Field::Encrypted] {
        let store = Arc::new(PartStore::new(last));
        let scans = scans_in(store.clone()).await;
        let error = upload(&scans, field, pieces(20, MIB)).await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.is_backend() && cause.contains("the last part"), "{error}: {cause}");
        assert_eq!(store.log(), ["part", "part", "part", "abort"]);

        // Both parts are under way for ever when the source fails.
        let store = Arc::new(PartStore::new(|_| std::future::pending()));
        let scans = scans_in(store.clone()).await;
        let broken_off = stream::iter([Err(std::io::Error::other("the camera is gone"))]);
        let error = upload(&scans, field, pieces(18, MIB).chain(broken_off)).await.unwrap_err();
        assert!(error.is_rejected() && error.to_string().contains("camera"), "{error}");
        assert_eq!(store.log(), ["part", "part", "abort"]);
        assert!(store.names().await.is_empty());
    }
}

/// Bytes that count themselves while they are in memory.
struct Counted {
    bytes: Vec<u8>,
    alive: Arc<Alive>,
}

#[derive(Debug, Default)]
struct Alive {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Alive {
    fn piece(self: &Arc<Self>, bytes: usize) -> Bytes {
        let now = self.now.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.most.fetch_max(now, Ordering::SeqCst);
        Bytes::from_owner(Counted { bytes: vec![1; bytes], alive: self.clone() })
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.now.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}

/// The source always has more. A store that stops, one that is faster than the hash and one that is slow
/// hold no more than five parts and the one that is filled.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_holds_few_parts() {
    for field in [Field::Plain, Field::Encrypted] {
        let gate = Arc::new(Semaphore::new(0));
        let passes = gate.clone();
        let mut store = PartStore::new(move |part| {
            let passes = passes.clone();
            async move {
                // The first part ends after all others that can begin beside it.
                let pass = passes.acquire_many(if part == 0 { 2 } else { 1 }).await.unwrap();
                pass.forget();
                Ok(())
            }
        });
        store.forgets = true;
        let store = Arc::new(store);
        let scans = scans_in(store.clone()).await;
        let alive = Arc::new(Alive::default());
        let count = 80;
        let counted = alive.clone();
        let source = stream::iter((0..count).map(move |_| Ok(counted.piece(MIB))));
        let uploading = tokio::spawn({
            let scans = scans.clone();
            async move { upload(&scans, field, source).await }
        });
        // The store stands still: so does the source after a while.
        let mut before = usize::MAX;
        while store.log().len() < 3 || before != alive.now.load(Ordering::SeqCst) {
            before = alive.now.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(store.log().len(), 3, "{field:?}: parts under way at once");
        gate.add_permits(1_000);
        let blob = uploading.await.unwrap().unwrap();
        assert_eq!(blob.len(), (count * MIB) as u64);
        let most = alive.most.load(Ordering::SeqCst);
        // Of encrypted content, a piece of a MiB is copied and let go once it is encrypted.
        assert!(most <= 5 * PART + MIB, "{field:?}: {} MiB", most / MIB);
        assert_eq!(alive.now.load(Ordering::SeqCst), 0, "nothing is left behind");
    }
}

/// An upload that nobody waits for any more ends, whatever it was at: nothing of it has a name.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_dropped_leaves_nothing() {
    for field in [Field::Plain, Field::Encrypted] {
        for polls in [1, 2, 5, 20] {
            let directory = tempfile::tempdir().unwrap();
            let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
            let scans = scans_in(files).await;
            let alive = Arc::new(Alive::default());
            let counted = alive.clone();
            let source = stream::iter((0..).map(move |_| Ok(counted.piece(MIB))));
            let mut uploading = Box::pin(upload(&scans, field, source));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                assert!(uploading.as_mut().poll(&mut context).is_pending());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            drop(uploading);
            // Work on other threads ends by itself.
            for _ in 0..1_000 {
                if alive.now.load(Ordering::SeqCst) == 0 && files_in(directory.path()) == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let left = (alive.now.load(Ordering::SeqCst), files_in(directory.path()));
            assert_eq!(left, (0, 0), "{field:?} after {polls} polls: bytes held, files");
            let swept = scans.sweep_blobs().grace(Duration::ZERO).await.unwrap();
            assert_eq!((swept.removed, swept.kept), (0, 0));
        }
    }
}

fn files_in(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_in(&path) } else { 1 }).sum()
}

/// One thread for tasks and one for blocking work: the store's writes, the hash and the cipher take turns.
#[test]
fn one_thread_is_enough() {
    let one = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let current = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_time()
        .build()
        .unwrap();
    for runtime in [one, current] {
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
            let scans = scans_in(files).await;
            // Two at once, the first of more parts than are held.
            let lengths = [(Field::Plain, 41), (Field::Encrypted, 17)];
            let uploads = lengths.map(|(field, mebibytes)| {
                let scans = scans.clone();
                tokio::spawn(async move { upload(&scans, field, pieces(mebibytes, MIB)).await })
            });
            for ((_, mebibytes), uploaded) in lengths.into_iter().zip(join_all(uploads).await) {
                assert_eq!(uploaded.unwrap().unwrap().len(), (mebibytes * MIB) as u64);
            }
        });
    }
}

#[test]
fn an_upload_in_parts_needs_no_runtime() {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let mut uploads = pin!(async {
        let in_files = scans_in(files).await;
        let in_memory = scans_in(Arc::new(InMemory::new())).await;
        for scans in [in_files, in_memory] {
            for field in [Field::Plain, Field::Encrypted] {
                let blob = upload(&scans, field, pieces(9, MIB)).await.unwrap();
                assert_eq!(scans.blob(&blob).bytes().await.unwrap().len(), 9 * MIB);
            }
        }
    });
    let mut context = Context::from_waker(Waker::noop());
    while uploads.as_mut().poll(&mut context).is_pending() {}
}
