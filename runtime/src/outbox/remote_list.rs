//! Writes remote lists under the version that was read. All changes of a list are made in one write.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, stream};

use super::{deadline::WriteDeadline, state::Outbox};
use crate::{
    batch::{Batch, Verb},
    error::{Error, ErrorKind, Result},
    guard::Guard,
    plan::{
        IdForm, ListDelta, StoredList,
        outbox::{BlobList, ListAddress, ListMembership, list_text_after},
    },
    store::lists::{
        FoundList, ListsByAddress, add_list_address_to_error, read_list_blob_version,
        write_list_blob,
    },
};

/// The number of lists that are written concurrently.
const LISTS_AT_ONCE: usize = 16;

/// The outcome of one write of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListAfterWrite {
    /// The list's rows exist and were written under a condition. A later write may delete them.
    Rows,
    /// The list's blob exists and was written under a condition. A list's blob is never deleted.
    Blob,
    /// The list became empty and its rows were deleted.
    Deleted,
    /// The list was already correct, and nothing was written.
    Unchanged,
}

/// For each list that was read: what its write did, or why it failed. Lists that could not be read are missing.
pub(crate) type ListWriteResults = BTreeMap<ListAddress, Result<ListAfterWrite>>;

/// Adds or removes the entry of each membership (an entry that a list should or should not contain), with one write
/// for each list. A write fails if the list has changed since it was read into `lists`. If `rewrite_unchanged` is
/// set, lists that already contain the wanted entries are written too.
pub(crate) async fn write_lists(
    outbox: &Outbox,
    deadline: &WriteDeadline,
    lists: &ListsByAddress,
    memberships: &[&ListMembership],
    rewrite_unchanged: bool,
) -> ListWriteResults {
    let rewrite_unchanged =
        rewrite_unchanged && outbox.guards.is_guard_enabled(Guard::EntryWritten);
    let mut deltas: BTreeMap<ListAddress, ListDelta> = BTreeMap::new();
    for membership in memberships {
        let delta = deltas.entry(membership.address.assume_list_address()).or_default();
        delta.form = IdForm::KeyArrays;
        // All changes of a list go into one write, because two writes would race with each other.
        let side = if membership.is_wanted { &mut delta.add } else { &mut delta.remove };
        side.push(membership.entry.clone());
    }
    let mut writes = Vec::new();
    for (address, delta) in deltas {
        // Skip a list that could not be read: nothing may be written without its version.
        if let Some(Ok(list)) = lists.get(&address) {
            writes.push(async move {
                let written =
                    list.write(outbox, deadline, &address, delta, rewrite_unchanged).await;
                (address, written)
            });
        }
    }
    stream::iter(writes).buffer_unordered(LISTS_AT_ONCE).collect().await
}

/// Returns whether no delayed writer can add or remove a membership's entry again after this write of its list. The
/// dirty row may then be deleted. A delayed writer fails if the list has a new ETag.
pub(crate) fn is_membership_settled(
    outbox: &Outbox,
    membership: &ListMembership,
    written: ListAfterWrite,
) -> bool {
    let unsettled_by = match written {
        // A blob always has a version, so a delayed writer's condition fails.
        ListAfterWrite::Blob => return true,
        // The write changed the list's ETag, and the list exists.
        ListAfterWrite::Rows if membership.is_wanted => return true,
        // Entries have no version. Only a write of the list stops a delayed writer.
        ListAfterWrite::Unchanged if membership.is_wanted => Guard::EntryWritten,
        // A list that is deleted later has no ETag, and a delayed writer could create it again.
        ListAfterWrite::Rows | ListAfterWrite::Deleted | ListAfterWrite::Unchanged => {
            Guard::EntrySecondLook
        }
    };
    !outbox.guards.is_guard_enabled(unsettled_by)
}

impl FoundList {
    /// Applies the delta to the list under the version that was read. If the list is already correct,
    /// `rewrite_unchanged` is set and an entry is added, writes the list anyway, to make every writer fail that read
    /// the old version.
    async fn write(
        &self,
        outbox: &Outbox,
        deadline: &WriteDeadline,
        address: &ListAddress,
        delta: ListDelta,
        rewrite_unchanged: bool,
    ) -> Result<ListAfterWrite> {
        let ids: HashSet<&String> = self.ids().iter().collect();
        let is_right = delta.add.iter().all(|id| ids.contains(id))
            && !delta.remove.iter().any(|id| ids.contains(id));
        // Entries have no version. Rewrite a correct list to make every writer fail that read it before. A removal
        // needs no such write, because it waits for the second look.
        if is_right && (!rewrite_unchanged || delta.add.is_empty()) {
            return Ok(ListAfterWrite::Unchanged);
        }
        let written = match self {
            Self::Rows(list) => write_rows(outbox, deadline, address, &delta, list.as_ref()).await,
            Self::Blob(list) => write_blob(outbox, deadline, address, &delta, list.as_ref()).await,
        };
        written.map_err(|error| add_list_address_to_error(address, error))
    }
}

/// Writes the list's head and spill rows in one transaction, or deletes them if no id is left.
async fn write_rows(
    outbox: &Outbox,
    deadline: &WriteDeadline,
    address: &ListAddress,
    delta: &ListDelta,
    list: Option<&StoredList>,
) -> Result<ListAfterWrite> {
    let operations =
        delta.list_operations((&address.row.partition_key, &address.row.row_key), list)?;
    // The head row is the first operation. If it is deleted, no id is left.
    let is_deleted = operations.first().is_none_or(|operation| operation.verb() == Verb::Delete);
    // The batch carries the deadline too, because a suspended program must not send it later.
    let mut batch =
        Batch::new(&address.row.table).with_deadline(deadline.batch_deadline().cloned());
    for operation in operations {
        batch
            .push(outbox.guards.keep_remote_condition_if_guarded(operation)?)
            .map_err(explain_too_large)?;
    }
    deadline
        .send_if_before_deadline(outbox.store.apply(&batch))
        .await
        .map_err(explain_too_large)?;
    Ok(if is_deleted { ListAfterWrite::Deleted } else { ListAfterWrite::Rows })
}

/// Writes the list's blob. An emptied list becomes an empty blob and is never deleted. It always has a version, so
/// no delayed writer can create it again.
async fn write_blob(
    outbox: &Outbox,
    deadline: &WriteDeadline,
    address: &ListAddress,
    delta: &ListDelta,
    list: Option<&BlobList>,
) -> Result<ListAfterWrite> {
    let at = address.as_row_at();
    let ids = list.map(|list| &*list.ids).unwrap_or_default();
    let write_id = outbox.store.random.random_id();
    let text = list_text_after(at, ids, delta, write_id)?;
    // The blob's version is the condition of its write, like the ETag of a row.
    let seen = if outbox.guards.is_guard_enabled(Guard::DestinationVersion) {
        list.map(|list| list.version.clone())
    } else {
        read_list_blob_version(&outbox.store, at).await?
    };
    deadline.send_if_before_deadline(write_list_blob(&outbox.store, at, text, seen)).await?;
    Ok(ListAfterWrite::Blob)
}

/// Turns a "too large" error of a list change into one with the advice to keep the list in blobs. Returns other
/// errors unchanged.
fn explain_too_large(error: Error) -> Error {
    if !error.is_too_large() {
        return error;
    }
    let message = "the change of the list exceeds one transaction; keep the list in blobs with `list(.., in_blob)`";
    Error::new(ErrorKind::TooLarge, message).with_source(error)
}
