//! Uploads the blobs of a commit before its transaction is sent. After the commit, deletes blobs that no row
//! points to any longer.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::state::Outbox;
use crate::{
    address::RowAt,
    batch::Deadline,
    blob_port::{ContentSource, LengthAndHash, NewContent},
    entity::{
        Blob, BlobFieldValue, EntityRows,
        blob::name::{blob_name, is_blob_name, is_blob_name_of_row},
        blob::pointing_to_stored_blobs,
    },
    error::{Error, ErrorKind, Result},
    plan::Effect,
    seal::BlobContentKey,
};

/// The maximum time between the start of an upload and the commit of the row that points to its blob. For
/// safety, a sweep leaves unreferenced blobs alone for four times as long, by the store's clock.
pub(crate) const UPLOAD_TIME: Duration = Duration::from_secs(6 * 60 * 60);

/// The number of names that are tried for one upload. Names are random, so a taken name belongs to an earlier
/// attempt whose answer was lost.
const NAME_ATTEMPTS: usize = 3;

/// The uploads of one commit, shared by its attempts.
#[derive(Debug, Default)]
pub(crate) struct BlobUploads(Mutex<Vec<BlobWrite>>);

/// One blob that was written for a row of the commit.
#[derive(Debug, Clone)]
struct BlobWrite {
    /// The position of the change in its commit.
    verb: usize,
    /// The name of the stored blob that was copied, or `None` for uploaded bytes.
    source: Option<String>,
    /// The value in the row: name, length, hash and key.
    stored: BlobFieldValue,
    deadline: Deadline,
}

impl BlobUploads {
    /// Uploads the bytes of new values, uses blobs that were uploaded ahead, and copies stored blobs that the
    /// entity's row does not point to yet. Encrypts the blobs of encrypted fields. Returns the effects with the names
    /// and keys of these blobs in their rows.
    ///
    /// # Errors
    ///
    /// Fails with `is_stale` for a blob that is gone and for an upload that is too old, with `is_too_large` if the
    /// entity's keys do not fit into a name, with `is_unsupported` for a client without a blob store, and with
    /// `is_invalid` for an encrypted blob in a field that is not encrypted.
    pub(crate) async fn store_blobs(
        &self,
        outbox: &Outbox,
        table: &str,
        effects: Vec<Arc<Effect>>,
    ) -> Result<Vec<Arc<Effect>>> {
        let mut with_blobs = Vec::with_capacity(effects.len());
        for (verb, effect) in effects.into_iter().enumerate() {
            let stored = self
                .write_blobs(outbox, table, verb, &effect)
                .await
                .map_err(|error| error.in_table(table).at_operation(verb))?;
            with_blobs.push(if stored.is_empty() {
                effect
            } else {
                Arc::new(effect_with_stored_blobs(&effect, &stored)?)
            });
        }
        Ok(with_blobs)
    }

    /// Returns the latest time at which a transaction with rows that point to the uploads may be sent. Returns `None`
    /// if there are no uploads.
    pub(crate) fn send_deadline(&self) -> Option<Deadline> {
        let writes = self.lock_writes();
        let deadlines = writes.iter().map(|write| &write.deadline);
        deadlines.fold(None, |first: Option<Deadline>, next| {
            Deadline::earlier_of(first.as_ref(), Some(next))
        })
    }

    fn lock_writes(&self) -> std::sync::MutexGuard<'_, Vec<BlobWrite>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the blobs of one effect and returns the values for its rows.
    async fn write_blobs(
        &self,
        outbox: &Outbox,
        table: &str,
        verb: usize,
        effect: &Effect,
    ) -> Result<Vec<BlobFieldValue>> {
        let Some(new) = &effect.new else { return Ok(Vec::new()) };
        let (partition_key, row_key) = new.primary.keys();
        let owner = outbox.store.names().row_at(table, partition_key, row_key);
        // A row that moves to another key gets its own blobs, because blob names contain the owner.
        let same_row = |old: &&EntityRows| old.primary.keys() == new.primary.keys();
        let old = effect.old.as_ref().filter(same_row).map(|old| &*old.blobs).unwrap_or_default();
        let mut stored = Vec::new();
        for value in &new.blobs {
            let place = |error: Error| error.at_row(owner).in_property(value.names.name);
            check_encryption(value).map_err(place)?;
            let name = value.blob.name();
            // The transaction succeeds only if the row still points there.
            let is_kept = name.is_some() && old.iter().any(|old| old.blob.name() == name);
            if is_kept && !is_to_be_encrypted(effect, value).map_err(place)? {
                continue;
            }
            // A commit that lost a race runs this again, but uploads the bytes only once.
            let before = self.find_earlier_upload(verb, value);
            let write = match before {
                Some(write) => write,
                None => {
                    let write = write_blob(outbox, owner, verb, value).await.map_err(place)?;
                    self.keep_write(write.clone());
                    write
                }
            };
            stored.push(write.stored);
        }
        Ok(stored)
    }

    /// Returns the upload that an earlier attempt made for this value of the change at position `verb`. Returns
    /// `None` if there is none, if it is older than `UPLOAD_TIME`, or if it is a copy of another blob, because the row
    /// that is read after a lost race may point to a different one.
    fn find_earlier_upload(&self, verb: usize, value: &BlobFieldValue) -> Option<BlobWrite> {
        let writes = self.lock_writes();
        let is_it = |write: &&BlobWrite| {
            let is_field = write.verb == verb && write.stored.names == value.names;
            is_field && write.source.as_deref() == value.blob.name()
        };
        writes.iter().find(is_it).filter(|write| !write.deadline.is_over()).cloned()
    }

    fn keep_write(&self, write: BlobWrite) {
        let mut writes = self.lock_writes();
        writes.retain(|other| (other.verb, other.stored.names) != (write.verb, write.stored.names));
        writes.push(write);
    }
}

/// Refuses an encrypted blob in a field that is not encrypted, because its row would not contain the key.
fn check_encryption(value: &BlobFieldValue) -> Result<()> {
    if value.names.key.is_some() || value.blob.content_key().is_none() {
        return Ok(());
    }
    let message = "the blob is encrypted but the field is not; read its bytes and write them with `Blob::new`";
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Returns whether the effect writes a plain stored blob into an encrypted field, in which case the blob must be
/// encrypted. Clients read plain blobs in such fields only while they allow plain values. A write of other
/// properties leaves the blob alone, because its row then receives no key.
fn is_to_be_encrypted(effect: &Effect, value: &BlobFieldValue) -> Result<bool> {
    if value.names.key.is_none() || value.blob.content_key().is_some() {
        return Ok(false);
    }
    for operation in &effect.primary {
        if operation.row().get(value.names.name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the effect with the stored names, keys and hashes of its blobs in all its rows.
fn effect_with_stored_blobs(effect: &Effect, stored: &[BlobFieldValue]) -> Result<Effect> {
    let primary = effect.primary.iter().map(|operation| {
        let row = operation.row();
        let named = pointing_to_stored_blobs(row, stored)?;
        Ok(operation.with_row(match row.etag() {
            Some(etag) => named.with_etag(etag),
            None => named,
        }))
    });
    Ok(Effect {
        primary: primary.collect::<Result<_>>()?,
        old: effect.old.clone(),
        is_old_unconfirmed: effect.is_old_unconfirmed,
        new: effect.new.clone().map(|new| new.pointing_to_stored_blobs(stored)).transpose()?,
        row: effect.row.as_ref().map(|row| pointing_to_stored_blobs(row, stored)).transpose()?,
        schema: effect.schema,
    })
}

/// Writes the value as a blob of `owner`: uploads its bytes, uses an upload that was made ahead, or copies the
/// stored blob with its name.
async fn write_blob(
    outbox: &Outbox,
    owner: RowAt<'_>,
    verb: usize,
    value: &BlobFieldValue,
) -> Result<BlobWrite> {
    let blobs = outbox.store.blobs.as_ref().ok_or_else(missing_blob_store_error)?;
    let BlobFieldValue { field, names, ref blob } = *value;
    let seals = names.key.is_some() && blob.content_key().is_none();
    if names.key.is_some() {
        // Checked first, to avoid a useless upload.
        outbox.store.sealing.check_keys_configured()?;
    }
    let written = |blob, deadline| {
        let stored = BlobFieldValue { field, names, blob };
        Ok(BlobWrite { verb, source: value.blob.name().map(str::to_owned), stored, deadline })
    };
    if let Some(upload) = blob.unreferenced_upload() {
        if upload.row_write_deadline().is_over() {
            let message =
                "the upload is too old to be written, because a sweep may remove it; upload again";
            return Err(Error::new(ErrorKind::Stale, message));
        }
        let name = blob.name().unwrap_or_default().to_owned();
        // An upload is used once. Another row with the same upload gets a copy under its own name.
        if !seals && is_blob_name_of_row(&name, owner) && upload.try_take_for_write() {
            return written(blob.pointing_to_blob(&name), upload.row_write_deadline().clone());
        }
    }
    for _ in 0..NAME_ATTEMPTS {
        // Each attempt gets a new key, because it may read a different blob than the last attempt.
        let key = if seals { Some(BlobContentKey::generate()?) } else { None };
        // Each attempt gets a new random name, because a blob is never overwritten.
        let name = blob_name(owner, field, &outbox.store.random.random_id())?;
        // Counts from before the upload, which the store dates to some later time.
        let deadline = Deadline::after(UPLOAD_TIME, outbox.clock.clone());
        let hash = blobs.put_new(&name, content_of(blob)?, key.as_ref()).await?;
        if let Some(hash) = hash {
            let stored = blob.pointing_to_blob(&name);
            let stored = match key {
                Some(key) => stored.as_stored_encrypted(key, hash),
                None => stored,
            };
            return written(stored, deadline);
        }
    }
    Err(Error::new(ErrorKind::Contended, "every name tried for the blob is taken"))
}

/// Returns the content of a value: its bytes, or the stored blob with its name.
fn content_of(value: &Blob) -> Result<NewContent<'_>> {
    let plain = LengthAndHash { len: value.len(), hash: *value.hash() };
    if let Some(bytes) = value.bytes_to_upload() {
        return Ok(NewContent { from: ContentSource::Bytes(bytes), plain });
    }
    let source = value.name().unwrap_or_default();
    if !is_blob_name(source) {
        let message = format!("`{}` is not the name of a row's blob", source.escape_debug());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(NewContent { from: ContentSource::Blob(source), plain })
}

/// Deletes a blob that no row points to. Succeeds if the blob is already gone.
pub(crate) async fn delete_blob(outbox: &Outbox, name: &str) -> Result<()> {
    let blobs = outbox.store.blobs.as_ref().ok_or_else(missing_blob_store_error)?;
    blobs.delete_blob(name).await
}

/// Fails with `is_unsupported` for a client without a blob store.
pub(crate) fn check_has_blob_store(outbox: &Outbox) -> Result<()> {
    if outbox.store.has_blobs() { Ok(()) } else { Err(missing_blob_store_error()) }
}

pub(crate) fn missing_blob_store_error() -> Error {
    let message = "a field is kept in a blob, but the client has no blob store; set one with \
                   `Client::builder().blobs(..)`";
    Error::new(ErrorKind::Unsupported, message)
}
