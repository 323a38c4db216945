//! Reads stored lists, from rows or from a blob.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use futures_util::{StreamExt, stream};

use super::{
    backoff::{self, Attempt},
    rows::Store,
};
use crate::{
    access::Keys,
    address::RowAt,
    blob_port::{BlobStore, BlobVersion},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    plan::{
        IdForm, StoredList, first_and_last_spill_key,
        outbox::{BlobList, ListAddress, name_of_list_blob},
    },
    row::Row,
};

/// The number of lists that are read concurrently.
pub(crate) const LISTS_AT_ONCE: usize = 16;

/// A remote list that was read.
#[derive(Debug, Clone)]
pub(crate) enum FoundList {
    /// A list in rows, or `None` if it has no row.
    Rows(Option<StoredList>),
    /// A list in a blob, or `None` if there is no blob.
    Blob(Option<BlobList>),
}

/// The lists that were read, by address. A list that could not be read is an error.
pub(crate) type ListsByAddress = BTreeMap<ListAddress, Result<FoundList>>;

/// Reads the lists at some addresses, each once.
pub(crate) async fn find_lists(store: &Store, mut addresses: Vec<ListAddress>) -> ListsByAddress {
    // Several memberships may refer to one list, which is read once.
    addresses.sort();
    addresses.dedup();
    let found = stream::iter(addresses).map(|address| async move {
        let list = find_list(store, &address).await;
        (address, list)
    });
    found.buffer_unordered(LISTS_AT_ONCE).collect().await
}

/// Reads the lists of each row in `wanted`, row by row, until the lists take more than `limit` bytes. Always reads all
/// lists of the first row. Lists that were not read are missing in the result.
pub(crate) async fn read_lists_until_bytes(
    store: &Store,
    wanted: &[Vec<ListAddress>],
    limit: usize,
) -> ListsByAddress {
    let (mut lists, mut bytes, mut rows) = (ListsByAddress::new(), 0_usize, 0);
    let mut most = 1;
    while rows < wanted.len() && bytes <= limit {
        // Read as many lists at a time as fit according to the mean size of the previous ones, at least one row's.
        let mut next: Vec<ListAddress> = Vec::new();
        for addresses in wanted.iter().skip(rows) {
            let is_new = |one: &&ListAddress| !lists.contains_key(*one) && !next.contains(*one);
            let new: Vec<_> = addresses.iter().filter(is_new).cloned().collect();
            if !new.is_empty() && !next.is_empty() && next.len() + new.len() > most {
                break;
            }
            next.extend(new);
            rows += 1;
        }
        let found = find_lists(store, next).await;
        bytes += found.values().flatten().map(FoundList::held_bytes).sum::<usize>();
        lists.extend(found);
        let mean = (bytes / lists.len().max(1)).max(1);
        most = (limit.saturating_sub(bytes) / mean).clamp(1, LISTS_AT_ONCE);
    }
    lists
}

/// Reads a remote list from its rows or its blob. If the list does not exist, the [`FoundList`] contains `None`.
pub(crate) async fn find_list(store: &Store, address: &ListAddress) -> Result<FoundList> {
    let [table, partition_key, row_key] = address.as_row_at().table_and_key_texts();
    if address.in_blob {
        return find_blob(store, address)
            .await
            .map_err(|error| add_list_address_to_error(address, error));
    }
    let list =
        read_list_with_id_form(store, table, (partition_key, row_key), IdForm::KeyArrays).await;
    list.map(FoundList::Rows).map_err(|error| add_list_address_to_error(address, error))
}

/// Fails with `is_unsupported` for a list in a blob if the client has no blob store, or if the blob store cannot
/// compare versions and other processes may write to it.
pub(crate) async fn check_blob_store_for_list(store: &Store, address: &ListAddress) -> Result<()> {
    if address.in_blob {
        let checked = async { blob_store_of_lists(store)?.check_version_comparison().await };
        checked.await.map_err(|error| add_list_address_to_error(address, error))
    } else {
        Ok(())
    }
}

/// Returns the error for a list in a blob if the client has no blob store.
fn no_list_blob_store_error() -> Error {
    let message = "the list is kept in blobs, but the client has no blob store; set one with `Client::builder().blobs(..)`";
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the client's blob store, which contains the lists in blobs. Fails with `is_unsupported` if the client has
/// none.
fn blob_store_of_lists(store: &Store) -> Result<&dyn BlobStore> {
    store.blobs.as_deref().ok_or_else(no_list_blob_store_error)
}

/// Writes the text of a list in a blob if the blob still has the version `seen`, or does not exist if `seen` is
/// `None`.
pub(crate) async fn write_list_blob(
    store: &Store,
    at: RowAt<'_>,
    text: String,
    seen: Option<BlobVersion>,
) -> Result<()> {
    let name = name_of_list_blob(at);
    blob_store_of_lists(store)?.write_text_if_unchanged(&name, text, seen).await
}

/// Returns the version of a list's blob, or `None` if there is no blob.
pub(crate) async fn read_list_blob_version(
    store: &Store,
    at: RowAt<'_>,
) -> Result<Option<BlobVersion>> {
    let blob = blob_store_of_lists(store)?.read_text(&name_of_list_blob(at)).await?;
    Ok(blob.map(|blob| blob.version))
}

async fn find_blob(store: &Store, address: &ListAddress) -> Result<FoundList> {
    let at = address.as_row_at();
    let blob = blob_store_of_lists(store)?.read_text(&name_of_list_blob(at)).await?;
    let list = blob.map(|blob| BlobList::parse(blob, at)).transpose();
    list.map(FoundList::Blob)
}

impl FoundList {
    /// Returns about how many bytes of memory the list takes.
    fn held_bytes(&self) -> usize {
        let ids: usize = self.ids().iter().map(|id| id.len() + size_of::<String>()).sum();
        match self {
            // Each id is held three times: by row, in the list of ids, and in the rows themselves.
            Self::Rows(_) => 3 * ids,
            Self::Blob(_) => ids,
        }
    }

    /// Returns the ids in the list in stored order.
    pub(crate) fn ids(&self) -> &[String] {
        match self {
            Self::Rows(list) => list.as_ref().map(|list| &*list.ids).unwrap_or_default(),
            Self::Blob(list) => list.as_ref().map(|list| &*list.ids).unwrap_or_default(),
        }
    }
}

/// Reads a local list: its head row, and the spill rows that belong to the head's ETag. Returns `None` if the list does
/// not exist.
pub(crate) async fn read_local_list(
    store: &Store,
    table: &str,
    partition_key: &str,
    row_key: &str,
) -> Result<Option<StoredList>> {
    read_list_with_id_form(store, table, (partition_key, row_key), IdForm::RowKeys).await
}

/// Reads a list with ids of the form `of`: its head row, and the spill rows that belong to the head's ETag.
pub(crate) async fn read_list_with_id_form(
    store: &Store,
    table: &str,
    (partition_key, row_key): (&str, &str),
    of: IdForm,
) -> Result<Option<StoredList>> {
    let head = store.names().row_at(table, partition_key, row_key);
    let Some(row) = store.read_row(head).await? else { return Ok(None) };
    // The head row at the end of one attempt is reused by the next, which saves a read.
    let head_row = &Mutex::new(row);
    let list = backoff::retry_lost_races(&store.random, backoff::ATTEMPTS, || async move {
        let row = head_row.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut list = StoredList::from_head(row, of)?;
        if list.spill_row_count() == 0 {
            return Ok(Attempt::Done(Some(list)));
        }
        let (first, last) = first_and_last_spill_key(row_key, list.spill_row_count());
        let keys = Keys::partition(partition_key).rows(first.as_str()..=last.as_str());
        for spill in scan_matching_rows(store, table, keys.filter()).await? {
            list.add_spill_row(&spill)?;
        }
        // Spill rows contain no version of the list. If the head row has not changed, they belong to it.
        match store.read_row(head).await? {
            Some(again) if again.etag() == list.head_row().etag() => {
                return Ok(Attempt::Done(Some(list)));
            }
            Some(again) => *head_row.lock().unwrap_or_else(PoisonError::into_inner) = again,
            None => return Ok(Attempt::Done(None)),
        }
        Ok(Attempt::Raced)
    });
    let message = "the list kept changing while its rows were read; try again";
    list.await?.ok_or_else(|| Error::new(ErrorKind::Contended, message).at_row(head))
}

/// Reads all rows that match a filter.
async fn scan_matching_rows(store: &Store, table: &str, filter: Filter) -> Result<Vec<Row>> {
    let (mut rows, mut pages) = (Vec::new(), store.pages(table, filter));
    while let Some(page) = pages.next_page().await? {
        rows.extend(page.into_rows()?);
    }
    Ok(rows)
}

/// Adds the list's table and keys to an error.
pub(crate) fn add_list_address_to_error(address: &ListAddress, error: Error) -> Error {
    error.at_row(address.as_row_at())
}
