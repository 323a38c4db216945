//! Writes expiry markers: one row for each hour and partition in which rows expire. A marker is written before the
//! first such row, and workers find the partition through it.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use tokio::time::Instant;

use super::state::Outbox;
use crate::{
    backend::{Rows, ScanRequest},
    batch::{Batch, Deadline, Verb},
    edm::{Ticks, ValueRef},
    error::{Error, Result},
    plan::{
        Effect,
        outbox::{EXPIRY, ExpiryHour, ExpiryMarker, expiry_markers_before},
    },
    server_clock::later_time,
    store::backoff::ATTEMPTS,
};

/// The minimum time between the choice of a marker and the end of the marker's hour.
const MIN_LEAD: Duration = Duration::from_secs(60);

/// After this time, a client asks the store for its time again.
const ASK_AGAIN: Duration = Duration::from_secs(3600);

/// The number of markers that are written concurrently.
const MARKERS_AT_ONCE: usize = 32;

/// How long a transaction may rely on markers at most.
const MAX_RELIANCE: Duration = Duration::from_secs(24 * 3600);

/// Writes the markers for the rows in some effects, unless this client knows that they exist. Returns the deadline
/// until which these markers may be relied on, or `None` if no row expires. A worker deletes a marker one write
/// deadline after its hour, by the store's time. A row must therefore be sent before the marker's hour ends, and a
/// row whose own hour has passed gets a marker of the current hour.
pub(crate) fn write_markers_of_effects<'w>(
    outbox: &'w Outbox,
    table: &'w str,
    effects: &'w [Arc<Effect>],
) -> BoxFuture<'w, Result<Option<Deadline>>> {
    Box::pin(async move {
        let mut expiring = Vec::new();
        for effect in effects {
            expiring.extend(expiries_of_effect(effect)?);
        }
        write_expiry_markers(outbox, table, expiring).await
    })
}

/// Writes the markers for rows of a table, given by type, PartitionKey and time of expiry. Skips markers that this
/// client knows to exist. Returns the deadline until which a transaction may rely on the markers, at most 24 hours
/// from now, or `None` without rows. Workers delete a marker after its hour, so the rows must be sent before the
/// earliest of the markers' hours ends.
pub(crate) async fn write_expiry_markers(
    outbox: &Outbox,
    table: &str,
    expiring: Vec<(&str, &str, Ticks)>,
) -> Result<Option<Deadline>> {
    if expiring.is_empty() {
        return Ok(None);
    }
    ask_for_time(outbox).await?;
    let now = outbox.store.time.now();
    let earliest = ExpiryHour::hour_of(later_time(now, MIN_LEAD));
    let mut markers = HashSet::new();
    for (entity_type, partition_key, time) in expiring {
        markers.insert(ExpiryMarker {
            hour: ExpiryHour::hour_of(time).max(earliest),
            entity_type: entity_type.to_owned(),
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
        });
    }
    let first_end =
        markers.iter().map(|marker| marker.hour.end_in_ticks()).min().unwrap_or(i64::MAX);
    let left = u64::try_from(first_end.saturating_sub(now.get())).unwrap_or(0);
    // A tick is 100 ns.
    let left = Duration::from_nanos(left.saturating_mul(100)).min(MAX_RELIANCE);
    // Counts from `now`, before the markers are written: the writes may take long, and workers delete a marker by
    // its hour, however late it was written.
    let deadline = Deadline::after(left, outbox.clock.clone());
    let markers: Vec<_> = markers.into_iter().map(|marker| write_marker(outbox, marker)).collect();
    stream::iter(markers).buffer_unordered(MARKERS_AT_ONCE).try_collect::<()>().await?;
    Ok(Some(deadline))
}

/// Returns the type, PartitionKey and time of expiry of the rows in an effect.
fn expiries_of_effect(effect: &Effect) -> Result<Vec<(&'static str, &str, Ticks)>> {
    let mut found = Vec::new();
    if let Some(schema) = effect.schema.filter(|schema| schema.can_expire()) {
        // A deletion leaves no row that could expire.
        let written = effect.primary.iter().filter(|operation| operation.verb() != Verb::Delete);
        for operation in written {
            // A row that keeps its time already has a marker.
            for property in schema.expiry_properties() {
                if let Some(ValueRef::DateTime(time)) = operation.row().get(property)? {
                    found.push((schema.entity_type, operation.row().partition_key(), time));
                }
            }
        }
    }
    Ok(found)
}

/// Asks the store for its date, once per process and hour. With a clock that is hours off, a client would choose
/// markers whose hour has passed.
async fn ask_for_time(outbox: &Outbox) -> Result<()> {
    let asked = &outbox.expiry.asked;
    let find =
        |asked: &Option<Instant>| asked.filter(|asked| asked.elapsed() < ASK_AGAIN).map(|_| Ok(()));
    asked
        .find_or_run(find, async || {
            // From now on, each answer of the store corrects the estimate of its time.
            outbox.store.is_time_watched.store(true, Ordering::Relaxed);
            let page = match read_empty_marker_page(outbox).await {
                Err(error) if error.is_table_missing() => {
                    outbox.store.create_table_if_not_exists(EXPIRY).await?;
                    read_empty_marker_page(outbox).await?
                }
                page => page?,
            };
            // A page without a date says nothing about the store's time, so use the clock of this machine.
            if page.date.is_none() {
                outbox.store.time.accept_local_time();
            }
            *asked.lock_state() = Some(Instant::now());
            Ok(())
        })
        .await
}

/// Reads a page of markers that is always empty, for its date, which is the store's time.
async fn read_empty_marker_page(outbox: &Outbox) -> Result<Rows> {
    let filter = expiry_markers_before(ExpiryHour::hour_of(Ticks::MIN));
    let scan =
        ScanRequest { table: EXPIRY, filter: &filter, select: None, top: Some(1), from: None };
    outbox.store.scan(scan).await
}

/// Inserts a marker, unless this client knows that it exists.
async fn write_marker(outbox: &Outbox, marker: ExpiryMarker) -> Result<()> {
    let insert = marker.insert_operation(outbox.store.names())?;
    let slot = outbox.expiry.flight_slot_of_marker(marker);
    let find = |is_written: &bool| is_written.then_some(Ok(()));
    slot.find_or_run(find, async || {
        let mut attempt = 1;
        loop {
            match outbox.store.apply(&Batch::single(EXPIRY, insert.clone())?).await {
                Ok(_) => break,
                // Another process or an earlier attempt wrote it.
                Err(error) if error.row_exists() => break,
                Err(error) if error.is_table_missing() && attempt < ATTEMPTS => {
                    outbox.store.create_table_if_not_exists(EXPIRY).await?;
                }
                Err(error) if error.is_answer_lost() && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
            attempt += 1;
        }
        // Remember it only after the store confirmed the marker.
        *slot.lock_state() = true;
        Ok::<_, Error>(())
    })
    .await
}
