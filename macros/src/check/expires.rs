//! Checks the field with an entity's time of expiry, from `expires = field`.

use crate::{errors::Errors, model::Entity, names};

/// Reports a field that cannot hold the time of expiry, and copies without the field.
pub(super) fn check_expiry_field(entity: &Entity, errors: &mut Errors) {
    let Some(expires) = &entity.expires else { return };
    let Some(field) = entity.fields.get(expires.field) else { return };
    if !field.storage.can_be_in_key() || field.attr.encrypt.is_set() {
        let message = format!(
            "`expires = {0}` needs a field stored as one unencrypted property: reads and workers compare `{0}` with the time",
            field.name
        );
        errors.add_at(expires.span, message);
    }
    let inner = field.is_option().then(|| names::first_argument_type(&field.ty)).flatten();
    if names::is_named_one_of(inner.unwrap_or(&field.ty), &["Date", "NaiveDate"]) {
        let message = format!(
            "`expires = {0}` needs a time of day, and `{0}` is a date: change its type to a time",
            field.name
        );
        errors.add_at(expires.span, message);
    }
    if entity.wide.is_some() && field.wide_part_of_property(0) != 1 {
        let message = format!(
            "`expires = {0}` needs a field in part 1 of the wide entity, because reads and workers look for the time there, and `{0}` is in part {1}: remove `part = {1}`",
            field.name,
            field.wide_part_of_property(0)
        );
        errors.add_at(expires.span, message);
    }
    for family in entity.families.iter().filter(|family| family.is_copy()) {
        if !family.holds_field(expires.field) {
            let message = format!(
                "copies of `{}` do not include `{}`, and without it a read cannot tell whether a copy has expired: include the field",
                family.name, field.name
            );
            let declaration = entity.declaration(family);
            let span = declaration.map(|declaration| declaration.span_of_left_out(&field.name));
            errors.add_at(span.unwrap_or_else(|| family.name.span()), message);
        }
    }
}
