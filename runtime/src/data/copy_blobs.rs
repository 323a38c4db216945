//! Copies of blobs into the blob store of another client.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart,
    path::Path,
};

use crate::{
    entity::blob::name::is_blob_name,
    error::{Error, ErrorKind, Result},
    limits::saturating_usize,
    outbox::blob_writes::missing_blob_store_error,
    table::{
        Client,
        job::{Listener, run_when_awaited},
    },
};

/// The number of blobs that are compared or copied at the same time.
const IN_FLIGHT: usize = 8;
/// The number of bytes in each request of an upload. A blob of fewer bytes takes one request.
const PART_BYTES: u64 = 8 << 20;
/// The number of requests of one upload that are in flight at the same time.
const PARTS_IN_FLIGHT: usize = 3;

/// A copy of all blobs into the blob store of another client, which [`Client::copy_blobs_to`] makes and which
/// runs when it is awaited.
#[derive(Debug)]
#[must_use = "does nothing unless awaited"]
pub struct CopyBlobs {
    from: Client,
    to: Client,
    is_writing: bool,
    on_progress: Listener<CopyBlobsReport>,
}

/// The counts of a copy of blobs, so far or at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CopyBlobsReport {
    /// The blobs that were copied because they were missing or different in the target.
    pub copied: u64,
    /// The bytes of the blobs that were copied.
    pub bytes: u64,
    /// The blobs that were equal in both stores.
    pub equal: u64,
    /// The blobs that are missing in the target or differ there. Only [`CopyBlobs::compare_only`] counts them; a
    /// copy writes them.
    pub different: u64,
    /// The blobs that a writer deleted after the copy had listed them and before it read them.
    pub gone: u64,
}

impl CopyBlobsReport {
    /// Returns whether the target has every blob that the source listed: no blob differs, and no blob was gone
    /// before it could be copied.
    pub const fn is_equal(&self) -> bool {
        self.different == 0 && self.gone == 0
    }
}

impl Client {
    /// Returns a copy job from this client's blob store to that of another client. It copies blobs of fields,
    /// lists in blobs, logs and archived rows, under the names that rows point to.
    ///
    /// Copy the blobs before the rows that point to them. Copy both again after stopping the writers. Blobs
    /// that are complete in the target are not sent again, so repeating an interrupted copy continues it.
    /// Blobs that only the target has stay there; [`Table::sweep_blobs`] removes those that no row points to.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use entable::{Blob, backend::Memory, object_store::memory::InMemory, prelude::*};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee {
    ///     pub department: String,
    ///     pub id: u32,
    ///     #[table(blob)]
    ///     pub photo: Option<Blob>,
    /// }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = || Client::builder().backend(Memory::new()).blobs(Arc::new(InMemory::new())).build();
    /// let (client, other) = (client()?, client()?);
    /// client.table::<Employee>().create().await?;
    /// let photo = Some(Blob::new(vec![7; 40_000]));
    /// client.table().insert(&Employee { department: "Sales".into(), id: 223, photo }).await?;
    ///
    /// let copied = client.copy_blobs_to(&other).await?;
    /// assert!(copied.is_equal());
    /// assert!(client.copy_to(&other).await?.is_equal());
    /// let path = Employee::primary().department("Sales").id(223);
    /// let Some(don) = other.table::<Employee>().get(path).await? else { return Ok(()) };
    /// let Some(photo) = &don.photo else { return Ok(()) };
    /// assert_eq!(other.table::<Employee>().blob(photo).bytes().await?.len(), 40_000);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Table::sweep_blobs`]: crate::Table::sweep_blobs
    pub fn copy_blobs_to(&self, other: &Client) -> CopyBlobs {
        CopyBlobs {
            from: self.clone(),
            to: other.clone(),
            is_writing: true,
            on_progress: Listener::silent(),
        }
    }
}

impl CopyBlobs {
    /// Writes nothing: counts the blobs that the target does not have, or has with other bytes.
    pub fn compare_only(self) -> Self {
        Self { is_writing: false, ..self }
    }

    /// Calls `report` with the counts so far after every blob.
    pub fn on_progress(self, report: impl Fn(CopyBlobsReport) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(move |progress| report(*progress)), ..self }
    }

    async fn run(self) -> Result<CopyBlobsReport> {
        let store_of = |client: &Client| {
            let blobs = client.store().object_blobs().ok_or_else(missing_blob_store_error)?;
            Ok::<_, Error>(blobs.inner_object_store())
        };
        self.check_case()?;
        let copier = Copier {
            from: store_of(&self.from)?,
            to: store_of(&self.to)?,
            is_writing: self.is_writing,
        };
        let mut report = CopyBlobsReport::default();
        let listed = copier.from.list(None).map_err(blob_store_error);
        let copier = &copier;
        let mut copies = std::pin::pin!(
            listed
                .map(|listed| async { copier.copy_listed(listed?).await })
                .buffer_unordered(IN_FLIGHT)
        );
        while let Some(outcome) = copies.next().await {
            match outcome? {
                Outcome::Copied(bytes) => {
                    report.copied += 1;
                    report.bytes += bytes;
                }
                Outcome::Equal => report.equal += 1,
                Outcome::Different => report.different += 1,
                Outcome::Gone => report.gone += 1,
                Outcome::Passed => continue,
            }
            self.on_progress.notify_callback(|| report);
        }
        Ok(report)
    }

    /// Fails if only one of the two stores ignores case in table names. They name a table's blobs differently:
    /// a copied row would point to a blob name that the target does not use.
    fn check_case(&self) -> Result<()> {
        let names = |client: &Client| client.store().names();
        if names(&self.from) == names(&self.to) {
            return Ok(());
        }
        let message = "only one of the stores distinguishes case in table names, so the blobs have other names there; \
                       write the entities with their blobs again";
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

run_when_awaited!([] CopyBlobs => CopyBlobsReport);

/// The result for one blob.
enum Outcome {
    Copied(u64),
    Equal,
    Different,
    Gone,
    /// The blob was skipped. The library wrote it to test the store, and no client reads it.
    Passed,
}

/// Copies blobs from one blob store to another, or compares the two.
struct Copier {
    from: Arc<dyn ObjectStore>,
    to: Arc<dyn ObjectStore>,
    is_writing: bool,
}

impl Copier {
    async fn copy_listed(&self, listed: ObjectMeta) -> Result<Outcome> {
        let name = listed.location.as_ref();
        // Blobs that entable writes to learn something of the store have one segment.
        if !name.contains('/') && name.starts_with("entable-") {
            return Ok(Outcome::Passed);
        }
        if self.target_has_blob(&listed).await? {
            return Ok(Outcome::Equal);
        }
        if !self.is_writing {
            return Ok(Outcome::Different);
        }
        let answer = match self.from.get(&listed.location).await {
            Err(StoreError::NotFound { .. }) => return Ok(Outcome::Gone),
            answer => answer.map_err(blob_store_error)?,
        };
        let size = answer.meta.size;
        if size <= PART_BYTES {
            let bytes = answer.bytes().await.map_err(blob_store_error)?;
            self.to
                .put(&listed.location, PutPayload::from(bytes))
                .await
                .map_err(blob_store_error)?;
            return Ok(Outcome::Copied(size));
        }
        let upload = self.to.put_multipart(&listed.location).await.map_err(blob_store_error)?;
        // 8 MiB fits on every platform.
        let part = saturating_usize(PART_BYTES);
        let mut upload = WriteMultipart::new_with_chunk_size(upload, part);
        let mut bytes = answer.into_stream();
        while let Some(chunk) = bytes.next().await {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    // Report the source's error. The store drops what was uploaded.
                    let _ = upload.abort().await;
                    return Err(blob_store_error(error));
                }
            };
            upload.wait_for_capacity(PARTS_IN_FLIGHT).await.map_err(blob_store_error)?;
            upload.put(chunk);
        }
        upload.finish().await.map_err(blob_store_error)?;
        Ok(Outcome::Copied(size))
    }

    /// Returns whether the target has the blob. The bytes under a name that rows point to never change; the
    /// bytes of lists, logs and archived rows do.
    async fn target_has_blob(&self, listed: &ObjectMeta) -> Result<bool> {
        let found = match self.to.head(&listed.location).await {
            Err(StoreError::NotFound { .. }) => return Ok(false),
            found => found.map_err(blob_store_error)?,
        };
        if found.size != listed.size {
            return Ok(false);
        }
        if is_blob_name(listed.location.as_ref()) {
            return Ok(true);
        }
        // A source that is gone by now is not equal: the copy that follows finds it gone.
        let Some(source) = stream_blob(&*self.from, &listed.location).await? else {
            return Ok(false);
        };
        match stream_blob(&*self.to, &listed.location).await? {
            Some(target) => have_equal_bytes(source, target).await,
            None => Ok(false),
        }
    }
}

/// The bytes of a blob, piece by piece.
type Pieces = BoxStream<'static, object_store::Result<Bytes>>;

/// Begins to read a blob; returns `None` if it does not exist any more.
async fn stream_blob(store: &dyn ObjectStore, name: &Path) -> Result<Option<Pieces>> {
    match store.get(name).await {
        Err(StoreError::NotFound { .. }) => Ok(None),
        answer => Ok(Some(answer.map_err(blob_store_error)?.into_stream())),
    }
}

/// Returns whether two blobs have the same bytes. Keeps one piece of each in memory, since a blob may be larger
/// than the memory, and reads no further than the first difference.
async fn have_equal_bytes(mut source: Pieces, mut target: Pieces) -> Result<bool> {
    let (mut left, mut right) = (Bytes::new(), Bytes::new());
    loop {
        left = next_if_empty(left, &mut source).await?;
        right = next_if_empty(right, &mut target).await?;
        // Pieces of two stores end at different bytes.
        let both = left.len().min(right.len());
        if both == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        if left.split_to(both) != right.split_to(both) {
            return Ok(false);
        }
    }
}

/// Returns the rest of a piece, or the next piece with bytes if nothing is left of it. Returns no bytes at the end
/// of the blob.
async fn next_if_empty(mut rest: Bytes, pieces: &mut Pieces) -> Result<Bytes> {
    while rest.is_empty() {
        match pieces.try_next().await.map_err(blob_store_error)? {
            Some(piece) => rest = piece,
            None => break,
        }
    }
    Ok(rest)
}

fn blob_store_error(error: StoreError) -> Error {
    Error::new(ErrorKind::Backend, "a blob store failed").with_source(error)
}
