//! Splits an operation on a wide entity into the operations on its parts.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    slice,
};

use super::{
    guards::{PartCondition, incomplete_etag_error, split_etag_by_part},
    layout::{PARTS, PartFinder, discriminator_property, row_key_of_part, version_of_part},
};
use crate::{
    batch::{Condition, Operation, Verb},
    edm::ValueRef,
    entity::Schema,
    error::{Error, Result},
    row::{ETag, Row, RowBuilder, property_name_from_utf8},
};

/// Splits an operation on a joined row into operations on its parts. An operation on an entity of one row is
/// returned unchanged. `generation` must be new in each transaction. `found` contains the ETags of parts by RowKey,
/// or `None` for a missing part. It is used if a deletion without an ETag found an entity that lacks parts: only
/// existing parts are deleted, under their ETags.
///
/// A row of an older version has that version's layout. The ETag may belong to an entity with a different number of
/// parts than the row. Surplus parts of the entity are then deleted, and missing parts are written.
///
/// # Errors
///
/// Fails with `is_invalid` if the entity was not read with all of its parts, and for keys that do not belong to a
/// wide entity.
pub(crate) fn split_operation<'o>(
    schema: Option<&'static Schema>,
    operation: &'o Operation,
    generation: &str,
    found: &HashMap<String, Option<ETag>>,
) -> Result<Cow<'o, [Operation]>> {
    match schema.filter(|schema| schema.is_wide()) {
        Some(schema) => split_wide_operation(schema, operation, generation, found).map(Cow::Owned),
        None => Ok(Cow::Borrowed(slice::from_ref(operation))),
    }
}

fn split_wide_operation(
    schema: &'static Schema,
    operation: &Operation,
    generation: &str,
    found: &HashMap<String, Option<ETag>>,
) -> Result<Vec<Operation>> {
    let row = operation.row();
    let (partition_key, row_key) = row.keys();
    let located = |error: Error| error.at_keys(partition_key, row_key);
    let schema =
        version_of_part(schema, 1, row.get(discriminator_property(schema))?).unwrap_or(schema);
    let guards = match operation.condition() {
        Some(Condition::Match(etag)) => Some(split_etag_by_part(schema, etag).map_err(located)?),
        _ => None,
    };
    if operation.verb() == Verb::Delete {
        let guards = guards.unwrap_or_else(|| vec![PartCondition::Any; schema.parts.len()]);
        return delete_parts((partition_key, row_key), &guards, found);
    }
    let count = schema.parts.len();
    let is_blind = guards.is_none();
    let guards = guards.unwrap_or_else(|| vec![PartCondition::Any; count]);
    if operation.verb() == Verb::Merge && guards.len() != count {
        return Err(located(incomplete_etag_error(schema, guards.len())));
    }
    let RowsOfParts { rows, filled } = RowsOfParts::split_row(schema, row).map_err(located)?;
    if operation.verb() == Verb::Merge && is_blind && filled.len() <= 1 {
        // A merge without properties goes to part 1, which exists if the entity does.
        let part = filled.first().copied().unwrap_or(1);
        let only = rows.into_iter().nth(part - 1).map(RowBuilder::finish).transpose()?;
        let only = only.map(|only| mark_encrypted(schema, row, only, part));
        return Ok(only.map(|only| Operation::merge(only, Condition::Any)).into_iter().collect());
    }
    let generation = format!("{count}_{generation}");
    let mut operations = Vec::with_capacity(count);
    for (at, mut builder) in rows.into_iter().enumerate() {
        builder.put(PARTS, ValueRef::String(&generation));
        let part = mark_encrypted(schema, row, builder.finish()?, at + 1);
        operations.push(match (operation.verb(), guards.get(at)) {
            (Verb::Insert, _) => Operation::insert(part),
            (Verb::InsertOrReplace, _) => Operation::insert_or_replace(part),
            (Verb::InsertOrMerge, _) => Operation::insert_or_merge(part),
            // The entity exists if part 1 does. Write a missing part.
            (Verb::Replace, _) if is_blind && at > 0 => Operation::insert_or_replace(part),
            // The stored entity has fewer parts. Their conditions protect this part too.
            (Verb::Replace, None) => Operation::insert_or_replace(part),
            (Verb::Replace, Some(PartCondition::Missing)) => Operation::insert(part),
            (Verb::Replace, Some(guard)) => Operation::replace(part, guard.write_condition()),
            (Verb::Merge | Verb::Delete, guard) => {
                let condition = guard.map_or(Condition::Any, PartCondition::write_condition);
                Operation::merge(part, condition)
            }
        });
    }
    // The entity was stored by a version with more parts. Delete the surplus rows.
    for (at, guard) in guards.iter().enumerate().skip(count) {
        if !matches!(guard, PartCondition::Missing) {
            let key = row_key_of_part(row_key, at + 1)?;
            operations.push(Operation::delete(partition_key, &key, guard.write_condition())?);
        }
    }
    Ok(operations)
}

/// Returns the deletions of an entity's parts. For `found`, see [`split_operation`].
fn delete_parts(
    (partition_key, row_key): (&str, &str),
    guards: &[PartCondition],
    found: &HashMap<String, Option<ETag>>,
) -> Result<Vec<Operation>> {
    let mut operations = Vec::with_capacity(guards.len());
    for (at, guard) in guards.iter().enumerate() {
        let key = row_key_of_part(row_key, at + 1)?;
        let condition = match (guard, found.get(&key)) {
            // Deleting a missing row would fail the whole transaction.
            (PartCondition::Missing, _) | (PartCondition::Any, Some(None)) => continue,
            (PartCondition::Any, Some(Some(etag))) => Condition::Match(etag.clone()),
            (guard, _) => guard.write_condition(),
        };
        operations.push(Operation::delete(partition_key, &key, condition)?);
    }
    Ok(operations)
}

/// Returns whether an operation deletes an entity's parts whatever their ETags, in which case missing parts do not
/// matter.
pub(crate) fn can_ignore_missing_parts(
    schema: Option<&'static Schema>,
    operation: &Operation,
) -> bool {
    schema.is_some_and(Schema::is_wide)
        && matches!(operation.condition(), Some(Condition::Any))
        && operation.verb() == Verb::Delete
}

/// The properties of a joined row, by part.
struct RowsOfParts {
    rows: Vec<RowBuilder>,
    /// The parts that have a property of the joined row.
    filled: BTreeSet<usize>,
}

impl RowsOfParts {
    fn split_row(schema: &'static Schema, row: &Row) -> Result<Self> {
        let (partition_key, row_key) = row.keys();
        let keys = (1..=schema.parts.len()).map(|part| row_key_of_part(row_key, part));
        let rows = keys.map(|key| key.map(|key| Row::build(partition_key, &key)));
        let mut split = Self { rows: rows.collect::<Result<_>>()?, filled: BTreeSet::new() };
        let unknown = match row.get(PARTS)? {
            Some(ValueRef::String(text)) => text,
            _ => "",
        };
        let discriminator = discriminator_property(schema);
        let mut finder = PartFinder::new(schema);
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            match property_name_from_utf8(name)? {
                PARTS => {}
                name if name == discriminator => {
                    for (part, marker) in split.rows.iter_mut().zip(schema.parts) {
                        part.put(name, ValueRef::String(marker));
                    }
                }
                name => {
                    // An older version may have had more parts.
                    let stays = || part_of_unknown_property(unknown, name).min(schema.parts.len());
                    let part = finder.part_of_property(name).unwrap_or_else(stays);
                    if let Some(builder) = split.rows.get_mut(part - 1) {
                        builder.put(name, value);
                        split.filled.insert(part);
                    }
                }
            }
        }
        Ok(split)
    }
}

/// Returns the number of the part that stores an undeclared property. `text` is the value of `PARTS` in the joined
/// row. A property that is not in it is in part 1.
fn part_of_unknown_property(text: &str, name: &str) -> usize {
    let found = text.split(' ').find_map(|each| each.strip_prefix(name)?.strip_prefix(':'));
    found.and_then(|part| part.parse().ok()).filter(|part| *part > 0).unwrap_or(1)
}

/// Marks the properties of a part as stored encrypted that are marked in the joined row.
fn mark_encrypted(schema: &'static Schema, joined: &Row, row: Row, part: usize) -> Row {
    let mut finder = PartFinder::new(schema);
    let mut names: Vec<Box<str>> = Vec::new();
    for name in joined.encrypted_names() {
        let is_here = match finder.part_of_property(name) {
            Some(declared) => declared == part,
            None => matches!(row.get(name), Ok(Some(_))),
        };
        if is_here {
            names.push(name.clone());
        }
    }
    row.with_encrypted_names(names)
}
