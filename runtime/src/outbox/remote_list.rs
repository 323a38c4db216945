//! Lists elsewhere: read under a version, and written under it, all changes of one list at once.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, stream};

use super::{deadline::WriteDeadline, fast_path::guarded, guard::Guard, state::Outbox};
#[cfg(feature = "blob")]
use crate::blob::{BlobList, list_blob_path, list_text_after};
#[cfg(feature = "blob")]
use crate::store::lists::without_blobs;
use crate::{
    batch::{Batch, Verb},
    error::{Error, ErrorKind, Result},
    plan::{
        IdForm, ListDelta, StoredList,
        outbox::{ListAddress, ListMembership},
    },
    store::lists::{FoundList, Lists, at},
};

/// Lists that are read or written at a time.
const AT_ONCE: usize = 16;

/// What a write made of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListWrite {
    /// It is there, written under condition, and can go.
    Written,
    /// It is there, written under condition, and is never deleted.
    #[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "of blobs"))]
    Kept,
    /// Its rows were deleted: it was empty.
    Gone,
    /// Nothing was written.
    Same,
}

/// What was made of lists.
pub(crate) type ListsWritten = BTreeMap<ListAddress, Result<ListWrite>>;

/// Makes every list what the memberships say, one write for each list.
pub(crate) async fn write_lists(
    outbox: &Outbox,
    flight: WriteDeadline,
    lists: &Lists,
    memberships: &[&ListMembership],
    touch: bool,
) -> ListsWritten {
    let mut deltas: BTreeMap<ListAddress, ListDelta> = BTreeMap::new();
    for membership in memberships {
        let delta = deltas.entry(membership.address.list_address()).or_default();
        delta.form = IdForm::KeyArrays;
        let side = if membership.is_wanted { &mut delta.add } else { &mut delta.remove };
        side.push(membership.entry.clone());
    }
    let mut writes = Vec::new();
    for (place, delta) in deltas {
        if let Some(Ok(list)) = lists.get(&place) {
            writes.push(async move {
                let written = list.write(outbox, flight, &place, delta, touch).await;
                (place, written)
            });
        }
    }
    stream::iter(writes).buffer_unordered(AT_ONCE).collect().await
}

/// Whether nobody else can undo it any more: it was written, in a version that is still the list's or
/// older than it.
pub(crate) fn is_settled(outbox: &Outbox, membership: &ListMembership, listed: ListWrite) -> bool {
    let guards = outbox.guards;
    match listed {
        ListWrite::Kept => true,
        ListWrite::Written if membership.is_wanted => true,
        ListWrite::Same if membership.is_wanted => !guards.holds(Guard::EntryWritten),
        // A list that is deleted later has no version: an old writer could create it again.
        ListWrite::Written | ListWrite::Gone | ListWrite::Same => {
            !guards.holds(Guard::EntrySecondLook)
        }
    }
}

impl FoundList {
    /// Makes the list what the delta says, in the version that was read; `touch`: also where it is
    /// so already, so that whoever read that version is too late.
    async fn write(
        &self,
        outbox: &Outbox,
        flight: WriteDeadline,
        place: &ListAddress,
        delta: ListDelta,
        touch: bool,
    ) -> Result<ListWrite> {
        let ids: HashSet<&String> = self.ids().iter().collect();
        let is_so = delta.add.iter().all(|id| ids.contains(id))
            && !delta.remove.iter().any(|id| ids.contains(id));
        let is_touched = touch && outbox.guards.holds(Guard::EntryWritten);
        if is_so && (!is_touched || delta.add.is_empty()) {
            return Ok(ListWrite::Same);
        }
        let written = match self {
            Self::Rows(list) => write_rows(outbox, flight, place, &delta, list.as_ref()).await,
            #[cfg(feature = "blob")]
            Self::Blob(list) => write_blob(outbox, flight, place, &delta, list.as_ref()).await,
        };
        written.map_err(|error| at(place, error))
    }
}

async fn write_rows(
    outbox: &Outbox,
    flight: WriteDeadline,
    place: &ListAddress,
    delta: &ListDelta,
    list: Option<&StoredList>,
) -> Result<ListWrite> {
    let operations = delta.operations((&place.partition_key, &place.row_key), list)?;
    let is_gone = operations.first().is_none_or(|operation| operation.verb() == Verb::Delete);
    let mut batch = Batch::new(&place.table);
    for operation in operations {
        batch.push(guarded(outbox, operation)?).map_err(too_large)?;
    }
    flight.run(outbox, outbox.store.apply(&batch)).await.map_err(too_large)?;
    Ok(if is_gone { ListWrite::Gone } else { ListWrite::Written })
}

/// A blob is never deleted, so that whoever read another version is too late for good.
#[cfg(feature = "blob")]
async fn write_blob(
    outbox: &Outbox,
    flight: WriteDeadline,
    place: &ListAddress,
    delta: &ListDelta,
    list: Option<&BlobList>,
) -> Result<ListWrite> {
    let blobs = outbox.store.blobs.as_ref().ok_or_else(without_blobs)?;
    let name = list_blob_path(&place.table, &place.partition_key, &place.row_key)?;
    let ids = list.map(|list| &*list.ids).unwrap_or_default();
    let text = list_text_after(place, ids, delta, outbox.store.random.id())?;
    let seen = match outbox.guards.holds(Guard::DestinationVersion) {
        true => list.map(|list| list.version.clone()),
        false => blobs.read(&name).await?.map(|blob| blob.version),
    };
    flight.run(outbox, blobs.write(&name, text, seen)).await?;
    Ok(ListWrite::Kept)
}

/// Some ids are more than one transaction takes.
fn too_large(error: Error) -> Error {
    if !error.is_too_large() {
        return error;
    }
    let message = "the change of the list is more than a transaction takes: keep the list in blobs, `list(.., in_blob)`";
    Error::new(ErrorKind::TooLarge, message).with_source(error)
}
