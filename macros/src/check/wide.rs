//! Checks wide entities, which are stored as several rows.

use crate::{
    attr::Discriminator,
    errors::Errors,
    model::{Entity, FamilyKind, Field, Storage},
};

/// The property in each row of a wide entity with the number of its rows and a random id. The id shows which rows were
/// written together.
const PARTS_PROPERTY: &str = "EntableParts";

/// The maximum number of rows of a wide entity, whose numbers have two digits.
const MAX_PARTS: usize = 99;

/// Reports `part` on fields of an entity that is not wide. For a wide entity, reports full copies, and settings,
/// fields, keys and parts that it cannot have.
pub(super) fn check_wide_entity(entity: &Entity, errors: &mut Errors) {
    let Some(span) = entity.wide else {
        // A misspelt `wide` has already been reported.
        for field in entity.fields.iter().filter(|_| !entity.attr.wide.is_set()) {
            if let Some(span) = field.attr.part.span() {
                let message = format!(
                    "`part` on `{}` needs an entity of several rows: write `wide` on the struct",
                    field.name
                );
                errors.add_at(span, message);
            }
        }
        return;
    };
    // A copy is one row. It contains the declared fields, whichever parts they are in.
    for family in entity.families.iter().filter(|family| family.kind == FamilyKind::Copy) {
        if family.holds.iter().all(|is_held| *is_held) {
            let message = format!(
                "`{0}` cannot be a full copy, because a copy is one row and a `wide` entity has several: list the fields to copy with `index({0}, row_key = \"..\", only(..))`",
                family.name
            );
            errors.add_at(family.name.span(), message);
        }
    }
    if entity.is_sealed {
        errors.add_at(
            span,
            "`wide` and `seal` cannot be combined: a seal covers a single row, so replacing one part with an older version would go unnoticed; remove one of them, or write `encrypt` on the fields",
        );
    }
    if matches!(entity.discriminator, Discriminator::RowKey) {
        errors.add_at(
            span,
            "`wide` needs a property that tells the parts apart, and `discriminator = row_key` stores none; write `discriminator = \"EntityType\"`",
        );
    }
    check_fields(entity, errors);
    check_keys(entity, errors);
    check_parts(entity, errors);
}

/// Reports fields that a wide entity cannot have, such as `extra`, and `part` on a field that is not stored in a part.
fn check_fields(entity: &Entity, errors: &mut Errors) {
    for (at, field) in entity.fields.iter().enumerate() {
        let name = &field.name;
        if let (Storage::Extra, Some(span)) = (&field.storage, field.attr.extra.span()) {
            let message = format!(
                "`extra` is not allowed on `{name}` of a `wide` entity, because undeclared properties have no part number; remove the field: `replace`, `update` and `patch` keep undeclared properties anyway"
            );
            errors.add_at(span, message);
        }
        if let (Some(span), Some(true)) = (
            field.attr.encrypt.span(),
            field.encrypt_settings().map(|encrypt_settings| encrypt_settings.hide_none),
        ) {
            let message = format!(
                "`hide_none` is not allowed on `{name}` of a `wide` entity, because an absent value would be stored in every part; write `encrypt`"
            );
            errors.add_at(span, message);
        }
        if let Some(span) = field.attr.blob.span() {
            let message = format!(
                "`blob` is not allowed on `{name}` of a `wide` entity, because a blob must belong to exactly one row; move it to an entity of one row in the same partition, and write both in one transaction"
            );
            errors.add_at(span, message);
        }
        if field.known_property_names().contains(&PARTS_PROPERTY) && !field.is_name_lost {
            let message = format!(
                "the property `{PARTS_PROPERTY}`, which `{name}` would be stored as, is reserved in `wide` entities; write `rename = \"..\"`"
            );
            errors.add_at(field.property_span, message);
        }
        let Some(span) = field.attr.part.span() else { continue };
        let is_stored =
            entity.primary().is_some_and(|primary| entity.is_property(primary, at, field));
        if !is_stored && field.storage != Storage::Extra && entity.has_only_sound_templates() {
            let message = format!(
                "`part` has no effect on `{name}`: a skipped field is not stored, and a key field is in the keys of every part; remove `part`"
            );
            errors.add_at(span, message);
        }
    }
}

/// Reports keys with a token, which would be needed for each part.
fn check_keys(entity: &Entity, errors: &mut Errors) {
    let Some(primary) = entity.primary() else { return };
    for key in [&primary.partition, &primary.row] {
        if key.tokens().next().is_some() {
            errors.add_at(
                key.literal.span(),
                "the keys of a `wide` entity cannot contain `{..:hmac}`: use the plain field, or remove `wide`",
            );
        }
    }
}

/// Reports parts of a wide entity (its rows) that store no field, and a number of parts above 99.
fn check_parts(entity: &Entity, errors: &mut Errors) {
    let Some(span) = entity.wide else { return };
    let count = entity.wide_part_count();
    if count > MAX_PARTS {
        let message =
            format!("the entity has {count} parts, but a wide entity can have at most {MAX_PARTS}");
        errors.add_at(span, message);
        return;
    }
    // A part that could not be read has already been reported.
    let is_lost = |field: &Field| field.attr.part.is_unreadable();
    if errors.may_have_unread_fields(entity.fields.len())
        || !entity.has_only_sound_templates()
        || entity.fields.iter().any(is_lost)
    {
        return;
    }
    let filled = entity.nonempty_wide_parts();
    let empty = (1..=count).find(|part| !filled.contains(part));
    if let Some(part) = empty {
        let message = format!(
            "part {part} of the entity has no field: number the parts from 1 without gaps (fields without `part` are in part 1)"
        );
        let mut later = entity.fields.iter().filter_map(|field| field.attr.part.span());
        errors.add_at(later.next_back().unwrap_or(span), message);
    } else if count < 2 {
        let name = entity.fields.last().map_or_else(|| "field".to_owned(), |f| f.name.clone());
        let message = format!(
            "this `wide` entity has only one part: write `#[table(part = 2)]` on `{name}`, or remove `wide`"
        );
        errors.add_at(span, message);
    }
}
