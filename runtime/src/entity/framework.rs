//! Names of the properties and rows that the library itself writes beside those of entities.

/// The beginning of the RowKeys of the library's own rows: no key of an entity begins so.
pub(crate) const RESERVED: &str = "~e";

/// The property that authenticates all others of a row, if the entity declares `seal`.
pub const SEAL: &str = "EntitySeal";

/// The property with the id of the move that a row is the source of.
pub(crate) const MOVING: &str = "EntableMoving";
/// The property of a row that a move inserted: the move, its source, and the ETag of the source that
/// was copied.
pub(crate) const MOVED_BY: &str = "EntableMovedBy";

/// The properties that the library writes into remote copies.
pub(crate) const OWNER: [&str; 6] = ["Src", "SrcP", "SrcR", "SrcT", "SrcC", "SrcF"];

/// Returns whether the library itself writes a property of exactly this name into rows of entities.
pub(crate) fn is_framework_property(name: &str) -> bool {
    matches!(name, SEAL | MOVING | MOVED_BY) || OWNER.contains(&name)
}
