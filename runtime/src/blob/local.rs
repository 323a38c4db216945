//! Blobs in a directory, where the store does not compare versions: it is done here, under a lock
//! for each name, in the one process that writes.

use std::sync::Arc;

use object_store::{ObjectStore, PutMode, path::Path};
use tokio::sync::Mutex;

use super::blobs::{BlobVersion, changed, put, read};
use crate::{
    error::{Error, ErrorKind, Result},
    key::stable_hash,
    plan::outbox::hash128,
};

/// Locks, which names share by their hash: of all clients of the process.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// The version of a text: no two writes hold the same, so that what a blob holds is its version,
/// whatever the file system thinks of times.
pub(super) fn version(text: &str) -> BlobVersion {
    BlobVersion::Content(hash128(&[text]))
}

/// Puts a blob in place of that version.
///
/// It is done to the end even if nobody waits for it any more: the lock is not left before.
pub(super) async fn write(
    store: Arc<dyn ObjectStore>,
    name: Path,
    text: String,
    seen: Option<BlobVersion>,
) -> Result<()> {
    let write = tokio::spawn(async move {
        let locks = u64::try_from(LOCKS.len()).unwrap_or(1);
        let slot = stable_hash(name.as_ref().as_bytes()) % locks;
        let lock = LOCKS.get(usize::try_from(slot).unwrap_or_default());
        let _held = match lock {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        let found = read(&*store, &name, true).await?.map(|blob| blob.version);
        if found != seen {
            return Err(changed());
        }
        put(&*store, &name, text, PutMode::Overwrite).await
    });
    let stopped = |error| Error::new(ErrorKind::Ambiguous, "the write stopped").with_source(error);
    write.await.map_err(stopped)?
}
