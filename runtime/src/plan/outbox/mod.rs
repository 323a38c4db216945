//! The outbox: rows beside an entity's own that record what is still to be done in other
//! partitions. Formats are written down in `docs/outbox.md`.
//!
//! Recorded is only *which* rows elsewhere may be wrong, never what they shall hold: whoever does
//! the work asks the primary.

mod claim;
mod copy;
mod dirty;
mod fence;
mod hash;
mod listed;
mod message;
mod step;

pub(crate) use claim::{
    Claimed, MOST_CLAIMED, OpenClaim, Place, claim_key, claim_of, claimed, from_of, is_alive,
    killed, place_of, renamed, reserved, written,
};
pub(crate) use copy::{
    OF_OWNER, Owner, holds_same, is_from_table, is_of_owner, is_of_version, is_owned, is_version,
    owned_copy,
};
pub(crate) use dirty::{Destination, Dirty, Name, OpenRow, dirty_key, dirty_rows, suspected};
pub(crate) use fence::{DIRECTORY, Fence, Marker, all_markers};
pub(crate) use hash::hash128;
pub(crate) use listed::{ListPlace, Listing, entry, entry_keys};
pub(crate) use message::{OpenMessage, after, emitted, posted, receipt, receipt_key, short};
pub(crate) use step::{Step, step};

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
const FORMAT_NAME: &str = "Format";
/// The property that says what kind of row it is.
const TYPE_NAME: &str = "EntityType";

/// Whether a row of the outbox is in a format that this program knows.
pub(crate) fn is_known(row: &crate::row::Row) -> crate::error::Result<bool> {
    Ok(row.get(FORMAT_NAME)? == Some(crate::edm::ValueRef::Int32(FORMAT)))
}
