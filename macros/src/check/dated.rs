//! Checks an entity whose tables are named by a period of a field.

use crate::{
    errors::Errors,
    model::{Dated, Entity, Storage},
    template::Fineness,
};

/// Reports a name that no table can have, a field that cannot name one, and what dated tables do not
/// serve.
pub(super) fn tables(entity: &Entity, errors: &mut Errors) {
    let Some(dated) = &entity.dated else { return };
    prefix(entity, dated, errors);
    field(entity, dated, errors);
    families(entity, errors);
    let blobs = entity.fields.iter().filter(|field| matches!(field.storage, Storage::Blob(_)));
    for field in blobs {
        errors.at(
            field.ident.span(),
            "the blobs of an entity with dated tables would stay when its table is dropped: keep them with an entity of one table",
        );
    }
    if entity.wide.is_some() {
        errors.at(
            entity.table.span(),
            "an entity with dated tables is one row: leave out `wide`, or name one table",
        );
    }
}

fn prefix(entity: &Entity, dated: &Dated, errors: &mut Errors) {
    let (prefix, span) = (&dated.prefix, entity.table.span());
    let letters = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.chars().all(|c| c.is_ascii_alphanumeric());
    let length = prefix.len() + dated.digits();
    if !letters || length > 63 {
        let message = format!(
            "`{prefix}` and {} digits are not a table's name, expected 3 to 63 letters and digits, a letter first",
            dated.digits()
        );
        errors.at(span, message);
    } else if prefix.ends_with(|c: char| c.is_ascii_digit()) {
        let message = format!(
            "`{prefix}` ends with a digit, so that nobody could tell where the date begins: end it with a letter"
        );
        errors.at(span, message);
    }
}

fn field(entity: &Entity, dated: &Dated, errors: &mut Errors) {
    let Some(field) = entity.fields.get(dated.field) else { return };
    let span = field.ident.span();
    if !field.storage.can_be_in_key() || field.attr.encrypt.is_set() {
        let message = format!(
            "field `{}` names the table, so that it is stored as one property or in a key, in the clear",
            field.name
        );
        errors.at(span, message);
    } else if field.is_date() && dated.finest > Fineness::Day {
        let message = format!(
            "field `{}` is a date, which has no hour: name the tables by `%Y%m%d` or less",
            field.name
        );
        errors.at(entity.table.span(), message);
    }
}

fn families(entity: &Entity, errors: &mut Errors) {
    for family in entity.families.iter().filter(|family| !family.is_primary()) {
        let span = family.name.span();
        if !family.is_copy() {
            errors.at(span, "an entity with dated tables has no lists: declare `index(..)`, whose copies are in the table of their entity");
        } else if family.table.is_some() {
            errors.at(span, "copies of an entity with dated tables are in the table of their entity, so that they go with it: leave out `table`");
        } else if family.is_remote && family.unique {
            errors.at(span, "a value is unique within one partition only where tables are dated: another day's table does not see it; write `unique` with the primary's `partition_key`, or leave it out");
        }
    }
}
