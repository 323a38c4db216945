//! Columns of fields that are stored in blobs: the properties in the row, and how they are read.

use std::{fmt, marker::PhantomData};

use super::{Blob, BlobField, BlobNames, hash_from_stored_form, stored_form_of_hash};
use crate::{
    edm::{EdmType, InvalidValue, ValueRef},
    entity::{Comparable, EqComparable, InBlob, Predicate, PropertyWriter, ReadColumn},
    error::Result,
    filter::Filter,
    key::RowFamily,
    limits::saturating_i64,
    row::Row,
    seal::BlobContentKey,
};

/// The column of a field with `#[table(blob)]`. Filters cannot compare it.
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
    /// Creates the column of a field, with the names of its properties.
    #[doc(hidden)]
    pub const fn new(field: &'static str, names: &'static BlobNames) -> Self {
        Self { field, names, of: PhantomData }
    }

    /// Returns the name of the field, which is part of the names of its blobs.
    #[cfg(feature = "blob")]
    pub(crate) const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the property that holds the blob's name.
    #[cfg(feature = "blob")]
    pub(crate) const fn property(&self) -> &'static str {
        self.names.name
    }

    /// Returns whether the blobs of the field are encrypted.
    #[cfg(feature = "blob")]
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.names.key.is_some()
    }
}

macro_rules! comparisons {
    ($($comparison:ident: $of:ident),*) => {
        /// Comparisons that never compile. The message of their bound explains that a blob has none.
        impl<E, F> BlobColumn<E, F> {
            $(#[doc(hidden)]
            pub fn $comparison<V>(self, _: V) -> Predicate<E>
            where
                InBlob: $of<F>,
            {
                // No kind of column meets the bound.
                Predicate::new(Filter::Constant(false))
            })*
        }
    };
}

comparisons!(
    eq: EqComparable, ne: Comparable, gt: Comparable, ge: Comparable, lt: Comparable, le: Comparable
);

impl<E, F: BlobField> ReadColumn for BlobColumn<E, F> {
    type Field = F;

    fn select(&self, _: &RowFamily, names: &mut Vec<String>) {
        names.extend(self.names.property_names().map(str::to_owned));
    }

    fn read(&self, row: &Row, _: &'static RowFamily) -> Result<F> {
        let BlobNames { name, len, hash, content_type, key } = *self.names;
        let key = key.map(|key| row.get(key)).transpose()?.flatten();
        let found = [row.get(name)?, row.get(len)?, row.get(hash)?, row.get(content_type)?, key];
        read_blob_properties(found, self.names, F::of_blob)
    }
}

/// Writes the properties that describe a blob in its row. Before the upload, the name is empty, and the key of
/// a blob to be encrypted is omitted. An absent value writes nothing.
#[doc(hidden)]
pub fn write_blob_properties(
    out: &mut PropertyWriter<'_>,
    names: &BlobNames,
    value: Option<&Blob>,
) {
    let Some(blob) = value else { return };
    out.put_value(names.name, ValueRef::String(blob.name().unwrap_or_default()));
    // No blob has 2^63 bytes, so the fallback is unreachable.
    out.put_value(names.len, ValueRef::Int64(saturating_i64(blob.len())));
    out.put_value(names.hash, ValueRef::Binary(&stored_form_of_hash(blob.hash())));
    // Written empty if unknown: a merge must not keep the content type of an earlier blob.
    out.put_value(names.content_type, ValueRef::String(blob.media_type().unwrap_or_default()));
    if let (Some(name), Some(key)) = (names.key, blob.content_key()) {
        out.put_value(name, ValueRef::Binary(&key.to_stored()));
    }
}

/// Reads the description of a blob from its row: name, length, hash, content type, and the key if it is
/// encrypted.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if a property is missing or does not fit.
#[doc(hidden)]
pub fn read_blob_properties<F, const N: usize>(
    found: [Option<ValueRef<'_>>; N],
    names: &BlobNames,
    of_blob: fn(Option<Blob>) -> Result<F, InvalidValue>,
) -> Result<F> {
    // A field that is not encrypted has four values. The fifth, the key, is then absent.
    let mut found = found.into_iter();
    let mut next = || found.next().flatten();
    let (found_name, found_len, found_hash, found_type, found_key) =
        (next(), next(), next(), next(), next());
    let Some(found_name) = found_name else {
        return of_blob(None).map_err(|invalid| invalid.into_read_error(names.name));
    };
    let wrong = |property: &str, expected, found: Option<ValueRef<'_>>| {
        let invalid = match found {
            Some(found) => InvalidValue::wrong_type(expected, found.edm_type()),
            None => InvalidValue::new(
                "expected this property in addition to the blob's name, found none",
            ),
        };
        invalid.into_read_error(property)
    };
    let ValueRef::String(blob_name) = found_name else {
        return Err(wrong(names.name, EdmType::String, Some(found_name)));
    };
    let bytes = match found_len {
        Some(ValueRef::Int64(bytes)) => u64::try_from(bytes).map_err(|_| {
            InvalidValue::new("expected a length, found a negative number")
                .into_read_error(names.len)
        })?,
        other => return Err(wrong(names.len, EdmType::Int64, other)),
    };
    let digest = match found_hash {
        Some(ValueRef::Binary(digest)) => hash_from_stored_form(digest).ok_or_else(|| {
            InvalidValue::new("expected a SHA-256 hash of 32 bytes").into_read_error(names.hash)
        })?,
        other => return Err(wrong(names.hash, EdmType::Binary, other)),
    };
    let media_type = match found_type {
        None => "",
        Some(ValueRef::String(media_type)) => media_type,
        other => return Err(wrong(names.content_type, EdmType::String, other)),
    };
    // The row was opened, so the client's policy has admitted a blob without a key.
    let key = match (names.key, found_key) {
        (None, _) | (_, None) => None,
        (Some(name), Some(ValueRef::Binary(key))) => {
            let key = BlobContentKey::from_stored(key);
            Some(key.map_err(|invalid| invalid.into_read_error(name))?)
        }
        (Some(name), other) => return Err(wrong(name, EdmType::Binary, other)),
    };
    let blob = Blob::stored(blob_name, bytes, digest, media_type).with_key(key);
    of_blob(Some(blob)).map_err(|invalid| invalid.into_read_error(names.name))
}
