//! Registering a partition: its fence is inserted and its marker written into the directory before
//! the client leaves open work there, so that workers find the work without scanning tables.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, stream};

use super::{guard::Guard, registrations::Slot, state::Outbox};
use crate::{
    batch::{Batch, Operation, Written},
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    limits::BATCH_OPERATIONS,
    plan::outbox::{DIRECTORY, Fence},
    store::backoff,
};

/// Attempts at a fence or a marker whose answer was lost.
const ATTEMPTS: u32 = 4;

/// Fences that are inserted at a time, where many partitions are registered.
const FENCES_AT_ONCE: usize = 32;

/// Returns the fence of the client's registration for a partition; registers if there is none.
pub(crate) async fn fence(outbox: &Outbox, table: &str, partition_key: &str) -> Result<Fence> {
    let slot = outbox.registrations.slot(table, partition_key, outbox.options.lease);
    let made = slot.made.get_or_try_init(|| register(outbox, table, partition_key, &slot));
    made.await.cloned()
}

/// Registers many partitions at once: the markers of one shard of the directory are written
/// together. A failure is not reported here; whoever needs the registration tries again.
pub(crate) async fn register_all(outbox: &Outbox, partitions: Vec<(String, String)>) {
    let mut slots = Vec::new();
    for (table, key) in partitions {
        let slot = outbox.registrations.slot(&table, &key, outbox.options.lease);
        if !slot.made.initialized() {
            slots.push((table, key, slot));
        }
    }
    let fences = stream::iter(slots).map(|(table, key, slot)| async move {
        let fence = raise_for(outbox, &table, &key, &slot).await.ok()?;
        Some((table, fence, slot))
    });
    let fences = fences.buffer_unordered(FENCES_AT_ONCE).filter_map(std::future::ready);
    let mut shards: BTreeMap<String, Vec<(String, Fence, Arc<Slot>)>> = BTreeMap::new();
    for one in fences.collect::<Vec<_>>().await {
        shards.entry(one.1.shard.clone()).or_default().push(one);
    }
    for shard in shards.into_values() {
        for together in shard.chunks(BATCH_OPERATIONS) {
            let marked = mark_together(outbox, together).await;
            for (_, fence, slot) in together.iter().filter(|_| marked.is_ok()) {
                drop(slot.made.set(fence.clone()));
            }
        }
    }
}

/// Writes rows of the outbox into one partition together with its fence; returns the answers for
/// the rows, then the fence's. Registers again if a worker closed the partition in between.
pub(crate) async fn record(
    outbox: &Outbox,
    table: &str,
    operations: Vec<Operation>,
) -> Result<Vec<Written>> {
    let Some(first) = operations.first() else { return Ok(Vec::new()) };
    let partition_key = first.row().partition_key().to_owned();
    for attempt in 0..backoff::ATTEMPTS {
        let fence = fence(outbox, table, &partition_key).await?;
        let mut batch = Batch::new(table);
        for operation in &operations {
            batch.push(operation.clone())?;
        }
        if outbox.guards.holds(Guard::FenceInTransaction) {
            batch.push(fence.touch(outbox.beat())?)?;
        }
        match outbox.store.apply(&batch).await {
            Err(error) if error.is_row_missing() => {
                outbox.registrations.forget(table, &fence);
            }
            answer => return answer,
        }
        backoff::wait(&outbox.store.random, attempt).await;
    }
    let message = "the partition's registration was closed again and again";
    Err(Error::new(ErrorKind::Contended, message).in_table(table))
}

async fn register(outbox: &Outbox, table: &str, partition_key: &str, slot: &Slot) -> Result<Fence> {
    if !outbox.guards.holds(Guard::FenceFirst) {
        let fence = new_fence(outbox, table, partition_key);
        mark(outbox, table, &fence).await?;
        outbox.store.apply_one(table, fence.insert()?).await?;
        return Ok(fence);
    }
    let fence = raise_for(outbox, table, partition_key, slot).await?;
    mark(outbox, table, &fence).await?;
    Ok(fence)
}

/// The fence that an earlier attempt put up, or a new one.
async fn raise_for(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    slot: &Slot,
) -> Result<Fence> {
    if let Some(fence) = slot.unmarked() {
        return Ok(fence);
    }
    let fence = raise(outbox, table, partition_key).await?;
    slot.keep_unmarked(&fence);
    Ok(fence)
}

/// Puts the markers of one shard into the directory; one by one where some are there already, or it
/// is not known.
async fn mark_together(outbox: &Outbox, fences: &[(String, Fence, Arc<Slot>)]) -> Result<()> {
    if fences.len() > 1 {
        let mut batch = Batch::new(DIRECTORY);
        for (table, fence, _) in fences {
            batch.push(fence.insert_marker(table)?)?;
        }
        if outbox.store.apply(&batch).await.is_ok() {
            return Ok(());
        }
    }
    for (table, fence, _) in fences {
        mark(outbox, table, fence).await?;
    }
    Ok(())
}

fn new_fence(outbox: &Outbox, table: &str, partition_key: &str) -> Fence {
    match outbox.guards.holds(Guard::FenceOfItsOwn) {
        true => Fence::new(table, partition_key, outbox.store.random.id(), outbox.clock.now()),
        false => Fence::new(table, partition_key, "0".repeat(24), Ticks::UNIX_EPOCH),
    }
}

/// Puts a fence up. One whose answer was lost is forgotten: it may be there or come yet, and nobody
/// uses it.
async fn raise(outbox: &Outbox, table: &str, partition_key: &str) -> Result<Fence> {
    let mut attempt = 1;
    loop {
        let fence = new_fence(outbox, table, partition_key);
        match outbox.store.apply_one(table, fence.insert()?).await {
            Ok(_) => return Ok(fence),
            Err(error) if error.is_conflict() && !outbox.guards.holds(Guard::FenceOfItsOwn) => {
                return Ok(fence);
            }
            Err(error) if error.is_answer_lost() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Puts the marker of a fence into the directory; one whose answer was lost is sent again.
async fn mark(outbox: &Outbox, table: &str, fence: &Fence) -> Result<()> {
    let mut attempt = 1;
    loop {
        match outbox.store.apply_one(DIRECTORY, fence.insert_marker(table)?).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_table_missing() && attempt < ATTEMPTS => {
                outbox.store.create_table_if_not_exists(DIRECTORY).await?;
            }
            Err(error) if error.row_exists() => return Ok(()),
            Err(error) if error.is_answer_lost() && attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}
