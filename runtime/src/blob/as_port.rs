//! Answers what commits and lists ask of a store for blobs, with the client's object store.

use std::any::Any;

use futures_util::future::BoxFuture;

use super::{
    blobs::Blobs,
    content::blob_path,
    sealed::{seal_and_hash_bytes, seal_stream},
};
use crate::{
    blob_port::{
        BlobStore, BlobVersion, ContentSource, LengthAndHash, NewContent, StoredHash, TextBlob,
    },
    error::{Error, ErrorKind, Result},
    seal::BlobContentKey,
};

impl BlobStore for Blobs {
    fn put_new<'b>(
        &'b self,
        name: &'b str,
        content: NewContent<'b>,
        key: Option<&'b BlobContentKey>,
    ) -> BoxFuture<'b, Result<Option<StoredHash>>> {
        Box::pin(async move {
            let plain = content.plain;
            let (payload, hash) = match (content.from, key) {
                (ContentSource::Blob(source), None) => {
                    return copy_as_stored(self, source, plain, name).await;
                }
                (ContentSource::Blob(source), Some(key)) => {
                    let bytes = self.stream_blob(source).await?;
                    let bytes = bytes.ok_or_else(|| missing_blob_error(source))?;
                    // Through this program, since the store cannot encrypt what it copies.
                    let sealed = seal_stream(key, bytes, Some(plain));
                    let stored = self.create_blob_from_stream(name, sealed).await?;
                    return Ok(stored.map(|stored| stored.hash));
                }
                (ContentSource::Bytes(bytes), None) => (bytes.clone().into(), plain.hash),
                (ContentSource::Bytes(bytes), Some(key)) => seal_and_hash_bytes(key, bytes),
            };
            Ok(self.put_if_absent(name, payload).await?.then_some(hash))
        })
    }

    fn delete_blob<'b>(&'b self, name: &'b str) -> BoxFuture<'b, Result<()>> {
        Box::pin(Blobs::delete_blob(self, name))
    }

    fn check_version_comparison(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Blobs::check_version_comparison(self))
    }

    fn read_text<'b>(&'b self, name: &'b str) -> BoxFuture<'b, Result<Option<TextBlob>>> {
        Box::pin(async move { self.read_versioned_blob(&blob_path(name)?).await })
    }

    fn write_text_if_unchanged<'b>(
        &'b self,
        name: &'b str,
        text: String,
        seen: Option<BlobVersion>,
    ) -> BoxFuture<'b, Result<()>> {
        Box::pin(async move { self.write_blob_if_unchanged(&blob_path(name)?, text, seen).await })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

async fn copy_as_stored(
    blobs: &Blobs,
    source: &str,
    content: LengthAndHash,
    name: &str,
) -> Result<Option<StoredHash>> {
    match blobs.copy_blob_if_absent(source, name).await {
        Ok(true) => Ok(Some(content.hash)),
        Ok(false) => Err(missing_blob_error(source)),
        Err(error) if error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

fn missing_blob_error(source: &str) -> Error {
    let message = format!(
        "the blob `{}` is gone: the row that it was read from refers to another blob now; read the row again",
        source.escape_debug()
    );
    Error::new(ErrorKind::Stale, message)
}
