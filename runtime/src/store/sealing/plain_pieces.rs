//! Reads split values that are declared encrypted but whose pieces are still stored plain.

use crate::{
    edm::{Value, ValueRef},
    entity::{Schema, split::first_piece_with_hash},
    error::Result,
    row::Row,
    seal::is_envelope,
};

/// Returns a decrypted row in which such values have the hash of their pieces, which plain values are stored
/// without. From here on, such a value is like any other: it can be read, and encrypted piece by piece.
pub(super) fn with_hashes_of_plain_pieces(
    schema: &'static Schema,
    stored: &Row,
    plain: Row,
) -> Result<Row> {
    // Another version reads the row by its own declarations, which may not encrypt the value.
    let writer = schema.older_version_of_row(stored)?.map_or(schema, |(older, _)| older);
    let mut hashed: Vec<(&str, Value)> = Vec::new();
    for pieces in writer.split_fields() {
        let Some(first) = pieces.first().filter(|piece| piece.sealed.is_some()) else { continue };
        let is_plain = match stored.get(first.name)? {
            Some(ValueRef::Binary(bytes)) => !is_envelope(bytes),
            value => value.is_some(),
        };
        if is_plain {
            let values: Vec<_> =
                pieces.iter().map(|piece| plain.get(piece.name)).collect::<Result<_>>()?;
            hashed.extend(first_piece_with_hash(&values).map(|value| (first.name, value)));
        }
    }
    if hashed.is_empty() {
        return Ok(plain);
    }
    let row = plain.with_values(&hashed)?.with_timestamp(plain.timestamp().unwrap_or_default());
    Ok(match plain.etag() {
        Some(etag) => row.with_etag(etag),
        None => row,
    })
}
