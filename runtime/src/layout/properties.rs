//! Compares the properties that the layout file and the code give one version of an entity type.

use super::{
    keys::OldAndNewEntity,
    needs::{EntityTypeChanges, REENCRYPT, RequiredWork, UPGRADE},
    shape::{PropertyEncryptionShape, PropertyShape},
    types::{GREATEST_IN_KEY, GREATEST_IN_PROPERTY, TypeChange, compare_types, variants_gone},
};

pub(super) fn compare_properties(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    for was in &old.properties {
        if let Some(is) = new.properties.iter().find(|is| is.name == was.name) {
            compare_property(was, is, changes);
        }
    }
    // A property that a blob or a series stores now is compared with blobs or series, and so is one that was a
    // blob or a slot. Not all rows have the length and the like of a blob that was.
    let is_gone = |was: &&PropertyShape| {
        !new.has_property_or_key_field(&was.name) && !new.has_slot_or_blob_property(&was.name)
    };
    let is_new = |is: &&PropertyShape| {
        !old.has_property(&is.name)
            && old.find_slot(&is.name).is_none()
            && !old.blobs.iter().any(|blob| blob.name == is.name)
            && !versions.is_key_field_that_moved(&is.name)
    };
    let gone: Vec<_> = old.properties.iter().filter(is_gone).collect();
    let mut come: Vec<_> = new.properties.iter().filter(is_new).collect();
    for was in gone {
        // Only a property that is equal in all else can hold the stored values of the one that is
        // gone.
        let renamed = come.iter().position(|is| {
            let mut was = PropertyShape::clone(was);
            // A flattened `Option` with another prefix renames its properties.
            if was.within.is_some() && is.within.is_some() {
                was.within.clone_from(&is.within);
            }
            !old.has_property_or_key_field(&is.name)
                && PropertyShape { name: was.name.clone(), ..PropertyShape::clone(is) } == was
        });
        match renamed {
            Some(at) => report_property_rename(was, come.remove(at), changes),
            None => report_removed_property(was, changes),
        }
    }
    come.into_iter().for_each(|is| report_added_property(versions, is, changes));
    compare_key_fields(versions, changes);
}

fn report_property_rename(
    was: &PropertyShape,
    is: &PropertyShape,
    changes: &mut EntityTypeChanges,
) {
    let (was, is) = (&was.name, &is.name);
    changes.push(
        RequiredWork::Version,
        format!("property `{was}` is gone and `{is}` of the same type is new: a renamed field"),
        format!(
            "keep the stored name with `#[table(rename = \"{was}\")]`, which needs nothing else; or {UPGRADE}"
        ),
    );
}

fn report_removed_property(was: &PropertyShape, changes: &mut EntityTypeChanges) {
    let how = if was.may_be_absent() {
        "stored rows keep the value until they are replaced"
    } else {
        "deploy all readers before the first writer: programs of the earlier layout cannot read \
             rows without it"
    };
    changes.push(RequiredWork::Nothing, format!("property `{}` is gone", was.name), how);
}

fn report_added_property(
    versions: OldAndNewEntity<'_>,
    is: &PropertyShape,
    changes: &mut EntityTypeChanges,
) {
    let what = format!("property `{}` ({}) is new", is.name, is.stored_type);
    // Rows without any property of a flattened `Option` are read, but not those with some of them.
    let is_in_new_struct = is.within.as_ref().is_some_and(|prefix| {
        let mut of_struct = versions.new.properties.iter().filter(|one| one.is_within(prefix));
        !of_struct.any(|one| versions.old.stores_property(&one.name))
    });
    if !is.may_be_absent() && !is_in_new_struct {
        let how = "rows without it cannot be read: give the field `#[table(default)]` or make it an \
                   `Option`; or raise `version` with `upgrade_from`, and run `table.upgrade_all()`";
        changes.push(RequiredWork::Version, what, how);
    } else if is.hides_absence() {
        changes.push(RequiredWork::Migration, what, REENCRYPT);
    } else if is.has_default && is.encryption.is_none() {
        let how = "rows without it are read with the default; a filter finds them only after they are \
                   written again";
        changes.push(RequiredWork::Nothing, what, how);
    } else {
        changes.push(RequiredWork::Nothing, what, "rows without it are read");
    }
}

/// Compares the types of the fields that only keys hold.
fn compare_key_fields(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    for was in &old.key_fields {
        let mut named = new.key_fields.iter().filter(|is| is.name == was.name);
        let Some(is) = named.next() else { continue };
        let what = format!(
            "field `{}` of the keys was {} and is {}",
            was.name, was.stored_type, is.stored_type
        );
        match compare_types(&was.stored_type, &is.stored_type, GREATEST_IN_KEY) {
            TypeChange::Equal => {}
            // Keys that are written in another way are compared with the keys.
            _ if versions.has_other_primary_keys() => {}
            TypeChange::Unreadable => changes.push(
                RequiredWork::Version,
                what,
                format!("stored keys with other values cannot be read: {UPGRADE}"),
            ),
            TypeChange::OtherStoredType if old.has_copies() => changes.push(
                RequiredWork::Rebuild,
                what,
                "keys stay as they are, but copies store the field as the earlier type, and filters compare \
                 only values of the new one: deploy all writers, then run `table.rebuild(..)` of each index",
            ),
            TypeChange::Wider | TypeChange::OtherStoredType => changes.push(
                RequiredWork::Nothing,
                what,
                "keys stay as they are; deploy all readers before the first writer",
            ),
        }
    }
}

pub(super) fn compare_property(
    was: &PropertyShape,
    is: &PropertyShape,
    changes: &mut EntityTypeChanges,
) {
    let name = &was.name;
    compare_type_of_property(was, is, changes);
    if was.part != is.part {
        changes.push(
            RequiredWork::Version,
            format!("property `{name}` is in part {}, not in part {}", is.part, was.part),
            format!("stored values would not be found: {UPGRADE}"),
        );
    }
    let mut push_changed_optionality = |may_be_absent| {
        let how_to_keep = "give the field `#[table(default)]`; or raise `version` with `upgrade_from`, and run \
                           `table.upgrade_all()`";
        changes.push_changed_optionality(&format!("property `{name}`"), may_be_absent, how_to_keep);
    };
    match (was.may_be_absent(), is.may_be_absent()) {
        (true, false) => push_changed_optionality(false),
        (false, true) => push_changed_optionality(true),
        // The struct that it belongs to was an `Option`, or is one now.
        (false, false) if was.within.is_some() != is.within.is_some() => {
            push_changed_optionality(is.within.is_some());
        }
        _ => {
            if (was.is_optional, was.has_default) != (is.is_optional, is.has_default) {
                let what = format!("property `{name}` is read in another way where it is absent");
                changes.push(RequiredWork::Nothing, what, "stored rows are read as before");
            }
        }
    }
    compare_encryption(name, was.encryption.as_ref(), is.encryption.as_ref(), changes);
}

fn compare_type_of_property(
    was: &PropertyShape,
    is: &PropertyShape,
    changes: &mut EntityTypeChanges,
) {
    let name = &was.name;
    let what = format!("property `{name}` was {} and is {}", was.stored_type, is.stored_type);
    // Only an encrypted property without a token is compared by no filter.
    let is_compared = is.encryption.as_ref().is_none_or(|encryption| encryption.blind.is_some());
    match compare_types(&was.stored_type, &is.stored_type, GREATEST_IN_PROPERTY) {
        TypeChange::Equal => {}
        TypeChange::Wider => changes.push(
            RequiredWork::Nothing,
            what,
            "stored values are read; deploy all readers before the first writer: programs of the earlier \
             layout cannot read all new values",
        ),
        TypeChange::OtherStoredType if is_compared => changes.push(
            RequiredWork::Version,
            what,
            format!(
                "stored values are read as the wider type, but filters compare only values of the new one \
                 and would not find them: {UPGRADE}; if no filter compares it, deploy all readers before \
                 the first writer"
            ),
        ),
        TypeChange::OtherStoredType => changes.push(
            RequiredWork::Nothing,
            what,
            "stored values are read as the wider type; deploy all readers before the first writer",
        ),
        TypeChange::Unreadable => {
            let gone = variants_gone(&was.stored_type, &is.stored_type).unwrap_or_default();
            if gone.is_empty() {
changes.push(
                    RequiredWork::Version,
                    what,
                    format!("stored values cannot be read: {UPGRADE}"),
                )
} else {
changes.push(
                    RequiredWork::Version,
                    format!("the enum of property `{name}` has no `{}` any more", gone.join("`, `")),
                    format!("stored values of it cannot be read: keep it; or {UPGRADE}"),
                )
}
        }
    }
}

fn compare_encryption(
    name: &str,
    was: Option<&PropertyEncryptionShape>,
    is: Option<&PropertyEncryptionShape>,
    changes: &mut EntityTypeChanges,
) {
    let (was, is) = match (was, is) {
        (None, None) => return,
        (None, Some(_)) => {
            let what = format!("property `{name}` is now encrypted");
            return changes.push(RequiredWork::Migration, what, REENCRYPT);
        }
        (Some(_), None) => {
            let what = format!("property `{name}` is no longer encrypted");
            let how = "stored values stay encrypted, also when they are written back: raise \
                       `version` with `upgrade_from`, run `table.upgrade_all()` and keep the keys";
            return changes.push(RequiredWork::Migration, what, how);
        }
        (Some(was), Some(is)) => (was, is),
    };
    if was.pad != is.pad {
        let what = format!("values of `{name}` are padded to {} bytes, not {}", is.pad, was.pad);
        let how = "stored values are read; `table.reencrypt()` pads them";
        changes.push(RequiredWork::Nothing, what, how);
    }
    if was.hides_none != is.hides_none {
        let what = if is.hides_none {
            format!("absent values of `{name}` are now hidden")
        } else {
            format!("absent values of `{name}` are no longer hidden")
        };
        if is.hides_none {
            changes.push(RequiredWork::Migration, what, REENCRYPT)
        } else {
            changes.push(
                RequiredWork::Nothing,
                what,
                "stored rows are read as before; deploy all readers before the first writer: programs of \
                 the earlier layout refuse rows without a hidden absence",
            )
        }
    }
    if was.blind != is.blind {
        match &is.blind {
            Some((token, chars)) => changes.push(
                RequiredWork::Migration,
                format!("the blind token of `{name}` is `{token}` of {chars} characters"),
                "filters do not find rows with another token or none: run `table.reencrypt()`",
            ),
            None => changes.push(
                RequiredWork::Nothing,
                format!("`{name}` has no blind token any more"),
                "stored tokens stay until `table.reencrypt()`",
            ),
        }
    }
}
