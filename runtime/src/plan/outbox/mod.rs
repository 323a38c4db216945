//! The outbox: rows beside an entity's own that record what is still to be done in other
//! partitions. Formats are written down in `docs/outbox.md`.
//!
//! Recorded is only *which* remote rows may be wrong, never what they shall hold: whoever does the
//! work asks the primary.

pub(crate) mod reserved_keys;
pub(crate) mod claim_row;
pub(crate) mod remote_copy;
pub(crate) mod dirty_row;
pub(crate) mod fence;
pub(crate) mod hash;
pub(crate) mod list_membership;
pub(crate) mod message;
pub(crate) mod converge;

pub(crate) use self::{
    claim_row::{
        Claimed, MOST_CLAIMED, OpenClaim, Place, claim_key, claim_of, claimed, from_of, is_alive,
        killed, place_of, renamed, reserved, written,
    },
    converge::{Step, step},
    dirty_row::{CopyAddress, CopyChange, Dirty, OpenRow, dirty_key, dirty_rows, suspected},
    fence::{DIRECTORY, Fence, Marker, all_markers},
    hash::hash128,
    list_membership::{ListMembership, ListPlace, entry, entry_keys},
    message::{OpenMessage, after, emitted, posted, receipt, receipt_key, short},
    remote_copy::{
        OF_OWNER, Owner, holds_same, is_from_table, is_of_owner, is_of_version, is_owned,
        is_version, owned_copy,
    },
};
