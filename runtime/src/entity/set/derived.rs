//! Functions that the generated code of sets and versions calls: shortcuts, and assertions that the compiler
//! evaluates. The compiler reports a failed assertion at the incorrect token of the program, with the panic's text
//! as its message.

use std::borrow::Cow;

use super::{
    RowMatch, copies_may_collide, have_same_discriminator_value, have_same_entity_type,
    members_may_collide, read_matched,
};
use crate::{
    entity::{Projection, Schema, TableEntity},
    error::Result,
    row::Row,
};

/// Returns the schema of the entity that a projection belongs to.
pub const fn projection_schema<P: Projection>() -> &'static Schema {
    <P::Entity as TableEntity>::SCHEMA
}

/// Reads a projection from a row of the projection's entity. `matched` contains the row's version and row family.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if the row does not fit.
pub fn read_projection<P: Projection>(row: &Row, matched: &RowMatch) -> Result<P> {
    read_matched::<P::Entity, P>(row, matched)
}

/// Returns the table that an entity belongs to.
pub fn home_table_of<E: TableEntity>(entity: &E) -> Cow<'static, str> {
    entity.home_table()
}

/// Fails the compilation of a set in which rows of two members have the same discriminator.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_types_apart(a: &Schema, b: &Schema, message: &'static str) {
    if have_same_entity_type(a, b) {
        panic!("{}", message);
    }
}

/// Fails the compilation of a set in which rows of two members can have equal keys.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_member_keys_apart(a: &Schema, b: &Schema, message: &'static str) {
    if !have_same_entity_type(a, b) && members_may_collide(a, b) {
        panic!("{}", message);
    }
}

/// Fails the compilation of a set with `allow(same_keys)` in which a copy or a part of one member can have
/// the key of a row of the other.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_copy_keys_apart(a: &Schema, b: &Schema, message: &'static str) {
    if !have_same_entity_type(a, b) && copies_may_collide(a, b) {
        panic!("{}", message);
    }
}

/// Fails the compilation of a set with `allow(same_keys)` if primaries of two members can have the same key and one of
/// the two types lacks `allow(same_keys)`. Queries of that type would not filter by the type, and its writes would not
/// check the type of the stored row.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_shared_keys(a: &Schema, b: &Schema, message: &'static str) {
    let share_keys = !have_same_entity_type(a, b)
        && members_may_collide(a, b)
        // `assert_copy_keys_apart` reports these.
        && !copies_may_collide(a, b);
    if share_keys && !(a.shares_keys && b.shares_keys) {
        panic!("{}", message);
    }
}

/// Fails the compilation of an entity whose `upgrade_from` refers to another entity type.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_same_type(older: &Schema, newer: &Schema, message: &'static str) {
    if !have_same_discriminator_value(older, newer) {
        panic!("{}", message);
    }
}

/// Fails the compilation of an entity if it is wide and its older version, the type in `upgrade_from`, is not, or
/// vice versa.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_same_width(older: &Schema, newer: &Schema, message: &'static str) {
    if older.parts.is_empty() != newer.parts.is_empty() {
        panic!("{}", message);
    }
}

/// Fails the compilation of an entity whose `upgrade_from` refers to a version that is not older.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_older(older: &Schema, newer: &Schema, message: &'static str) {
    if older.version >= newer.version {
        panic!("{}", message);
    }
}
