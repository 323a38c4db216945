//! The prefixes of the RowKeys that the library reserves, and the version of its rows.

/// What the RowKeys of all rows of the outbox begin with.
pub(crate) const RESERVED: &str = "~e";
/// Where the rows of the outbox end.
pub(crate) const RESERVED_END: &str = "~f";
/// What the RowKey of a fence begins with: fences come first.
pub(crate) const FENCE: &str = "~e0_";
/// What the RowKey of a claim begins with.
pub(crate) const CLAIM: &str = "~e1_";
/// What the RowKey of a dirty row begins with.
pub(crate) const DIRTY: &str = "~e2_";
/// What the RowKey of a message begins with.
pub(crate) const MESSAGE: &str = "~e3_";
/// What the RowKey of a receipt begins with.
pub(crate) const RECEIPT: &str = "~e4_";

/// The version of the rows' format.
pub(crate) const FORMAT: i32 = 1;

/// The property with the version.
pub(crate) const FORMAT_NAME: &str = "Format";
/// The property that says what kind of row it is.
pub(crate) const TYPE_NAME: &str = "EntityType";

/// Whether a row of the outbox is in a format that this program knows.
pub(crate) fn is_known(row: &crate::row::Row) -> crate::error::Result<bool> {
    Ok(row.get(FORMAT_NAME)? == Some(crate::edm::ValueRef::Int32(FORMAT)))
}
