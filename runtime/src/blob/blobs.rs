//! Blobs: a value under a name, written under the version that was read.
//!
//! Names and forms are written down in `docs/outbox.md`. Whatever is kept in blobs comes through one
//! store, which the client is given once.

use std::{fmt, sync::Arc};

use object_store::{
    Error as StoreError, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion,
    path::Path,
};

use super::local;
use crate::error::{Error, ErrorKind, Result, ServiceCode};

/// What stores of a directory are called, themselves or inside of one that adds a prefix or a limit:
/// they do not replace under a version.
const DIRECTORY: &str = "LocalFileSystem";

/// Where a client keeps blobs.
#[derive(Clone)]
pub(crate) struct Blobs {
    store: Arc<dyn ObjectStore>,
    /// Whether versions are compared here, in the one process that writes.
    is_local: bool,
}

/// The version of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlobVersion {
    /// As the store tells it.
    Told(Option<String>, Option<String>),
    /// What it holds: no two writes hold the same.
    Content(String),
}

/// A blob as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) text: String,
    pub(crate) version: BlobVersion,
}

impl Blobs {
    /// Blobs in that store; `alone`: no other process writes the same tables.
    ///
    /// # Errors
    ///
    /// `is_unsupported` for a directory that several processes may write.
    pub(crate) fn of(store: Arc<dyn ObjectStore>, alone: bool, backend: &str) -> Result<Self> {
        let is_local = format!("{store:?}").contains(DIRECTORY);
        if is_local && !alone {
            let message = format!(
                "blobs in a directory cannot be replaced under a version, and other processes may write beside this one with the {backend} store: take blobs of a cloud, or the embedded store"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(Self { store, is_local })
    }

    /// A blob; `None`: there is none.
    pub(crate) async fn read(&self, name: &Path) -> Result<Option<Blob>> {
        read(&*self.store, name, self.is_local).await
    }

    /// Puts a blob in place of the version that was read; `None`: of none.
    pub(crate) async fn write(
        &self,
        name: &Path,
        text: String,
        seen: Option<BlobVersion>,
    ) -> Result<()> {
        if self.is_local {
            return local::write(self.store.clone(), name.clone(), text, seen).await;
        }
        let mode = match seen {
            None => PutMode::Create,
            Some(BlobVersion::Told(e_tag, version)) => {
                PutMode::Update(UpdateVersion { e_tag, version })
            }
            Some(BlobVersion::Content(_)) => return Err(changed()),
        };
        put(&*self.store, name, text, mode).await
    }
}

pub(crate) async fn read(
    store: &dyn ObjectStore,
    name: &Path,
    is_local: bool,
) -> Result<Option<Blob>> {
    let answer = match store.get_opts(name, GetOptions::default()).await {
        Ok(answer) => answer,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(failure(error)),
    };
    let meta = answer.meta.clone();
    let bytes = answer.bytes().await.map_err(failure)?;
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|error| Error::new(ErrorKind::Decode, "the blob is no text").with_source(error))?;
    let version = match is_local {
        true => local::version(&text),
        false => BlobVersion::Told(meta.e_tag, meta.version),
    };
    Ok(Some(Blob { text, version }))
}

pub(crate) async fn put(
    store: &dyn ObjectStore,
    name: &Path,
    text: String,
    mode: PutMode,
) -> Result<()> {
    let options = PutOptions { mode, ..PutOptions::default() };
    let put = store.put_opts(name, PutPayload::from(text), options).await;
    put.map(drop).map_err(failure)
}

/// Another writer was first.
pub(crate) fn changed() -> Error {
    let message = "the blob changed since it was read";
    Error::service(ServiceCode::UpdateConditionNotSatisfied, message)
}

fn failure(error: StoreError) -> Error {
    match error {
        StoreError::AlreadyExists { .. } => {
            Error::service(ServiceCode::EntityAlreadyExists, "the blob is there already")
        }
        // A blob that was to be replaced and is gone is one that changed.
        StoreError::Precondition { .. } | StoreError::NotFound { .. } => changed(),
        StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => {
            let message = "the store of blobs does not replace under a version: take one that does";
            Error::new(ErrorKind::Unsupported, message).with_source(error)
        }
        error => Error::new(ErrorKind::Backend, "the store of blobs failed").with_source(error),
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("is_local", &self.is_local).finish_non_exhaustive()
    }
}
