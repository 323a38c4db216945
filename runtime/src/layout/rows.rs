//! Compares the row families of one version of an entity type in the layout file with those in the
//! code, and notes which work each change needs.

use super::{
    keys::{KeyChange, OldAndNewEntity, primary_layout},
    needs::{EntityTypeChanges, RequiredWork, UPGRADE},
    shape::{EntityShape, RowsShape, TemplatePiece, split_template},
};
use crate::key::FamilyKind;

pub(super) fn compare_rows(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    if let (Some(was), Some(is)) = (primary_layout(old), primary_layout(new)) {
        compare_primary(versions, was, is, changes);
    }
    let is_of =
        |rows: &RowsShape, other: &RowsShape| rows.kind == other.kind && rows.name == other.name;
    let derived = |entity: &'_ EntityShape| -> Vec<RowsShape> {
        let rows = entity.rows.iter().filter(|rows| rows.kind != FamilyKind::Primary);
        rows.cloned().collect()
    };
    let (olds, news) = (derived(old), derived(new));
    let mut come: Vec<_> =
        news.iter().filter(|is| !olds.iter().any(|was| is_of(is, was))).collect();
    for was in &olds {
        if let Some(is) = news.iter().find(|is| is_of(is, was)) {
            compare_derived(versions, was, is, changes);
            continue;
        }
        let renamed = come.iter().position(|is| {
            versions.has_equal_or_renamed_keys(was, is)
                && (was.kind, was.is_remote, &was.table) == (is.kind, is.is_remote, &is.table)
        });
        match renamed {
            Some(at) => report_rows_rename(old, was, come.remove(at), changes),
            None => report_removed_rows(old, was, changes),
        }
    }
    come.into_iter().for_each(|is| report_added_rows(new, is, changes));
}

fn compare_primary(
    versions: OldAndNewEntity<'_>,
    was: &RowsShape,
    is: &RowsShape,
    changes: &mut EntityTypeChanges,
) {
    for (key, was, is) in
        [("PartitionKey", &was.partition, &is.partition), ("RowKey", &was.row, &is.row)]
    {
        let what = format!(
            "the {key} was `{}` and is `{}`{}",
            was.template,
            is.template,
            versions.key_type_changes(was, is)
        );
        match versions.compare_key_templates(was, is) {
            KeyChange::Equal => {}
            // Keys hold values without names; only copies store key fields as properties.
            KeyChange::Renamed(_) if !versions.old.has_copies() => {
                changes.push(RequiredWork::Nothing, what, "keys stay as they are");
            }
            KeyChange::Renamed(names) => {
                let names: Vec<String> = names
                    .iter()
                    .map(|(was, _)| format!("`#[table(rename = \"{was}\")]`"))
                    .collect();
                let how = format!(
                    "keys stay as they are, but copies store the fields of the primary's keys by name: \
                     keep the stored name with {}; or raise `version` with `upgrade_from`, and run \
                     `table.upgrade_all()`",
                    names.join(" and ")
                );
                changes.push(RequiredWork::Version, what, how);
            }
            KeyChange::Other if key == "RowKey" => changes.push(
                RequiredWork::Version,
                what,
                format!(
                    "stored rows would not be found: {UPGRADE}, which moves each row within its partition"
                ),
            ),
            KeyChange::Other => changes.push(
                RequiredWork::Migration,
                what,
                "stored rows stay in their partitions, where nobody looks for them: declare the new \
                 keys as another type, and write a new row for each old one with \
                 `table.transfer(point, &target)`, or with `bulk().insert_all(..)` from a query of \
                 the old type, then delete the old rows",
            ),
        }
    }
}

fn rows_noun(rows: &RowsShape) -> String {
    let place = match (rows.in_blob, rows.is_remote) {
        (true, _) => "blob",
        (_, true) => "remote",
        (_, false) => "local",
    };
    format!("{place} {} `{}`", rows_kind(rows), rows.name)
}

fn rows_kind(rows: &RowsShape) -> &'static str {
    if rows.kind == FamilyKind::List { "list" } else { "index" }
}

/// Returns the call that begins a path of the index or list: `Employee::by_email()`.
fn path_call(entity: &EntityShape, rows: &RowsShape) -> String {
    let mut name = String::new();
    let mut after_lower = false;
    for c in rows.name.chars() {
        if after_lower && c.is_uppercase() {
            name.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        name.extend(c.to_lowercase());
    }
    format!("{}::{name}()", entity.entity_type)
}

fn rebuild_step(entity: &EntityShape, rows: &RowsShape) -> String {
    let drain = if rows.is_remote { " and let a worker `drain()`" } else { "" };
    format!("run `table.rebuild({})`{drain}", path_call(entity, rows))
}

/// Returns text that tells the user how to delete the rows of an index or list that was removed, renamed or moved.
fn deletion_step(entity: &EntityShape, rows: &RowsShape) -> String {
    if rows.in_blob {
        return "delete the list's blobs from the blob store".to_owned();
    }
    let table = match &rows.table {
        Some(own) => {
            return format!(
                "delete table `{own}` (`client.delete_table(\"{own}\")`) if no other type keeps rows in it"
            );
        }
        None => &entity.table,
    };
    if let (FamilyKind::Copy, Some(property)) = (rows.kind, &entity.discriminator) {
        let marker = format!("{}#{}", entity.primary_discriminator_value(), rows.name);
        return format!(
            "delete its rows with `client.dynamic(\"{table}\").query(Filter::eq(\"{property}\", \
             \"{marker}\")).allow_scan().delete_all()`"
        );
    }
    // A remote list is identified by its PartitionKey, a local one by its RowKey.
    let (key, shape) =
        if rows.is_remote { ("PartitionKey", &rows.partition) } else { ("RowKey", &rows.row) };
    match split_template(&shape.template).next() {
        Some(TemplatePiece::Literal(prefix)) => {
            format!("delete the rows of table `{table}` whose {key} begins with `{prefix}`")
        }
        _ => format!("delete its rows from table `{table}`"),
    }
}

fn report_removed_rows(entity: &EntityShape, was: &RowsShape, changes: &mut EntityTypeChanges) {
    let delete = deletion_step(entity, was);
    let what = format!("{} is gone", rows_noun(was));
    if was.is_remote {
        let how = format!(
            "programs without the {} cannot finish open work that names it: deploy readers, then \
             writers, run a worker of the earlier program until `client.outbox_status()` has no open \
             work, and only then end its workers; then {delete}",
            rows_kind(was)
        );
        changes.push(RequiredWork::Migration, what, how);
    } else {
        let how = format!(
            "deploy readers, then writers: programs of the earlier layout keep writing its rows; \
             then {delete}"
        );
        changes.push(RequiredWork::Rebuild, what, how);
    }
}

fn report_added_rows(entity: &EntityShape, is: &RowsShape, changes: &mut EntityTypeChanges) {
    let duplicates = if is.is_unique {
        "; its report and the poison table name entities that have one value"
    } else {
        ""
    };
    let workers = if is.is_remote { "deploy workers, then writers" } else { "deploy all writers" };
    let how = format!(
        "{workers}, {}{duplicates}; readers may use it when that has finished",
        rebuild_step(entity, is)
    );
    changes.push(RequiredWork::Rebuild, format!("{} is new", rows_noun(is)), how);
}

fn report_rows_rename(
    old: &EntityShape,
    was: &RowsShape,
    is: &RowsShape,
    changes: &mut EntityTypeChanges,
) {
    let what = format!("{} is now called `{}`", rows_noun(was), is.name);
    if was.kind == FamilyKind::List && !was.is_remote {
        return changes.push(
            RequiredWork::Nothing,
            what,
            "the rows of a local list do not name it",
        );
    }
    let first = if was.is_remote {
        "run a worker of the earlier program until `client.outbox_status()` has no open work; "
    } else {
        ""
    };
    let how = format!(
        "its rows hold the earlier name; keep it, or {first}{}, then {}",
        deletion_step(old, was),
        rebuild_step(old, is)
    );
    changes.push(
        if was.is_remote { RequiredWork::Migration } else { RequiredWork::Rebuild },
        what,
        how,
    );
}

fn compare_derived(
    versions: OldAndNewEntity<'_>,
    was: &RowsShape,
    is: &RowsShape,
    changes: &mut EntityTypeChanges,
) {
    let (old, new) = (versions.old, versions.new);
    let name = rows_noun(was);
    if (was.is_remote, was.in_blob, &was.table) != (is.is_remote, is.in_blob, &is.table) {
        let place = |rows: &RowsShape| match &rows.table {
            Some(table) => format!("{} in table `{table}`", rows_noun(rows)),
            None => rows_noun(rows),
        };
        let what = format!("{} is now {}", place(was), place(is));
        let first = if was.is_remote {
            "run a worker of the earlier program until `client.outbox_status()` has no open \
                     work, "
        } else {
            ""
        };
        let (rebuild, delete) = (rebuild_step(new, is), deletion_step(old, was));
        let is_one_table = was.table == is.table && !was.in_blob && !is.in_blob;
        let how = match was.kind {
            // In one table, neither an entity type nor a prefix of keys tells earlier rows from new ones.
            FamilyKind::Copy if is_one_table => format!(
                "{first}{rebuild}, then delete the earlier rows with `table.check().repair()` and a worker's `drain()`"
            ),
            _ if is_one_table => format!("{first}{delete}, then {rebuild}"),
            _ => format!("{first}{rebuild}, then {delete}"),
        };
        let needs = if was.is_remote { RequiredWork::Migration } else { RequiredWork::Rebuild };
        // All rows are rewritten in the other place, whatever else has changed.
        return changes.push(needs, what, how);
    }
    if !versions.has_equal_or_renamed_keys(was, is) {
        let text =
            |rows: &RowsShape| format!("`{}`, `{}`", rows.partition.template, rows.row.template);
        let types = versions.key_type_changes(&was.partition, &is.partition)
            + &versions.key_type_changes(&was.row, &is.row);
        let what = format!("the keys of {name} were {} and are {}{types}", text(was), text(is));
        let how = format!(
            "deploy all writers, {}, then delete the rows under the earlier keys with \
             `table.check().repair()`",
            rebuild_step(new, is)
        );
        changes.push(RequiredWork::Rebuild, what, how);
    }
    if was.left_out != is.left_out {
        let what = format!("copies of {name} hold other fields");
        let how = format!("deploy all writers, {}", rebuild_step(new, is));
        changes.push(RequiredWork::Rebuild, what, how);
    }
    compare_flags(versions, was, is, changes);
}

fn compare_flags(
    versions: OldAndNewEntity<'_>,
    was: &RowsShape,
    is: &RowsShape,
    changes: &mut EntityTypeChanges,
) {
    let name = rows_noun(was);
    match (was.is_unique, is.is_unique) {
        (false, true) if is.is_remote => changes.push(
            RequiredWork::Rebuild,
            format!("{name} is now unique"),
            format!(
                "deploy all writers, {}; the poison table names entities that have one value",
                rebuild_step(versions.new, is)
            ),
        ),
        (false, true) => changes.push(
            RequiredWork::Nothing,
            format!("{name} is now unique"),
            "rows stay as they are; `table.check()` reports entities that have one value as \
             `Contested`",
        ),
        (true, false) if was.is_remote => changes.push(
            RequiredWork::Migration,
            format!("{name} is no longer unique"),
            "run a worker of the earlier program until `client.outbox_status()` has no open work: it \
             settles claims and reservations",
        ),
        (true, false) => changes.push(
            RequiredWork::Nothing,
            format!("{name} is no longer unique"),
            "rows stay as they are; a taken key is a conflict",
        ),
        _ => {}
    }
    if was.is_conditional != is.is_conditional {
        let what = if is.is_conditional {
            format!("{name} now has a condition")
        } else {
            format!("{name} has no condition any more")
        };
        let how = if is.is_conditional {
            "deploy all writers, then delete copies of entities that it leaves out with \
                     `table.check().repair()`"
                .to_owned()
        } else {
            format!("deploy all writers, {}", rebuild_step(versions.new, is))
        };
        changes.push(RequiredWork::Rebuild, what, how);
    }
}
