//! Finds the reads and writes that a layout makes expensive.

use super::{example::example_key, model::FieldModel};
use crate::{
    edm::EdmType,
    entity::{ColumnSchema, Schema},
    key::{Form, RowFamily},
    limits::{BATCH_OPERATIONS, PROPERTIES},
};

/// A type with at least this many properties is close to the service's limit.
const MANY_PROPERTIES: usize = PROPERTIES / 5 * 4;

/// An entity with at least this many rows is expensive to write.
const MANY_ROWS: usize = 5;

/// The number of pieces of long texts (64 KiB each) that nearly fill an entity.
const MANY_PIECES: usize = 12;

/// Returns one sentence for each cause of expensive reads or writes in an entity type's layout.
pub(super) fn warnings_of(schema: &'static Schema, fields: &[FieldModel]) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_silenced = |note: &str| schema.silenced_notes.contains(&note);
    if !is_silenced("hot_partition") {
        let in_rows = schema.families.iter().filter(|family| !family.in_blob);
        warnings.extend(in_rows.filter_map(hot_partition));
    }
    if !is_silenced("growing_list") {
        warnings.extend(schema.families.iter().filter_map(|list| growing_list(schema, list)));
    }
    if !is_silenced("copied_blob") {
        warnings.extend(schema.families.iter().filter_map(|copy| copied_blob(schema, copy)));
    }
    warnings.extend(rows_per_write(schema));
    if !schema.parts.is_empty() {
        warnings.push(format!(
            "The entity is stored in {} rows, its parts; a transaction holds at most {} such entities.",
            schema.parts.len(),
            // There are parts, so the division succeeds.
            BATCH_OPERATIONS.checked_div(schema.parts.len()).unwrap_or(BATCH_OPERATIONS)
        ));
    }
    warnings.extend(size_warning(schema));
    if schema.families.iter().any(|family| family.is_remote) {
        warnings.push(
            "Rows in other partitions are written after their primary. Run a worker, which finishes the copies a writer could not write."
                .to_owned(),
        );
    }
    warnings.extend(partition_needed(schema));
    warnings.extend(scan_warning(schema, fields));
    warnings
}

fn hot_partition(family: &'static RowFamily) -> Option<String> {
    // Local families are in their primary's partition.
    if !family.is_primary() && !family.is_remote {
        return None;
    }
    let name = if family.is_primary() {
        "primaries".to_owned()
    } else {
        format!("rows of `{}`", family.name)
    };
    let example = example_key(&family.partition);
    let is_time =
        |(part, example): (&crate::key::TemplatePart, &super::example::ExampleKeyPart)| {
            matches!(part.form, Form::Date(_)) || example.edm == Some(EdmType::DateTime)
        };
    if example.parts.is_empty() {
        return Some(format!(
            "All {name} are in one partition, `{}`, which is limited to about 2,000 entities of 1 KiB per second.",
            example.text
        ));
    }
    if family.partition.parts().zip(&example.parts).all(is_time) {
        return Some(format!(
            "The PartitionKey of {name} is a time, `{}`, so all writes of one period go to one partition. Put a \
             bucket or another field before it.",
            family.partition.text
        ));
    }
    let few =
        |(part, example): (&crate::key::TemplatePart, &super::example::ExampleKeyPart)| match part
            .form
        {
            Form::Bucket(count) => Some(count),
            _ => (example.edm == Some(EdmType::Boolean)).then_some(2),
        };
    let partitions: Option<u32> = family
        .partition
        .parts()
        .zip(&example.parts)
        .map(few)
        // A part with an unknown number of values, or an overflow, means that there are many.
        .try_fold(1_u32, |all, part| all.checked_mul(part?));
    partitions.filter(|partitions| *partitions < 8).map(|partitions| {
        format!("There are only {partitions} partitions of {name}, `{}`.", family.partition.text)
    })
}

/// Returns a warning about a list whose keys have no field apart from those of the PartitionKey: each entity of the
/// partition adds to it.
fn growing_list(schema: &Schema, list: &RowFamily) -> Option<String> {
    let primary = schema.families.first()?;
    let is_of_partition = |part: &crate::key::TemplatePart| {
        primary.partition.parts().any(|of_partition| of_partition.field == part.field)
    };
    let mut parts = list.partition.parts().chain(list.row.parts()).peekable();
    let of = if parts.peek().is_some() || !list.is_remote { " of a partition" } else { "" };
    (list.is_list() && parts.all(is_of_partition)).then(|| {
        format!(
            "List `{}` grows with every entity{of}, and each insert writes its ids again. Put a field into its \
             key, or query the primaries. `allow(growing_list)` silences this.",
            list.name
        )
    })
}

/// Returns a warning about a copy that holds blob fields or split fields.
fn copied_blob(schema: &Schema, copy: &RowFamily) -> Option<String> {
    if !copy.is_copy() {
        return None;
    }
    let blobs = schema.blobs.iter().map(|blob| blob.name);
    let split = schema.series.iter().filter(|field| field.is_split).map(|field| field.first);
    let (blobs, split): (Vec<&str>, Vec<&str>) = (
        blobs.filter(|name| !copy.leaves_out(name)).collect(),
        split.filter(|name| !copy.leaves_out(name)).collect(),
    );
    let what = match (blobs.as_slice(), split.as_slice()) {
        ([], []) => return None,
        (blobs, []) => {
            format!("{} and is written again whenever the bytes change", names_of(blobs))
        }
        (blobs, split) => format!(
            "{}, so each write of the entity sends the long values twice",
            names_of(&[blobs, split].concat())
        ),
    };
    Some(format!(
        "Index `{}` holds {what}. Exclude it with `except(..)`. `allow(copied_blob)` silences this.",
        copy.name
    ))
}

fn rows_per_write(schema: &Schema) -> Option<String> {
    // A wide entity's primary is one row for each part.
    let later_parts = schema.parts.len().saturating_sub(1);
    let local = schema.families.iter().filter(|family| !family.is_remote).count() + later_parts;
    let all = schema.families.len() + later_parts;
    let entities = BATCH_OPERATIONS.checked_div(local).unwrap_or(BATCH_OPERATIONS);
    (all >= MANY_ROWS).then(|| {
        format!(
            "An insert writes {all} rows, {local} of them in its transaction; a transaction holds at \
             most {entities} such entities."
        )
    })
}

fn size_warning(schema: &Schema) -> Option<String> {
    let properties = (1..=schema.parts.len().max(1))
        .map(|part| ColumnSchema::max_property_count_in_part(schema.columns, part))
        .max()
        .unwrap_or(0);
    if properties >= MANY_PROPERTIES {
        return Some(format!(
            "A row has up to {properties} properties, and the service allows {PROPERTIES}."
        ));
    }
    let pieces: usize =
        schema.series.iter().filter(|field| field.is_split).map(|field| field.slots).sum();
    (pieces >= MANY_PIECES).then(|| {
        format!("Split fields take up to {} KiB of the 1,024 KiB of an entity.", pieces * 64)
    })
}

fn names_of(fields: &[&str]) -> String {
    let quoted: Vec<String> = fields.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Returns a warning with the fields in the PartitionKeys of all row families, which every path by key
/// needs. Returns `None` if there are no such fields.
fn partition_needed(schema: &'static Schema) -> Option<String> {
    let mut parts = schema
        .families
        .iter()
        .map(|family| -> Vec<&str> { family.partition.parts().map(|part| part.field).collect() });
    let mut common = parts.next()?;
    for others in parts {
        common.retain(|field| others.contains(field));
    }
    (!common.is_empty()).then(|| {
        format!(
            "Every path needs {}; a query without it scans the table. Add an index with another `partition_key` for \
             such queries.",
            names_of(&common)
        )
    })
}

fn scan_warning(schema: &'static Schema, fields: &[FieldModel]) -> Option<String> {
    let in_keys = |name: &str| {
        schema.families.iter().any(|family| {
            let mut parts = family.partition.parts().chain(family.row.parts());
            parts.any(|part| part.field == name)
        })
    };
    // A window of this one says which tables are read.
    let is_dated = |name: &str| schema.dated.is_some_and(|dated| dated.property == name);
    let names = fields.iter().map(|field| field.name.as_str());
    let asked: Vec<&str> = names.filter(|name| !in_keys(name) && !is_dated(name)).collect();
    let (shown, rest) = asked.split_at(asked.len().min(8));
    let more = match rest.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    (!shown.is_empty()).then(|| {
        format!(
            "No key contains {}{more}; a query by one of them reads a whole partition or the table.",
            names_of(shown)
        )
    })
}
