//! Assertions that generated code has the compiler evaluate: the text of a panic is its message.

use crate::{
    edm::EdmType,
    entity::{ColumnSchema, Schema, set::const_str_eq},
    key::{Resolution, RowFamily, Template, families_may_collide, resolution_of},
    limits::PROPERTIES,
};

/// Fails to compile if a part of variable width has no literal after it.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_separated(template: &Template, message: &'static str) {
    if !template.can_be_split() {
        panic!("{}", message);
    }
}

/// Fails to compile if a row of an entity has more properties than the service accepts. `markers`
/// is the number of properties that the library adds to the row: a discriminator, a seal, and those
/// that name the primary of a remote copy.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_property_count(
    columns: &[ColumnSchema],
    markers: usize,
    message: &'static str,
) {
    if ColumnSchema::max_property_count(columns) + markers > PROPERTIES {
        panic!("{}", message);
    }
}

/// Fails to compile if a part of a wide entity has more properties than the service accepts. The
/// library adds two properties to each part: the type marker and `EntableParts`.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_wide_part_properties(
    columns: &[ColumnSchema],
    part: usize,
    message: &'static str,
) {
    if ColumnSchema::max_property_count_in_part(columns, part) + 2 > PROPERTIES {
        panic!("{}", message);
    }
}

/// Fails to compile if a projection has a field that the entity stores in no column of its own.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_field_has_column(schema: &Schema, field: &str, message: &'static str) {
    let mut fields: &[&str] = schema.fields_without_column;
    while let [first, rest @ ..] = fields {
        if const_str_eq(first, field) {
            panic!("{}", message);
        }
        fields = rest;
    }
}

/// Fails to compile if `hide_none` is set on a field that is never absent.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_hide_none_is_optional(optional: bool, message: &'static str) {
    if !optional {
        panic!("{}", message);
    }
}

/// Fails to compile if `default = path` is set on a field that may be absent.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_default_is_of_required(optional: bool, message: &'static str) {
    if optional {
        panic!("{}", message);
    }
}

/// Fails to compile if the field of `expires = field` is not stored as a DateTime.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_expiry_is_time(edm: EdmType, message: &'static str) {
    if !matches!(edm, EdmType::DateTime) {
        panic!("{}", message);
    }
}

/// Fails to compile if rows of two row families can have the same key.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_family_keys_apart(a: &RowFamily, b: &RowFamily, message: &'static str) {
    if families_may_collide(a, b) {
        panic!("{}", message);
    }
}

/// Fails to compile if a list is kept in blobs and the feature `blob` is off.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_blob_feature() {
    if !cfg!(feature = "blob") {
        panic!("what is kept in blobs needs the feature `blob` of the crate `entable`");
    }
}

/// Fails to compile if a date form is coarser than its field's type. The derive judges a type by its
/// name; this assertion finds a type whose name misleads, such as an alias.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_date_form_resolution(form: &str, value: Resolution, message: &'static str) {
    if !resolution_of(form).covers(value) {
        panic!("{}", message);
    }
}
