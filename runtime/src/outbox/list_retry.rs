//! Writes a remote list again if another writer was first. Uses the order of a worker's pass: reads the list, then
//! the primaries, then writes the list under the version that was read.
//!
//! This only saves time, because a worker does what is not done here.

use super::{
    remote_list::{ListAfterWrite, write_lists},
    state::Outbox,
};
use crate::{
    error::{Error, ErrorKind, Result},
    plan::outbox::{ListAddress, ListMembership, PlannedDirtyRow},
    store::{
        backoff::{self, Attempt},
        derive::{derive_stored_primary, read_primary_to_derive},
        lists::find_lists,
    },
};

/// The number of attempts at one list before it is left to a worker.
const ATTEMPTS: u32 = 4;

/// Reads a list and some primaries again after an earlier write lost a race, and writes the primaries' entries into
/// the list. `late` contains the memberships (entries to add or remove) that the earlier write lost, each with the
/// dirty row of its primary. Returns the current memberships of the primaries, and the outcome of the write.
pub(crate) async fn write_list_again(
    outbox: &Outbox,
    table: &str,
    address: &ListAddress,
    late: &[(&PlannedDirtyRow, &ListMembership)],
) -> Result<(Vec<ListMembership>, ListAfterWrite)> {
    // Only one of the writers that collide at a list can win, so writers of one client take turns.
    let lock = vec![outbox.locks.key_of_list(address)];
    let write = write_list_in_turn(outbox, table, address, late);
    outbox.locks.run_with_locks(lock, write).await
}

async fn write_list_in_turn(
    outbox: &Outbox,
    table: &str,
    address: &ListAddress,
    late: &[(&PlannedDirtyRow, &ListMembership)],
) -> Result<(Vec<ListMembership>, ListAfterWrite)> {
    let written = backoff::retry_lost_races(&outbox.store.random, ATTEMPTS, || async {
        // Each attempt has a new deadline, because it reads list and primaries again.
        let deadline = outbox.start_deadline();
        // Read the list before the primaries. In the other order, this could overwrite a list that was written in
        // between from a newer primary.
        let lists = find_lists(&outbox.store, vec![address.clone()]).await;
        if let Some(Err(error)) = lists.get(address) {
            return Err(error.clone());
        }
        let mut current = Vec::new();
        for (dirty, membership) in late {
            current.push(current_membership(outbox, table, dirty, membership).await?);
        }
        let all: Vec<&ListMembership> = current.iter().collect();
        match write_lists(outbox, &deadline, &lists, &all, true).await.remove(address) {
            Some(Ok(written)) => Ok(Attempt::Done((current, written))),
            // Lost again: a writer of another client was first.
            Some(Err(error)) if error.is_lost_race() => Ok(Attempt::Raced),
            Some(Err(error)) => Err(error),
            None => Err(left_to_worker_error()),
        }
    });
    written.await?.ok_or_else(left_to_worker_error)
}

fn left_to_worker_error() -> Error {
    Error::new(ErrorKind::Contended, "the list was left to a worker")
}

/// Reads a primary and returns the membership that its entry should currently have.
async fn current_membership(
    outbox: &Outbox,
    table: &str,
    dirty: &PlannedDirtyRow,
    membership: &ListMembership,
) -> Result<ListMembership> {
    let at = outbox.store.names().row_at(table, &dirty.partition_key, &dirty.primary);
    let schema = outbox.named(at, &membership.address).schema();
    let primary = read_primary_to_derive(&outbox.store, at, schema).await?;
    let rows = match (primary, schema) {
        (Some(primary), Some(schema)) => {
            derive_stored_primary(&outbox.store, table, schema, &primary).await?
        }
        // A primary that is gone or has an unknown type derives no entry.
        _ => None,
    };
    let mut listed = rows.iter().flat_map(|rows| &rows.remote_lists);
    let wanted = listed.any(|listed| membership.address.is_same_address_as_list(at.table, listed));
    Ok(ListMembership { is_wanted: wanted, ..membership.clone() })
}
