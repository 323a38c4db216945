//! Replaces blobs of a store that cannot compare versions, such as a directory.
//!
//! This process compares the versions itself, under a lock. That is right only while no other
//! process writes the blobs.

use std::sync::Arc;

use object_store::{ObjectStore, PutMode, path::Path};
use tokio::{runtime::Handle, sync::Mutex};

use super::object::{changed_since_read_error, put_blob, read_blob};
use crate::{
    blob_port::BlobVersion,
    error::{Error, ErrorKind, Result},
    key::stable_hash,
};

/// Locks for writers of blobs, shared by all clients of the process. A path's hash selects its lock.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// Writes a blob if it is still in the version `seen`, or does not exist if `seen` is `None`.
///
/// The write completes even if the caller drops the future.
///
/// # Errors
///
/// `is_precondition_failed` if the blob is in another version.
pub(super) async fn replace_under_lock(
    store: Arc<dyn ObjectStore>,
    path: Path,
    text: String,
    seen: Option<BlobVersion>,
) -> Result<()> {
    // A task of its own: a dropped future would release the lock while the put still runs.
    let write = async move {
        let locks = u64::try_from(LOCKS.len()).unwrap_or(1);
        let slot = stable_hash(path.as_ref().as_bytes()) % locks;
        let lock = LOCKS.get(usize::try_from(slot).unwrap_or_default());
        // There always is a lock: the slot is below their number.
        let _guard = match lock {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        let found = read_blob(&*store, &path, true).await?.map(|blob| blob.version.digest);
        if found != seen.map(|version| version.digest) {
            return Err(changed_since_read_error());
        }
        put_blob(&*store, &path, text, PutMode::Overwrite).await
    };
    // Outside of a runtime a directory is written where the future is polled, and does not wait.
    let Ok(runtime) = Handle::try_current() else { return write.await };
    let stopped = |error| {
        let message = "the task that writes the blob stopped; the write may have happened";
        Error::new(ErrorKind::Ambiguous, message).with_source(error)
    };
    runtime.spawn(write).await.map_err(stopped)?
}
