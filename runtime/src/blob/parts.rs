//! Uploads in parts. The store writes parts while earlier ones are hashed on another thread and the
//! caller reads the next one.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::future::join;
use object_store::{Error as StoreError, MultipartUpload, PutPayload, Result as StoreResult};
use sha2::{Digest, Sha256};
use tokio::{runtime::Handle, task::JoinSet};

use super::{beside::run_blocking, store_error::blob_store_error};
use crate::error::Result;

/// Bytes of one request of an upload that takes several. A blob of fewer bytes takes one request.
pub(super) const PART_BYTES: usize = 8 << 20;
/// Requests of one upload that are under way at once.
const PARTS_IN_FLIGHT: usize = 3;
/// Parts of one upload that are in memory because the store or the hash is not done with them. The hash
/// needs more time than a local directory does: it may be this far behind, and catches up while the
/// directory syncs the file. With the part that is being filled, five parts are 40 MiB: an upload stays
/// below 64 MiB although an allocator keeps some of the memory that earlier uploads returned.
const PARTS_HELD: usize = 4;
/// Bytes of a blob of one request that are hashed where the upload runs: a thread for less is not
/// worth its start.
const HASHED_IN_PLACE_BYTES: usize = 256 << 10;

/// The bytes of one request, in the buffers that the caller passed.
#[derive(Debug, Default)]
pub(super) struct PartBytes {
    pieces: Vec<Bytes>,
    len: usize,
}

impl PartBytes {
    /// Adds bytes up to the size of a part. Returns those that do not fit.
    pub(super) fn fill_and_return_rest(&mut self, mut bytes: Bytes) -> Bytes {
        let rest = bytes.split_off(bytes.len().min(PART_BYTES - self.len));
        self.len += bytes.len();
        if !bytes.is_empty() {
            self.pieces.push(bytes);
        }
        rest
    }

    /// Returns a payload that shares the part's buffers.
    pub(super) fn payload(&self) -> PutPayload {
        PutPayload::from_iter(self.pieces.iter().cloned())
    }

    fn update_hash(self, mut hash: Sha256) -> Sha256 {
        // Each buffer is free as soon as it is hashed, if the store is done with it.
        for piece in self.pieces {
            hash.update(&piece);
        }
        hash
    }

    /// Returns the hash of a blob that is this part alone.
    pub(super) async fn hash(self) -> Result<[u8; 32]> {
        let hash = if self.len <= HASHED_IN_PLACE_BYTES {
            self.update_hash(Sha256::new())
        } else {
            run_blocking(|| self.update_hash(Sha256::new())).await?
        };
        Ok(hash.finalize().into())
    }
}

/// The hash of an upload's parts in their order. One of them at a time is hashed on another thread.
struct Hashing {
    /// The hash of the parts that are done.
    done: Sha256,
    running: Option<Pin<Box<dyn Future<Output = Result<Sha256>> + Send>>>,
    waiting: VecDeque<PartBytes>,
}

impl Hashing {
    fn new() -> Self {
        Self { done: Sha256::new(), running: None, waiting: VecDeque::new() }
    }

    /// Returns the number of parts that are not hashed yet.
    fn pending(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// Takes the hash of a part that is done and begins with the next one. Ready once all are hashed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            if let Some(running) = &mut self.running {
                let hashed = ready!(running.as_mut().poll(cx));
                self.running = None;
                self.done = hashed?;
            }
            let Some(part) = self.waiting.pop_front() else { return Poll::Ready(Ok(())) };
            let done = self.done.clone();
            self.running = Some(Box::pin(run_blocking(|| part.update_hash(done))));
        }
    }

    async fn finish(mut self) -> Result<[u8; 32]> {
        poll_fn(|cx| self.poll(cx)).await?;
        Ok(self.done.finalize().into())
    }
}

/// An upload in parts that is under way.
///
/// Its requests end when it is dropped. What they wrote has no name yet, and is the store's to remove.
pub(super) struct PartUpload {
    upload: Box<dyn MultipartUpload>,
    puts: JoinSet<StoreResult<()>>,
    hashing: Hashing,
    /// Whether the store has ended the upload: the blob exists.
    is_complete: bool,
}

impl PartUpload {
    pub(super) fn new(upload: Box<dyn MultipartUpload>) -> Self {
        Self { upload, puts: JoinSet::new(), hashing: Hashing::new(), is_complete: false }
    }

    /// Waits for `other`, and hashes parts meanwhile.
    ///
    /// # Errors
    ///
    /// The error of a part that fails before `other` is there.
    pub(super) async fn wait_while_hashing_parts<T>(
        &mut self,
        other: impl Future<Output = T>,
    ) -> Result<T> {
        let mut other = pin!(other);
        poll_fn(|cx| {
            self.poll_parts(cx)?;
            other.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// Begins to write and to hash a part. Waits first while too many are under way or in memory.
    ///
    /// # Errors
    ///
    /// The error of an earlier part.
    pub(super) async fn begin_part(&mut self, part: PartBytes) -> Result<()> {
        self.wait_until(|upload| {
            let (written, hashed) = (upload.puts.len(), upload.hashing.pending());
            // A part that is neither written nor hashed counts twice: the sum is a bound of the parts held.
            written < PARTS_IN_FLIGHT && written + hashed < PARTS_HELD
        })
        .await?;
        let put = self.upload.put_part(part.payload());
        self.hashing.waiting.push_back(part);
        match Handle::try_current() {
            Ok(runtime) => drop(self.puts.spawn_on(put, &runtime)),
            // Without a runtime, nothing runs concurrently with the caller.
            Err(_) => put.await.map_err(blob_store_error)?,
        }
        Ok(())
    }

    /// Ends the upload after its last part. Returns the hash of all parts.
    ///
    /// # Errors
    ///
    /// The first error of a part, or else of ending the upload, or else of the hash.
    pub(super) async fn finish(&mut self) -> Result<[u8; 32]> {
        self.wait_until(|upload| upload.puts.is_empty()).await?;
        // The row needs the hash, the store does not: the last parts are hashed while it ends the upload.
        let hashing = std::mem::replace(&mut self.hashing, Hashing::new());
        let (ended, hash) = join(self.upload.complete(), hashing.finish()).await;
        ended.map_err(blob_store_error)?;
        self.is_complete = true;
        hash
    }

    /// Aborts the upload, unless the store has completed it. Ignores an error of the abort, because the caller
    /// reports the error that stopped the upload. Parts that remain in the store belong to no blob.
    pub(super) async fn abort(mut self) {
        // A part that is still under way could be stored after the abort.
        self.puts.shutdown().await;
        if !self.is_complete {
            // The caller gets the error of the write; what is left of the upload is the store's to
            // drop.
            let _ = self.upload.abort().await;
        }
    }

    async fn wait_until(&mut self, is_reached: impl Fn(&Self) -> bool) -> Result<()> {
        poll_fn(|cx| {
            self.poll_parts(cx)?;
            if is_reached(self) { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    /// Collects the results of finished puts, and hashes on, as far as possible without waiting. Wakes the
    /// context when more is possible. Fails with the error of a put or of the hash.
    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Result<()> {
        while let Poll::Ready(Some(put)) = self.puts.poll_join_next(cx) {
            put.map_err(StoreError::from).flatten().map_err(blob_store_error)?;
        }
        match self.hashing.poll(cx) {
            Poll::Ready(hashed) => hashed,
            Poll::Pending => Ok(()),
        }
    }
}
