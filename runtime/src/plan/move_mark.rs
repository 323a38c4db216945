//! The properties that mark a row in a move. Every write of an entity checks for the mark. The steps of a move are in
//! `moves.rs`.

use crate::{
    edm::ValueRef,
    entity::{MOVED_BY, MOVING},
    error::{Error, Result},
    row::Row,
};

/// Returns whether a property belongs to a move that marks the row, and is not a value of the entity.
pub(crate) fn is_move_mark(name: &str) -> bool {
    name == MOVING || name == MOVED_BY
}

/// Returns the id of the move whose source this row is, if there is one.
pub(crate) fn move_id(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(MOVING)? {
        Some(ValueRef::String(id)) => Some(id),
        _ => None,
    })
}

/// Refuses a row that is the source of a move.
///
/// # Errors
///
/// Fails with `is_refused_by_move` for such a row.
pub(crate) fn refuse_moving(current: &Row) -> Result<()> {
    match move_id(current)? {
        None => Ok(()),
        Some(_) => Err(moving_error(current)),
    }
}

/// Returns the error for a row that is the source of a move.
pub(crate) fn moving_error(row: &Row) -> Error {
    Error::moving_entity(row.partition_key(), row.row_key())
}
