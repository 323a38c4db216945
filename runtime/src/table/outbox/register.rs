//! Registrations: that a process may leave open work in a partition.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::OnceCell, time::Instant};

use super::Guard;
use crate::{
    edm::Ticks,
    error::{Error, Result},
    plan::outbox::{DIRECTORY, Fence},
    table::Client,
};

/// Attempts at a fence or a marker whose answer was lost.
const ATTEMPTS: u32 = 4;

/// Registrations that are kept without asking whether they are still in use.
const KEPT: usize = 4096;

/// The registrations of a client, by table and partition.
#[derive(Debug, Default)]
pub(crate) struct Registrations(Mutex<HashMap<(String, String), Registration>>);

/// A registration; tasks that need it at once wait for the one that makes it.
#[derive(Debug)]
struct Registration {
    fence: Arc<OnceCell<Fence>>,
    used: Instant,
}

impl Registrations {
    /// The fence of the client's registration for a partition, which is made where there is none.
    pub(crate) async fn fence(
        &self,
        client: &Client,
        table: &str,
        partition_key: &str,
    ) -> Result<Fence> {
        let cell = self.cell(client, table, partition_key);
        let made = cell.get_or_try_init(|| register(client, table, partition_key)).await;
        made.cloned()
    }

    fn cell(&self, client: &Client, table: &str, partition_key: &str) -> Arc<OnceCell<Fence>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if all.len() > KEPT {
            // One that is forgotten while its fence stands is closed by a worker.
            let lease = client.outbox().options.lease;
            all.retain(|_, registration| now.duration_since(registration.used) < lease);
        }
        let key = (table.to_ascii_lowercase(), partition_key.to_owned());
        let registration =
            all.entry(key).or_insert_with(|| Registration { fence: Arc::default(), used: now });
        registration.used = now;
        registration.fence.clone()
    }

    /// Forgets a registration that was closed.
    pub(crate) fn forget(&self, table: &str, closed: &Fence) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (table.to_ascii_lowercase(), closed.partition_key.clone());
        if all.get(&key).is_some_and(|registration| registration.fence.get() == Some(closed)) {
            all.remove(&key);
        }
    }
}

async fn register(client: &Client, table: &str, partition_key: &str) -> Result<Fence> {
    let outbox = client.outbox();
    if !outbox.guards.hold(Guard::FenceFirst) {
        let fence = new_fence(client, table, partition_key);
        mark(client, table, &fence).await?;
        client.apply_one(table, fence.raised()?).await?;
        return Ok(fence);
    }
    let fence = raise(client, table, partition_key).await?;
    mark(client, table, &fence).await?;
    Ok(fence)
}

fn new_fence(client: &Client, table: &str, partition_key: &str) -> Fence {
    let outbox = client.outbox();
    match outbox.guards.hold(Guard::FenceOfItsOwn) {
        true => Fence::new(table, partition_key, outbox.chance.id(), outbox.clock.now()),
        false => Fence::new(table, partition_key, "0".repeat(24), Ticks::UNIX_EPOCH),
    }
}

/// Puts a fence up. One whose answer was lost is forgotten: it may be there or come yet, and nobody
/// uses it.
async fn raise(client: &Client, table: &str, partition_key: &str) -> Result<Fence> {
    let mut attempt = 1;
    loop {
        let fence = new_fence(client, table, partition_key);
        match client.apply_one(table, fence.raised()?).await {
            Ok(_) => return Ok(fence),
            Err(error)
                if error.is_conflict() && !client.outbox().guards.hold(Guard::FenceOfItsOwn) =>
            {
                return Ok(fence);
            }
            Err(error) if is_lost(&error) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Puts the marker of a fence into the directory; one whose answer was lost is sent again.
async fn mark(client: &Client, table: &str, fence: &Fence) -> Result<()> {
    let mut attempt = 1;
    loop {
        match client.apply_one(DIRECTORY, fence.marked(table)?).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some("TableNotFound") && attempt < ATTEMPTS => {
                client.create_table_if_missing(DIRECTORY).await?;
            }
            Err(error) if error.is_conflict() => return Ok(()),
            Err(error) if is_lost(&error) && attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

/// Whether it is unknown what became of the request.
fn is_lost(error: &Error) -> bool {
    error.is_ambiguous() || error.is_backend()
}
