//! Reads and writes one blob of an object store, and translates the store's errors.

use object_store::{
    Error as StoreError, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, path::Path,
};

use crate::{
    blob_port::{BlobVersion, TextBlob},
    error::{Error, ErrorKind, Result, ServiceCode},
    plan::outbox::hash128,
};

/// Reads a blob, and hashes its text if `needs_digest`; returns `None` if it does not exist.
pub(super) async fn read_blob(
    store: &dyn ObjectStore,
    path: &Path,
    needs_digest: bool,
) -> Result<Option<TextBlob>> {
    let answer = match store.get_opts(path, GetOptions::default()).await {
        Ok(answer) => answer,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(blob_error(error)),
    };
    let meta = answer.meta.clone();
    let bytes = answer.bytes().await.map_err(blob_error)?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|error| {
        Error::new(ErrorKind::Decode, "expected a blob of UTF-8 text, found other bytes")
            .with_source(error)
    })?;
    let digest = needs_digest.then(|| hash128(&[&text]));
    let version = BlobVersion { e_tag: meta.e_tag, version_id: meta.version, digest };
    Ok(Some(TextBlob { text, version }))
}

/// Writes a blob under the condition that `mode` sets.
pub(super) async fn put_blob(
    store: &dyn ObjectStore,
    path: &Path,
    text: String,
    mode: PutMode,
) -> Result<()> {
    let options = PutOptions { mode, ..PutOptions::default() };
    let put = store.put_opts(path, PutPayload::from(text), options).await;
    put.map(drop).map_err(blob_error)
}

/// Returns the error for a blob that another writer changed or deleted after it was read.
pub(super) fn changed_since_read_error() -> Error {
    let message = "the blob changed since it was read";
    Error::service(ServiceCode::UpdateConditionNotSatisfied, message)
}

/// Translates an error of the object store.
fn blob_error(error: StoreError) -> Error {
    match error {
        StoreError::AlreadyExists { .. } => {
            Error::service(ServiceCode::EntityAlreadyExists, "the blob already exists")
        }
        // A blob to be replaced that no longer exists was changed by another writer.
        StoreError::Precondition { .. } | StoreError::NotFound { .. } => changed_since_read_error(),
        StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => {
            let message = "the blob store cannot compare versions when it replaces a blob; use a store that can";
            Error::new(ErrorKind::Unsupported, message).with_source(error)
        }
        error => Error::new(ErrorKind::Backend, "the blob store failed").with_source(error),
    }
}
