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
    check_table_prefix(&dated.prefix, dated, entity.table.span(), errors);
    check_dated_field(entity, dated, errors);
    check_copies_and_lists(entity, dated, errors);
    let blobs = entity.fields.iter().filter(|field| matches!(field.storage, Storage::Blob(_)));
    for field in blobs {
        errors.add_at(
            field.span,
            "an entity with dated tables cannot have blobs: dropping a table would leave its blobs behind; store the blobs with an entity whose table name has no date",
        );
    }
}

/// Reports the table of an index or list if its name is invalid or does not end with the same date form as the name of
/// the entity's table.
fn check_own_table(entity: &Entity, dated: &DatedTableName, table: &LitStr, errors: &mut Errors) {
    let (name, own) = (table.value(), entity.table.value());
    let date = own.find('{').and_then(|start| own.get(start..)).unwrap_or_default();
    match name.strip_suffix(date) {
        Some(before) => check_table_prefix(before, dated, table.span(), errors),
        None => errors.add_at(
            table.span(),
            format!(
                "the copies and lists of an entity with dated tables must be dropped together with its tables: end this name with the entity's own date form, such as `Copies{date}`, or remove `table`"
            ),
        ),
    }
}

fn check_table_prefix(prefix: &str, dated: &DatedTableName, span: Span, errors: &mut Errors) {
    let letters = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.chars().all(|c| c.is_ascii_alphanumeric());
    let length = prefix.len() + dated.digit_count();
    if !letters || length > 63 {
        let message = format!(
            "`{prefix}` followed by {} digits is not a valid table name: expected 3 to 63 letters and digits, starting with a letter",
            dated.digit_count()
        );
        errors.add_at(span, message);
    } else if prefix.ends_with(|c: char| c.is_ascii_digit()) {
        let message = format!(
            "`{prefix}` ends with a digit, so the start of the date would be ambiguous: end it with a letter"
        );
        errors.add_at(span, message);
    }
}

fn check_dated_field(entity: &Entity, dated: &DatedTableName, errors: &mut Errors) {
    let Some(field) = entity.fields.get(dated.field) else { return };
    let span = field.span;
    if !field.storage.can_be_in_key() || field.attr.encrypt.is_set() {
        let message = format!(
            "field `{}` is part of the table name, so it must be stored unencrypted, in a key or in a single property",
            field.name
        );
        errors.add_at(span, message);
    } else if field.is_date_without_time() && dated.finest > Fineness::Day {
        let message = format!(
            "field `{}` is a date without an hour: use `%Y%m%d`, `%Y%m` or `%Y` in the table name",
            field.name
        );
        errors.add_at(entity.table.span(), message);
    }
}

fn check_copies_and_lists(entity: &Entity, dated: &DatedTableName, errors: &mut Errors) {
    for family in entity.families.iter().filter(|family| !family.is_primary()) {
        let Some(declaration) = entity.declaration(family) else { continue };
        if family.in_blob {
            errors.add_at(
                declaration.in_blob_span(),
                "a list of an entity with dated tables cannot be stored in blobs: dropping a table would leave the blobs behind; remove `in_blob`",
            );
        } else if let Some(table) = &family.table {
            check_own_table(entity, dated, table, errors);
        }
        if family.is_copy() && family.is_remote && family.unique {
            errors.add_at(declaration.unique_span(), "with dated tables a value can only be unique within one partition, because each period has a table of its own; give this index the partition key of the primary, or remove `unique`");
        }
    }
}
