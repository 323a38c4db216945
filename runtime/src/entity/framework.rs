//! Names of the library's own properties and rows.

use crate::{edm::ValueRef, error::Result, row::Row};

/// The prefix of the RowKeys of outbox rows: fences, claims, dirty rows, messages and receipts. Keys of typed
/// entities never begin with it. Rows of lists and of the library's own tables have other RowKeys.
pub(crate) const RESERVED: &str = "~e";

/// The property with the type of a row, unless the entity declares another one.
pub(crate) const TYPE_NAME: &str = "EntityType";
/// The prefix of the types of the library's own rows, including lists.
pub(crate) const FRAMEWORK_TYPE_PREFIX: &str = "entable.";

/// The property that authenticates all others in a row of an entity with `seal`.
pub const SEAL: &str = "EntitySeal";

/// The property that marks a row while a move is transferring it to other keys. It holds the move's id.
pub(crate) const MOVING: &str = "EntableMoving";
/// The property of a row that was inserted by a move: a JSON list with the id of the move, the source's table
/// and keys, and the source's ETag when it was copied.
pub(crate) const MOVED_BY: &str = "EntableMovedBy";
/// The beginning of the names of properties in the source of a move, before the property's own name: the
/// values that the entity will have at the target.
pub(crate) const MOVED_VALUE: &str = "EntableMovingTo";

/// The properties that the library writes into remote copies. They contain the primary that a copy belongs to
/// and the state of the copy. `remote_copy.rs` describes each.
pub(crate) const OWNER: [&str; 6] = ["Src", "SrcP", "SrcR", "SrcT", "SrcC", "SrcF"];

/// Returns the type of one of the library's own rows, such as `entable.list`, or `None` for any other row.
///
/// # Errors
///
/// Fails with `is_corrupt` for a damaged row.
pub(crate) fn framework_type_of(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(TYPE_NAME)? {
        Some(ValueRef::String(name)) if name.starts_with(FRAMEWORK_TYPE_PREFIX) => Some(name),
        _ => None,
    })
}

/// Returns whether the library writes a property of this name into rows of entities.
pub(crate) fn is_framework_property(name: &str) -> bool {
    name == SEAL || is_move_property(name) || OWNER.contains(&name)
}

/// Returns whether a property belongs to the source or the target of a move, and to no field.
pub(crate) fn is_move_property(name: &str) -> bool {
    name == MOVING || name == MOVED_BY || name.starts_with(MOVED_VALUE)
}
