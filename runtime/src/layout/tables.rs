//! Compares the tables of one version of an entity type in the layout file with those in the code,
//! and notes which work each change needs.

use super::{
    keys::OldAndNewEntity,
    needs::{EntityTypeChanges, RequiredWork},
    shape::{BlobFieldShape, EntityShape, KeyTemplateShape, TemplatePiece, split_template},
};

/// The name of dated tables: the text before the period, and the period's form.
struct DatedName<'s> {
    prefix: &'s str,
    form: &'s str,
}

fn dated_name(entity: &EntityShape) -> Option<DatedName<'_>> {
    entity.dated_by.as_ref()?;
    let mut name = DatedName { prefix: "", form: "" };
    for piece in split_template(&entity.table) {
        match piece {
            TemplatePiece::Literal(prefix) => name.prefix = prefix,
            TemplatePiece::Part { form, .. } => name.form = form,
        }
    }
    Some(name)
}

pub(super) fn compare_tables(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    if (&old.table, &old.dated_by) == (&new.table, &new.dated_by) {
        return;
    }
    let what = format!("the table was `{}` and is `{}`", old.table, new.table);
    match (dated_name(old), dated_name(new)) {
        (None, None) => changes.push(
            RequiredWork::Migration,
            what,
            format!(
                "stored rows stay in `{0}`, and encrypted values open only under that name: keep the \
                 name, or read them with `client.table_named(\"{0}\")` and write them with \
                 `bulk().insert_all(..)`",
                old.table
            ),
        ),
        (None, Some(_)) => changes.push(
            RequiredWork::Migration,
            format!("{what}, one table for each period"),
            format!(
                "no window reads the rows in `{0}`: read them with the earlier program, write them with \
                 `bulk().insert_all(..)` of this one, and delete `{0}`",
                old.table
            ),
        ),
        (Some(was), None) => changes.push(
            RequiredWork::Migration,
            format!("{what}, no longer one table for each period"),
            format!(
                "stored rows stay in the tables `{}..`: read them with a window of the earlier program, \
                 write them with `bulk().insert_all(..)` of this one, then call `drop_before` of the \
                 earlier one",
                was.prefix
            ),
        ),
        (Some(was), Some(is)) if (was.prefix, was.form) != (is.prefix, is.form) => changes.push(
            RequiredWork::Migration,
            format!("{what}: other names of tables"),
            format!(
                "stored rows stay in the tables `{}..` of periods `{}`, where no window of this program \
                 looks: let both programs run until the earlier one has dropped its tables, or write the \
                 rows with `bulk().insert_all(..)` from a window of the earlier one",
                was.prefix, was.form
            ),
        ),
        (Some(was), Some(_)) => compare_field(versions, was.prefix, changes),
    }
}

/// Compares the fields by whose time rows are put into dated tables. The old and the new tables'
/// names have the same `prefix` and the same form of the period.
fn compare_field(versions: OldAndNewEntity<'_>, prefix: &str, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    let (Some(was), Some(is)) = (&old.dated_by, &new.dated_by) else { return };
    let is_renamed =
        was == is || (!old.has_property_or_key_field(is) && !new.has_property_or_key_field(was));
    if !is_renamed {
        return changes.push(
            RequiredWork::Migration,
            format!("the table of a row is named by `{is}`, not by `{was}`"),
            format!(
                "stored rows stay in the tables of `{was}`, where a window of `{is}` misses them: give the \
                 tables another name than `{prefix}`, and write the rows with `bulk().insert_all(..)` from \
                 a window of the earlier program"
            ),
        );
    }
    let what = format!("the table was `{}` and is `{}`", old.table, new.table);
    let is_encrypted = |entity: &EntityShape| {
        let properties = entity.properties.iter();
        let series = entity.series.iter().map(|series| &series.first);
        let keys = entity.rows.iter().flat_map(|rows| [&rows.partition, &rows.row]);
        entity.is_sealed
            || properties.chain(series).any(|property| property.encryption.is_some())
            || entity.blobs.iter().any(BlobFieldShape::is_encrypted)
            // Tokens name the table too.
            || keys.flat_map(KeyTemplateShape::template_parts).any(|(_, form)| form == "hmac")
    };
    if is_encrypted(old) {
        changes.push(
            RequiredWork::Migration,
            what,
            format!(
                "tables keep their names, but encrypted values, seals and tokens open only under `{}`: keep the \
                 field's name, or write all rows with `bulk().insert_all(..)` to tables of another name",
                old.table
            ),
        )
    } else {
        changes.push(RequiredWork::Nothing, what, "tables keep their names")
    }
}
