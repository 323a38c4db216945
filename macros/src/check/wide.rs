//! Checks wide entities, which are stored as several rows.

use crate::{
    attr::Discriminator,
    errors::Errors,
    model::{Entity, FamilyKind, Field, Storage},
    template::Form,
};

/// The property with the id of the write, in each row of a wide entity.
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
                    "`part` on `{}`, whose entity is one row: write `wide` on the struct",
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
                "a full copy `{0}` of a `wide` entity: a copy is one row, and this entity has several. Name the fields that the copy holds, write `index({0}, row_key = \"..\", only(..))`",
                family.name
            );
            errors.add_at(family.name.span(), message);
        }
    }
    if entity.is_sealed {
        errors.add_at(
            span,
            "`wide` and `seal` on one entity: a seal covers one row, and nobody would notice a part of an older write: leave one of them out, or write `encrypt` on the fields",
        );
    }
    if matches!(entity.discriminator, Discriminator::RowKey) {
        errors.add_at(
            span,
            "`wide` and `discriminator = row_key` on one entity: its rows say by a property which part they are, write `discriminator = \"EntityType\"`",
        );
    }
    fields(entity, errors);
    keys(entity, errors);
    parts(entity, errors);
}

/// Reports fields that a wide entity cannot have, such as `extra`, and `part` on a field that is not stored in a part.
fn fields(entity: &Entity, errors: &mut Errors) {
    for (at, field) in entity.fields.iter().enumerate() {
        let name = &field.name;
        if let (Storage::Extra, Some(span)) = (&field.storage, field.attr.extra.span()) {
            let message = format!(
                "`extra` on `{name}` of a `wide` entity: nothing says in which part such a property is. Leave it out: `replace`, `update` and `patch` keep the properties that the struct does not declare"
            );
            errors.add_at(span, message);
        }
        if let (Some(span), Some(true)) = (
            field.attr.encrypt.span(),
            field.encrypt_settings().map(|encrypt_settings| encrypt_settings.hide_none),
        ) {
            let message = format!(
                "`hide_none` on `{name}` of a `wide` entity: an absent value would be stored in every part, write `encrypt`"
            );
            errors.add_at(span, message);
        }
        if let Some(span) = field.attr.blob.span() {
            let message = format!(
                "`blob` on `{name}` of a `wide` entity: the outbox knows one row as the owner of a blob. Keep it in an entity of one row with these keys, and write both in one transaction"
            );
            errors.add_at(span, message);
        }
        if field.known_property_names().contains(&PARTS_PROPERTY) && !field.is_name_lost {
            let message = format!(
                "`{name}` would be the property `{PARTS_PROPERTY}`, which the rows of a `wide` entity have: write `rename = \"..\"`"
            );
            errors.add_at(field.property_span, message);
        }
        let Some(span) = field.attr.part.span() else { continue };
        let is_stored =
            entity.primary().is_some_and(|primary| entity.is_property(primary, at, field));
        if !is_stored && field.storage != Storage::Extra && entity.has_only_sound_templates() {
            let message = format!(
                "`part` on `{name}`, which no part stores: a skipped field is nowhere, and a field of the keys is in the keys of every part"
            );
            errors.add_at(span, message);
        }
    }
}

/// Reports keys with a token, which would be needed for each part.
fn keys(entity: &Entity, errors: &mut Errors) {
    let Some(primary) = entity.primary() else { return };
    for key in [&primary.partition, &primary.row] {
        if key.parts().any(|part| part.form == Form::Hmac) {
            errors.add_at(
                key.literal.span(),
                "a `wide` entity has no `{..:hmac}` in its keys: write the plain field, or make the entity one row",
            );
        }
    }
}

/// Reports parts without fields, and too many parts.
fn parts(entity: &Entity, errors: &mut Errors) {
    let Some(span) = entity.wide else { return };
    let count = entity.wide_part_count();
    if count > MAX_PARTS {
        let message =
            format!("the entity has {count} parts, a wide entity has at most {MAX_PARTS}");
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
            "part {part} of the entity has no field: number the parts from 1 without a gap, a field without `part` is in part 1"
        );
        let mut later = entity.fields.iter().filter_map(|field| field.attr.part.span());
        errors.add_at(later.next_back().unwrap_or(span), message);
    } else if count < 2 {
        let name = entity.fields.last().map_or_else(|| "field".to_owned(), |f| f.name.clone());
        let message = format!(
            "a `wide` entity of one part: write `#[table(part = 2)]` on `{name}`, or leave `wide` out"
        );
        errors.add_at(span, message);
    }
}
