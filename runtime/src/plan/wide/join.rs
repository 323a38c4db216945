//! Joins the parts of a wide entity, which are the rows that it is stored in, into one row.

use super::{
    guards::joined_etag,
    layout::{PARTS, PartFinder, discriminator_property, version_of_part},
};
use crate::{
    edm::{EdmType, Ticks, ValueRef},
    entity::Schema,
    error::Result,
    row::{RawProperty, Row, is_operation_id, property_name_from_utf8},
};

/// The result of joining the rows of a wide entity into one row.
#[derive(Debug)]
pub(crate) enum JoinedRow {
    /// None of the rows exists.
    Absent,
    /// The joined row. All parts that were read come from one write.
    Whole(Row),
    /// The row with the key of a part has another type.
    Foreign(Row),
    /// The part with this number is missing, or was not written together with the others.
    Torn(usize),
}

/// Joins the parts of the entity with these keys, in order of their numbers. The version that wrote the first
/// existing part determines the layout. If only some parts were read, the ETag is joined from those parts.
///
/// # Errors
///
/// Fails with `is_corrupt` for a damaged row.
pub(crate) fn join_parts(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    parts: &[(usize, Option<Row>)],
) -> Result<JoinedRow> {
    let discriminator = discriminator_property(schema);
    let mut rows: Vec<(usize, &Row)> = Vec::with_capacity(parts.len());
    let mut writer = None;
    for (part, row) in parts {
        let Some(row) = row else { continue };
        // The entity has no part with a number that its writer does not know.
        if writer.is_some_and(|writer: &'static Schema| *part > writer.parts.len()) {
            continue;
        }
        let version = version_of_part(schema, *part, row.get(discriminator)?);
        let Some(version) = version else { return Ok(JoinedRow::Foreign(row.clone())) };
        let written_by: &'static Schema = writer.get_or_insert(version);
        if !version.is_of_same_struct(written_by) {
            return Ok(JoinedRow::Torn(*part));
        }
        rows.push((*part, row));
    }
    let (Some(writer), Some((_, first))) = (writer, rows.first()) else {
        return Ok(JoinedRow::Absent);
    };
    let is_found = |part: usize| rows.iter().any(|(found, _)| *found == part);
    // The caller chose the parts according to this version's layout.
    let asked: Vec<usize> = if writer.is_of_same_struct(schema) {
        parts.iter().map(|(part, _)| *part).collect()
    } else {
        (1..=writer.parts.len()).collect()
    };
    let mut asked = asked.into_iter().filter(|part| *part <= writer.parts.len());
    if let Some(part) = asked.find(|part| !is_found(*part)) {
        return Ok(JoinedRow::Torn(part));
    }
    if let Some(part) = part_of_other_generation(writer, first, &rows)? {
        return Ok(JoinedRow::Torn(part));
    }
    build_joined_row(writer, (partition_key, row_key), &rows).map(JoinedRow::Whole)
}

/// Returns the first part whose property `PARTS` (number of parts and generation) differs from the first row's.
/// Returns the first row's part if `PARTS` is missing there, or contains a different number of parts than the
/// version has. Returns `None` if all parts belong together, and for a single row.
fn part_of_other_generation(
    schema: &Schema,
    first: &Row,
    rows: &[(usize, &Row)],
) -> Result<Option<usize>> {
    if rows.len() < 2 {
        return Ok(None);
    }
    let count = format!("{}_", schema.parts.len());
    let expected = match first.get(PARTS)? {
        Some(ValueRef::String(text)) if text.starts_with(&count) => Some(ValueRef::String(text)),
        _ => None,
    };
    for (part, row) in rows {
        if expected.is_none() || row.get(PARTS)? != expected {
            return Ok(Some(*part));
        }
    }
    Ok(None)
}

/// Builds the joined row of an entity's rows.
pub(super) fn build_joined_row(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    rows: &[(usize, &Row)],
) -> Result<Row> {
    let discriminator = discriminator_property(schema);
    let mut joined = Row::build(partition_key, row_key);
    joined.put(discriminator, ValueRef::String(schema.marker));
    let mut finder = PartFinder::new(schema);
    // Copy values as they are. The reader of the joined row checks their values.
    joined.reserve_bytes(rows.iter().map(|(_, row)| row.byte_len()).sum());
    let mut strays: Vec<(&str, RawProperty<'_>)> = Vec::new();
    let mut unknown: Vec<(&str, usize)> = Vec::new();
    for (part, row) in rows {
        let mut properties = row.properties();
        while let Some(property) = properties.next_undecoded()? {
            let (name, edm, value) = property;
            let is_id = edm == EdmType::Binary && is_operation_id(name, ValueRef::Binary(value));
            let name = property_name_from_utf8(name)?;
            if name == discriminator || name == PARTS || is_id {
                continue;
            }
            match finder.part_of_property(name) {
                Some(declared) if declared == *part => joined.put_undecoded(property),
                Some(_) => strays.push((name, property)),
                None if unknown.iter().any(|(known, _)| *known == name) => {}
                None => {
                    unknown.push((name, *part));
                    joined.put_undecoded(property);
                }
            }
        }
    }
    // A program with another layout has stored a declared property in another part. If both exist, the value in the
    // part that declares the property wins.
    for (at, (name, property)) in strays.iter().enumerate() {
        let own = finder.part_of_property(name);
        let own = rows.iter().find(|(part, _)| Some(*part) == own);
        let is_stored = own.map(|(_, row)| row.get(name)).transpose()?.flatten().is_some();
        let is_given = strays.iter().take(at).any(|(before, _)| before == name);
        if own.is_some() && !is_stored && !is_given {
            joined.put_undecoded(*property);
        }
    }
    let unknown: Vec<String> = unknown
        .iter()
        .filter(|(_, part)| *part > 1)
        .map(|(name, part)| format!("{name}:{part}"))
        .collect();
    if !unknown.is_empty() {
        joined.put(PARTS, ValueRef::String(&unknown.join(" ")));
    }
    let newest: Option<Ticks> = rows.iter().filter_map(|(_, row)| row.timestamp()).max();
    let row = match newest {
        Some(newest) => joined.finish_at(newest)?,
        None => joined.finish()?,
    };
    let row = match joined_etag(rows.iter().map(|(_, row)| row.etag())) {
        Some(etag) => row.with_etag(etag),
        None => row,
    };
    let mut encrypted: Vec<Box<str>> = Vec::new();
    for name in rows.iter().flat_map(|(_, row)| row.encrypted_names()) {
        if **name != *PARTS && !encrypted.contains(name) {
            encrypted.push(name.clone());
        }
    }
    Ok(row.with_encrypted_names(encrypted))
}
