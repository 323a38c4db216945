//! Checks the attributes of fields.

use proc_macro2::Span;
use syn::{Type, TypeArray, spanned::Spanned};

use super::conflict::has_conflict;
use crate::{
    errors::Errors,
    model::{Entity, Field, Storage, series},
    names,
    template::Form,
};

/// Reports an encrypted field that is in a key in plain text.
fn encrypted_in_plain_key(entity: &Entity, at: usize, field: &Field, errors: &mut Errors) {
    let Some(span) = field.attr.encrypt.span() else { return };
    let keys = entity.families.iter().flat_map(|family| [&family.partition, &family.row]);
    let keys = keys.filter(|key| key.is_sound);
    let mut plain =
        keys.filter(|key| key.parts().any(|part| part.field == at && part.form != Form::Hmac));
    if let Some(key) = plain.next() {
        let name = &field.name;
        errors.add_at(
            span,
            format!(
                "`encrypt` on `{name}`, which stands in plain text in the key \"{}\": write `{{{name}:hmac}}` there, which finds rows by equality only",
                key.text
            ),
        );
    }
}

/// Reports `hide_none` on a field that is never absent or whose blind token would reveal its absence.
pub(super) fn check_hide_none(fields: &[Field], errors: &mut Errors) {
    for field in fields {
        let name = &field.name;
        let attr = &field.attr;
        let Some(span) =
            attr.encrypt.span().filter(|_| attr.encrypt.get().is_some_and(|e| e.hide_none))
        else {
            continue;
        };
        if field.attr.split.is_set() {
            errors.add_at(
                span,
                format!("`hide_none` on `{name}`, whose pieces show by their sizes whether there is a text: write `encrypt`"),
            );
        } else if field.attr.json.is_set() {
            errors.add_at(
                span,
                format!("`hide_none` on `{name}`, which is JSON text and so never absent: write `encrypt`"),
            );
        } else if attr.blind.is_set() {
            errors.add_at(
                span,
                format!("`hide_none` on `{name}`, whose `blind` token is absent where the value is: leave one of them out"),
            );
        }
    }
}

/// Reports a `KeyRef` that is not flattened, because it has two properties.
pub(super) fn report_unflattened_references(fields: &[Field], errors: &mut Errors) {
    for field in fields.iter().filter(|field| field.storage == Storage::Plain) {
        if field.is_reference() {
            let message = format!(
                "`{}` refers to another entity by two properties: write `#[table(flatten)]` on it",
                field.name
            );
            errors.add_at(field.ty.span(), message);
        }
    }
}

/// Reports arrays in an entity without a setting that stores them, because an array is not a single property.
pub(super) fn report_arrays_of_entity(entity: &Entity, errors: &mut Errors) {
    for (at, field) in entity.fields.iter().enumerate() {
        let Some((is_option, array)) = unstored_array(field) else { continue };
        let (slot, length) = (names::source_text(&array.elem), names::source_text(&array.len));
        let what_to_write = if entity.is_in_any_key(at) {
            "a part of a key is one value, write a `String` or a number"
        } else if is_option {
            &format!(
                "write `#[table(series)]` and the type `[Option<{slot}>; {length}]`, with a property for each slot, or `#[table(json)]`"
            )
        } else if let Some((_, 0)) = series::array_slot_type_and_count(&field.ty) {
            &format!(
                "write `#[table(series)]`, with a property for each slot, and at least one slot, such as `[{slot}; 24]`"
            )
        } else {
            "write `#[table(series)]`, with a property for each slot, or `#[table(json)]`"
        };
        report_array(field, what_to_write, errors);
    }
}

/// Reports arrays in a flattened struct without a setting that stores them.
pub(super) fn report_arrays_of_properties(fields: &[Field], errors: &mut Errors) {
    let fields = fields.iter().filter(|field| !field.attr.series.is_set());
    for field in fields.filter(|field| unstored_array(field).is_some()) {
        let what_to_write =
            "write `#[table(json)]`, or move it to the entity with `#[table(series)]`";
        report_array(field, what_to_write, errors);
    }
}

fn report_array(field: &Field, what_to_write: &str, errors: &mut Errors) {
    let message = format!("`{}` is an array, not one property: {what_to_write}", field.name);
    errors.add_at(field.ty.span(), message);
}

/// Returns the type of a field that is an array, or an `Option` of one (`true`), if it has no setting that stores it.
fn unstored_array(field: &Field) -> Option<(bool, &TypeArray)> {
    let inner = field.is_option().then(|| names::first_argument_type(&field.ty)).flatten();
    match names::ungrouped(inner.unwrap_or(&field.ty)) {
        Type::Array(array) if field.storage == Storage::Plain => Some((inner.is_some(), array)),
        _ => None,
    }
}

/// Reports `blind` without `encrypt`, because a plain value needs no blind token.
pub(super) fn refuse_blind_without_encrypt(fields: &[Field], errors: &mut Errors) {
    for field in fields.iter().filter(|field| !has_conflict(field)) {
        let (Some(span), false) = (field.attr.blind.span(), field.attr.encrypt.is_set()) else {
            continue;
        };
        errors.add_at(
            span,
            format!(
                "`blind` on `{}`, whose value would be in plain text next to its token: write `#[table(encrypt, blind)]`",
                field.name
            ),
        );
    }
}

/// The maximum number of properties of an entity, besides the three system properties.
const MAX_PROPERTIES: usize = 252;

/// Reports a series that is not an array of known length, whose pattern does not give each slot a name, or that has
/// more slots than a row can have properties.
pub(super) fn check_series(entity: &Entity, errors: &mut Errors) {
    for field in &entity.fields {
        let Some(pattern) = field.attr.series.get() else { continue };
        if let Some((span, message)) = series::type_fault(&field.name, &field.ty) {
            errors.add_at(span, message);
            continue;
        }
        let Some((_, slots)) = series::array_slot_type_and_count(&field.ty) else { continue };
        if slots > MAX_PROPERTIES && !entity.attr.wide.is_set() {
            let message = format!(
                "`{}` has {slots} slots, and a row has at most {MAX_PROPERTIES} properties: it needs `wide`, an entity of several rows",
                field.name
            );
            errors.add_at(field.ty.span(), message);
        }
        let Some(literal) = pattern else { continue };
        let digits = series::last_slot_digit_count(slots);
        match series::split_pattern(&literal.value()) {
            None => errors.add_at(
                literal.span(),
                format!("a series is named by a text with the slot's number in it, write `{{:0{digits}}}` once"),
            ),
            Some((_, width, _)) if width < digits => errors.add_at(
                literal.span(),
                format!(
                    "`{{:0{width}}}` has no room for slot {}: write `{{:0{digits}}}`",
                    slots - 1
                ),
            ),
            Some(_) => {}
        }
    }
}

/// Reports a second field with `extra`.
pub(super) fn refuse_second_extra_field(fields: &[Field], errors: &mut Errors) {
    let extras = fields.iter().filter(|field| field.storage == Storage::Extra);
    let extras = extras.filter_map(|field| field.attr.extra.span());
    for span in extras.skip(1) {
        errors.add_at(span, "a second `extra` field, expected one");
    }
}

/// Reports attributes that a field in a key cannot have, such as `json` and `skip`.
pub(super) fn check_key_fields(entity: &Entity, errors: &mut Errors) {
    for (at, field) in entity.fields.iter().enumerate() {
        let name = &field.name;
        let attr = &field.attr;
        if !entity.is_in_any_key(at) {
            let span = attr.store.span().filter(|_| !has_conflict(field));
            if let (Some(span), true) = (span, entity.has_only_sound_templates()) {
                errors.add_at(
                    span,
                    format!("`store` on `{name}`, which is in no key and so a property already"),
                );
            }
            continue;
        }
        let refused: [(&str, Option<Span>, &str); 7] = [
            ("blob", attr.blob.span(), "a key is written before the blob is"),
            ("skip", attr.skip.span(), "the key has to be written from it"),
            ("json", attr.json.span(), "JSON text cannot be a part of a key"),
            ("flatten", attr.flatten.span(), "several properties cannot be a part of a key"),
            ("extra", attr.extra.span(), "unknown properties cannot be a part of a key"),
            ("series", attr.series.span(), "several properties cannot be a part of a key"),
            ("split", attr.split.span(), "several properties cannot be a part of a key"),
        ];
        for (key, span, why) in refused {
            if let (Some(span), false) = (span, has_conflict(field)) {
                errors
                    .add_at(span, format!("`{key}` on `{name}`, which is a part of a key: {why}"));
            }
        }
        encrypted_in_plain_key(entity, at, field, errors);
        let from_key =
            entity.primary().is_some_and(|primary| entity.key_source(primary, at, field).is_some());
        if let (true, Some(span)) = (from_key, attr.default.span()) {
            let why = "the key always gives it back";
            errors.add_at(span, format!("`default` on `{name}`, which is a part of a key: {why}"));
        }
    }
}
