//! Compares the layouts of two programs: lists for each entity type what changed, and what each
//! change needs.

use super::{
    blobs,
    keys::{KeyChange, OldAndNewEntity, primary_layout},
    needs::{EntityTypeChanges, LayoutChange, REENCRYPT, RequiredWork, UPGRADE},
    properties, rows, series,
    shape::EntityShape,
    tables,
};

/// Returns the changes that lead from one layout to another, type by type.
pub(super) fn compare_layouts(old: &[EntityShape], new: &[EntityShape]) -> Vec<LayoutChange> {
    let mut list = Vec::new();
    let mut gone: Vec<Vec<&EntityShape>> = Vec::new();
    let names = |entities: &[EntityShape]| {
        let mut names: Vec<String> = Vec::new();
        for entity in entities {
            if !names.contains(&entity.entity_type) {
                names.push(entity.entity_type.clone());
            }
        }
        names
    };
    for name in names(old) {
        let (was, is) = (versions_of(old, &name), versions_of(new, &name));
        if is.is_empty() { gone.push(was) } else { list.extend(compare_type(&name, &was, &is)) }
    }
    for name in names(new) {
        if !versions_of(old, &name).is_empty() {
            continue;
        }
        let is = versions_of(new, &name);
        // `name` is the name of a new type, so at least one version has it.
        let Some(newest) = is.first() else { continue };
        // A type with the table and all keys of one that is gone is more likely renamed than new.
        let earlier = gone.iter().position(|was| {
            was.first().is_some_and(|was| was.table == newest.table && was.rows == newest.rows)
        });
        let mut changes = EntityTypeChanges::empty_for_type(name.clone());
        match earlier.map(|at| gone.remove(at)) {
            Some(was) => renamed_type(&was, &name, &mut changes),
            None => {
                let create = format!(
                    "create its table with `create_if_not_exists()` if no other type has made `{}`",
                    newest.table
                );
                changes.push(RequiredWork::Nothing, "the type is new", create);
            }
        }
        list.extend(changes.into_layout_changes());
    }
    for was in gone {
        list.extend(removed_type(&was));
    }
    list
}

/// Returns the versions of a type, the newest first.
fn versions_of<'s>(entities: &'s [EntityShape], name: &str) -> Vec<&'s EntityShape> {
    let mut versions: Vec<_> =
        entities.iter().filter(|entity| entity.entity_type == name).collect();
    versions.sort_by_key(|entity| std::cmp::Reverse(entity.version));
    versions
}

fn renamed_type(was: &[&EntityShape], name: &str, changes: &mut EntityTypeChanges) {
    let Some(was) = was.first() else { return };
    let earlier = &was.entity_type;
    changes.push(
        RequiredWork::Migration,
        format!("type `{earlier}` is now called `{name}`"),
        format!(
            "stored rows hold the earlier name: keep it with `entity_type = \"{earlier}\"`, which \
             needs nothing else"
        ),
    );
}

fn removed_type(was: &[&EntityShape]) -> Vec<LayoutChange> {
    let Some(newest) = was.first() else { return Vec::new() };
    let mut changes = EntityTypeChanges::empty_for_type(newest.entity_type.clone());
    let drain = if newest.rows.iter().any(|rows| rows.is_remote) {
        "run a worker of the earlier program until `client.outbox_status()` has no open work, then "
    } else {
        ""
    };
    let how = format!(
        "{drain}delete its rows, or table `{}` if no other type keeps rows in it; sets without `other` \
         refuse rows that are left",
        newest.table
    );
    changes.push(RequiredWork::Migration, "the type is gone", how);
    changes.into_layout_changes()
}

fn compare_type(name: &str, old: &[&EntityShape], new: &[&EntityShape]) -> Vec<LayoutChange> {
    let mut list = Vec::new();
    for was in old {
        if let Some(is) = new.iter().find(|is| is.version == was.version) {
            list.extend(compare_version(OldAndNewEntity { old: was, new: is }));
        }
    }
    let (Some(was), Some(is)) = (old.first(), new.first()) else { return list };
    let mut changes = EntityTypeChanges::empty_for_type(name.to_owned());
    if is.version < was.version {
        changes.push(
            RequiredWork::Migration,
            format!("version {} is gone, version {} is the newest", was.version, is.version),
            "rows of the later version cannot be read: go back only when none is stored",
        );
    } else if is.version > was.version {
        report_raised_version(was, is, new, &mut changes);
    }
    // The newest of the old versions is compared above, with its own messages.
    for was in old.iter().skip(1) {
        if was.version < is.version && !new.iter().any(|is| is.version == was.version) {
            changes.push(
                RequiredWork::Migration,
                format!("version {} is no longer read", was.version),
                "before it goes, run `table.upgrade_all()` of the earlier program until it finds no \
                 row",
            );
        }
    }
    list.extend(changes.into_layout_changes());
    list
}

fn report_raised_version(
    was: &EntityShape,
    is: &EntityShape,
    new: &[&EntityShape],
    changes: &mut EntityTypeChanges,
) {
    let what = format!("version {} is new", is.version);
    if was.is_wide() != is.is_wide() {
        return report_other_width(was, is, &format!("{what}: "), changes);
    }
    if !new.iter().any(|known| known.version == was.version) {
        let how = format!(
            "rows of version {} cannot be read: keep its struct, name it in `upgrade_from`, and \
             implement `UpgradeFrom`",
            was.version
        );
        return changes.push(RequiredWork::Version, what, how);
    }
    let versions = OldAndNewEntity { old: was, new: is };
    // Reads of the new version look for rows of the earlier one in its own table.
    tables::compare_tables(versions, changes);
    if let (Some(old), Some(new)) = (primary_layout(was), primary_layout(is))
        && versions.compare_key_templates(&old.partition, &new.partition) == KeyChange::Other
    {
        return changes.push(
            RequiredWork::Migration,
            format!("{what} and its PartitionKey is `{}`", new.partition.template),
            "a version cannot move rows to other partitions: declare another type, and write a new \
             row for each old one with `bulk().insert_all(..)`",
        );
    }
    changes.push(
        RequiredWork::Nothing,
        what,
        format!(
            "rows of version {} are read through `upgrade_from`: deploy programs that know both, then \
             those that write it, then run `table.upgrade_all()`, which also writes the copies of \
             indexes that are new in it and deletes those of dropped ones",
            was.version
        ),
    );
    report_properties_encrypted_by_version(was, is, changes);
}

/// Reports the properties that a new version encrypts and that the version before does not encrypt under their
/// names: its upgrade may take them from plain values.
fn report_properties_encrypted_by_version(
    was: &EntityShape,
    is: &EntityShape,
    changes: &mut EntityTypeChanges,
) {
    let before: Vec<&str> = was.encrypted_names().collect();
    let names: Vec<&str> = is.encrypted_names().filter(|name| !before.contains(name)).collect();
    if names.is_empty() || is.is_sealed {
        return;
    }
    let what = format!(
        "version {} encrypts `{}`, and version {} does not",
        is.version,
        names.join("`, `"),
        was.version
    );
    let how = "if the upgrade fills it from a plain value, rows of the earlier version are refused: give \
               the client `PlaintextPolicy::Allow`, run `table.upgrade_all()` until it is complete, then go \
               back to `Reject`";
    changes.push(RequiredWork::Migration, what, how);
}

/// Reports an entity that was stored as one row and is `wide` in the code, or vice versa.
fn report_other_width(
    was: &EntityShape,
    is: &EntityShape,
    before: &str,
    changes: &mut EntityTypeChanges,
) {
    let rows = |entity: &EntityShape| match entity.parts {
        1 => "one row".to_owned(),
        parts => format!("wide, of {parts} rows"),
    };
    changes.push(
        RequiredWork::Migration,
        format!("{before}an entity was {} and is {}", rows(was), rows(is)),
        "stored rows have other keys, and no version reads across: give the new shape another \
         `entity_type`, write a new entity for each old one with `bulk().insert_all(..)` from a query of \
         the earlier type, then delete the old rows",
    );
}

fn compare_version(versions: OldAndNewEntity<'_>) -> Vec<LayoutChange> {
    let OldAndNewEntity { old, new } = versions;
    let mut changes = EntityTypeChanges::empty_for_type(new.primary_discriminator_value());
    if old.is_wide() != new.is_wide() {
        report_other_width(old, new, "", &mut changes);
        // All rows are rewritten under another type, whatever else has changed.
        return changes.into_layout_changes();
    }
    tables::compare_tables(versions, &mut changes);
    if old.parts != new.parts {
        changes.push(
            RequiredWork::Version,
            format!("an entity is {} rows, not {}", new.parts, old.parts),
            format!("stored entities would be taken for torn ones: {UPGRADE}"),
        );
    }
    if old.discriminator != new.discriminator {
        let name = |discriminator: &Option<String>| match discriminator {
            Some(property) => format!("property `{property}`"),
            None => "the form of the RowKey".to_owned(),
        };
        let what = format!(
            "rows are told by {}, not by {}",
            name(&new.discriminator),
            name(&old.discriminator)
        );
        let how = "stored rows would not be recognised: keep the discriminator, or read all rows \
                   with `client.dynamic(..)` and write them again";
        changes.push(RequiredWork::Migration, what, how);
    }
    match (old.is_sealed, new.is_sealed) {
        (false, true) => changes.push(
            RequiredWork::Migration,
            "rows are now sealed",
            format!("rows without a seal are refused: {REENCRYPT}"),
        ),
        (true, false) => changes.push(
            RequiredWork::Nothing,
            "rows are no longer sealed",
            "seals that are stored are ignored, and go with the next write of their row; deploy all \
             readers before the first writer: programs of the earlier layout refuse rows without a seal",
        ),
        _ => {}
    }
    match (&old.expires, &new.expires) {
        (Some(old), Some(new)) if old == new => {}
        (_, Some(property)) => changes.push(
            RequiredWork::Migration,
            format!("rows now expire by `{property}`"),
            "rows that are stored are hidden once their time has passed; run \
             `table.mark_expiring()` once, so that workers find them",
        ),
        (Some(_), None) => changes.push(
            RequiredWork::Nothing,
            "rows no longer expire",
            "rows whose time has passed, and that no worker has deleted yet, are read again",
        ),
        (None, None) => {}
    }
    rows::compare_rows(versions, &mut changes);
    properties::compare_properties(versions, &mut changes);
    series::compare_all_series(versions, &mut changes);
    blobs::compare_blobs(versions, &mut changes);
    changes.into_layout_changes()
}
