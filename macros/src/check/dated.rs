//! Checks an entity with dated tables, where the time in a field determines the period and thereby the table.

use proc_macro2::Span;
use syn::LitStr;

use crate::{
    errors::Errors,
    model::{DatedTableName, Entity, Storage},
    template::Fineness,
};

/// Reports an invalid table name, a field whose type cannot determine a table, and indexes, lists and blobs that do not
/// work with dated tables.
pub(super) fn check_dated_tables(entity: &Entity, errors: &mut Errors) {
    let Some(dated) = &entity.dated else { return };
    prefix(&dated.prefix, dated, entity.table.span(), errors);
    field(entity, dated, errors);
    families(entity, dated, errors);
    let blobs = entity.fields.iter().filter(|field| matches!(field.storage, Storage::Blob(_)));
    for field in blobs {
        errors.add_at(
            field.span,
            "the blobs of an entity with dated tables would stay when its table is dropped: keep them with an entity of one table",
        );
    }
}

/// Reports the table of an index or list if its name is invalid or does not end with the same date form as the name of
/// the entity's table.
fn own_table(entity: &Entity, dated: &DatedTableName, table: &LitStr, errors: &mut Errors) {
    let (name, own) = (table.value(), entity.table.value());
    let date = own.find('{').and_then(|start| own.get(start..)).unwrap_or_default();
    match name.strip_suffix(date) {
        Some(before) => prefix(before, dated, table.span(), errors),
        None => errors.add_at(
            table.span(),
            format!(
                "copies and lists of an entity with dated tables go with its table: end the name with the entity's date, such as `Copies{date}`, or leave out `table`"
            ),
        ),
    }
}

fn prefix(prefix: &str, dated: &DatedTableName, span: Span, errors: &mut Errors) {
    let letters = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.chars().all(|c| c.is_ascii_alphanumeric());
    let length = prefix.len() + dated.digit_count();
    if !letters || length > 63 {
        let message = format!(
            "`{prefix}` and {} digits are not a table's name, expected 3 to 63 letters and digits, a letter first",
            dated.digit_count()
        );
        errors.add_at(span, message);
    } else if prefix.ends_with(|c: char| c.is_ascii_digit()) {
        let message = format!(
            "`{prefix}` ends with a digit, so that nobody could tell where the date begins: end it with a letter"
        );
        errors.add_at(span, message);
    }
}

fn field(entity: &Entity, dated: &DatedTableName, errors: &mut Errors) {
    let Some(field) = entity.fields.get(dated.field) else { return };
    let span = field.span;
    if !field.storage.can_be_in_key() || field.attr.encrypt.is_set() {
        let message = format!(
            "field `{}` names the table, so that it is stored as one property or in a key, in the clear",
            field.name
        );
        errors.add_at(span, message);
    } else if field.is_date() && dated.finest > Fineness::Day {
        let message = format!(
            "field `{}` is a date, which has no hour: name the tables by `%Y%m%d` or less",
            field.name
        );
        errors.add_at(entity.table.span(), message);
    }
}

fn families(entity: &Entity, dated: &DatedTableName, errors: &mut Errors) {
    for family in entity.families.iter().filter(|family| !family.is_primary()) {
        let Some(declaration) = entity.declaration(family) else { continue };
        if family.in_blob {
            errors.add_at(
                declaration.in_blob_span(),
                "a list in blobs would stay when a dated table is dropped: leave out `in_blob`",
            );
        } else if let Some(table) = &family.table {
            own_table(entity, dated, table, errors);
        }
        if family.is_copy() && family.is_remote && family.unique {
            errors.add_at(declaration.unique_span(), "a value is unique within one partition only where tables are dated: another day's table does not see it; write `unique` with the primary's `partition_key`, or leave it out");
        }
    }
}
