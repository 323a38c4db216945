//! Decryption of legacy rows.

use zeroize::Zeroizing;

use super::{
    cipher,
    keys::LegacyKeys,
    metadata::{
        LegacyMetadata, METADATA_PROPERTY, NAMES_PROPERTY, WrappedKey, legacy_decrypt_error,
    },
};
use entable_core::{
    edm::ValueRef,
    error::{Error, Result},
    row::Row,
};

/// Returns whether the row has the metadata property of the legacy protocol.
///
/// # Errors
///
/// `is_corrupt` if the row is damaged.
pub fn is_legacy(row: &Row) -> Result<bool> {
    Ok(matches!(row.get(METADATA_PROPERTY)?, Some(ValueRef::String(_))))
}

/// Returns the wrapped content key of a row, for a caller that unwraps it elsewhere and then calls
/// [`decrypt_row_with`].
///
/// # Errors
///
/// `is_decrypt` if the row is not encrypted by the legacy protocol.
pub fn wrapped_key_of(row: &Row) -> Result<WrappedKey> {
    Ok(LegacyMetadata::read_metadata(row).map_err(|error| name_row(row, error))?.wrapped)
}

/// Decrypts a row: its encrypted properties become text, and the two metadata properties of the protocol
/// are left out. Keys, Timestamp, ETag and the other properties stay as they are.
///
/// # Errors
///
/// `is_decrypt` if the row is not encrypted by the legacy protocol, and, with one message for all causes,
/// if it cannot be decrypted; `is_key_unavailable` if `keys` does not have the wrapping key.
pub async fn decrypt_row(keys: &LegacyKeys, row: &Row) -> Result<Row> {
    let decrypt = async {
        let metadata = LegacyMetadata::read_metadata(row)?;
        let key = keys.unwrap_content_key(&metadata.wrapped).await?;
        decrypt_under(&key, &metadata, row)
    };
    decrypt.await.map_err(|error| name_row(row, error))
}

/// Decrypts a row, as [`decrypt_row`] does, with its unwrapped content key.
///
/// # Errors
///
/// `is_decrypt` if the row is not encrypted by the legacy protocol or cannot be decrypted.
pub fn decrypt_row_with(content_key: &[u8; 32], row: &Row) -> Result<Row> {
    LegacyMetadata::read_metadata(row)
        .and_then(|metadata| decrypt_under(content_key, &metadata, row))
        .map_err(|error| name_row(row, error))
}

fn name_row(row: &Row, error: Error) -> Error {
    error.at_keys(row.partition_key(), row.row_key())
}

fn decrypt_under(key: &[u8; 32], metadata: &LegacyMetadata, row: &Row) -> Result<Row> {
    let names = encrypted_names(key, metadata, row)?;
    let mut plain = Row::build(row.partition_key(), row.row_key());
    let mut failed = false;
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = std::str::from_utf8(name).map_err(|_| legacy_decrypt_error())?;
        if name == METADATA_PROPERTY || name == NAMES_PROPERTY {
            continue;
        }
        if !names.iter().any(|listed| listed == name) {
            plain.put(name, value);
            continue;
        }
        let text = match value {
            ValueRef::Binary(bytes) => {
                cipher::decrypt(key, &metadata.property_iv(row, name), bytes)
            }
            _ => None,
        };
        // Still decrypt the other properties, so timing does not reveal which one failed.
        match text.as_deref().map(|text| std::str::from_utf8(text)) {
            Some(Ok(text)) => plain.put(name, ValueRef::String(text)),
            _ => failed = true,
        }
    }
    if failed {
        return Err(legacy_decrypt_error());
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

/// Decrypts the list of the names of the encrypted properties.
fn encrypted_names(key: &[u8; 32], metadata: &LegacyMetadata, row: &Row) -> Result<Vec<String>> {
    let list: Zeroizing<Vec<u8>> = match row.get(NAMES_PROPERTY)? {
        Some(ValueRef::Binary(bytes)) => {
            cipher::decrypt(key, &metadata.property_iv(row, NAMES_PROPERTY), bytes)
                .ok_or_else(legacy_decrypt_error)?
        }
        // Java wrote no list for an entity without properties.
        None if metadata.is_java => return Ok(Vec::new()),
        _ => return Err(legacy_decrypt_error()),
    };
    let text = std::str::from_utf8(&list).map_err(|_| legacy_decrypt_error())?;
    metadata.split_names(text).ok_or_else(legacy_decrypt_error)
}
