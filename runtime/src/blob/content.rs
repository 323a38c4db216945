//! Bytes of blobs that rows point to. Each is written once, under a name that no other write gets.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    ops::Range,
    path::PathBuf,
    pin::pin,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    Stream, StreamExt, TryStreamExt,
    future::join,
    stream::{self, BoxStream},
};
use object_store::{
    CopyMode, CopyOptions, Error as StoreError, GetResultPayload, MultipartUpload, ObjectMeta,
    ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path,
};

use super::{
    beside::run_blocking,
    blobs::Blobs,
    parts::{PartBytes, PartUpload},
    store_error::{blob_store_error, name_taken_error},
};
use crate::{
    blob_port::LengthAndHash,
    error::{Error, ErrorKind, Result},
    limits::saturating_u64,
};

/// Bytes of a piece of a file that is read piece by piece.
const FILE_PIECE_BYTES: u64 = 1 << 20;

/// The name of the blob that a sweep writes to learn the store's time. No row points to it, since the
/// names of rows' blobs have five segments.
const TIME_PROBE: &str = "entable-sweep-time";

/// A blob as a listing of the store shows it.
#[derive(Debug, Clone)]
pub(crate) struct ListedBlob {
    pub(crate) name: String,
    modified: BlobStoreTime,
}

/// A time by the store's clock, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlobStoreTime(i64);

impl BlobStoreTime {
    fn time_of_blob(meta: &ObjectMeta) -> Self {
        Self(meta.last_modified.timestamp_micros())
    }

    /// Returns whether a blob was written at least `age` before `self`, a time by the store's own
    /// clock.
    pub(crate) fn is_blob_older_than(self, age: Duration, blob: &ListedBlob) -> bool {
        let elapsed = self.0.saturating_sub(blob.modified.0);
        // A blob that is younger than the probe has a negative age, which is below any other.
        u64::try_from(elapsed).is_ok_and(|elapsed| Duration::from_micros(elapsed) >= age)
    }
}

impl Blobs {
    /// Writes a new blob in one request. Returns `false`, and writes nothing, if the name is taken.
    ///
    /// # Errors
    ///
    /// `is_unsupported` if the store cannot make a write conditional on the blob's absence.
    pub(crate) async fn put_if_absent(&self, name: &str, bytes: PutPayload) -> Result<bool> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&blob_path(name)?, bytes, options).await {
            Ok(_) => Ok(true),
            Err(StoreError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.refused_write_error(error)),
        }
    }

    /// Translates the error of a write that must not replace a blob. If the store does not support such
    /// writes, the error is `is_unsupported` and names the store.
    fn refused_write_error(&self, error: StoreError) -> Error {
        let (StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) = error else {
            return blob_store_error(error);
        };
        let message = format!(
            "the blob store `{}` cannot write a blob only if none exists, or cannot copy a blob; use a store that can",
            self.store
        );
        Error::new(ErrorKind::Unsupported, message).with_source(error)
    }

    /// Writes a stream's bytes as a new blob, with a few parts of 8 MiB in memory. Returns the
    /// length and hash of the bytes. The name has to be new: if a blob of that name exists, up to 8
    /// MiB of bytes are not written and the result is `None`, but more bytes replace the blob.
    ///
    /// # Errors
    ///
    /// Returns the first error of the stream or of a part; nothing is written then.
    pub(crate) async fn create_blob_from_stream(
        &self,
        name: &str,
        bytes: impl Stream<Item = Result<Bytes>>,
    ) -> Result<Option<LengthAndHash>> {
        let mut upload = None;
        let written = self.put_parts(name, bytes, &mut upload).await;
        if let (Err(_), Some(upload)) = (&written, upload) {
            upload.abort().await;
        }
        written
    }

    /// Writes a stream's bytes as [`create_blob_from_stream`](Self::create_blob_from_stream). Leaves an upload in parts that has
    /// begun in `upload`.
    async fn put_parts(
        &self,
        name: &str,
        bytes: impl Stream<Item = Result<Bytes>>,
        upload: &mut Option<PartUpload>,
    ) -> Result<Option<LengthAndHash>> {
        let mut bytes = pin!(bytes);
        let (mut part, mut len) = (PartBytes::default(), 0_u64);
        loop {
            let chunk = match upload {
                Some(upload) => upload.wait_while_hashing_parts(bytes.next()).await?,
                None => bytes.next().await,
            };
            let Some(chunk) = chunk else { break };
            let mut chunk = chunk?;
            len = len.saturating_add(saturating_u64(chunk.len()));
            // A full part waits for further bytes: if it is the only one, it takes one request.
            loop {
                chunk = part.fill_and_return_rest(chunk);
                if chunk.is_empty() {
                    break;
                }
                let open = match upload {
                    Some(open) => open,
                    None => upload.insert(PartUpload::new(self.begin_upload(name).await?)),
                };
                open.begin_part(std::mem::take(&mut part)).await?;
            }
        }
        let (is_new, hash) = match upload {
            Some(open) => {
                open.begin_part(part).await?;
                (true, open.finish().await?)
            }
            None => {
                let payload = part.payload();
                let (is_new, hash) = join(self.put_if_absent(name, payload), part.hash()).await;
                (is_new?, hash?)
            }
        };
        Ok(is_new.then_some(LengthAndHash { len, hash }))
    }

    async fn begin_upload(&self, name: &str) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart(&blob_path(name)?).await.map_err(blob_store_error)
    }

    /// Copies a blob to a new name. Returns `false`, and writes nothing, if `from` does not exist.
    ///
    /// # Errors
    ///
    /// `is_conflict` if the new name is taken; `is_unsupported` if the store cannot make a copy conditional on
    /// the new name being free.
    pub(crate) async fn copy_blob_if_absent(&self, from: &str, to: &str) -> Result<bool> {
        let (from_path, to_path) = (blob_path(from)?, blob_path(to)?);
        let Some(source) = found_or_none(self.store.head(&from_path).await)? else {
            return Ok(false);
        };
        let options = CopyOptions { mode: CopyMode::Create, ..CopyOptions::default() };
        match self.store.copy_opts(&from_path, &to_path, options).await {
            Ok(()) => {}
            Err(StoreError::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(self.refused_write_error(error)),
        }
        let copy = self.store.head(&to_path).await.map_err(blob_store_error)?;
        // In a local directory the copy is a hard link with the source's time. A sweep would take it for
        // an old upload that no row points to. So write the bytes again.
        if copy.last_modified > source.last_modified {
            return Ok(true);
        }
        let Some(bytes) = self.stream_blob(from).await? else { return Ok(false) };
        self.store.delete(&to_path).await.map_err(blob_store_error)?;
        match self.create_blob_from_stream(to, bytes).await? {
            Some(_) => Ok(true),
            None => Err(name_taken_error()),
        }
    }

    /// Reads all bytes of a blob as they are stored: encrypted content stays encrypted, and length and hash are not
    /// checked. Returns `None` if the blob does not exist.
    pub(crate) async fn read_whole_blob(&self, name: &str) -> Result<Option<Bytes>> {
        let Some(answer) = found_or_none(self.store.get(&blob_path(name)?).await)? else {
            return Ok(None);
        };
        found_or_none(answer.bytes().await)
    }

    /// Reads a range of a blob's bytes, or returns `None` if the blob does not exist. If the range goes beyond
    /// the blob's end, the object store decides whether to cut or refuse it.
    pub(crate) async fn read_blob_range(
        &self,
        name: &str,
        range: Range<u64>,
    ) -> Result<Option<Bytes>> {
        found_or_none(self.store.get_range(&blob_path(name)?, range).await)
    }

    /// Returns a blob's length in bytes, or `None` if it does not exist.
    pub(crate) async fn len(&self, name: &str) -> Result<Option<u64>> {
        Ok(found_or_none(self.store.head(&blob_path(name)?).await)?.map(|meta| meta.size))
    }

    /// Reads a blob piece by piece, or returns `None` if it does not exist.
    pub(crate) async fn stream_blob(
        &self,
        name: &str,
    ) -> Result<Option<BoxStream<'static, Result<Bytes>>>> {
        let answer = found_or_none(self.store.get(&blob_path(name)?).await)?;
        Ok(answer.map(|answer| match answer.payload {
            GetResultPayload::File(file, path) => file_stream(file, path, answer.range),
            GetResultPayload::Stream(pieces) => pieces.map_err(blob_store_error).boxed(),
        }))
    }

    /// Returns whether `source` is `folder` of this store: `name` in `source` is then `folder/name`
    /// here. To find out, writes the blob `probe` into the folder, looks for `probe` in `source`, and
    /// deletes the blob. Fails if one of these requests fails.
    pub(crate) async fn probe_is_folder_of_store(
        &self,
        source: &Self,
        folder: &str,
        probe: &str,
    ) -> Result<bool> {
        let name = [folder, "/", probe].concat();
        self.store
            .put(&blob_path(&name)?, PutPayload::default())
            .await
            .map_err(blob_store_error)?;
        let found = source.len(probe).await;
        // The probe is deleted before an error of the look is returned.
        self.delete_blob(&name).await?;
        Ok(found?.is_some())
    }

    /// Deletes a blob. Succeeds if it does not exist.
    pub(crate) async fn delete_blob(&self, name: &str) -> Result<()> {
        found_or_none(self.store.delete(&blob_path(name)?).await).map(drop)
    }

    /// Lists the blobs in the folder `segment` and its subfolders.
    pub(crate) fn list_blobs(&self, segment: &str) -> BoxStream<'static, Result<ListedBlob>> {
        let listed = |meta: ObjectMeta| ListedBlob {
            name: meta.location.to_string(),
            modified: BlobStoreTime::time_of_blob(&meta),
        };
        self.store.list(Some(&Path::from(segment))).map_ok(listed).map_err(blob_store_error).boxed()
    }

    /// Returns the present time by the store's own clock. Writes a small blob and reads its time,
    /// since a store gives its time only with a written blob.
    pub(crate) async fn now(&self) -> Result<BlobStoreTime> {
        let probe = Path::from(TIME_PROBE);
        self.store.put(&probe, PutPayload::default()).await.map_err(blob_store_error)?;
        let meta = self.store.head(&probe).await.map_err(blob_store_error)?;
        Ok(BlobStoreTime::time_of_blob(&meta))
    }
}

/// Reads a range of a file in pieces of 1 MiB. Returns fewer bytes if the file ends earlier.
// The store's own stream has pieces of 8 KiB, and each is a task for another thread.
fn file_stream(
    mut file: File,
    path: PathBuf,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes>> {
    let begun = run_blocking(move || file.seek(SeekFrom::Start(range.start)).map(|_| file));
    let pieces = async move {
        let read_error = move |error: std::io::Error| {
            let message = format!("reading the file `{}` failed", path.display());
            Error::new(ErrorKind::Backend, message).with_source(error)
        };
        let file = begun.await?.map_err(&read_error)?;
        let state = (file, range.end.saturating_sub(range.start), read_error);
        let pieces = stream::try_unfold(state, |(file, rest, read_error)| async move {
            if rest == 0 {
                return Ok(None);
            }
            let read = run_blocking(move || {
                let most = rest.min(FILE_PIECE_BYTES);
                // 1 MiB fits on every platform.
                let mut piece = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
                (&file).take(most).read_to_end(&mut piece).map(|_| (piece, file))
            });
            let (piece, file) = read.await?.map_err(&read_error)?;
            let rest = rest.saturating_sub(saturating_u64(piece.len()));
            // An empty piece: the file ends before the range does.
            Ok((!piece.is_empty()).then(|| (Bytes::from(piece), (file, rest, read_error))))
        });
        Ok::<_, Error>(pieces)
    };
    stream::once(pieces).try_flatten().boxed()
}

pub(super) fn blob_path(name: &str) -> Result<Path> {
    Path::parse(name).map_err(|error| {
        Error::new(ErrorKind::Invalid, "the name is not a valid blob name").with_source(error)
    })
}

/// Returns the answer, or `None` if the blob does not exist.
fn found_or_none<T>(answer: object_store::Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(blob_store_error(error)),
    }
}
