//! Lists elsewhere: read under a version, and written under it, all changes of one list at once.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, stream};

use super::{commit::read_list_of, deadline::Flight, fast_path::guarded, guard::Guard};
#[cfg(feature = "blob")]
use crate::blob::{BlobList, changed_list, list_name};
use crate::{
    batch::{Batch, Verb},
    error::{Error, ErrorKind, Result},
    plan::{
        Ids, ListDelta, StoredList,
        outbox::{ListMembership, ListPlace},
    },
    table::Client,
};

/// Lists that are read or written at a time.
const AT_ONCE: usize = 16;

/// A list elsewhere as it was read.
#[derive(Debug, Clone)]
pub(crate) enum FoundList {
    /// In rows; `None`: it is not there.
    Rows(Option<StoredList>),
    /// In a blob; `None`: it is not there.
    #[cfg(feature = "blob")]
    Blob(Option<BlobList>),
}

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

/// Lists by their places, as far as they could be read.
pub(crate) type Lists = BTreeMap<ListPlace, Result<FoundList>>;

/// What was made of lists.
pub(crate) type ListsWritten = BTreeMap<ListPlace, Result<ListWrite>>;

/// Reads the lists at some places, once each.
pub(crate) async fn find_lists(client: &Client, mut places: Vec<ListPlace>) -> Lists {
    places.sort();
    places.dedup();
    let found = stream::iter(places).map(|place| async move {
        let list = find_list(client, &place).await;
        (place, list)
    });
    found.buffer_unordered(AT_ONCE).collect().await
}

/// Makes every list what the memberships say, one write for each list.
pub(crate) async fn write_lists(
    client: &Client,
    flight: Flight,
    lists: &Lists,
    memberships: &[&ListMembership],
    touch: bool,
) -> ListsWritten {
    let mut deltas: BTreeMap<ListPlace, ListDelta> = BTreeMap::new();
    for membership in memberships {
        let delta = deltas.entry(membership.name.list_place()).or_default();
        delta.of = Ids::Anywhere;
        let side = if membership.wanted { &mut delta.add } else { &mut delta.remove };
        side.push(membership.entry.clone());
    }
    let mut writes = Vec::new();
    for (place, delta) in deltas {
        if let Some(Ok(list)) = lists.get(&place) {
            writes.push(async move {
                let written = list.write(client, flight, &place, delta, touch).await;
                (place, written)
            });
        }
    }
    stream::iter(writes).buffer_unordered(AT_ONCE).collect().await
}

/// Whether nobody else can undo it any more: it was written, in a version that is still the list's or
/// older than it.
pub(crate) fn is_settled(client: &Client, membership: &ListMembership, listed: ListWrite) -> bool {
    let guards = client.outbox().guards;
    match listed {
        ListWrite::Kept => true,
        ListWrite::Written if membership.wanted => true,
        ListWrite::Same if membership.wanted => !guards.hold(Guard::EntryWritten),
        // A list that is deleted later has no version: an old writer could create it again.
        ListWrite::Written | ListWrite::Gone | ListWrite::Same => {
            !guards.hold(Guard::EntrySecondLook)
        }
    }
}

/// Reads a list.
pub(crate) async fn find_list(client: &Client, place: &ListPlace) -> Result<FoundList> {
    let ListPlace { table, partition_key, row_key, .. } = place;
    if place.in_blob {
        return find_blob(client, place).await.map_err(|error| at(place, error));
    }
    let list = read_list_of(client, table, (partition_key, row_key), Ids::Anywhere).await;
    list.map(FoundList::Rows).map_err(|error| at(place, error))
}

/// Refuses to go on without a place for blobs.
pub(crate) fn need_blobs(client: &Client, place: &ListPlace) -> Result<()> {
    match place.in_blob && !client.has_blobs() {
        true => Err(at(place, without_blobs())),
        false => Ok(()),
    }
}

fn without_blobs() -> Error {
    let message =
        "the list is kept in blobs, and the client has none: `Client::builder().blobs(..)`";
    Error::new(ErrorKind::Unsupported, message)
}

/// What the blob of a list is called.
#[cfg(feature = "blob")]
pub(crate) fn blob_name(table: &str, partition_key: &str, row_key: &str) -> Result<String> {
    list_name(table, partition_key, row_key).map(|name| name.to_string())
}

#[cfg(not(feature = "blob"))]
pub(crate) fn blob_name(_: &str, _: &str, _: &str) -> Result<String> {
    Err(without_blobs())
}

#[cfg(feature = "blob")]
async fn find_blob(client: &Client, place: &ListPlace) -> Result<FoundList> {
    let blobs = client.blobs.as_ref().ok_or_else(without_blobs)?;
    let name = list_name(&place.table, &place.partition_key, &place.row_key)?;
    let blob = blobs.read(&name).await?;
    let list = blob.map(|blob| BlobList::of(blob, place)).transpose()?;
    Ok(FoundList::Blob(list))
}

#[cfg(not(feature = "blob"))]
#[allow(clippy::unused_async, reason = "the other form awaits")]
async fn find_blob(_: &Client, _: &ListPlace) -> Result<FoundList> {
    Err(without_blobs())
}

impl FoundList {
    /// What is in it, in its order.
    pub(crate) fn ids(&self) -> &[String] {
        match self {
            Self::Rows(list) => list.as_ref().map(|list| &*list.ids).unwrap_or_default(),
            #[cfg(feature = "blob")]
            Self::Blob(list) => list.as_ref().map(|list| &*list.ids).unwrap_or_default(),
        }
    }

    /// Makes the list what the delta says, in the version that was read; `touch`: also where it is
    /// so already, so that whoever read that version is too late.
    async fn write(
        &self,
        client: &Client,
        flight: Flight,
        place: &ListPlace,
        delta: ListDelta,
        touch: bool,
    ) -> Result<ListWrite> {
        let ids: HashSet<&String> = self.ids().iter().collect();
        let is_so = delta.add.iter().all(|id| ids.contains(id))
            && !delta.remove.iter().any(|id| ids.contains(id));
        let is_touched = touch && client.outbox().guards.hold(Guard::EntryWritten);
        if is_so && (!is_touched || delta.add.is_empty()) {
            return Ok(ListWrite::Same);
        }
        let written = match self {
            Self::Rows(list) => write_rows(client, flight, place, &delta, list.as_ref()).await,
            #[cfg(feature = "blob")]
            Self::Blob(list) => write_blob(client, flight, place, &delta, list.as_ref()).await,
        };
        written.map_err(|error| at(place, error))
    }
}

async fn write_rows(
    client: &Client,
    flight: Flight,
    place: &ListPlace,
    delta: &ListDelta,
    list: Option<&StoredList>,
) -> Result<ListWrite> {
    let operations = delta.operations((&place.partition_key, &place.row_key), list)?;
    let is_gone = operations.first().is_none_or(|operation| operation.verb() == Verb::Delete);
    let mut batch = Batch::new(&place.table);
    for operation in operations {
        batch.push(guarded(client, operation)?).map_err(too_large)?;
    }
    flight.run(client, client.apply(&batch)).await.map_err(too_large)?;
    Ok(if is_gone { ListWrite::Gone } else { ListWrite::Written })
}

/// A blob is never deleted, so that whoever read another version is too late for good.
#[cfg(feature = "blob")]
async fn write_blob(
    client: &Client,
    flight: Flight,
    place: &ListPlace,
    delta: &ListDelta,
    list: Option<&BlobList>,
) -> Result<ListWrite> {
    let blobs = client.blobs.as_ref().ok_or_else(without_blobs)?;
    let name = list_name(&place.table, &place.partition_key, &place.row_key)?;
    let ids = list.map(|list| &*list.ids).unwrap_or_default();
    let text = changed_list(place, ids, delta, client.outbox().chance.id())?;
    let seen = match client.outbox().guards.hold(Guard::DestinationVersion) {
        true => list.map(|list| list.version.clone()),
        false => blobs.read(&name).await?.map(|blob| blob.version),
    };
    flight.run(client, blobs.write(&name, text, seen)).await?;
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

fn at(place: &ListPlace, error: Error) -> Error {
    error.in_table(&place.table).at_keys(&place.partition_key, &place.row_key)
}
