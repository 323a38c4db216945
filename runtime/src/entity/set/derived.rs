//! What the derives of sets and versions call: shortcuts, and assertions that the compiler evaluates
//! at the token that they are about. The text of the panic is the compiler's message.

use super::{Claim, members_meet, read_claimed, same_discriminator, types_meet};
use crate::{
    entity::{Projection, Schema, TableEntity},
    error::Result,
    row::Row,
};

/// What is known of a projection's rows.
pub const fn schema_of<P: Projection>() -> &'static Schema {
    <P::Entity as TableEntity>::SCHEMA
}

/// A projection from a row that its entity claims.
///
/// # Errors
///
/// `is_decode`, naming the property, for a row that does not fit.
pub fn read_projection<P: Projection>(row: &Row, claim: &Claim) -> Result<P> {
    read_claimed::<P::Entity, P>(row, claim)
}

/// The table that an entity declares.
pub fn table_of<E: TableEntity>(_: &E) -> &'static str {
    E::SCHEMA.table
}

/// Refuses the expansion of a set in which two members' rows say the same type.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_types_apart(a: &Schema, b: &Schema, message: &'static str) {
    if types_meet(a, b) {
        panic!("{}", message);
    }
}

/// Refuses the expansion of a set in which rows of two members could have one key.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_members_apart(a: &Schema, b: &Schema, message: &'static str) {
    if !types_meet(a, b) && members_meet(a, b) {
        panic!("{}", message);
    }
}

/// Refuses the expansion of an entity that is upgraded from another type.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_same_type(older: &Schema, newer: &Schema, message: &'static str) {
    if !same_discriminator(older, newer) {
        panic!("{}", message);
    }
}

/// Refuses the expansion of an entity that is upgraded from a version that is not older.
#[track_caller]
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "evaluated by the compiler only")]
pub const fn assert_older(older: &Schema, newer: &Schema, message: &'static str) {
    if older.version >= newer.version {
        panic!("{}", message);
    }
}
