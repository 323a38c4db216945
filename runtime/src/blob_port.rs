//! The port to a client's store for blobs: what commits, lists and workers ask of it. The feature `blob` has the
//! only implementation.

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::{error::Result, seal::BlobContentKey};

/// A store for blobs, as commits and lists use it.
pub(crate) trait BlobStore: fmt::Debug + Send + Sync {
    /// Writes the new blob `name`, encrypted if there is a key. Returns the hash of the stored bytes, or `None` if
    /// a blob of that name exists.
    ///
    /// # Errors
    ///
    /// `is_stale` if the blob to copy is gone.
    fn put_new<'b>(
        &'b self,
        name: &'b str,
        content: NewContent<'b>,
        key: Option<&'b BlobContentKey>,
    ) -> BoxFuture<'b, Result<Option<StoredHash>>>;

    /// Deletes a blob that no row points to. A blob that is gone already counts as success.
    fn delete_blob<'b>(&'b self, name: &'b str) -> BoxFuture<'b, Result<()>>;

    /// Refuses a store whose blobs this client could not replace safely.
    ///
    /// # Errors
    ///
    /// `is_unsupported` if the store cannot compare versions while other processes may write.
    fn check_version_comparison(&self) -> BoxFuture<'_, Result<()>>;

    /// Reads a blob of text; returns `None` if it does not exist.
    fn read_text<'b>(&'b self, name: &'b str) -> BoxFuture<'b, Result<Option<TextBlob>>>;

    /// Writes a blob of text if it is still in the version `seen`, or does not exist if `seen` is `None`.
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` or `is_conflict` if another writer was first; `is_unsupported` if the store
    /// cannot compare versions while other processes may write.
    fn write_text_if_unchanged<'b>(
        &'b self,
        name: &'b str,
        text: String,
        seen: Option<BlobVersion>,
    ) -> BoxFuture<'b, Result<()>>;

    /// Returns the store itself, for what only the feature `blob` asks of it.
    #[cfg(feature = "blob")]
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The SHA-256 hash of a blob's bytes as they are stored.
pub(crate) type StoredHash = [u8; 32];

/// Length and SHA-256 hash of a blob's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LengthAndHash {
    pub(crate) len: u64,
    pub(crate) hash: StoredHash,
}

/// The content of a new blob.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewContent<'b> {
    pub(crate) from: ContentSource<'b>,
    /// Length and hash of the content before it is encrypted.
    pub(crate) plain: LengthAndHash,
}

/// Where the content of a new blob comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ContentSource<'b> {
    Bytes(&'b Bytes),
    /// The name of the blob to copy.
    Blob(&'b str),
}

/// The version of a blob that was read: a write that names it fails if the blob changed since.
#[derive(Debug, Clone)]
pub(crate) struct BlobVersion {
    /// The ETag that the store returned.
    pub(crate) e_tag: Option<String>,
    /// The version id that the store returned, for stores that keep versions.
    pub(crate) version_id: Option<String>,
    /// The hash of the text, for stores that do not compare versions. Every write stores a text
    /// that differs from all earlier ones, so the hash identifies the version. The times of a file
    /// system do not identify it.
    pub(crate) digest: Option<String>,
}

/// A blob's text with the version that was read.
#[derive(Debug, Clone)]
pub(crate) struct TextBlob {
    pub(crate) text: String,
    pub(crate) version: BlobVersion,
}
