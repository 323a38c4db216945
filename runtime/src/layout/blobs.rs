//! Compares the blob fields of one version of an entity type, as the layout file has them, with the
//! blob fields in the code.

use super::{
    keys::OldAndNewEntity,
    needs::{EntityTypeChanges, RequiredWork, UPGRADE},
    shape::{BlobFieldShape, EntityShape},
};

pub(super) fn compare_blobs(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    let is_of = |entity: &EntityShape, name: &str| entity.blobs.iter().any(|b| b.name == name);
    let mut come: Vec<_> = new.blobs.iter().filter(|is| !is_of(old, &is.name)).collect();
    for was in &old.blobs {
        if let Some(is) = new.blobs.iter().find(|is| is.name == was.name) {
            compare_blob(was, is, changes);
        } else if new.has_property_or_key_field(&was.name) {
            changes.push(
                RequiredWork::Migration,
                format!("field `{}` is a property of the row, no longer a blob", was.name),
                "rows hold where the blob is, not its bytes: declare the field under another name, read \
                 the bytes with `table.blob(..).bytes()` while the earlier field is still declared, and \
                 write them with `table.update(..)`",
            );
        } else if let Some(at) = come.iter().position(|is| is_renamed(old, was, is)) {
            report_blob_rename(was, come.remove(at), changes);
        } else {
            changes.push(
                RequiredWork::Migration,
                format!("blob `{}` is gone", was.name),
                "rows keep its properties and the store keeps its bytes: set the field to `None` in every \
                 row with `bulk().update_all(..)` of the earlier program, which removes the blobs; or run \
                 `table.sweep_blobs()` after the rows are written again without these properties",
            );
        }
    }
    for is in come {
        report_added_blob(old, is, changes);
    }
}

/// Returns whether the new blob field `is` may be the removed one `was` under another name: both
/// are optional or neither is, and the old layout has no field of the new name.
fn is_renamed(old: &EntityShape, was: &BlobFieldShape, is: &BlobFieldShape) -> bool {
    was.is_optional == is.is_optional && !old.has_property_or_key_field(&is.name)
}

fn report_blob_rename(was: &BlobFieldShape, is: &BlobFieldShape, changes: &mut EntityTypeChanges) {
    changes.push(
        RequiredWork::Version,
        format!("blob `{}` is gone and `{}` is new: a renamed field", was.name, is.name),
        format!(
            "keep the stored name with `#[table(rename = \"{}\")]`, which needs nothing else; or {UPGRADE}",
            was.name
        ),
    );
}

fn report_added_blob(old: &EntityShape, is: &BlobFieldShape, changes: &mut EntityTypeChanges) {
    let is_taken = |name: &str| old.has_property(name) || old.find_slot(name).is_some();
    if let Some(taken) = is.others.iter().find(|other| is_taken(other)) {
        changes.push(
            RequiredWork::Version,
            format!("property `{taken}` of the row now describes blob `{}`", is.name),
            format!("stored values have another meaning: {UPGRADE}"),
        );
    }
    if old.has_property_or_key_field(&is.name) || old.find_slot(&is.name).is_some() {
        changes.push(
            RequiredWork::Version,
            format!("property `{}` of the row is now a blob", is.name),
            format!(
                "stored values are not the name of a blob: {UPGRADE}; its `upgrade` makes a `Blob::new(..)` \
                 of the earlier bytes"
            ),
        );
    } else if is.is_optional {
        changes.push(
            RequiredWork::Nothing,
            format!("blob `{}` is new", is.name),
            "rows without it are read; give the client a store with `Client::builder().blobs(..)`",
        );
    } else {
        changes.push(
            RequiredWork::Version,
            format!("blob `{}` is new", is.name),
            format!("rows without it cannot be read: make the field an `Option`; or {UPGRADE}"),
        );
    }
}

fn compare_blob(was: &BlobFieldShape, is: &BlobFieldShape, changes: &mut EntityTypeChanges) {
    let name = &was.name;
    if was.is_optional != is.is_optional {
        let how_to_keep = format!("keep the `Option`; or {UPGRADE}");
        changes.push_changed_optionality(&format!("blob `{name}`"), is.is_optional, &how_to_keep);
    }
    if was.others != is.others {
        // The property of the key is the last one, and only encrypted blobs have it.
        if is.others.starts_with(&was.others) {
            return changes.push(
                RequiredWork::Migration,
                format!("blob `{name}` is now encrypted"),
                "give the client `PlaintextPolicy::Allow`, run `table.reencrypt()`, which encrypts its blobs, \
                 then go back to `Reject`",
            );
        }
        if was.others.starts_with(&is.others) {
            return changes.push(
                RequiredWork::Migration,
                format!("blob `{name}` is no longer encrypted"),
                "declare the field under another name, read the bytes with `table.blob(..).bytes()` while \
                 the earlier field is still declared, and write a `Blob::new(..)` of them",
            );
        }
        changes.push(
            RequiredWork::Version,
            format!(
                "the properties beside blob `{name}` were `{}` and are `{}`",
                was.others.join("`, `"),
                is.others.join("`, `")
            ),
            format!("stored lengths and hashes would not be found: {UPGRADE}"),
        );
    }
}
