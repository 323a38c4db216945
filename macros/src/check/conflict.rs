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
            if let Some(why) = earlier().find_map(|one| conflict(&field.attr, one, later)) {
                errors.add_at(later.span(), why);
            }
        }
    }
}

/// Returns whether two settings of the field exclude each other. Any other problem of such a field follows from the
/// surplus setting.
pub(super) fn has_conflict(field: &Field) -> bool {
    let names = &field.attr.names;
    names.iter().any(|one| names.iter().any(|other| conflict(&field.attr, one, other).is_some()))
}

/// Returns the message for two settings that exclude each other, or `None` if they are compatible.
fn conflict(attr: &FieldAttr, one: &Ident, other: &Ident) -> Option<String> {
    let (one, other) = (names::ident_text(one), names::ident_text(other));
    let forward = reason(attr, &one, &other).map(|why| (&one, &other, why));
    let (first, second, why) =
        forward.or_else(|| reason(attr, &other, &one).map(|why| (&other, &one, why)))?;
    Some(format!("`{first}` and `{second}` on one field: {why}"))
}

/// Returns why a field with the setting `kind` cannot also have the setting `other`.
fn reason(attr: &FieldAttr, kind: &str, other: &str) -> Option<&'static str> {
    let has_prefix = attr.flatten.get().is_some_and(Option::is_some);
    let has_pattern = attr.series.get().is_some_and(Option::is_some);
    let has_padding = attr.encrypt.get().is_some_and(|read| read.pad > 0 || read.hide_none);
    Some(match (kind, other) {
        (
            "skip",
            "rename" | "json" | "flatten" | "extra" | "encrypt" | "blind" | "series" | "split"
            | "blob" | "plaintext" | "store",
        ) => "a skipped field is not stored, leave one of them out",
        ("extra", "encrypt" | "blind") => {
            "the names are not known here; choose them with `ClientBuilder::encrypt_if`"
        }
        ("extra", "rename" | "default" | "json" | "flatten" | "series" | "split" | "blob") => {
            "`extra` holds the properties that the struct does not know, under their own names: leave the other out"
        }
        ("flatten", "json") => {
            "a field is one property of JSON or several of its own, leave one of them out"
        }
        ("flatten", "default") => {
            "write an `Option` of the struct for properties that may be absent"
        }
        ("flatten", "encrypt" | "blind") => "write `#[table(encrypt)]` on the struct's own fields",
        ("flatten", "rename") if has_prefix => "the prefix is the name, leave `rename` out",
        ("series", "rename") if has_pattern => "the pattern is the name, leave `rename` out",
        ("series", "default") => "a slot that is missing has the default of its type",
        ("series", "blind") => "each slot would need a token of its own",
        ("split", "default") => {
            "all pieces are always stored; write an `Option` for a text that may be absent"
        }
        ("split", "blind") => "no filter finds a text of that size",
        ("series", "json" | "flatten" | "split") | ("split", "flatten") => {
            "each stores the field in properties of its own, leave one of them out"
        }
        ("blob", "encrypt") if has_padding => {
            "leave the settings of `encrypt` out, since the row shows the blob's length and whether there is one"
        }
        ("blob", "default") => "write an `Option` of `Blob` for one that may be absent",
        ("blob", "blind") => "no filter finds a blob",
        ("blob", "json" | "flatten" | "series" | "split") => {
            "the row holds only where the blob is, leave one of them out"
        }
        ("json", "blind") => {
            "a token is of one value, and JSON text of a value is not always the same"
        }
        ("encrypt", "plaintext") => "a value is encrypted or in plain text, leave one of them out",
        _ => return None,
    })
}
