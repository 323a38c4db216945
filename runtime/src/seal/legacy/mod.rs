//! Rows that the storage client libraries of before 2020 encrypted: "client-side encryption",
//! protocol 1.0, as .NET, Java and Python wrote it. Read only, for migrating away from it.
//!
//! The format has no authentication at all: whoever writes the table can change what it decrypts to,
//! and a program that tells why a row fails gives its contents away. So every failure behind the
//! content key is one error, all properties are decrypted before any is judged, and the feature
//! belongs switched off when the migration is done.

mod cipher;
mod keys;
mod metadata;

pub use keys::{LegacyKeyUnwrap, LegacyKeys};
pub(crate) use metadata::METADATA;
pub use metadata::WrappedKey;
use metadata::{LIST, Metadata};
use zeroize::Zeroizing;

use crate::{
    edm::ValueRef,
    error::{Error, Result, SealFault},
    row::Row,
};

/// Whether the row says that it is encrypted by that protocol.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
pub fn is_legacy(row: &Row) -> Result<bool> {
    Ok(matches!(row.get(METADATA)?, Some(ValueRef::String(_))))
}

/// The wrapped content key of a row, for a program that unwraps it elsewhere and then calls
/// [`decrypt_row_with`].
///
/// # Errors
///
/// `is_decrypt` for a row that is not encrypted by this protocol.
pub fn wrapped_key_of(row: &Row) -> Result<WrappedKey> {
    Ok(Metadata::of(row).map_err(|error| at(row, error))?.wrapped)
}

/// The row with its encrypted properties as text and without the two properties of the protocol.
/// Keys, Timestamp, ETag and the other properties stay.
///
/// # Errors
///
/// `is_decrypt`: a row that is not encrypted by this protocol, or, as one error, whatever else keeps
/// it from being read. `is_key_unavailable` for a key that `keys` does not have.
pub fn decrypt_row(keys: &LegacyKeys, row: &Row) -> Result<Row> {
    let decrypt = || {
        let metadata = Metadata::of(row)?;
        let key = keys.unwrap(&metadata.wrapped)?;
        decrypt_under(&key, &metadata, row)
    };
    decrypt().map_err(|error| at(row, error))
}

/// The same with the row's content key already unwrapped.
///
/// # Errors
///
/// `is_decrypt`, as [`decrypt_row`].
pub fn decrypt_row_with(content_key: &[u8; 32], row: &Row) -> Result<Row> {
    Metadata::of(row)
        .and_then(|metadata| decrypt_under(content_key, &metadata, row))
        .map_err(|error| at(row, error))
}

fn at(row: &Row, error: Error) -> Error {
    error.at_keys(row.partition_key(), row.row_key())
}

fn decrypt_under(key: &[u8; 32], metadata: &Metadata, row: &Row) -> Result<Row> {
    let names = names(key, metadata, row)?;
    let mut plain = Row::build(row.partition_key(), row.row_key());
    let mut failed = false;
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = std::str::from_utf8(name).map_err(|_| unreadable())?;
        if name == METADATA || name == LIST {
            continue;
        }
        if !names.iter().any(|listed| listed == name) {
            plain.put(name, value);
            continue;
        }
        let text = match value {
            ValueRef::Binary(bytes) => cipher::decrypt(key, &metadata.iv(row, name), bytes),
            _ => None,
        };
        // The others are decrypted all the same: the time tells nothing of which one failed.
        match text.as_deref().map(|text| std::str::from_utf8(text)) {
            Some(Ok(text)) => plain.put(name, ValueRef::String(text)),
            _ => failed = true,
        }
    }
    if failed {
        return Err(unreadable());
    }
    let plain = match row.timestamp() {
        Some(timestamp) => plain.finish_at(timestamp)?,
        None => plain.finish()?,
    };
    Ok(match row.etag() {
        Some(etag) => plain.with_etag(etag),
        None => plain,
    })
}

/// The names of the encrypted properties, which are encrypted themselves.
fn names(key: &[u8; 32], metadata: &Metadata, row: &Row) -> Result<Vec<String>> {
    let list: Zeroizing<Vec<u8>> = match row.get(LIST)? {
        Some(ValueRef::Binary(bytes)) => {
            cipher::decrypt(key, &metadata.iv(row, LIST), bytes).ok_or_else(unreadable)?
        }
        // Java wrote none for an entity without properties.
        None if metadata.is_java => return Ok(Vec::new()),
        _ => return Err(unreadable()),
    };
    let text = std::str::from_utf8(&list).map_err(|_| unreadable())?;
    metadata.names(text).ok_or_else(unreadable)
}

/// The one error of everything that happens behind the content key.
fn unreadable() -> Error {
    Error::seal(
        SealFault::Authentication,
        "the row does not decrypt by the legacy protocol with this key",
    )
}
