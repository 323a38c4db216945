//! Defines functions that the generated code of sets and versions calls: shortcuts, and assertions
//! that the compiler evaluates. The compiler reports a failed assertion at the token of the program
//! that is wrong, with the panic's text as its message.

use std::borrow::Cow;

use super::{
    RowMatch, have_same_discriminator_value, have_same_entity_type, members_may_collide,
    read_matched,
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

/// Reads a projection from a row of the projection's entity. `matched` says which version wrote the row, and
/// to which row family it belongs.
///
/// # Errors
///
/// `is_decode`, naming the property, if the row does not fit.
pub fn read_projection<P: Projection>(row: &Row, matched: &RowMatch) -> Result<P> {
    read_matched::<P::Entity, P>(row, matched)
}

/// Returns the table that an entity belongs to.
pub fn home_table_of<E: TableEntity>(entity: &E) -> Cow<'static, str> {
    entity.home_table()
}

/// Fails the compilation of a set in which the rows of two members have one discriminator.
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

/// Fails the compilation of an entity whose `upgrade_from` names another entity type.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_same_type(older: &Schema, newer: &Schema, message: &'static str) {
    if !have_same_discriminator_value(older, newer) {
        panic!("{}", message);
    }
}

/// Fails the compilation of an entity if only one of it and its older version, the type in
/// `upgrade_from`, is wide.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_same_width(older: &Schema, newer: &Schema, message: &'static str) {
    if older.parts.is_empty() != newer.parts.is_empty() {
        panic!("{}", message);
    }
}

/// Fails the compilation of an entity whose `upgrade_from` names a version that is not older.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_older(older: &Schema, newer: &Schema, message: &'static str) {
    if older.version >= newer.version {
        panic!("{}", message);
    }
}
