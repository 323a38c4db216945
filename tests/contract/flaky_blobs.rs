//! A store of blobs that records its requests, fails where it is told, and holds puts back.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use entable::object_store::{
    Attribute, Attributes, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, path::Path,
};
use futures_util::{StreamExt, stream::BoxStream};
use tokio::sync::Notify;

/// Outcome of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The store does nothing and no answer comes.
    Refused,
    /// The store does it, and the answer is lost.
    Unanswered,
    /// The answer is lost, and a put is carried out only 120 ms later.
    Late,
    /// The store does nothing and says that the client may not write.
    Denied,
}

/// The store, and what its requests meet.
#[derive(Debug)]
pub struct Flaky {
    inner: Arc<dyn ObjectStore>,
    requests: Mutex<Vec<String>>,
    /// The fates of requests by their number, from 0.
    fates: Mutex<BTreeMap<usize, Fate>>,
    number: AtomicUsize,
    pub is_down: AtomicBool,
    is_held: AtomicBool,
    released: Notify,
    /// Refuses puts on a condition, as some stores do.
    pub has_no_conditions: AtomicBool,
    /// Returns the names of metadata in lower case, as services do.
    pub lowers_names: AtomicBool,
}

impl Flaky {
    pub fn over(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            requests: Mutex::default(),
            fates: Mutex::default(),
            number: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            released: Notify::new(),
            has_no_conditions: AtomicBool::new(false),
            lowers_names: AtomicBool::new(false),
        })
    }

    pub fn set_fates(&self, fates: impl IntoIterator<Item = (usize, Fate)>) {
        *self.fates.lock().unwrap() = fates.into_iter().collect();
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.number.load(Ordering::SeqCst)
    }

    /// Returns the requests since the last call, each as its kind and the blob's name.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    pub fn hold_puts(&self) {
        self.is_held.store(true, Ordering::SeqCst);
    }

    pub fn release_puts(&self) {
        self.is_held.store(false, Ordering::SeqCst);
        self.released.notify_waiters();
    }

    fn meet(&self, kind: &str, path: &str) -> Option<Fate> {
        self.requests.lock().unwrap().push(format!("{kind} {path}"));
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Some(Fate::Refused);
        }
        self.fates.lock().unwrap().get(&number).copied()
    }
}

fn lost() -> Error {
    Error::Generic { store: "flaky", source: "connection lost".into() }
}

impl fmt::Display for Flaky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flaky")
    }
}

#[async_trait]
impl ObjectStore for Flaky {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let fate = self.meet("put", path.as_ref());
        while self.is_held.load(Ordering::SeqCst) {
            self.released.notified().await;
        }
        if self.has_no_conditions.load(Ordering::SeqCst) && options.mode != PutMode::Overwrite {
            let (operation, implementer) = ("conditional put".into(), "Flaky".into());
            return Err(Error::NotImplemented { operation, implementer });
        }
        match fate {
            None => self.inner.put_opts(path, payload, options).await,
            Some(Fate::Refused) => Err(lost()),
            Some(Fate::Unanswered) => {
                let _ = self.inner.put_opts(path, payload, options).await;
                Err(lost())
            }
            Some(Fate::Late) => {
                let (inner, path) = (self.inner.clone(), path.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(120)).await;
                    let _ = inner.put_opts(&path, payload, options).await;
                });
                Err(lost())
            }
            Some(Fate::Denied) => Err(Error::PermissionDenied {
                path: path.to_string(),
                source: "the signature has expired".into(),
            }),
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let fate = self.meet(if options.head { "head" } else { "get" }, path.as_ref());
        if fate.is_some() {
            return Err(lost());
        }
        let mut answer = self.inner.get_opts(path, options).await?;
        if self.lowers_names.load(Ordering::SeqCst) {
            let mut lowered = Attributes::new();
            for (attribute, value) in &answer.attributes {
                let Attribute::Metadata(name) = attribute else { continue };
                let name = name.to_ascii_lowercase();
                lowered.insert(Attribute::Metadata(name.into()), value.clone());
            }
            answer.attributes = lowered;
        }
        Ok(answer)
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.meet("edges", path.as_ref()).is_some() {
            return Err(lost());
        }
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.meet("list", prefix.map_or("", AsRef::as_ref)).is_some() {
            return futures_util::stream::iter([Err(lost())]).boxed();
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        if self.meet("list", prefix.map_or("", AsRef::as_ref)).is_some() {
            return Err(lost());
        }
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
