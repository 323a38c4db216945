//! The RowKey prefixes that the library reserves for its own rows, and the format of these rows.

/// The prefix of the RowKeys of all outbox rows.
pub(crate) use crate::entity::RESERVED;
/// The first text after all keys with the prefix `RESERVED`.
pub(crate) const RESERVED_END: &str = "~f";
/// The prefix of the RowKey of a fence. It sorts first, so a scan finds fences first.
pub(crate) const FENCE: &str = "~e0_";
/// The prefix of the RowKey of a claim.
pub(crate) const CLAIM: &str = "~e1_";
/// The prefix of the RowKey of a dirty row.
pub(crate) const DIRTY: &str = "~e2_";
/// The prefix of the RowKey of a message.
pub(crate) const MESSAGE: &str = "~e3_";
/// The prefix of the RowKey of a receipt.
pub(crate) const RECEIPT: &str = "~e4_";

/// The format of outbox rows that this program writes.
pub(crate) const FORMAT: i32 = 1;

/// The property with the kind of an outbox row, such as `entable.fence`.
pub(crate) use crate::entity::TYPE_NAME;
/// The property with the format of an outbox row.
pub(crate) const FORMAT_NAME: &str = "Format";

/// Returns whether an outbox row has this program's format.
pub(crate) fn has_known_format(row: &crate::row::Row) -> crate::error::Result<bool> {
    Ok(row.get(FORMAT_NAME)? == Some(crate::edm::ValueRef::Int32(FORMAT)))
}
