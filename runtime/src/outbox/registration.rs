//! Registrations: that a process may leave open work in a partition.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{StreamExt, stream};
use tokio::{sync::OnceCell, time::Instant};

use super::guard::Guard;
use crate::{
    batch::Batch,
    edm::Ticks,
    error::{Error, Result},
    limits::BATCH_OPERATIONS,
    plan::outbox::{DIRECTORY, Fence},
    table::Client,
};

/// Attempts at a fence or a marker whose answer was lost.
const ATTEMPTS: u32 = 4;

/// Registrations that are kept without asking whether they are still in use.
const KEPT: usize = 4096;

/// Fences that are put up at a time, where many are.
const RAISED_AT_ONCE: usize = 32;

/// The registrations of a client, by table and partition.
#[derive(Debug, Default)]
pub(crate) struct Registrations(Mutex<HashMap<(String, String), Registration>>);

/// A registration; tasks that need it at once wait for the one that makes it.
#[derive(Debug)]
struct Registration {
    slot: Arc<Slot>,
    used: Instant,
}

#[derive(Debug, Default)]
struct Slot {
    made: OnceCell<Fence>,
    /// A fence that stands, and whose marker could not be put into the directory: the next attempt
    /// goes on with it, so that a directory that is down does not fill partitions with fences.
    raised: Mutex<Option<Fence>>,
}

impl Slot {
    fn raised(&self) -> Option<Fence> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn raise(&self, fence: &Fence) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(fence.clone());
    }
}

impl Registrations {
    /// The fence of the client's registration for a partition, which is made where there is none.
    pub(crate) async fn fence(
        &self,
        client: &Client,
        table: &str,
        partition_key: &str,
    ) -> Result<Fence> {
        let slot = self.slot(client, table, partition_key);
        let made = slot.made.get_or_try_init(|| register(client, table, partition_key, &slot));
        made.await.cloned()
    }

    /// Registers for many partitions at once: the markers of one shard go together. What fails is
    /// left to those who need it.
    pub(crate) async fn prepare(&self, client: &Client, places: Vec<(String, String)>) {
        let mut slots = Vec::new();
        for (table, key) in places {
            let slot = self.slot(client, &table, &key);
            if !slot.made.initialized() {
                slots.push((table, key, slot));
            }
        }
        let raised = stream::iter(slots).map(|(table, key, slot)| async move {
            let fence = raise_for(client, &table, &key, &slot).await.ok()?;
            Some((table, fence, slot))
        });
        let raised = raised.buffer_unordered(RAISED_AT_ONCE).filter_map(std::future::ready);
        let mut shards: BTreeMap<String, Vec<(String, Fence, Arc<Slot>)>> = BTreeMap::new();
        for one in raised.collect::<Vec<_>>().await {
            shards.entry(one.1.shard.clone()).or_default().push(one);
        }
        for shard in shards.into_values() {
            for together in shard.chunks(BATCH_OPERATIONS) {
                let marked = mark_together(client, together).await;
                for (_, fence, slot) in together.iter().filter(|_| marked.is_ok()) {
                    drop(slot.made.set(fence.clone()));
                }
            }
        }
    }

    /// Whether the client has a registration for a partition.
    pub(crate) fn has(&self, table: &str, partition_key: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (table.to_ascii_lowercase(), partition_key.to_owned());
        all.get(&key).is_some_and(|registration| registration.slot.made.initialized())
    }

    fn slot(&self, client: &Client, table: &str, partition_key: &str) -> Arc<Slot> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if all.len() > KEPT {
            // One that is forgotten while its fence stands is closed by a worker.
            let lease = client.outbox().options.lease;
            all.retain(|_, registration| now.duration_since(registration.used) < lease);
        }
        let key = (table.to_ascii_lowercase(), partition_key.to_owned());
        let registration =
            all.entry(key).or_insert_with(|| Registration { slot: Arc::default(), used: now });
        registration.used = now;
        registration.slot.clone()
    }

    /// Forgets a registration that was closed.
    pub(crate) fn forget(&self, table: &str, closed: &Fence) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (table.to_ascii_lowercase(), closed.partition_key.clone());
        if all.get(&key).is_some_and(|registration| registration.slot.made.get() == Some(closed)) {
            all.remove(&key);
        }
    }
}

async fn register(client: &Client, table: &str, partition_key: &str, slot: &Slot) -> Result<Fence> {
    let outbox = client.outbox();
    if !outbox.guards.hold(Guard::FenceFirst) {
        let fence = new_fence(client, table, partition_key);
        mark(client, table, &fence).await?;
        client.apply_one(table, fence.raised()?).await?;
        return Ok(fence);
    }
    let fence = raise_for(client, table, partition_key, slot).await?;
    mark(client, table, &fence).await?;
    Ok(fence)
}

/// The fence that an earlier attempt put up, or a new one.
async fn raise_for(
    client: &Client,
    table: &str,
    partition_key: &str,
    slot: &Slot,
) -> Result<Fence> {
    if let Some(fence) = slot.raised() {
        return Ok(fence);
    }
    let fence = raise(client, table, partition_key).await?;
    slot.raise(&fence);
    Ok(fence)
}

/// Puts the markers of one shard into the directory; one by one where some are there already, or it
/// is not known.
async fn mark_together(client: &Client, fences: &[(String, Fence, Arc<Slot>)]) -> Result<()> {
    if fences.len() > 1 {
        let mut batch = Batch::new(DIRECTORY);
        for (table, fence, _) in fences {
            batch.push(fence.marked(table)?)?;
        }
        if client.apply(&batch).await.is_ok() {
            return Ok(());
        }
    }
    for (table, fence, _) in fences {
        mark(client, table, fence).await?;
    }
    Ok(())
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
            Err(error) if error.is_table_missing() && attempt < ATTEMPTS => {
                client.create_table_if_not_exists(DIRECTORY).await?;
            }
            Err(error) if error.row_exists() => return Ok(()),
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
