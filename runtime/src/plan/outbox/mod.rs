//! The rows of the outbox, which record work to be done in other partitions. `docs/outbox.md` describes their formats.
//!
//! A dirty row records *which* remote rows may be wrong, but never their correct content. Workers read the primary for
//! that.

pub(crate) mod reserved_keys;
pub(crate) mod hash;
pub(crate) mod copy_address;
pub(crate) mod remote_copy;
pub(crate) mod claim_row;
pub(crate) mod converge;
pub(crate) mod list_membership;
pub(crate) mod list_blob;
pub(crate) mod fence;
pub(crate) mod expiry_marker;
pub(crate) mod dirty_row;
pub(crate) mod message;

pub(crate) use self::{
    claim_row::{
        ClaimedKeyAndPrimary, MAX_CLAIMED_KEYS, StoredClaim, WriterRun, claim_row_key,
        id_of_reserving_claim, insert_claim, is_claim_alive, mark_claim_dead, owner_of_copy,
        previous_owner, reservation_row, reserve_existing, row_with_written_etag,
    },
    converge::{CopyStep, plan_step_for_row},
    copy_address::{CopyAddress, ListAddress},
    dirty_row::{
        CopyChange, PlannedDirtyRow, StoredDirtyRow, dirty_row_key_of_primary, dirty_rows_of,
        insert_or_merge_dirty_row,
    },
    expiry_marker::{EXPIRY, ExpiryHour, ExpiryMarker, StoredExpiryMarker, expiry_markers_before},
    fence::{DIRECTORY, DirectoryMarker, Fence, directory_markers_filter},
    hash::hash128,
    list_blob::{BlobList, list_text_after, name_of_list_blob},
    list_membership::{ListMembership, list_entry, list_entry_keys},
    message::{
        CODE, CODE_BYTES, MessageIdentity, StoredMessage, WorkAndConsentCodes, add_duration,
        code_in_property, insert_arrival, insert_message, insert_receipt, insert_tombstone,
        is_tombstone, message_row, receipt_row_key, receipts_json, truncate_error,
    },
    remote_copy::{
        CopyOwnership, OWNER_PROPERTIES, OWNER_TABLE, compare_owner_in_copy, copy_with_owner,
        equal_except_version, is_derived_from_version, is_owner_or_version, is_version_property,
        may_be_from_table, names_table,
    },
};
