//! Registers a partition before the client leaves open work there: inserts its fence row, then its directory marker.
//! Workers find the work through the marker without scanning tables.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, stream};

use super::{registrations::Registration, state::Outbox};
use crate::{
    batch::{Batch, Operation, Written},
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    guard::Guard,
    limits::BATCH_OPERATIONS,
    plan::outbox::{DIRECTORY, Fence},
    single_flight::FlightSlot,
    store::backoff::{self, Attempt},
};

/// The number of attempts to write a fence or a marker whose answer was lost.
const ATTEMPTS: u32 = 4;

/// The number of fences that are inserted concurrently when many partitions are registered.
const FENCES_AT_ONCE: usize = 32;

/// A registration in progress: its table, its fence, and the slot for the result.
type PendingRegistration = (String, Fence, Arc<FlightSlot<Registration>>);

/// Returns the client's fence for a partition: the row that registers the client there, and that each transaction with
/// open work also writes. Inserts the fence and its directory marker first if the client is not registered.
pub(crate) async fn ensure_registered_fence(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
) -> Result<Fence> {
    let slot = outbox.registrations.flight_slot_of_partition(
        table,
        partition_key,
        outbox.options.close_idle_after,
    );
    let find = |registration: &Registration| registration.complete_fence().cloned().map(Ok);
    slot.find_or_run(find, async || {
        let fence = register_partition(outbox, table, partition_key, &slot).await?;
        slot.lock_state().set_complete(&fence);
        Ok(fence)
    })
    .await
}

/// Registers many partitions together, with one transaction for the directory markers of each shard. Ignores
/// failures.
pub(crate) async fn register_partitions(outbox: &Outbox, partitions: Vec<(String, String)>) {
    let mut slots = Vec::new();
    for (table, key) in partitions {
        let slot = outbox.registrations.flight_slot_of_partition(
            &table,
            &key,
            outbox.options.close_idle_after,
        );
        let is_complete = slot.lock_state().complete_fence().is_some();
        if !is_complete {
            slots.push((table, key, slot));
        }
    }
    // Ignore failures: a writer that needs a registration tries again and reports its failure.
    let fences = stream::iter(slots).map(|(table, parse_key, slot)| async move {
        let fence = insert_fence(outbox, &table, &parse_key, &slot).await.ok()?;
        Some((table, fence, slot))
    });
    // Each fence is in its own partition and costs one request. Markers of a shard share a request.
    let fences = fences.buffer_unordered(FENCES_AT_ONCE).filter_map(std::future::ready);
    let mut shards: BTreeMap<String, Vec<PendingRegistration>> = BTreeMap::new();
    for pending in fences.collect::<Vec<_>>().await {
        shards.entry(pending.1.shard.clone()).or_default().push(pending);
    }
    for shard in shards.into_values() {
        for together in shard.chunks(BATCH_OPERATIONS) {
            if insert_markers(outbox, together).await.is_ok() {
                for (_, fence, slot) in together {
                    slot.lock_state().set_complete(fence);
                }
            }
        }
    }
}

/// Writes outbox rows of one partition in one transaction with the fence. Returns the answers for the rows, then
/// the fence's. If a worker closed the partition in the meantime, registers again.
pub(crate) async fn record_outbox_rows(
    outbox: &Outbox,
    table: &str,
    operations: Vec<Operation>,
) -> Result<Vec<Written>> {
    let Some(first) = operations.first() else { return Ok(Vec::new()) };
    let (partition_key, operations) = (first.row().partition_key(), &operations);
    let recorded =
        backoff::retry_lost_races(&outbox.store.random, backoff::ATTEMPTS, || async move {
            let fence = ensure_registered_fence(outbox, table, partition_key).await?;
            let touch = fence.touch_operation(outbox.random_fence_beat())?;
            let touch = outbox.guards.value_if_guarded(Guard::FenceInTransaction, touch);
            let mut batch = Batch::new(table);
            for operation in operations.iter().cloned().chain(touch) {
                batch.push(operation)?;
            }
            match outbox.store.apply(&batch).await {
                // The fence is gone because a worker closed the idle partition. Register again.
                Err(error) if error.is_row_missing() => {
                    outbox.registrations.forget_registration(table, &fence);
                    Ok(Attempt::Raced)
                }
                answer => answer.map(Attempt::Done),
            }
        });
    recorded.await?.ok_or_else(|| {
        let message = "the partition's registration was closed again each time; try again later";
        Error::new(ErrorKind::Contended, message).in_table(table)
    })
}

async fn register_partition(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    slot: &FlightSlot<Registration>,
) -> Result<Fence> {
    if !outbox.guards.is_guard_enabled(Guard::FenceFirst) {
        let fence = new_fence(outbox, table, partition_key);
        insert_marker(outbox, table, &fence).await?;
        outbox.store.apply(&Batch::single(table, fence.insert_operation()?)?).await?;
        return Ok(fence);
    }
    // Write the fence before the marker. A worker may delete a marker without a fence, because no work can be
    // recorded under a missing fence.
    let fence = insert_fence(outbox, table, partition_key, slot).await?;
    insert_marker(outbox, table, &fence).await?;
    Ok(fence)
}

/// Returns the fence that an earlier attempt inserted without a directory marker, or inserts a new fence.
async fn insert_fence(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    slot: &FlightSlot<Registration>,
) -> Result<Fence> {
    let without_marker = slot.lock_state().without_marker.clone();
    if let Some(fence) = without_marker {
        return Ok(fence);
    }
    let fence = insert_new_fence(outbox, table, partition_key).await?;
    // Remember the fence before writing the marker. If that fails, the next attempt uses the same fence, and an
    // unavailable directory does not cause one fence per attempt.
    slot.lock_state().without_marker = Some(fence.clone());
    Ok(fence)
}

/// Inserts the directory markers for fences of one shard in one transaction. If that fails, inserts them one by
/// one, because some may already exist.
async fn insert_markers(outbox: &Outbox, fences: &[PendingRegistration]) -> Result<()> {
    if fences.len() > 1 {
        let mut batch = Batch::new(DIRECTORY);
        for (table, fence, _) in fences {
            batch.push(fence.insert_marker(table)?)?;
        }
        // One existing marker fails the whole transaction, so then try each separately.
        if outbox.store.apply(&batch).await.is_ok() {
            return Ok(());
        }
    }
    for (table, fence, _) in fences {
        insert_marker(outbox, table, fence).await?;
    }
    Ok(())
}

fn new_fence(outbox: &Outbox, table: &str, partition_key: &str) -> Fence {
    if outbox.guards.is_guard_enabled(Guard::FenceOfItsOwn) {
        Fence::new(table, partition_key, outbox.store.random.random_id(), outbox.clock.now())
    } else {
        // The single fence that all processes of a simulation share.
        Fence::new(table, partition_key, "0".repeat(24), Ticks::UNIX_EPOCH)
    }
}

/// Inserts a new fence. If the answer is lost, inserts another one with a new id.
async fn insert_new_fence(outbox: &Outbox, table: &str, partition_key: &str) -> Result<Fence> {
    let mut attempt = 1;
    loop {
        let fence = new_fence(outbox, table, partition_key);
        match outbox.store.apply(&Batch::single(table, fence.insert_operation()?)?).await {
            Ok(_) => return Ok(fence),
            Err(error)
                if error.is_conflict() && !outbox.guards.is_guard_enabled(Guard::FenceOfItsOwn) =>
            {
                return Ok(fence);
            }
            // The fence may exist or arrive later, and a worker may close it at any time, so never use its id.
            Err(error) if error.is_answer_lost() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Inserts the directory marker of a fence. Creates the directory table if it is missing. Succeeds if the marker
/// exists.
async fn insert_marker(outbox: &Outbox, table: &str, fence: &Fence) -> Result<()> {
    let mut attempt = 1;
    loop {
        match outbox.store.apply(&Batch::single(DIRECTORY, fence.insert_marker(table)?)?).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_table_missing() && attempt < ATTEMPTS => {
                outbox.store.create_table_if_not_exists(DIRECTORY).await?;
            }
            // Only this registration writes this marker, so an earlier attempt succeeded.
            Err(error) if error.row_exists() => return Ok(()),
            Err(error) if error.is_answer_lost() && attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}
