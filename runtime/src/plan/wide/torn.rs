//! Joins the remaining parts (rows) of a wide entity after another program deleted or replaced one of them.

use super::{
    guards::MISSING,
    join::build_joined_row,
    layout::{PARTS, discriminator_property, version_of_part},
};
use crate::{
    edm::ValueRef,
    entity::Schema,
    error::{Error, ErrorKind, Result},
    row::{ETag, Row, property_name_from_utf8},
};

/// The value of `PARTS` in the joined row of a torn entity.
const TORN: &str = "torn";

/// Joins the remaining parts of a torn entity, whichever writes they come from. The ETag shows which parts are
/// missing. Returns `None` if none is left.
///
/// # Errors
///
/// Fails with `is_corrupt` for a damaged row.
pub(crate) fn join_torn(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    parts: &[(usize, Option<Row>)],
) -> Result<Option<Row>> {
    let discriminator = discriminator_property(schema);
    let mut rows: Vec<(usize, &Row)> = Vec::with_capacity(parts.len());
    let mut writer = None;
    for (part, row) in parts {
        let Some(row) = row else { continue };
        if let Some(version) = version_of_part(schema, *part, row.get(discriminator)?) {
            writer.get_or_insert(version);
            rows.push((*part, row));
        }
    }
    let Some(writer) = writer else { return Ok(None) };
    let joined = build_joined_row(writer, (partition_key, row_key), &rows)?;
    let mut torn = Row::build(partition_key, row_key);
    let mut properties = joined.properties();
    while let Some((name, value)) = properties.next()? {
        let name = property_name_from_utf8(name)?;
        if name != PARTS {
            torn.put(name, value);
        }
    }
    torn.put(PARTS, ValueRef::String(TORN));
    let last = rows.last().map_or(0, |(part, _)| *part);
    // As many as some version has.
    let counts = schema.versions().map(|version| version.parts.len());
    let count = counts.filter(|count| *count >= last).min().unwrap_or(last);
    let etags = (1..=count).map(|part| {
        let found = rows.iter().find(|(found, _)| *found == part);
        let etag = found.and_then(|(_, row)| row.etag());
        etag.map_or_else(|| MISSING.to_owned(), |etag| etag.to_string())
    });
    let etag = etags.collect::<Vec<_>>().join(" ");
    let torn = torn.finish()?.inherit_encrypted_names_of(&joined);
    Ok(Some(
        torn.with_etag(
            ETag::from(etag.as_str()).with_location_read_from(joined.location_read_from()),
        ),
    ))
}

/// Returns whether a joined row belongs to a torn entity, of which only some parts are stored.
pub(crate) fn is_torn(joined: &Row) -> bool {
    matches!(joined.get(PARTS), Ok(Some(ValueRef::String(TORN))))
}

/// Returns the error for a torn wide entity: part `part` is missing, or was not written together with the others.
pub(crate) fn torn_error(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    part: usize,
) -> Error {
    let remedy = if schema.is_single_row() {
        "overwrite it with `insert_or_replace`, or delete it with `delete_at`"
    } else {
        "delete it with `delete_at`, then remove its remaining copies with `check().repair()`"
    };
    let message = format!(
        "part {part} of `{}` is missing or was not written with the other parts: another program deleted or replaced a row of the entity; {remedy}",
        schema.entity
    );
    Error::new(ErrorKind::Corrupt, message).at_keys(partition_key, row_key)
}
