//! Checks the attributes of fields.

use proc_macro2::Span;
use syn::spanned::Spanned;

use crate::{
    errors::Errors,
    model::{Entity, Field, Storage, series},
    template::Form,
};

/// Reports pairs of attributes that cannot stand on one field.
pub(super) fn report_conflicting_attributes(fields: &[Field], errors: &mut Errors) {
    for field in fields {
        let attr = &field.attr;
        let prefix = attr.flatten.get().is_some_and(Option::is_some);
        let pattern = attr.series.get().is_some_and(Option::is_some);
        let settings = attr.encrypt.get().is_some_and(|read| read.pad > 0 || read.hide_none);
        let pairs = [
            (("flatten", attr.flatten.span()), ("json", attr.json.span())),
            (("extra", attr.extra.span()), ("json", attr.json.span())),
            (("extra", attr.extra.span()), ("flatten", attr.flatten.span())),
            (("extra", attr.extra.span()), ("rename", attr.rename.span())),
            (("extra", attr.extra.span()), ("default", attr.default.span())),
            (("skip", attr.skip.span()), ("json", attr.json.span())),
            (("skip", attr.skip.span()), ("flatten", attr.flatten.span())),
            (("skip", attr.skip.span()), ("rename", attr.rename.span())),
            (("skip", attr.skip.span()), ("extra", attr.extra.span())),
            (("flatten", attr.flatten.span()), ("default", attr.default.span())),
            (("skip", attr.skip.span()), ("encrypt", attr.encrypt.span())),
            (("flatten", attr.flatten.span()), ("encrypt", attr.encrypt.span())),
            (("extra", attr.extra.span()), ("encrypt", attr.encrypt.span())),
            (("json", attr.json.span()), ("blind", attr.blind.span())),
            (("series", attr.series.span()), ("split", attr.split.span())),
            (("series", attr.series.span()), ("json", attr.json.span())),
            (("series", attr.series.span()), ("flatten", attr.flatten.span())),
            (("series", attr.series.span()), ("extra", attr.extra.span())),
            (("series", attr.series.span()), ("skip", attr.skip.span())),
            (("series", attr.series.span()), ("default", attr.default.span())),
            (("series", attr.series.span()), ("blind", attr.blind.span())),
            (("split", attr.split.span()), ("flatten", attr.flatten.span())),
            (("split", attr.split.span()), ("extra", attr.extra.span())),
            (("split", attr.split.span()), ("skip", attr.skip.span())),
            (("split", attr.split.span()), ("default", attr.default.span())),
            (("split", attr.split.span()), ("blind", attr.blind.span())),
            (("blob", attr.blob.span()), ("json", attr.json.span())),
            (("blob", attr.blob.span()), ("flatten", attr.flatten.span())),
            (("blob", attr.blob.span()), ("series", attr.series.span())),
            (("blob", attr.blob.span()), ("split", attr.split.span())),
            (("blob", attr.blob.span()), ("extra", attr.extra.span())),
            (("blob", attr.blob.span()), ("skip", attr.skip.span())),
            (("blob", attr.blob.span()), ("default", attr.default.span())),
            (("blob", attr.blob.span()), ("encrypt(..)", attr.encrypt.span().filter(|_| settings))),
            (("blob", attr.blob.span()), ("blind", attr.blind.span())),
            (
                ("series(\"..\")", attr.series.span().filter(|_| pattern)),
                ("rename", attr.rename.span()),
            ),
            (
                ("flatten(prefix = \"..\")", attr.flatten.span().filter(|_| prefix)),
                ("rename", attr.rename.span()),
            ),
        ];
        for ((a, a_span), (b, b_span)) in pairs {
            if let (Some(_), Some(span)) = (a_span, b_span) {
                errors.add_at(span, conflict_message(a, b));
            }
        }
    }
}

fn conflict_message(a: &str, b: &str) -> String {
    let why = match (a, b) {
        (_, "json") if a == "flatten" => "a field is one property of JSON or several of its own",
        ("skip", _) => "a skipped field is not stored",
        ("extra", "encrypt") => {
            "the names are not known here; choose them with `ClientBuilder::encrypt_if`"
        }
        ("extra", _) => {
            "it holds the properties that the struct does not know, under their own names"
        }
        ("flatten", "default") => {
            "write an `Option` of the struct for properties that may be absent"
        }
        ("flatten(prefix = \"..\")", _) => "the prefix is the name",
        ("series(\"..\")", _) => "the pattern is the name",
        ("blob", "encrypt(..)") => {
            "the row shows the blob's length and whether there is one: write `encrypt` alone"
        }
        ("blob", "default") => "write an `Option` of `Blob` for one that may be absent",
        ("blob", "blind") => "no filter finds a blob",
        ("blob", _) => "the row holds only where the blob is",
        ("series", "default") => "a slot that is missing has the default of its type",
        ("series", "blind") => "each slot would need a token of its own",
        ("split", "default") => {
            "all pieces are always stored; write an `Option` for a text that may be absent"
        }
        ("split", "blind") => "no filter finds a text of that size",
        ("series" | "split", _) => "its properties have names and forms of their own",
        ("flatten", "encrypt") => "write `#[table(encrypt)]` on the struct's own fields",
        ("json", "blind") => {
            "a token is of one value, and JSON text of a value is not always the same"
        }
        _ => "expected one of them",
    };
    format!("`{a}` and `{b}` on one field: {why}")
}

/// Reports an encrypted field that stands in plain text in a key.
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

/// Reports `hide_none` on a field that is never absent or whose blind token would tell its absence.
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

/// Reports a `KeyRef` that is not flattened: it is two properties.
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

/// Reports `blind` without `encrypt`: a plain value needs no blind token.
pub(super) fn refuse_blind_without_encrypt(fields: &[Field], errors: &mut Errors) {
    for field in fields {
        let (Some(span), false) = (field.attr.blind.span(), field.attr.encrypt.is_set()) else {
            continue;
        };
        errors.add_at(
            span,
            format!(
                "`blind` on `{}`, which is stored in plain text beside its token: write `#[table(encrypt, blind)]`",
                field.name
            ),
        );
    }
}

/// Most properties of an entity beside the system's three.
const MAX_PROPERTIES: usize = 252;

/// Reports a series that is no array of a known length, whose pattern does not name each slot, or
/// that has more slots than a row has properties.
pub(super) fn check_series(entity: &Entity, errors: &mut Errors) {
    for field in &entity.fields {
        let Some(pattern) = field.attr.series.get() else { continue };
        let Some((_, slots)) =
            series::array_slot_type_and_count(&field.ty).filter(|(_, slots)| *slots > 0)
        else {
            let message = format!(
                "`{}` is a series, expected an array whose length is a number, such as `[u32; 24]`",
                field.name
            );
            errors.add_at(field.ty.span(), message);
            continue;
        };
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
    let extras = fields.iter().filter_map(|field| field.attr.extra.span());
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
            if let (Some(span), true) = (attr.store.span(), entity.has_only_sound_templates()) {
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
            if let Some(span) = span {
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
