//! A store of blobs that a test can break and whose clock it can set ahead.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use entable::object_store::{
    CopyMode, CopyOptions, Error as StoreError, GetOptions, GetRange, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
    memory::InMemory, path::Path,
};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

/// Whether a request that fails was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    Before,
    After,
}

/// A store in memory with a log of its requests.
#[derive(Debug, Default)]
pub(crate) struct TestBlobs {
    inner: InMemory,
    calls: Arc<Calls>,
    ranges: Mutex<Vec<Range<u64>>>,
    ahead: Mutex<Duration>,
    written: Mutex<HashMap<Path, Duration>>,
    breaks_after: Mutex<Option<usize>>,
    has_no_conditions: AtomicBool,
}

/// The requests so far, and the one that is to fail.
#[derive(Debug, Default)]
struct Calls {
    log: Mutex<Vec<String>>,
    fault: Mutex<Option<(usize, Fails)>>,
    requests: AtomicUsize,
}

impl Calls {
    /// Records and counts a request; returns how it fails, if it does.
    fn begin(&self, kind: &str, path: &Path) -> Option<Fails> {
        self.log.lock().unwrap().push(format!("{kind} {path}"));
        self.count()
    }

    /// Counts a request; returns how it fails, if it does. The log has one line for an upload in parts.
    fn count(&self) -> Option<Fails> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut fault = self.fault.lock().unwrap();
        fault.take_if(|(nth, _)| *nth == number).map(|(_, fails)| fails)
    }
}

fn broken() -> StoreError {
    StoreError::Generic { store: "test", source: "connection lost".into() }
}

/// Carries out a request unless it fails before, and loses the answer if it fails after.
macro_rules! request {
    ($fails:expr, $request:expr) => {{
        let fails = $fails;
        if fails == Some(Fails::Before) {
            return Err(broken());
        }
        let answer = $request;
        if fails == Some(Fails::After) {
            return Err(broken());
        }
        answer
    }};
}

/// An upload in parts, each of which is a request.
#[derive(Debug)]
struct TestParts {
    inner: Box<dyn MultipartUpload>,
    calls: Arc<Calls>,
}

#[async_trait]
impl MultipartUpload for TestParts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let fails = self.calls.count();
        let put = (fails != Some(Fails::Before)).then(|| self.inner.put_part(data));
        Box::pin(async move {
            if let Some(put) = put {
                put.await?;
            }
            if fails.is_some() { Err(broken()) } else { Ok(()) }
        })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        let fails = self.calls.count();
        request!(fails, self.inner.complete().await)
    }

    async fn abort(&mut self) -> StoreResult<()> {
        let fails = self.calls.count();
        request!(fails, self.inner.abort().await)
    }
}

impl TestBlobs {
    /// Lets the request after the next `nth` fail once.
    pub(crate) fn inject(&self, nth: usize, fails: Fails) {
        self.calls.requests.store(0, Ordering::Relaxed);
        *self.calls.fault.lock().unwrap() = Some((nth, fails));
    }

    /// Removes a fault that no request met; `true` if there was one.
    pub(crate) fn calm(&self) -> bool {
        self.calls.fault.lock().unwrap().take().is_some()
    }

    /// Lets the store break down in the middle of every read that has more bytes than these, or not.
    pub(crate) fn break_reads_after(&self, bytes: Option<usize>) {
        *self.breaks_after.lock().unwrap() = bytes;
    }

    /// Takes the store's conditional writes away, or gives them back.
    pub(crate) fn has_no_conditions(&self, has_none: bool) {
        self.has_no_conditions.store(has_none, Ordering::Relaxed);
    }

    fn check_conditions(&self, is_conditional: bool) -> StoreResult<()> {
        if is_conditional && self.has_no_conditions.load(Ordering::Relaxed) {
            let (operation, implementer) = ("a conditional write".into(), self.to_string());
            return Err(StoreError::NotImplemented { operation, implementer });
        }
        Ok(())
    }

    /// Sets the store's clock further ahead.
    pub(crate) fn advance(&self, time: Duration) {
        *self.ahead.lock().unwrap() += time;
    }

    /// Returns the requests so far, and forgets them.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.log.lock().unwrap())
    }

    /// Returns the names of all blobs of rows, in order.
    pub(crate) async fn names(&self) -> Vec<String> {
        let all: Vec<ObjectMeta> = self.inner.list(None).try_collect().await.unwrap();
        let names = all.into_iter().map(|meta| meta.location.to_string());
        let mut names: Vec<String> = names.filter(|name| name.contains('/')).collect();
        names.sort();
        names
    }

    /// Changes a blob behind the row that points to it.
    pub(crate) async fn damage(&self, name: &str, bytes: &[u8]) {
        let bytes = PutPayload::from(bytes.to_vec());
        self.inner.put(&Path::parse(name).unwrap(), bytes).await.unwrap();
    }

    /// Returns the bytes of a blob as they are stored.
    pub(crate) async fn stored(&self, name: &str) -> Vec<u8> {
        let found = self.inner.get(&Path::parse(name).unwrap()).await.unwrap();
        found.bytes().await.unwrap().to_vec()
    }

    /// Returns the ranges that were read so far, and forgets them.
    pub(crate) fn take_ranges(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.ranges.lock().unwrap())
    }

    pub(crate) async fn remove(&self, name: &str) {
        self.inner.delete(&Path::parse(name).unwrap()).await.unwrap();
    }

    fn begin(&self, kind: &str, path: &Path) -> Option<Fails> {
        self.calls.begin(kind, path)
    }

    fn date(&self, path: &Path) {
        let ahead = *self.ahead.lock().unwrap();
        self.written.lock().unwrap().insert(path.clone(), ahead);
    }

    fn dated(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let written = self.written.lock().unwrap();
        meta.last_modified += written.get(&meta.location).copied().unwrap_or_default();
        meta
    }
}

/// Returns the beginning of a payload, and then an error.
async fn broken_off(payload: GetResultPayload, bytes: usize) -> GetResultPayload {
    let GetResultPayload::Stream(payload) = payload else {
        panic!("a store in memory has streams")
    };
    let all: Vec<bytes::Bytes> = payload.try_collect().await.unwrap();
    let all = bytes::Bytes::from(all.concat());
    if all.len() <= bytes {
        return GetResultPayload::Stream(futures_util::stream::iter([Ok(all)]).boxed());
    }
    let begun = [Ok(all.slice(..bytes)), Err(broken())];
    GetResultPayload::Stream(futures_util::stream::iter(begun).boxed())
}

impl std::fmt::Display for TestBlobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestBlobs")
    }
}

#[async_trait]
impl ObjectStore for TestBlobs {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        let fails = self.begin("put", path);
        request!(fails, {
            self.check_conditions(options.mode != PutMode::Overwrite)?;
            let put = self.inner.put_opts(path, payload, options).await?;
            self.date(path);
            Ok(put)
        })
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let fails = self.begin("parts", path);
        request!(fails, {
            self.date(path);
            let inner = self.inner.put_multipart_opts(path, options).await?;
            let calls = self.calls.clone();
            Ok(Box::new(TestParts { inner, calls }) as Box<dyn MultipartUpload>)
        })
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let fails = self.begin(if options.head { "head" } else { "get" }, path);
        if let Some(GetRange::Bounded(range)) = &options.range {
            self.ranges.lock().unwrap().push(range.clone());
        }
        request!(fails, {
            let is_head = options.head;
            let mut got = self.inner.get_opts(path, options).await?;
            got.meta = self.dated(got.meta);
            let breaks_after = *self.breaks_after.lock().unwrap();
            if let Some(bytes) = breaks_after.filter(|_| !is_head) {
                got.payload = broken_off(got.payload, bytes).await;
            }
            Ok(got)
        })
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        let inner = Arc::new(self.inner.clone());
        // The stream outlives the borrow, so that its one path is looked at here.
        let paths: Vec<Path> =
            futures_util::FutureExt::now_or_never(paths.try_collect::<Vec<_>>()).unwrap().unwrap();
        let fails: Vec<_> = paths.iter().map(|path| self.begin("delete", path)).collect();
        let all = paths.into_iter().zip(fails);
        futures_util::stream::iter(all)
            .then(move |(path, fails)| {
                let inner = inner.clone();
                async move {
                    request!(fails, {
                        inner.delete(&path).await?;
                        Ok(path)
                    })
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        if self.begin("list", prefix.unwrap_or(&Path::default())).is_some() {
            return futures_util::stream::iter([Err(broken())]).boxed();
        }
        let all = self.inner.list(prefix);
        let all: Vec<_> = futures_util::FutureExt::now_or_never(all.collect::<Vec<_>>()).unwrap();
        let dated: Vec<_> = all.into_iter().map(|meta| Ok(self.dated(meta?))).collect();
        futures_util::stream::iter(dated).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        let fails = self.begin("copy", to);
        request!(fails, {
            self.check_conditions(options.mode == CopyMode::Create)?;
            self.inner.copy_opts(from, to, options).await?;
            self.date(to);
            Ok(())
        })
    }
}
