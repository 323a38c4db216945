//! Defines [`Blob`], a large value that is stored in a blob instead of its row, and the row's properties that
//! describe the blob.

pub(crate) mod name;
pub(crate) mod column;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::{
    batch::Deadline,
    edm::{InvalidValue, Value, ValueRef},
    error::Result,
    limits::saturating_u64,
    row::Row,
    seal::{BlobContentKey, is_envelope},
};

/// The value of a field with `#[table(blob)]`: bytes before they are uploaded, and the name of the blob that
/// holds them afterwards. It is a plain value and sends no requests.
///
/// `Table::blob` reads the bytes of a stored blob.
///
/// ```
/// use entable::Blob;
///
/// let photo = Blob::new(&b"\xff\xd8\xff"[..]).content_type("image/jpeg");
/// assert_eq!((photo.len(), photo.media_type()), (3, Some("image/jpeg")));
/// assert_eq!(photo.name(), None, "it is not uploaded yet");
/// ```
#[derive(Clone)]
pub struct Blob {
    content: Content,
    len: u64,
    hash: [u8; 32],
    content_type: String,
    /// The key of the stored bytes, if they are encrypted.
    key: Option<BlobContentKey>,
}

#[derive(Clone)]
enum Content {
    /// Bytes that the next write uploads.
    Bytes(Bytes),
    /// The name of a stored blob.
    Stored(Arc<str>),
    /// The name of a blob that no row points to yet.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "made by an upload"))]
    Uploaded(Arc<UploadedBlob>),
}

/// A blob that was uploaded before its row was written.
#[derive(Debug)]
pub(crate) struct UploadedBlob {
    name: Arc<str>,
    /// The latest time for a row to begin pointing to the blob.
    row_write_deadline: Deadline,
    is_taken: AtomicBool,
}

impl UploadedBlob {
    #[cfg(feature = "blob")]
    pub(crate) fn new(name: &str, row_write_deadline: Deadline) -> Self {
        Self { name: name.into(), row_write_deadline, is_taken: AtomicBool::new(false) }
    }

    /// Takes the blob for one write, whether or not the write succeeds. Returns `false` if it was taken before: a
    /// second write might run after the blob was removed, and its row would point to nothing.
    pub(crate) fn try_take_for_write(&self) -> bool {
        !self.is_taken.swap(true, Ordering::AcqRel)
    }

    /// Returns the latest time for a row to begin pointing to the blob.
    pub(crate) fn row_write_deadline(&self) -> &Deadline {
        &self.row_write_deadline
    }
}

impl Blob {
    /// Creates a value from bytes. The verb that writes the entity uploads them.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// let photo = Blob::new(vec![0xff, 0xd8]);
    /// assert_eq!((photo.len(), photo.name()), (2, None));
    /// ```
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            // A `usize` has at most 64 bits, so the fallback is unreachable.
            len: saturating_u64(bytes.len()),
            hash: Sha256::digest(&bytes).into(),
            content_type: String::new(),
            content: Content::Bytes(bytes),
            key: None,
        }
    }

    #[cfg(feature = "blob")]
    pub(crate) fn uploaded(
        upload: UploadedBlob,
        len: u64,
        hash: [u8; 32],
        key: Option<BlobContentKey>,
    ) -> Self {
        let content = Content::Uploaded(Arc::new(upload));
        Self { content, len, hash, content_type: String::new(), key }
    }

    /// Creates the value of a blob that a stored row points to. `with_key` sets its key.
    pub(super) fn stored(name: &str, len: u64, hash: [u8; 32], content_type: &str) -> Self {
        let (content, content_type) = (Content::Stored(name.into()), content_type.to_owned());
        Self { content, len, hash, content_type, key: None }
    }

    /// Sets the key that encrypts the stored bytes, or `None` for an unencrypted blob.
    pub(super) fn with_key(self, key: Option<BlobContentKey>) -> Self {
        Self { key, ..self }
    }

    /// Sets the content type, such as `image/jpeg`. It is stored in the row.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// let photo = Blob::new(vec![0xff, 0xd8]).content_type("image/jpeg");
    /// assert_eq!(photo.media_type(), Some("image/jpeg"));
    /// ```
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = content_type.into();
        self
    }

    /// Returns the content type, if one was set.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// assert_eq!(Blob::new(vec![0xff, 0xd8]).media_type(), None);
    /// ```
    pub fn media_type(&self) -> Option<&str> {
        (!self.content_type.is_empty()).then_some(&*self.content_type)
    }

    /// Returns the name of the blob in the object store, or `None` before the upload.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// assert_eq!(Blob::new(vec![0xff, 0xd8]).name(), None, "no verb has uploaded it yet");
    /// ```
    pub fn name(&self) -> Option<&str> {
        match &self.content {
            Content::Bytes(_) => None,
            Content::Stored(name) => Some(name),
            Content::Uploaded(upload) => Some(&upload.name),
        }
    }

    /// Returns the number of bytes.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// assert_eq!(Blob::new("a photo").len(), 7);
    /// ```
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the length is 0.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// assert!(Blob::new("").is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the SHA-256 hash of the stored bytes. For an encrypted blob, this is the hash of the plain bytes
    /// before the upload, and the hash of the encrypted bytes after it.
    ///
    /// ```
    /// use entable::Blob;
    ///
    /// assert_eq!(Blob::new("a photo").hash(), Blob::new("a photo").hash());
    /// assert_ne!(Blob::new("a photo").hash(), Blob::new("another").hash());
    /// ```
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Returns the bytes that are still to be uploaded, or `None` after the upload.
    pub(crate) fn bytes_to_upload(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes),
            Content::Stored(_) | Content::Uploaded(_) => None,
        }
    }

    /// Returns the upload of a blob that was uploaded ahead of its row and has no row yet. Returns `None` for
    /// bytes that are not uploaded, and for a value from a row.
    pub(crate) fn unreferenced_upload(&self) -> Option<&UploadedBlob> {
        match &self.content {
            Content::Uploaded(upload) => Some(upload),
            Content::Bytes(_) | Content::Stored(_) => None,
        }
    }

    /// Returns the key of the stored bytes, if they are encrypted.
    pub(crate) fn content_key(&self) -> Option<&BlobContentKey> {
        self.key.as_ref()
    }

    /// Returns the value of a row that points to the blob `name`.
    pub(crate) fn pointing_to_blob(&self, name: &str) -> Self {
        Self { content: Content::Stored(name.into()), ..self.clone() }
    }

    /// Returns the value with its bytes stored encrypted under `key`. `hash` is the hash of the encrypted bytes.
    /// Length and bytes remain the plain ones.
    pub(crate) fn as_stored_encrypted(&self, key: BlobContentKey, hash: [u8; 32]) -> Self {
        Self { key: Some(key), hash, ..self.clone() }
    }
}

impl PartialEq for Blob {
    /// Compares name, length, hash and content type. Ignores the key of an encrypted blob.
    fn eq(&self, other: &Self) -> bool {
        let row = |blob: &Self| (blob.len, blob.hash);
        row(self) == row(other)
            && self.name() == other.name()
            && self.content_type == other.content_type
    }
}

impl Eq for Blob {}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob")
            .field("name", &self.name())
            .field("len", &self.len)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

/// A field type that `#[table(blob)]` supports: `Blob` or `Option<Blob>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a blob",
    label = "expected `Blob` or `Option<Blob>`",
    note = "create a `Blob` with `Blob::new(bytes)`"
)]
pub trait BlobField: Sized {
    /// Whether the properties may be absent.
    const OPTIONAL: bool;

    /// Returns the field's blob, if it has one.
    fn blob(&self) -> Option<&Blob>;

    /// Creates the field's value from the blob that a row points to, or from `None` if it points to none.
    ///
    /// # Errors
    ///
    /// Fails if `blob` is `None` and the field type is not an `Option`.
    fn of_blob(blob: Option<Blob>) -> Result<Self, InvalidValue>;
}

impl BlobField for Blob {
    const OPTIONAL: bool = false;

    fn blob(&self) -> Option<&Blob> {
        Some(self)
    }

    fn of_blob(blob: Option<Blob>) -> Result<Self, InvalidValue> {
        blob.ok_or_else(|| InvalidValue::new("expected the name of a blob, found no such property"))
    }
}

impl BlobField for Option<Blob> {
    const OPTIONAL: bool = true;

    fn blob(&self) -> Option<&Blob> {
        self.as_ref()
    }

    fn of_blob(blob: Option<Blob>) -> Result<Self, InvalidValue> {
        Ok(blob)
    }
}

/// The names of the properties that describe a blob in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobNames {
    /// The property that holds the blob's name.
    pub name: &'static str,
    /// The property that holds the blob's length.
    pub len: &'static str,
    /// The property that holds the hash of the stored bytes.
    pub hash: &'static str,
    /// The property that holds the blob's content type.
    pub content_type: &'static str,
    /// The property that holds the key of the blob's content, if the field is encrypted.
    pub key: Option<&'static str>,
}

impl BlobNames {
    /// Iterates over the names of all properties that describe the blob, including the key's property if the field
    /// is encrypted.
    pub(crate) fn property_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.other_names())
    }

    /// Returns the names of all properties that describe the blob except the one with its name.
    pub(crate) fn other_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.len, self.hash, self.content_type].into_iter().chain(self.key)
    }
}

/// Returns the hash of a blob as rows store it: the 32 bytes. A byte 00 precedes them if they begin like an
/// encrypted value.
pub(super) fn stored_form_of_hash(hash: &[u8; 32]) -> Vec<u8> {
    is_envelope(hash).then_some(0).into_iter().chain(*hash).collect()
}

/// Decodes the hash of a blob from its stored form. Returns `None` if the bytes do not have that form.
pub(super) fn hash_from_stored_form(stored: &[u8]) -> Option<[u8; 32]> {
    match <[u8; 33]>::try_from(stored) {
        Ok([0, hash @ ..]) => is_envelope(&hash).then_some(hash),
        _ => stored.try_into().ok(),
    }
}

/// The value of a field with `#[table(blob)]` in an entity that is being written.
#[derive(Debug, Clone)]
pub struct BlobFieldValue {
    /// The name of the field.
    pub(crate) field: &'static str,
    /// The names of the properties that store the value in a row.
    pub(crate) names: &'static BlobNames,
    pub(crate) blob: Blob,
}

/// Appends the value of a field to `values`, if the field has one.
#[doc(hidden)]
pub fn collect_blob_field_value(
    values: &mut Vec<BlobFieldValue>,
    field: &'static str,
    names: &'static BlobNames,
    value: Option<&Blob>,
) {
    values.extend(value.cloned().map(|blob| BlobFieldValue { field, names, blob }));
}

/// Returns a copy of the row that points to the blobs in `stored`, with the name, hash and key of each blob.
/// Skips a blob whose name property is missing in the row.
pub(crate) fn pointing_to_stored_blobs(row: &Row, stored: &[BlobFieldValue]) -> Result<Row> {
    let mut values = Vec::new();
    for BlobFieldValue { names, blob, .. } in stored {
        if row.get(names.name)?.is_none() {
            continue;
        }
        // Length and content type are unchanged, even by an encrypted upload.
        values.push((names.name, Value::from(blob.name().unwrap_or_default())));
        values.push((names.hash, Value::Binary(stored_form_of_hash(blob.hash()).into())));
        if let (Some(name), Some(key)) = (names.key, blob.content_key()) {
            values.push((name, Value::Binary(key.to_stored().into())));
        }
    }
    row.with_values(&values)
}

/// Returns whether any property of a stored row contains the blob's name. Checks all properties, because a
/// later version of the entity may use a different one, and blob names are unique.
pub(crate) fn points_to(row: &Row, name: &str) -> Result<bool> {
    let mut properties = row.properties();
    while let Some((_, value)) = properties.next()? {
        if value == ValueRef::String(name) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_has_one_form_which_is_no_encrypted_value() {
        for start in
            [&[0xae, 0x7e, 1][..], &[0xae, 0x7e, 0], &[0xae, 0x7d], &[0, 0xae, 0x7e], &[0, 0]]
        {
            let mut hash = [7; 32];
            hash.iter_mut().zip(start).for_each(|(byte, first)| *byte = *first);
            let stored = stored_form_of_hash(&hash);
            assert!(!is_envelope(&stored), "{start:?}");
            assert_eq!(hash_from_stored_form(&stored), Some(hash), "{start:?}");
        }
        // Another client may have written the bytes unescaped.
        assert_eq!(hash_from_stored_form(&[9; 32]), Some([9; 32]));
        assert_eq!(hash_from_stored_form(&[0; 33]), None);
        assert_eq!(hash_from_stored_form(&[9; 31]), None);
    }
}
