//! Finds the changes of an entity type that change what a call costs, or whether it is accepted.

use super::{
    pattern_shape::CallShape,
    shape::{EntityShape, KeyTemplateShape, RowsShape},
};
use crate::key::FamilyKind;

/// Returns what changed in the rows that a call reads or writes, in words. `compared` holds the properties that rows
/// are or were compared by.
pub(super) fn causes_of_call(
    call: &CallShape,
    compared: &[String],
    (old, new): (&[EntityShape], &[EntityShape]),
) -> Vec<String> {
    let Some(name) = &call.entity_type else { return Vec::new() };
    let (Some(was), Some(is)) = (newest_version(old, name), newest_version(new, name)) else {
        return Vec::new();
    };
    let mut causes = Vec::new();
    if was.parts != is.parts {
        causes.push(format!("an entity was {} and is {}", rows_of(was), rows_of(is)));
    }
    if was.table != is.table {
        causes.push(format!("the table was `{}` and is `{}`", was.table, is.table));
    }
    if is_read(call) {
        read_causes(call, compared, (was, is), &mut causes)
    } else {
        write_causes((was, is), &mut causes)
    }
    causes.iter().map(|cause| format!("{cause}, in `{name}`")).collect()
}

fn newest_version<'s>(entities: &'s [EntityShape], name: &str) -> Option<&'s EntityShape> {
    let versions = entities.iter().filter(|entity| entity.entity_type == name);
    versions.max_by_key(|entity| entity.version)
}

fn is_read(call: &CallShape) -> bool {
    matches!(call.function.as_str(), "get" | "get_as" | "query" | "count")
}

fn rows_of(entity: &EntityShape) -> String {
    match entity.parts {
        1 => "1 row".to_owned(),
        parts => format!("{parts} rows"),
    }
}

fn read_causes(
    call: &CallShape,
    compared: &[String],
    (was, is): (&EntityShape, &EntityShape),
    causes: &mut Vec<String>,
) {
    let family = |entity: &EntityShape| -> Option<RowsShape> {
        let rows = entity.rows.iter();
        rows.clone().find(|rows| Some(&rows.name) == call.rows.as_ref()).cloned()
    };
    if let (Some(old), Some(new)) = (family(was), family(is)) {
        let noun = rows_noun(&new);
        for (key, old, new) in
            [("PartitionKey", &old.partition, &new.partition), ("RowKey", &old.row, &new.row)]
        {
            causes.extend(key_cause(&format!("{key} of {noun}"), old, new));
        }
        for name in new.left_out.iter().filter(|name| !old.left_out.contains(name)) {
            causes.push(format!("{noun} no longer holds `{name}`"));
        }
        if old.in_blob != new.in_blob {
            let place = |rows: &RowsShape| if rows.in_blob { "a blob" } else { "rows" };
            causes.push(format!("{noun} was in {} and is in {}", place(&old), place(&new)));
        }
    }
    for name in compared {
        causes.extend(property_cause(name, was, is));
    }
}

/// Returns how a key changed: the fields that it lost, or else the templates.
fn key_cause(key: &str, old: &KeyTemplateShape, new: &KeyTemplateShape) -> Vec<String> {
    let has = |template: &KeyTemplateShape, name: &str| {
        template.template_parts().any(|(of, _)| of == name)
    };
    let lost = old.template_parts().map(|(name, _)| name).filter(|name| !has(new, name));
    let lost: Vec<String> =
        lost.map(|name| format!("`{name}` is no longer part of the {key}")).collect();
    if !lost.is_empty() || old.template == new.template {
        return lost;
    }
    vec![format!("the {key} was `{}` and is `{}`", old.template, new.template)]
}

/// Returns how a property changed that rows are compared by.
fn property_cause(name: &str, was: &EntityShape, is: &EntityShape) -> Option<String> {
    let of = |entity: &EntityShape| {
        let mut properties = entity.properties.iter();
        properties.find(|property| property.name == name).map(|property| {
            (property.encryption.is_some(), property.part, property.stored_type.clone())
        })
    };
    match (of(was), of(is)) {
        (Some((false, ..)), Some((true, ..))) => Some(format!("`{name}` is now encrypted")),
        (Some((true, ..)), Some((false, ..))) => Some(format!("`{name}` is no longer encrypted")),
        (Some((_, was, _)), Some((_, is, _))) if was != is => {
            Some(format!("`{name}` was in part {was} and is in part {is}"))
        }
        (Some(_), None) => Some(format!("`{name}` is no longer a property")),
        _ => None,
    }
}

fn write_causes((was, is): (&EntityShape, &EntityShape), causes: &mut Vec<String>) {
    let of = |entity: &EntityShape, rows: &RowsShape| -> Option<RowsShape> {
        let same = |other: &&RowsShape| (other.kind, &other.name) == (rows.kind, &rows.name);
        entity.rows.iter().find(same).cloned()
    };
    for new in is.rows.iter().filter(|rows| rows.kind != FamilyKind::Primary) {
        let Some(old) = of(was, new) else {
            causes.push(format!("{} is new", rows_noun(new)));
            continue;
        };
        for (was, is, what) in [
            (old.is_remote, new.is_remote, "in another partition"),
            (old.is_unique, new.is_unique, "unique"),
            (old.in_blob, new.in_blob, "in a blob"),
        ] {
            match (was, is) {
                (false, true) => causes.push(format!("{} is now {what}", rows_noun(new))),
                (true, false) => causes.push(format!("{} is no longer {what}", rows_noun(new))),
                _ => {}
            }
        }
    }
    let gone = was.rows.iter().filter(|rows| of(is, rows).is_none());
    causes.extend(gone.map(|rows| format!("{} is gone", rows_noun(rows))));
    let blobs = |entity: &EntityShape| -> Vec<String> {
        entity.blobs.iter().map(|blob| blob.name.clone()).collect()
    };
    let (old, new) = (blobs(was), blobs(is));
    let come = new.iter().filter(|name| !old.contains(name));
    causes.extend(come.map(|name| format!("`{name}` is now in a blob")));
    let left = old.iter().filter(|name| !new.contains(name));
    causes.extend(left.map(|name| format!("`{name}` is no longer in a blob")));
}

fn rows_noun(rows: &RowsShape) -> String {
    match rows.kind {
        FamilyKind::Primary => "the primary".to_owned(),
        FamilyKind::Copy => format!("index `{}`", rows.name),
        FamilyKind::List => format!("list `{}`", rows.name),
    }
}
