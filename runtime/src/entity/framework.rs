//! Names of the properties and rows that the library itself writes beside those of entities.

use crate::{edm::ValueRef, error::Result, row::Row};

/// The prefix of the RowKeys of outbox rows: fences, claims, dirty rows, messages and receipts. No key of a
/// typed entity begins so. Rows of lists and of the library's own tables have other RowKeys.
pub(crate) const RESERVED: &str = "~e";

/// The property with the type of a row, unless the entity names another one.
pub(crate) const TYPE_NAME: &str = "EntityType";
/// The prefix of the types of the library's own rows, those of lists included.
pub(crate) const FRAMEWORK_TYPE_PREFIX: &str = "entable.";

/// The property that authenticates all others of a row, if the entity declares `seal`.
pub const SEAL: &str = "EntitySeal";

/// The property of a row that a move is transferring to other keys: the id of the move.
pub(crate) const MOVING: &str = "EntableMoving";
/// The property of a row that a move inserted: a JSON list with the id of the move, the table and keys of the
/// source, and the ETag under which the source was copied.
pub(crate) const MOVED_BY: &str = "EntableMovedBy";

/// The properties that the library writes into remote copies. They name the primary that a copy
/// belongs to and the state of the copy; `remote_copy.rs` describes each.
pub(crate) const OWNER: [&str; 6] = ["Src", "SrcP", "SrcR", "SrcT", "SrcC", "SrcF"];

/// Returns the type of a row of the library, such as `entable.list`; `None` for any other row.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
pub(crate) fn framework_type_of(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(TYPE_NAME)? {
        Some(ValueRef::String(name)) if name.starts_with(FRAMEWORK_TYPE_PREFIX) => Some(name),
        _ => None,
    })
}

/// Returns whether the library itself writes a property of exactly this name into rows of entities.
pub(crate) fn is_framework_property(name: &str) -> bool {
    matches!(name, SEAL | MOVING | MOVED_BY) || OWNER.contains(&name)
}
