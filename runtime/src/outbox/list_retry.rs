//! Lists elsewhere that another writer was first at: done again, in the order of a worker's pass:
//! the list, then the primaries, then the list in the version that was read.
//!
//! Only a convenience: what is not done here a worker does. Writers of one client that meet at a list
//! wait for each other, since only one of them can win.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

use super::{
    deadline::Flight,
    remote_list::{ListWrite, find_lists, write_lists},
    reservation::derived,
};
use crate::{
    backend::Read,
    error::{Error, ErrorKind, Result},
    plan::outbox::{Dirty, ListMembership, ListPlace},
    store::backoff,
    table::Client,
};

/// Attempts at one list before it is left to a worker.
const ATTEMPTS: u32 = 4;
/// Lists that share a lane wait for each other.
const LANES: usize = 64;

/// Where writers of one client that were late at a list wait for each other.
#[derive(Debug)]
pub(crate) struct Lanes([Mutex<()>; LANES]);

impl Default for Lanes {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Lanes {
    async fn enter(&self, place: &ListPlace) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        place.hash(&mut hasher);
        let lanes = u64::try_from(LANES).unwrap_or(1);
        let lane = usize::try_from(hasher.finish() % lanes).unwrap_or_default();
        match self.0.get(lane) {
            Some(lane) => Some(lane.lock().await),
            None => None,
        }
    }
}

/// Makes one list what some primaries say now. `late`: their memberships as they were to be written.
/// The memberships as they were written, and what was made of the list.
pub(crate) async fn write_again(
    client: &Client,
    table: &str,
    place: &ListPlace,
    late: &[(&Dirty, &ListMembership)],
) -> Result<(Vec<ListMembership>, ListWrite)> {
    let _lane = client.outbox().lanes.enter(place).await;
    for attempt in 0..ATTEMPTS {
        let flight = Flight::begin(client);
        let lists = find_lists(client, vec![place.clone()]).await;
        if let Some(Err(error)) = lists.get(place) {
            return Err(error.clone());
        }
        let mut now = Vec::new();
        for (dirty, membership) in late {
            now.push(said_now(client, table, dirty, membership).await?);
        }
        let all: Vec<&ListMembership> = now.iter().collect();
        match write_lists(client, flight, &lists, &all, true).await.remove(place) {
            Some(Ok(listed)) => return Ok((now, listed)),
            Some(Err(error)) if error.lost_race() => backoff::wait(client, attempt).await,
            Some(Err(error)) => return Err(error),
            None => break,
        }
    }
    Err(Error::new(ErrorKind::Contended, "the list was left to a worker"))
}

/// The membership as the primary says now.
async fn said_now(
    client: &Client,
    table: &str,
    dirty: &Dirty,
    membership: &ListMembership,
) -> Result<ListMembership> {
    let (partition_key, row_key) = (dirty.partition_key.as_str(), dirty.primary.as_str());
    let read = Read { table, partition_key, row_key, select: None };
    let primary = client.read(read).await?;
    let schema = client.outbox().known_list(&membership.name);
    let rows = match (primary, schema) {
        (Some(primary), Some(schema)) => derived(client, table, schema, &primary).await?,
        _ => None,
    };
    let mut listed = rows.iter().flat_map(|rows| &rows.remote_lists);
    let wanted = listed.any(|listed| membership.name.is_of_list(table, listed));
    Ok(ListMembership { wanted, ..membership.clone() })
}
