//! What the compiler evaluates beside generated code: the text of a panic is its message.

use crate::{
    entity::ColumnSchema,
    key::{Family, Resolution, Template, families_may_collide, resolution_of},
    limits::PROPERTIES,
};

/// Refuses the expansion where a part has a variable width and no literal after it: the text of the
/// panic is the compiler's message.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_separated(template: &Template, message: &'static str) {
    if !template.can_be_split() {
        panic!("{}", message);
    }
}

/// Refuses the expansion of an entity with more properties than the service keeps.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_properties(columns: &[ColumnSchema], markers: usize, message: &'static str) {
    if ColumnSchema::count(columns) + markers > PROPERTIES {
        panic!("{}", message);
    }
}

/// Refuses the expansion where an absent value is to be hidden of a field that always has one.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_optional(optional: bool, message: &'static str) {
    if !optional {
        panic!("{}", message);
    }
}

/// Refuses the expansion where two families of rows could meet in one key.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_apart(a: &Family, b: &Family, message: &'static str) {
    if families_may_collide(a, b) {
        panic!("{}", message);
    }
}

/// Refuses the expansion of a list in blobs in a program without them.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_blobs() {
    if !cfg!(feature = "blob") {
        panic!("a list in blobs needs the feature `blob` of the crate `entable`");
    }
}

/// Refuses the expansion where a date form that was taken to give its field back does not.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_covers(form: &str, value: Resolution, message: &'static str) {
    if !resolution_of(form).covers(value) {
        panic!("{}", message);
    }
}
