//! Blobs of entities: reads their bytes, and uploads them ahead of a write.

use std::{io, ops::Range};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use sha2::{Digest, Sha256};

use super::typed::Table;
use crate::{
    address::{RowAddress, RowAt},
    batch::Deadline,
    blob::{
        Blobs,
        sealed::{ChunkRange, content_len, open_bytes, open_stream, seal_stream, sealed_len},
    },
    blob_port::LengthAndHash,
    entity::{
        Blob, BlobColumn, BlobField, TableEntity,
        blob::UploadedBlob,
        blob::name::{blob_name, is_blob_name_of_row, owner_of_blob},
        points_to,
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    limits::{saturating_u64, saturating_usize},
    outbox::blob_writes::{UPLOAD_TIME, missing_blob_store_error},
    seal::BlobContentKey,
    store::Store,
};

/// The number of times that a blob is looked for in a target, and written there if it is missing.
const COPY_ATTEMPTS: usize = 3;

impl<E: TableEntity> Table<E> {
    /// Returns a reader of a blob's bytes. It sends nothing yet.
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
    /// let store = Arc::new(InMemory::new());
    /// let client = Client::builder().backend(Memory::new()).blobs(store).build()?;
    /// let staff = client.table::<Employee>();
    /// staff.create().await?;
    /// let photo = Blob::new(&b"a photo"[..]).content_type("image/jpeg");
    /// let don = Employee { department: "Sales".into(), id: 223, photo: Some(photo) };
    /// let don = staff.insert(&don).await?;
    /// let Some(photo) = &don.photo else { return Ok(()) };
    /// assert_eq!(photo.media_type(), Some("image/jpeg"));
    /// let reader = staff.blob(photo);
    /// assert_eq!(reader.bytes().await?, "a photo");
    /// assert_eq!(reader.range(2..5).await?, "pho");
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blob(&self, blob: &Blob) -> BlobReader {
        let (store, table) = (self.client.store().clone(), self.name.clone());
        BlobReader { store, table, blob: blob.clone() }
    }

    /// Uploads the bytes of a field ahead of the verb that writes the entity. Put the returned value into the
    /// field before you call that verb. `entity` has the keys of the row that will point to the blob. At most
    /// 64 MiB of the bytes are in memory at a time.
    ///
    /// The first verb that writes the value makes its row point to the uploaded blob. Each later verb copies the
    /// blob. [`sweep_blobs`](Self::sweep_blobs) removes blobs that no row points to.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use entable::{Blob, backend::Memory, object_store::memory::InMemory, prelude::*};
    /// # #[derive(Clone, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee {
    /// #     pub department: String,
    /// #     pub id: u32,
    /// #     #[table(blob)]
    /// #     pub photo: Option<Blob>,
    /// # }
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let store = Arc::new(InMemory::new());
    /// # let client = Client::builder().backend(Memory::new()).blobs(store).build()?;
    /// let staff = client.table::<Employee>();
    /// staff.create().await?;
    /// let mut jones = Employee { department: "Sales".into(), id: 223, photo: None };
    /// let bytes = futures_util::stream::iter([Ok(vec![0xff; 1000].into()), Ok(vec![0; 24].into())]);
    /// let photo = staff.upload(&jones, Employee::PHOTO, bytes).await?;
    /// assert_eq!(photo.len(), 1024);
    /// jones.photo = Some(photo);
    /// staff.insert(&jones).await?;
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_rejected` if the stream fails, and with `is_too_large` if the entity's keys do not fit into
    /// a blob's name. The verb that writes the value fails with `is_stale` if the upload began more than six hours
    /// earlier.
    pub async fn upload<F: BlobField>(
        &self,
        entity: &E,
        field: BlobColumn<E, F>,
        bytes: impl Stream<Item = io::Result<Bytes>>,
    ) -> Result<Blob> {
        let place = |error: Error| error.in_table(&self.name);
        let store = self.client.store();
        let blobs = blobs_of(store).map_err(place)?;
        let access = entity.point();
        // A blob is named after the stored keys, including their blind tokens.
        let access =
            store.path_with_key_tokens(Some(E::SCHEMA), access.as_access()).await.map_err(place)?;
        let (partition_key, row_key) = access.point().map_err(place)?;
        let owner = self.row_at(partition_key, row_key);
        let name = blob_name(owner, field.field(), &store.random.random_id())
            .map_err(|error| error.in_property(field.property()))?;
        // The time counts from before the upload. The store may date the blob to any moment of the upload, and a
        // row must never begin to point to a blob that is old enough to be swept.
        let deadline = Deadline::after(UPLOAD_TIME, self.client.outbox().clock.clone());
        let bytes = bytes.map_err(|error| {
            let message = format!("the stream of the blob's bytes failed: {error}");
            Error::new(ErrorKind::Rejected, message).with_source(error)
        });
        let place = |error: Error| error.at_row(owner).in_property(field.property());
        let key = if field.is_encrypted() { Some(new_key(store).map_err(place)?) } else { None };
        let uploaded = match &key {
            Some(key) => blobs.create_blob_from_stream(&name, seal_stream(key, bytes, None)).await,
            None => blobs.create_blob_from_stream(&name, bytes).await,
        };
        let Some(LengthAndHash { len, hash }) = uploaded.map_err(|error| error.at_row(owner))?
        else {
            let message = "the name generated for the blob is taken; upload again";
            return Err(Error::new(ErrorKind::Contended, message).at_row(owner));
        };
        // The store has counted the encrypted bytes. The field holds the length of the content.
        let len = if key.is_some() { content_len(len) } else { len };
        Ok(Blob::uploaded(UploadedBlob::new(&name, deadline), len, hash, key))
    }
}

/// Creates the key of a blob that is to be encrypted. Fails for a client without keys, whose row could not
/// hold the blob's key.
fn new_key(store: &Store) -> Result<BlobContentKey> {
    store.sealing.check_keys_configured()?;
    BlobContentKey::generate()
}

pub(super) fn blobs_of(store: &Store) -> Result<&Blobs> {
    store.object_blobs().ok_or_else(missing_blob_store_error)
}

/// Reads the bytes of one blob. [`Table::blob`] returns it.
#[derive(Debug, Clone)]
pub struct BlobReader {
    store: Store,
    table: String,
    blob: Blob,
}

impl BlobReader {
    /// Reads all bytes and verifies their length and hash. An encrypted blob is verified by its decryption.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` if the bytes differ from the uploaded ones. If the blob is gone, fails with
    /// `is_not_found` if its row still points to it, otherwise with `is_stale`.
    pub async fn bytes(&self) -> Result<Bytes> {
        if let Some(bytes) = self.blob.bytes_to_upload() {
            return Ok(bytes.clone());
        }
        let name = self.blob_name()?;
        let Some(bytes) = blobs_of(&self.store)?.read_whole_blob(name).await? else {
            return Err(self.missing_error(name).await);
        };
        // Decryption verifies each chunk, which makes the hash unnecessary.
        if let Some(key) = self.blob.content_key() {
            return open_bytes(key, self.blob.len(), &bytes)
                .map_err(|error| self.open_error(error));
        }
        let len = saturating_u64(bytes.len());
        self.verify_content(len, Sha256::digest(&bytes).into())?;
        Ok(bytes)
    }

    /// Reads a range of the bytes without verifying their hash. A range that ends beyond the end of the blob is
    /// shortened. For an encrypted blob, reads the chunks of 64 KiB that hold the range and verifies each of them.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for an empty range and for a range that begins at or beyond the end of the blob.
    /// Fails with `is_corrupt` if the blob does not hold the range or a chunk differs from the uploaded one. Fails
    /// with `is_stale` and `is_not_found` as [`bytes`](Self::bytes) does.
    pub async fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let range = range.start..range.end.min(self.blob.len());
        if range.is_empty() {
            let message = format!(
                "expected a range of the blob's {} bytes, found {}..{}",
                self.blob.len(),
                range.start,
                range.end
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if let Some(bytes) = self.blob.bytes_to_upload() {
            // On a 32-bit platform, an offset beyond `usize` is beyond the bytes as well.
            let bound = |at: u64| saturating_usize(at).min(bytes.len());
            return Ok(bytes.slice(bound(range.start)..bound(range.end)));
        }
        let name = self.blob_name()?;
        let sealed = self
            .blob
            .content_key()
            .map(|key| (key, ChunkRange::chunks_of_range(&range, self.blob.len())));
        let stored = sealed.as_ref().map_or(&range, |(_, chunks)| &chunks.sealed);
        let bytes = match blobs_of(&self.store)?.read_blob_range(name, stored.clone()).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(self.missing_error(name).await),
            Err(error) => return Err(self.without_range(name, error).await),
        };
        if let Some((key, chunks)) = &sealed {
            return chunks.open_chunks(key, &bytes).map_err(|error| self.open_error(error));
        }
        // The store shortens a range at the end of its blob.
        let end = range.start.saturating_add(saturating_u64(bytes.len()));
        if end == range.end { Ok(bytes) } else { Err(self.other_bytes_error(end)) }
    }

    /// Reads the bytes piece by piece. If they differ from the uploaded bytes, the last item is an error and all
    /// earlier items must be discarded. For an encrypted blob, each item is a chunk of 64 KiB that has been
    /// verified.
    ///
    /// Fails as [`bytes`](Self::bytes) does.
    pub fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        let reader = self.clone();
        let opened = async move {
            let pieces = reader.open_stream().await?;
            if let (Some(key), None) = (reader.blob.content_key(), reader.blob.bytes_to_upload()) {
                let chunks = open_stream(key, reader.blob.len(), pieces);
                let chunks = chunks.map_err(move |error| reader.open_error(error));
                return Ok(chunks.boxed());
            }
            Ok::<_, Error>(reader.verified_pieces(pieces))
        };
        stream::once(opened).try_flatten().boxed()
    }

    /// Returns the pieces of the stored bytes. The last item is an error if they differ from the uploaded bytes.
    fn verified_pieces(
        self,
        pieces: BoxStream<'static, Result<Bytes>>,
    ) -> BoxStream<'static, Result<Bytes>> {
        let (hash, len) = (Sha256::new(), 0_u64);
        let state = (self, pieces, Some((hash, len)));
        let items = stream::unfold(state, |(reader, mut pieces, sums)| async move {
            let (mut hash, mut len) = sums?;
            match pieces.next().await {
                Some(Ok(piece)) => {
                    hash.update(&piece);
                    len = len.saturating_add(saturating_u64(piece.len()));
                    Some((Ok(piece), (reader, pieces, Some((hash, len)))))
                }
                Some(Err(error)) => Some((Err(error), (reader, pieces, None))),
                None => {
                    let verified = reader.verify_content(len, hash.finalize().into());
                    verified.err().map(|error| (Err(error), (reader, pieces, None)))
                }
            }
        });
        items.boxed()
    }

    async fn open_stream(&self) -> Result<BoxStream<'static, Result<Bytes>>> {
        if let Some(bytes) = self.blob.bytes_to_upload() {
            return Ok(stream::iter([Ok(bytes.clone())]).boxed());
        }
        let name = self.blob_name()?;
        match blobs_of(&self.store)?.stream_blob(name).await? {
            Some(pieces) => Ok(pieces),
            None => Err(self.missing_error(name).await),
        }
    }

    /// Copies the stored blob to `folder` of another store, under its own name. Does nothing if the copy exists.
    ///
    /// # Errors
    ///
    /// Fails as [`bytes`](Self::bytes) does, with `is_conflict` if the target has a different blob of this name,
    /// and with `is_invalid` if source and target are the same blob.
    pub(super) async fn copy_to_store(&self, target: &Blobs, folder: &str) -> Result<()> {
        let (source, name) = (blobs_of(&self.store)?, self.blob_name()?);
        let to = [folder, "/", name].concat();
        for _ in 0..COPY_ATTEMPTS {
            if let Some(copied) = target.stream_blob(&to).await? {
                // If the target were the client's own blobs, the copy would be deleted with the entity.
                let probe = format!("entable-copy-{}", self.store.random.random_id());
                if target.probe_is_folder_of_store(source, folder, &probe).await? {
                    let message = "the target and the client keep their blobs in the same folder; name another folder";
                    return Err(self.error_at_blob(Error::new(ErrorKind::Invalid, message)));
                }
                let copied: Result<Vec<()>> =
                    self.clone().verified_pieces(copied).map_ok(drop).try_collect().await;
                return copied.map(drop).map_err(|error| {
                    if error.is_corrupt() {
                        self.error_at_blob(other_copy_error(&to))
                    } else {
                        error
                    }
                });
            }
            let pieces = self.clone().verified_pieces(self.open_stream().await?);
            // If another writer created the copy in the meantime, the next turn compares it.
            if target.create_blob_from_stream(&to, pieces).await?.is_some() {
                return Ok(());
            }
        }
        let message =
            format!("another writer wrote the blob `{}` in the meantime", to.escape_debug());
        Err(self.error_at_blob(Error::new(ErrorKind::Contended, message)))
    }

    /// Returns the blob's name. Refuses a blob of another table: programs that write rows can put any name into
    /// them, and must not reach the blobs of other tables.
    fn blob_name(&self) -> Result<&str> {
        // A blob without a name has no owner, and is refused below.
        let name = self.blob.name().unwrap_or_default();
        match owner_in_blob_name(&self.store, &self.table, name) {
            Some(_) => Ok(name),
            None => {
                let message = format!("`{}` is not a blob of this table", name.escape_debug());
                Err(Error::new(ErrorKind::Invalid, message).in_table(&self.table))
            }
        }
    }

    fn verify_content(&self, len: u64, hash: [u8; 32]) -> Result<()> {
        if (len, &hash) == (self.stored_len(), self.blob.hash()) {
            return Ok(());
        }
        Err(self.other_bytes_error(len))
    }

    /// Returns the number of bytes of the blob as it is stored.
    fn stored_len(&self) -> u64 {
        self.blob.content_key().map_or(self.blob.len(), |_| sealed_len(self.blob.len()))
    }

    /// Returns the error for a blob of `found` bytes that are not those that were uploaded.
    fn other_bytes_error(&self, found: u64) -> Error {
        let expected = self.stored_len();
        let found = if found == expected {
            "the same number of different bytes".to_owned()
        } else {
            format!("{found}")
        };
        self.damaged_error(&format!(
            "expected the {expected} bytes that were uploaded, found {found}"
        ))
    }

    /// Returns the error for a blob whose bytes are not those that were uploaded.
    fn damaged_error(&self, why: &str) -> Error {
        let name = self.blob.name().unwrap_or_default().escape_debug();
        let message = format!("the blob `{name}` is damaged: {why}");
        self.error_at_blob(Error::new(ErrorKind::Corrupt, message))
    }

    /// Adds the blob's name to an error of its decryption.
    fn open_error(&self, error: Error) -> Error {
        if error.is_corrupt() { self.damaged_error(error.message()) } else { error }
    }

    /// Returns the error for a range that the store did not return, because the blob is shorter than it was or
    /// because the store failed with `error`. Stores report a range beyond the end of a blob in different ways.
    async fn without_range(&self, name: &str, error: Error) -> Error {
        let found = match blobs_of(&self.store) {
            Ok(blobs) => blobs.len(name).await,
            Err(error) => return error,
        };
        match found {
            Ok(Some(found)) if found != self.stored_len() => self.other_bytes_error(found),
            Ok(None) => self.missing_error(name).await,
            _ => error,
        }
    }

    /// Reads the row of a missing blob and returns the error that describes both.
    async fn missing_error(&self, name: &str) -> Error {
        let Some(owner) = owner_in_blob_name(&self.store, &self.table, name) else {
            // Never occurs: `blob_name` has refused the names of other rows.
            return self.gone_error(name);
        };
        let row = self
            .store
            .row_if_table_exists(RowAt {
                table: self.store.names().name(&self.table),
                ..owner.as_row_at()
            })
            .await;
        let points = row.and_then(|row| row.map(|row| points_to(&row, name)).transpose());
        match points {
            Ok(Some(true)) => self.gone_error(name),
            Ok(_) => {
                let message = format!(
                    "the blob `{}` is gone: its row was deleted or refers to another blob; read the row again",
                    name.escape_debug()
                );
                self.error_at_blob(Error::new(ErrorKind::Stale, message))
            }
            Err(error) => error,
        }
    }

    fn gone_error(&self, name: &str) -> Error {
        let message =
            format!("the blob `{}` does not exist, but its row refers to it", name.escape_debug());
        self.error_at_blob(Error::service(ServiceCode::ResourceNotFound, message))
    }

    fn error_at_blob(&self, error: Error) -> Error {
        match self.blob.name().and_then(|name| owner_of_blob(self.store.names(), name)) {
            Some(owner) => error
                .at_row(RowAt { table: self.store.names().name(&self.table), ..owner.as_row_at() }),
            None => error.in_table(&self.table),
        }
    }
}

/// Returns the error for a target that has other bytes under the name of a blob.
fn other_copy_error(name: &str) -> Error {
    let message = format!(
        "the target's blob `{}` has different bytes; delete it there, or name another folder",
        name.escape_debug()
    );
    Error::service(ServiceCode::EntityAlreadyExists, message)
}

/// Returns the row that owns a blob according to the blob's name, if that row is in `table`.
pub(super) fn owner_in_blob_name(store: &Store, table: &str, name: &str) -> Option<RowAddress> {
    let names = store.names();
    let owner = owner_of_blob(names, name)?;
    let is_own = is_blob_name_of_row(name, RowAt { table: names.name(table), ..owner.as_row_at() });
    is_own.then_some(owner)
}
