//! Large values that are kept in blobs: what a row holds of them, and what a value brings along to be
//! uploaded.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{PropertyWriter, ReadColumn};
use crate::{
    batch::Deadline,
    edm::{EdmType, InvalidValue, ValueRef},
    error::Result,
    key::Family,
    row::Row,
};

/// A large value of a field with `#[table(blob)]`: its bytes before they are uploaded, afterwards the
/// name of the blob that holds them. It is a plain value, which sends no request by itself.
///
/// [`Table::blob`](crate::Table::blob) reads the bytes of a stored one.
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
}

#[derive(Clone)]
enum Content {
    /// Bytes that the next write uploads.
    Bytes(Bytes),
    /// The name of a stored blob.
    Stored(Arc<str>),
    /// The name of a blob that no row points to yet.
    Uploaded(Arc<Upload>),
}

/// A blob that was uploaded ahead of the write of its row.
#[derive(Debug)]
pub(crate) struct Upload {
    name: Arc<str>,
    /// The last moment at which a row may begin to point to the blob.
    deadline: Deadline,
    is_taken: AtomicBool,
}

impl Upload {
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "made by an upload"))]
    pub(crate) fn new(name: &str, deadline: Deadline) -> Self {
        Self { name: name.into(), deadline, is_taken: AtomicBool::new(false) }
    }

    /// Takes the blob for one write, whatever becomes of that write; `false` if it was taken before.
    // A second write could follow a removal of the blob, and its row would point to nothing.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "taken by a write"))]
    pub(crate) fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::AcqRel)
    }

    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "asked by a write"))]
    pub(crate) fn deadline(&self) -> &Deadline {
        &self.deadline
    }
}

impl Blob {
    /// Creates a value of these bytes, which the verb that writes it uploads.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            hash: Sha256::digest(&bytes).into(),
            content_type: String::new(),
            content: Content::Bytes(bytes),
        }
    }

    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "made by an upload"))]
    pub(crate) fn uploaded(upload: Upload, len: u64, hash: [u8; 32]) -> Self {
        let content = Content::Uploaded(Arc::new(upload));
        Self { content, len, hash, content_type: String::new() }
    }

    /// Sets the content type, such as `image/jpeg`. The row stores it.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = content_type.into();
        self
    }

    /// Returns the content type, if one was set.
    pub fn media_type(&self) -> Option<&str> {
        (!self.content_type.is_empty()).then_some(&*self.content_type)
    }

    /// Returns the name of the blob in the object store, or `None` before the upload.
    pub fn name(&self) -> Option<&str> {
        match &self.content {
            Content::Bytes(_) => None,
            Content::Stored(name) => Some(name),
            Content::Uploaded(upload) => Some(&upload.name),
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the SHA-256 hash of the bytes.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Returns the bytes that are still to be uploaded.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "uploaded by a write"))]
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes),
            Content::Stored(_) | Content::Uploaded(_) => None,
        }
    }

    /// Returns the upload that no row points to yet.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "taken by a write"))]
    pub(crate) fn upload(&self) -> Option<&Upload> {
        match &self.content {
            Content::Uploaded(upload) => Some(upload),
            Content::Bytes(_) | Content::Stored(_) => None,
        }
    }

    /// Returns the value as it is once its row points to the blob `name`.
    pub(crate) fn stored_as(&self, name: &str) -> Self {
        Self { content: Content::Stored(name.into()), ..self.clone() }
    }
}

impl PartialEq for Blob {
    /// Compares what the row holds: name, length, hash and content type.
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

/// A type that `#[table(blob)]` stores: `Blob` or `Option<Blob>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in a blob",
    label = "expected `Blob` or `Option<Blob>`",
    note = "`Blob::new(bytes)` makes a `Blob` of bytes"
)]
pub trait BlobField: Sized {
    /// Whether the properties may be absent.
    const OPTIONAL: bool;

    /// Returns the value, if it is there.
    fn blob(&self) -> Option<&Blob>;

    /// Makes a field of what a row holds.
    ///
    /// # Errors
    ///
    /// Fails if the value is absent and must not be.
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

/// The names of the properties that a row holds of a blob: name, length, hash and content type.
pub type BlobNames = [&'static str; 4];

/// The column of a field with `#[table(blob)]`. A filter cannot compare it.
pub struct BlobColumn<E, F> {
    field: &'static str,
    names: &'static BlobNames,
    of: PhantomData<fn() -> (E, F)>,
}

impl<E, F> fmt::Debug for BlobColumn<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlobColumn").field(&self.field).finish()
    }
}

impl<E, F> BlobColumn<E, F> {
    /// The column of a field, with the names of its properties.
    #[doc(hidden)]
    pub const fn new(field: &'static str, names: &'static BlobNames) -> Self {
        Self { field, names, of: PhantomData }
    }

    /// Returns the name of the field, which is a part of the names of its blobs.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "named by an upload"))]
    pub(crate) const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the property that holds the blob's name.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "named by an upload's errors"))]
    pub(crate) const fn property(&self) -> &'static str {
        let [property, ..] = *self.names;
        property
    }
}

impl<E, F: BlobField> ReadColumn for BlobColumn<E, F> {
    type Field = F;

    fn select(&self, _: &Family, names: &mut Vec<String>) {
        names.extend(self.names.map(str::to_owned));
    }

    fn read(&self, row: &Row, _: &'static Family) -> Result<F> {
        let [name, len, hash, content_type] = self.names;
        let found = [row.get(name)?, row.get(len)?, row.get(hash)?, row.get(content_type)?];
        finish_blob(found, self.names)
    }
}

/// A value of a field with `#[table(blob)]`, as an entity that is being written holds it.
#[derive(Debug, Clone)]
pub struct BlobValue {
    /// The name of the field.
    pub(crate) field: &'static str,
    /// The property that holds the blob's name.
    pub(crate) property: &'static str,
    pub(crate) blob: Blob,
}

/// Adds the value of a field, if it is there, to those of its entity.
#[doc(hidden)]
pub fn push_blob<F: BlobField>(
    values: &mut Vec<BlobValue>,
    field: &'static str,
    property: &'static str,
    value: &F,
) {
    let value = value.blob().cloned();
    values.extend(value.map(|blob| BlobValue { field, property, blob }));
}

/// Writes what a row holds of a blob. The name is empty until the blob is uploaded. An absent value
/// writes nothing.
#[doc(hidden)]
pub fn store_blob<F: BlobField>(out: &mut PropertyWriter<'_>, names: &BlobNames, value: &F) {
    let Some(blob) = value.blob() else { return };
    let [name, len, hash, content_type] = names;
    out.put_value(name, ValueRef::String(blob.name().unwrap_or_default()));
    out.put_value(len, ValueRef::Int64(i64::try_from(blob.len).unwrap_or(i64::MAX)));
    out.put_value(hash, ValueRef::Binary(&blob.hash));
    // Written empty where it is unknown: a merge then leaves no content type of an older blob.
    out.put_value(content_type, ValueRef::String(&blob.content_type));
}

/// Reads what a row holds of a blob.
///
/// # Errors
///
/// `is_decode`, naming the property that is missing or does not fit.
#[doc(hidden)]
pub fn finish_blob<F: BlobField>(found: [Option<ValueRef<'_>>; 4], names: &BlobNames) -> Result<F> {
    let [name, len, hash, content_type] = names;
    let [found_name, found_len, found_hash, found_type] = found;
    let Some(found_name) = found_name else {
        return F::of_blob(None).map_err(|invalid| invalid.into_read_error(name));
    };
    let wrong = |property: &str, expected, found: Option<ValueRef<'_>>| {
        let invalid = match found {
            Some(found) => InvalidValue::wrong_type(expected, found.edm_type()),
            None => InvalidValue::new("expected it beside the blob's name, found no such property"),
        };
        invalid.into_read_error(property)
    };
    let ValueRef::String(blob_name) = found_name else {
        return Err(wrong(name, EdmType::String, Some(found_name)));
    };
    let bytes = match found_len {
        Some(ValueRef::Int64(bytes)) => u64::try_from(bytes).map_err(|_| {
            InvalidValue::new("expected a length, found a negative number").into_read_error(len)
        })?,
        other => return Err(wrong(len, EdmType::Int64, other)),
    };
    let digest = match found_hash {
        Some(ValueRef::Binary(digest)) => <[u8; 32]>::try_from(digest).map_err(|_| {
            InvalidValue::new("expected a SHA-256 hash of 32 bytes").into_read_error(hash)
        })?,
        other => return Err(wrong(hash, EdmType::Binary, other)),
    };
    let media_type = match found_type {
        None => "",
        Some(ValueRef::String(media_type)) => media_type,
        other => return Err(wrong(content_type, EdmType::String, other)),
    };
    let blob = Blob {
        content: Content::Stored(blob_name.into()),
        len: bytes,
        hash: digest,
        content_type: media_type.to_owned(),
    };
    F::of_blob(Some(blob)).map_err(|invalid| invalid.into_read_error(name))
}

/// Returns whether a property of a stored row names the blob.
// Whatever the property: a later version of the entity may hold the name in another one, and no two
// blobs have one name.
pub(crate) fn points_to(row: &Row, name: &str) -> Result<bool> {
    let mut properties = row.properties();
    while let Some((_, value)) = properties.next()? {
        if value == ValueRef::String(name) {
            return Ok(true);
        }
    }
    Ok(false)
}
