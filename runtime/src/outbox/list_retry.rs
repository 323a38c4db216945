//! Lists elsewhere that another writer was first at: done again, in the order of a worker's pass:
//! the list, then the primaries, then the list in the version that was read.
//!
//! Only a convenience: what is not done here a worker does. Writers of one client that meet at a list
//! wait for each other, since only one of them can win.

use super::{
    deadline::WriteDeadline,
    remote_list::{ListWrite, write_lists},
    state::Outbox,
};
use crate::{
    address::RowAt,
    error::{Error, ErrorKind, Result},
    plan::outbox::{DirtyRow, ListAddress, ListMembership},
    store::{backoff, derive::derived, lists::find_lists},
};

/// Attempts at one list before it is left to a worker.
const ATTEMPTS: u32 = 4;
/// Makes one list what some primaries say now. `late`: their memberships as they were to be written.
/// The memberships as they were written, and what was made of the list.
pub(crate) async fn write_again(
    outbox: &Outbox,
    table: &str,
    place: &ListAddress,
    late: &[(&DirtyRow, &ListMembership)],
) -> Result<(Vec<ListMembership>, ListWrite)> {
    let _lock = outbox.list_locks.lock(place).await;
    for attempt in 0..ATTEMPTS {
        let flight = WriteDeadline::begin(outbox);
        let lists = find_lists(&outbox.store, vec![place.clone()]).await;
        if let Some(Err(error)) = lists.get(place) {
            return Err(error.clone());
        }
        let mut now = Vec::new();
        for (dirty, membership) in late {
            now.push(current_membership(outbox, table, dirty, membership).await?);
        }
        let all: Vec<&ListMembership> = now.iter().collect();
        match write_lists(outbox, flight, &lists, &all, true).await.remove(place) {
            Some(Ok(listed)) => return Ok((now, listed)),
            Some(Err(error)) if error.lost_race() => {
                backoff::wait(&outbox.store.random, attempt).await
            }
            Some(Err(error)) => return Err(error),
            None => break,
        }
    }
    Err(Error::new(ErrorKind::Contended, "the list was left to a worker"))
}

/// The membership as the primary says now.
async fn current_membership(
    outbox: &Outbox,
    table: &str,
    dirty: &DirtyRow,
    membership: &ListMembership,
) -> Result<ListMembership> {
    let at = RowAt::new(table, &dirty.partition_key, &dirty.primary);
    let primary = outbox.store.row(at).await?;
    let schema = outbox.known_types.of_list(&membership.address);
    let rows = match (primary, schema) {
        (Some(primary), Some(schema)) => derived(&outbox.store, table, schema, &primary).await?,
        _ => None,
    };
    let mut listed = rows.iter().flat_map(|rows| &rows.remote_lists);
    let wanted = listed.any(|listed| membership.address.is_for_list(table, listed));
    Ok(ListMembership { is_wanted: wanted, ..membership.clone() })
}
