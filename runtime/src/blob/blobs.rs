//! The blob store of a client. When a blob is replaced, its version is compared by the store, or by
//! this process if the store cannot do so.

use std::{any::TypeId, fmt, sync::Arc};

use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion, limit::LimitStore, local::LocalFileSystem, memory::InMemory, path::Path,
    prefix::PrefixStore,
};
use tokio::sync::OnceCell;

use super::{
    in_process::replace_under_lock,
    object::{put_blob, read_blob},
};
use crate::{
    blob_port::{BlobVersion, TextBlob},
    error::{Error, ErrorKind, Result},
};

/// The party that compares versions when a blob is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// The store replaces a blob only in the version that the request names.
    ByStore,
    /// The store cannot, so this process compares under a lock: safe only for a single process.
    InProcess,
}

/// An object store that the user hands to a client, with how it compares versions, if its type
/// shows that.
#[derive(Clone)]
pub(crate) struct UserBlobStore {
    store: Arc<dyn ObjectStore>,
    /// `None` if the type does not show it; then the store has to be asked.
    comparison: Option<Comparison>,
}

impl UserBlobStore {
    /// Wraps an object store. Its type shows whether it belongs to the crate `object_store`.
    pub(crate) fn new<S: ObjectStore + ?Sized>(store: Arc<S>) -> Self {
        let of = TypeId::of::<S>();
        let is_memory = of == TypeId::of::<InMemory>();
        let is_directory = of == TypeId::of::<LocalFileSystem>()
            || of == TypeId::of::<PrefixStore<LocalFileSystem>>()
            || of == TypeId::of::<LimitStore<LocalFileSystem>>();
        let comparison = match (is_memory, is_directory) {
            (true, _) => Some(Comparison::ByStore),
            (_, true) => Some(Comparison::InProcess),
            // Another type can hide a directory: the first use of the store finds out.
            (false, false) => None,
        };
        Self { store: Arc::new(store), comparison }
    }
}

/// A client's handle to read and write blobs.
#[derive(Clone)]
pub(crate) struct Blobs {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Unset until the store's type or its first answer shows it.
    comparison: Arc<OnceCell<Comparison>>,
    /// Whether this process alone writes the tables, and with them the blobs.
    is_sole_writer: bool,
    /// The backend's name, for error messages.
    backend: &'static str,
}

impl Blobs {
    /// Creates a client's handle to blobs. `backend` is the name of the backend that keeps the
    /// client's tables, for error messages.
    ///
    /// # Errors
    ///
    /// `is_unsupported` if other processes may write, and the object store's type cannot replace a
    /// blob on the condition that it is unchanged.
    pub(crate) fn new(
        store: UserBlobStore,
        is_sole_writer: bool,
        backend: &'static str,
    ) -> Result<Self> {
        let UserBlobStore { store, comparison } = store;
        let known = OnceCell::new_with(comparison);
        let blobs = Self { store, comparison: Arc::new(known), is_sole_writer, backend };
        comparison.map_or(Ok(()), |known| blobs.check_safe_comparison(known))?;
        Ok(blobs)
    }

    /// Returns the object store that the user handed to the client.
    pub(crate) fn inner_object_store(&self) -> Arc<dyn ObjectStore> {
        self.store.clone()
    }

    /// Refuses a store whose blobs this client could not replace safely. If the store's type does
    /// not show whether it compares versions, the first call of a client tests that with a request
    /// to the store.
    ///
    /// # Errors
    ///
    /// `is_unsupported` if the store cannot compare versions while other processes may write.
    pub(crate) async fn check_version_comparison(&self) -> Result<()> {
        self.check_safe_comparison(self.version_comparison().await)
    }

    fn check_safe_comparison(&self, comparison: Comparison) -> Result<()> {
        if comparison == Comparison::ByStore || self.is_sole_writer {
            return Ok(());
        }
        let message = format!(
            "this blob store cannot compare versions when it replaces a blob (no directory can), but other processes \
             may write at the same time with the {} store; use a cloud blob store, or the embedded store",
            self.backend
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Returns who compares versions. Asks a store of unknown type with a replacement whose version
    /// no blob has: the store refuses the version, says that it does not compare versions, or
    /// replaces the blob all the same and so shows that it does not.
    async fn version_comparison(&self) -> Comparison {
        let ask = async || {
            // No blob has this ETag, so a store that compares versions writes nothing.
            let never = UpdateVersion { e_tag: Some("\"0x0\"".to_owned()), version: None };
            let options = PutOptions { mode: PutMode::Update(never), ..PutOptions::default() };
            let path = Path::from(PROBE);
            match self.store.put_opts(&path, PutPayload::default(), options).await {
                Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
                    Comparison::InProcess
                }
                Ok(_) => {
                    // A leftover probe does no harm: no list has its name, and copies skip it.
                    let _ = self.store.delete(&path).await;
                    Comparison::InProcess
                }
                // A local directory does not fail here, so this store is a service.
                Err(_) => Comparison::ByStore,
            }
        };
        *self.comparison.get_or_init(ask).await
    }

    /// Reads a blob; returns `None` if it does not exist.
    pub(crate) async fn read_versioned_blob(&self, path: &Path) -> Result<Option<TextBlob>> {
        // Until the store is known to compare versions, this process may have to do it by the
        // digest.
        let needs_digest = self.comparison.get() != Some(&Comparison::ByStore);
        read_blob(&*self.store, path, needs_digest).await
    }

    /// Writes a blob if it is still in the version `seen`, or does not exist if `seen` is `None`.
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` or `is_conflict` if another writer was first; `is_unsupported` if
    /// the store cannot compare versions while other processes may write.
    pub(crate) async fn write_blob_if_unchanged(
        &self,
        path: &Path,
        text: String,
        seen: Option<BlobVersion>,
    ) -> Result<()> {
        self.check_version_comparison().await?;
        if self.version_comparison().await == Comparison::InProcess {
            return replace_under_lock(self.store.clone(), path.clone(), text, seen).await;
        }
        let mode = match seen {
            None => PutMode::Create,
            Some(BlobVersion { e_tag, version_id, .. }) => {
                PutMode::Update(UpdateVersion { e_tag, version: version_id })
            }
        };
        put_blob(&*self.store, path, text, mode).await
    }
}

/// The name of the blob that only a store without comparison of versions writes, and that is deleted at once: see
/// [`Blobs::version_comparison`]. No list has it, since names of lists end with `.jsonl`.
const PROBE: &str = "entable-compares-versions";

impl fmt::Debug for UserBlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserBlobStore")
            .field("comparison", &self.comparison)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("comparison", &self.comparison.get()).finish_non_exhaustive()
    }
}
