//! Checks the attributes of fields.

use proc_macro2::Span;
use syn::{Type, TypeArray, spanned::Spanned};

use super::conflict::has_conflict;
use crate::{
    errors::Errors,
    model::{Entity, Field, RowFamily, Storage, series},
    names,
};

/// Reports an encrypted field that is in a key in plain text.
fn report_encrypted_in_plain_key(entity: &Entity, at: usize, field: &Field, errors: &mut Errors) {
    let Some(span) = field.attr.encrypt.span() else { return };
    let keys = entity.families.iter().flat_map(RowFamily::keys);
    let keys = keys.filter(|key| key.is_sound);
    let mut plain = keys.filter(|key| key.parts().any(|part| part.field == at && !part.is_token()));
    if let Some(key) = plain.next() {
        let name = &field.name;
        errors.add_at(
            span,
            format!(
                "`encrypt` has no effect on `{name}`, because the key \"{}\" contains it in plain text: write `{{{name}:hmac}}` in the key, which can then only be searched by equality",
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
                format!("`hide_none` has no effect on `{name}`: the sizes of its pieces show whether the text is absent; write `encrypt`"),
            );
        } else if field.attr.json.is_set() {
            errors.add_at(
                span,
                format!("`hide_none` has no effect on `{name}`: JSON text is never absent; write `encrypt`"),
            );
        } else if attr.blind.is_set() {
            errors.add_at(
                span,
                format!("`hide_none` and `blind` cannot be combined on `{name}`: an absent value has no token, which shows that it is absent; remove one of them"),
            );
        }
    }
}

/// Reports a `KeyRef` that is not flattened, because it has two properties.
pub(super) fn report_unflattened_references(fields: &[Field], errors: &mut Errors) {
    for field in fields.iter().filter(|field| field.storage == Storage::Plain) {
        if field.is_reference() {
            let message = format!(
                "`{}` is stored as two properties, because it refers to another entity: write `#[table(flatten)]` on it",
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
            "a part of a key is one value; use a `String` or a number"
        } else if is_option {
            &format!(
                "write `#[table(series)]` with the type `[Option<{slot}>; {length}]` to store each slot as a property, or `#[table(json)]`"
            )
        } else if let Some((_, 0)) = series::array_slot_type_and_count(&field.ty) {
            &format!(
                "write `#[table(series)]` to store each slot as a property, with at least one slot, such as `[{slot}; 24]`"
            )
        } else {
            "write `#[table(series)]` to store each slot as a property, or `#[table(json)]`"
        };
        report_array(field, what_to_write, errors);
    }
}

/// Reports arrays in a flattened struct without a setting that stores them.
pub(super) fn report_arrays_of_properties(fields: &[Field], errors: &mut Errors) {
    let fields = fields.iter().filter(|field| !field.attr.series.is_set());
    for field in fields.filter(|field| unstored_array(field).is_some()) {
        let what_to_write =
            "write `#[table(json)]`, or move the field to the entity and write `#[table(series)]`";
        report_array(field, what_to_write, errors);
    }
}

fn report_array(field: &Field, what_to_write: &str, errors: &mut Errors) {
    let message = format!(
        "`{}` is an array, which does not fit into one property: {what_to_write}",
        field.name
    );
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
                "`blind` on `{}` needs `encrypt`, because the value would be stored in plain text next to its token: write `#[table(encrypt, blind)]`",
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
                "`{}` has {slots} slots, but a row has at most {MAX_PROPERTIES} properties: write `wide` on the struct to store the entity in several rows",
                field.name
            );
            errors.add_at(field.ty.span(), message);
        }
        let Some(literal) = pattern else { continue };
        let digits = series::last_slot_digit_count(slots);
        match series::split_pattern(&literal.value()) {
            None => errors.add_at(
                literal.span(),
                format!("the pattern of a series needs exactly one place for the slot's number; write `{{:0{digits}}}` once"),
            ),
            Some((_, width, _)) if width < digits => errors.add_at(
                literal.span(),
                format!(
                    "slot {} does not fit into `{{:0{width}}}`; write `{{:0{digits}}}`",
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
        errors.add_at(span, "an entity can have only one `extra` field, and this is the second");
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
                    format!("`store` has no effect on `{name}`: no key contains the field, so it is already stored as a property"),
                );
            }
            continue;
        }
        let refused: [(&str, Option<Span>, &str); 7] = [
            ("blob", attr.blob.span(), "a key is written before the blob is uploaded"),
            ("skip", attr.skip.span(), "the key is made from this field"),
            ("json", attr.json.span(), "JSON text cannot be part of a key"),
            ("flatten", attr.flatten.span(), "several properties cannot be part of a key"),
            ("extra", attr.extra.span(), "undeclared properties cannot be part of a key"),
            ("series", attr.series.span(), "several properties cannot be part of a key"),
            ("split", attr.split.span(), "several properties cannot be part of a key"),
        ];
        for (key, span, why) in refused {
            if let (Some(span), false) = (span, has_conflict(field)) {
                errors.add_at(
                    span,
                    format!("`{key}` is not allowed on `{name}`, which is part of a key: {why}"),
                );
            }
        }
        report_encrypted_in_plain_key(entity, at, field, errors);
        let from_key =
            entity.primary().is_some_and(|primary| entity.key_source(primary, at, field).is_some());
        if let (true, Some(span)) = (from_key, attr.default.span()) {
            let why = "the field is always read from the key";
            errors.add_at(
                span,
                format!("`default` has no effect on `{name}`, which is part of a key: {why}"),
            );
        }
    }
}
