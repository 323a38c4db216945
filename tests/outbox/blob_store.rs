//! A store of blobs that a test can break and whose clock it can set ahead.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use entable::object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetRange, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result as StoreResult, memory::InMemory, path::Path,
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
    log: Mutex<Vec<String>>,
    ranges: Mutex<Vec<Range<u64>>>,
    ahead: Mutex<Duration>,
    written: Mutex<HashMap<Path, Duration>>,
    fault: Mutex<Option<(usize, Fails)>>,
    requests: AtomicUsize,
}

impl TestBlobs {
    /// Lets the request after the next `nth` fail once.
    pub(crate) fn inject(&self, nth: usize, fails: Fails) {
        self.requests.store(0, Ordering::Relaxed);
        *self.fault.lock().unwrap() = Some((nth, fails));
    }

    /// Removes a fault that no request met; `true` if there was one.
    pub(crate) fn calm(&self) -> bool {
        self.fault.lock().unwrap().take().is_some()
    }

    /// Sets the store's clock further ahead.
    pub(crate) fn advance(&self, time: Duration) {
        *self.ahead.lock().unwrap() += time;
    }

    /// Returns the requests so far, and forgets them.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
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

    /// Counts a request; returns how it fails, if it does.
    fn begin(&self, kind: &str, path: &Path) -> Option<Fails> {
        self.log.lock().unwrap().push(format!("{kind} {path}"));
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut fault = self.fault.lock().unwrap();
        fault.take_if(|(nth, _)| *nth == number).map(|(_, fails)| fails)
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
            self.inner.put_multipart_opts(path, options).await
        })
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let fails = self.begin(if options.head { "head" } else { "get" }, path);
        if let Some(GetRange::Bounded(range)) = &options.range {
            self.ranges.lock().unwrap().push(range.clone());
        }
        request!(fails, {
            let mut got = self.inner.get_opts(path, options).await?;
            got.meta = self.dated(got.meta);
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
            self.inner.copy_opts(from, to, options).await?;
            self.date(to);
            Ok(())
        })
    }
}
