//! Determines which parts (rows) of a wide entity a read needs, from the properties that it returns and compares.

use std::collections::BTreeSet;

use super::layout::{PARTS, PartFinder, discriminator_property, may_have_older_layout};
use crate::{
    entity::Schema,
    error::{Error, ErrorKind, Result},
};

/// The system property that every row has and that is requested with each row.
const TIMESTAMP: &str = "Timestamp";

/// Returns the parts that store the properties with these names. An undeclared property counts as one of part 1.
/// Keys, the discriminator and `PARTS` add no part, because every part has them.
pub(crate) fn parts_with_properties(
    schema: &'static Schema,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> BTreeSet<usize> {
    let mut finder = PartFinder::new(schema);
    let parts = names.into_iter().filter_map(|name| match name.as_ref() {
        "PartitionKey" | "RowKey" => None,
        name if name == discriminator_property(schema) || name == PARTS => None,
        name => match finder.column_of(name) {
            Some(column) => column.stored.then(|| column.part_number()),
            None => Some(1),
        },
    });
    parts.collect()
}

/// Returns which parts of a wide entity a point read needs for the selected properties. `select` is `None` for all
/// properties.
pub(crate) fn part_numbers_to_read(
    schema: &'static Schema,
    select: Option<&[String]>,
) -> BTreeSet<usize> {
    let names = match select {
        // A property of an older version may be in another part.
        Some(names) if schema.older.is_none() => names,
        _ => return (1..=schema.parts.len()).collect(),
    };
    let mut parts = stored_parts(schema, names);
    if parts.is_empty() {
        parts.insert(1);
    }
    parts
}

/// Returns the parts that store the properties that a read selects. The Timestamp adds no part, because every row
/// has it.
fn stored_parts(schema: &'static Schema, names: &[String]) -> BTreeSet<usize> {
    parts_with_properties(schema, names.iter().filter(|name| *name != TIMESTAMP))
}

/// Returns the names and also `PARTS`, the property with the id of the last write of all parts. A reader with
/// `$select` needs it to see whether the parts belong together.
pub(crate) fn names_with_generation(names: &[String]) -> Vec<String> {
    names.iter().cloned().chain([PARTS.to_owned()]).collect()
}

/// The rows that a query of a wide entity reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WidePartsRead {
    /// All parts of each entity, joined.
    All,
    /// Only the part with this number, of each entity.
    One(usize),
}

/// Returns whether a query reads all parts of each entity or only one. `select` contains the properties that it
/// returns, or is `None` for all. `conditions` contains the properties that its filter compares. A query of
/// entities that can expire reads part 1, which has the time of expiry.
///
/// # Errors
///
/// Fails with `is_invalid`, the property and its part if the filter compares a property and the query reads other
/// parts than the one that stores it, or if an older version may store it elsewhere.
pub(crate) fn choose_parts_to_read(
    schema: &'static Schema,
    select: Option<&[String]>,
    conditions: &[String],
) -> Result<WidePartsRead> {
    let mut parts = match select {
        Some(names) => stored_parts(schema, names),
        None => (1..=schema.parts.len()).collect(),
    };
    // Part 1 has the time of expiry.
    if schema.can_expire() {
        parts.insert(1);
    }
    let mut each = conditions.iter().map(|name| (name, parts_with_properties(schema, [name])));
    let compared = each.find_map(|(name, parts)| parts.first().map(|part| (name, *part)));
    if let (Some((name, _)), Some(older)) = (compared, schema.older) {
        let message = format!(
            "a filter on `{name}` of the wide entity `{}` may miss rows of its older version `{}`, which can store \
             the field in another part; compare keys, or run `upgrade_all()` and drop `upgrade_from`",
            schema.entity, older.entity
        );
        return Err(Error::new(ErrorKind::Invalid, message).in_property(name));
    }
    if may_have_older_layout(schema) {
        return Ok(WidePartsRead::All);
    }
    if let Some((name, part)) = compared {
        parts.extend(parts_with_properties(schema, conditions));
        if parts.len() > 1 {
            let entity = schema.entity;
            let message = if schema.can_expire() && part != 1 {
                format!(
                    "a filter on `{name}` finds only rows of part {part} of `{entity}`, but part 1 holds the time \
                     when the entity expires; compare keys, or move `{name}` to part 1 in a new version"
                )
            } else {
                format!(
                    "a filter on `{name}` finds only rows of part {part} of `{entity}`; read a projection whose \
                     fields are all in part {part} with `.select::<P>()`"
                )
            };
            return Err(Error::new(ErrorKind::Invalid, message).in_property(name));
        }
    }
    Ok(match parts.len() {
        0 => WidePartsRead::One(1),
        1 => WidePartsRead::One(parts.first().copied().unwrap_or(1)),
        _ => WidePartsRead::All,
    })
}

/// Returns the type markers of the parts that a query reads, in each version.
pub(crate) fn type_markers_of_parts(
    schema: &'static Schema,
    read: WidePartsRead,
) -> Vec<&'static str> {
    let of_version = |version: &'static Schema| match read {
        WidePartsRead::All => version.parts,
        WidePartsRead::One(part) => version.parts.get(part - 1..part).unwrap_or_default(),
    };
    schema.versions().flat_map(of_version).copied().collect()
}
