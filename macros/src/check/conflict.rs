//! Checks for settings of one field that exclude each other.

use proc_macro2::Ident;

use crate::{attr::FieldAttr, errors::Errors, model::Field, names};

/// Reports each setting of a field that conflicts with an earlier one.
pub(super) fn report_conflicting_settings(fields: &[Field], errors: &mut Errors) {
    for field in fields {
        let names = &field.attr.names;
        for (at, later) in names.iter().enumerate() {
            let earlier = || names.iter().take(at);
            // A repeated setting is reported as such.
            if earlier().any(|one| one == later) {
                continue;
            }
            if let Some(why) = earlier().find_map(|one| conflict_message(&field.attr, one, later)) {
                errors.add_at(later.span(), why);
            }
        }
    }
}

/// Returns whether two settings of the field exclude each other. Other checks skip such a field, because any other
/// problem follows from the conflict.
pub(super) fn has_conflict(field: &Field) -> bool {
    let names = &field.attr.names;
    names
        .iter()
        .any(|one| names.iter().any(|other| conflict_message(&field.attr, one, other).is_some()))
}

/// Returns the message for two settings that exclude each other, or `None` if they are compatible.
fn conflict_message(attr: &FieldAttr, one: &Ident, other: &Ident) -> Option<String> {
    let (one, other) = (names::ident_text(one), names::ident_text(other));
    let forward = reason_of_conflict(attr, &one, &other).map(|why| (&one, &other, why));
    let (first, second, why) = forward
        .or_else(|| reason_of_conflict(attr, &other, &one).map(|why| (&other, &one, why)))?;
    Some(format!("`{first}` and `{second}` conflict: {why}"))
}

/// Returns why a field with the setting `kind` cannot also have the setting `other`.
fn reason_of_conflict(attr: &FieldAttr, kind: &str, other: &str) -> Option<&'static str> {
    let has_prefix = attr.flatten.get().is_some_and(Option::is_some);
    let has_pattern = attr.series.get().is_some_and(Option::is_some);
    let has_padding = attr.encrypt.get().is_some_and(|read| read.pad > 0 || read.hide_none);
    Some(match (kind, other) {
        (
            "skip",
            "rename" | "json" | "flatten" | "extra" | "encrypt" | "blind" | "series" | "split"
            | "blob" | "plaintext" | "store",
        ) => "a skipped field is not stored; remove one of them",
        ("extra", "encrypt" | "blind") => {
            "the macro does not know the names of the properties; choose the properties to encrypt with `ClientBuilder::encrypt_if`"
        }
        ("extra", "rename" | "default" | "json" | "flatten" | "series" | "split" | "blob") => {
            "an `extra` field takes every property the struct does not declare, under its own name; remove the other setting"
        }
        ("flatten", "json") => {
            "`json` stores the field as one property, `flatten` as several; remove one of them"
        }
        ("flatten", "default") => {
            "to allow the properties to be absent, make the field an `Option` of the struct"
        }
        ("flatten", "encrypt" | "blind") => {
            "write `#[table(encrypt)]` on the fields of the flattened struct"
        }
        ("flatten", "rename") if has_prefix => {
            "the prefix already determines the names; remove `rename`"
        }
        ("series", "rename") if has_pattern => {
            "the pattern already determines the names; remove `rename`"
        }
        ("series", "default") => {
            "an absent slot already reads as the default of its type; remove `default`"
        }
        ("series", "blind") => {
            "a blind token covers one value, and a series has a value in each slot; remove `blind`"
        }
        ("split", "default") => {
            "the pieces of a split text are never absent; if the text can be absent, make the field an `Option` and remove `default`"
        }
        ("split", "blind") => "a filter cannot find a text of this size; remove `blind`",
        ("series", "json" | "flatten" | "split") | ("split", "flatten") => {
            "each of them stores the field in properties of its own; remove one of them"
        }
        ("blob", "encrypt") if has_padding => {
            "the row shows how long the blob is and whether it exists, so padding and `hide_none` hide nothing; write `encrypt` without settings"
        }
        ("blob", "default") => {
            "if the blob can be absent, make the field an `Option` of `Blob` and remove `default`"
        }
        ("blob", "blind") => "a filter cannot find a blob; remove `blind`",
        ("blob", "json" | "flatten" | "series" | "split") => {
            "the row stores only the address of the blob; remove one of them"
        }
        ("json", "blind") => {
            "equal values can have different JSON texts, so their tokens would differ; remove one of them"
        }
        ("encrypt", "plaintext") => {
            "a value is stored either encrypted or in plain text; remove one of them"
        }
        _ => return None,
    })
}
