//! Sweeps: deletes expired rows in partitions with markers of past hours.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream};
use tokio::time::Instant;

use super::state::{RoundResult, Worker};
use crate::{
    access::Keys,
    backend::{Rows, ScanRequest},
    edm::Ticks,
    entity::Schema,
    error::{Error, Result},
    filter::{Comparison, Filter},
    key::RowFamily,
    limits::{BATCH_OPERATIONS, saturating_u64},
    outbox::{commit::Commit, expired::deletion_of},
    plan::{
        Change,
        outbox::{EXPIRY, ExpiryHour, ExpiryMarker, StoredExpiryMarker, expiry_markers_before},
    },
    row::Row,
    server_clock::earlier_time,
};

/// The number of entities that are read concurrently and one by one: through a time index, or in several parts.
const OWNERS_AT_ONCE: usize = 16;

/// The maximum error of a writer's estimate of the store's time.
const CLOCK_ERROR: Duration = Duration::from_secs(60);

/// How long to wait before a failed sweep of a partition is tried again.
const SWEEP_AGAIN: Duration = Duration::from_secs(60);

/// A page of markers, with the markers whose hours have passed by the page's date.
#[derive(Default)]
struct MarkerPage {
    /// The first hour whose markers must not be swept yet, by the page's date, or `None` if the page has no
    /// date.
    first_in_use: Option<ExpiryHour>,
    due: Vec<StoredExpiryMarker>,
    /// The number of rows that are not markers of this format. A worker ignores them.
    damaged: u64,
}

/// A marker of a past hour, and the type in it.
struct DueSweep {
    schema: &'static Schema,
    marker: StoredExpiryMarker,
}

/// The result of sweeping one partition.
#[derive(Debug, Default)]
struct SweepResult {
    deleted: u64,
    /// The number of rows that other writers changed in the meantime. The partition is swept again.
    raced: u64,
    /// The first failure of a row. The partition's other rows are deleted anyway.
    failure: Option<Error>,
}

impl Worker {
    /// Sweeps the partitions with markers of past hours, if this worker knows a type that expires. Boxed because
    /// the compiler cannot prove inside a run's future that this one is `Send`.
    pub(super) fn sweep_expired(&self) -> BoxFuture<'_, RoundResult> {
        Box::pin(self.sweep_all_markers())
    }

    async fn sweep_all_markers(&self) -> RoundResult {
        let mut round = RoundResult::default();
        if !self.outbox().known_types.has_type_where(Schema::can_expire) {
            return round;
        }
        let before = self.first_hour_in_use(self.store().time.now());
        // The markers of all these hours have been swept.
        if self.lock_memory().swept_before.is_some_and(|swept| swept >= before) {
            return round;
        }
        let (mut is_done, mut damaged, mut swept_before) = (true, 0, before);
        // The table is created by the first writer of an expiring row.
        let markers = self.store().pages(EXPIRY, expiry_markers_before(before));
        let mut markers = markers.empty_without_table();
        while !markers.is_over() {
            if self.stopping.has_begun() {
                return round;
            }
            let page = match markers.next_page().await {
                Ok(Some(page)) => self.due_markers(page),
                Ok(None) => break,
                Err(error) => {
                    self.report_failure(error, &mut round);
                    return round;
                }
            };
            damaged += page.damaged;
            // The estimate may be ahead of the store. Markers that are due only by the estimate were skipped.
            swept_before = page.first_in_use.map_or(swept_before, |hour| hour.min(swept_before));
            is_done &= self.sweep_page(page.due, &mut round).await;
        }
        let memory = &mut *self.lock_memory();
        memory.damaged_expiry = damaged;
        if is_done {
            memory.swept_before = Some(swept_before);
            // Nothing failed in this sweep.
            memory.sweeps_to_repeat.clear();
        }
        round
    }

    /// Returns the first hour whose expiry markers must not be swept yet at the store's time `now`, because a
    /// writer that relies on such a marker may still be writing its row.
    fn first_hour_in_use(&self, now: Ticks) -> ExpiryHour {
        // A writer sends its row before its marker's hour ends. The request may then take some time.
        let wait = self.outbox().options.write_deadline.saturating_add(CLOCK_ERROR);
        ExpiryHour::hour_of(earlier_time(now, wait))
    }

    /// Returns the markers of a page whose hours have passed by the page's date.
    fn due_markers(&self, page: Rows) -> MarkerPage {
        let first_in_use = page.date.map(|date| self.first_hour_in_use(date));
        // Without the store's date it is unknown which hours have passed.
        let before = first_in_use.unwrap_or(ExpiryHour::hour_of(Ticks::MIN));
        let names = self.store().names();
        let mut read = MarkerPage { first_in_use, ..MarkerPage::default() };
        for row in page.rows {
            match row.and_then(|row| StoredExpiryMarker::from_row(row, names)) {
                Ok(marker) if marker.marker.hour < before => read.due.push(marker),
                Ok(_) => {}
                Err(_) => read.damaged += 1,
            }
        }
        read
    }

    /// Sweeps the partitions of some markers, and deletes the markers of partitions that have no expired rows
    /// left. Returns whether no marker of the page needs another sweep.
    async fn sweep_page(&self, markers: Vec<StoredExpiryMarker>, round: &mut RoundResult) -> bool {
        let (mut is_done, mut finished, mut failed) = (true, Vec::new(), Vec::new());
        let mut known = Vec::new();
        for marker in markers {
            // Left to a program that knows the type.
            let schema = self.outbox().known_types.newest_version(&marker.marker.entity_type);
            if let Some(schema) = schema.filter(|schema| schema.can_expire()) {
                known.push(DueSweep { schema, marker });
            }
        }
        let sweeps = known.into_iter().map(|DueSweep { schema, marker }| async move {
            let is_due = self.is_sweep_due(&marker) && !self.stopping.has_begun();
            let swept = if is_due {
                Some(self.sweep_partition(schema, &marker.marker).await)
            } else {
                None
            };
            (marker, swept)
        });
        let load = self.store().begin_load(self.concurrency);
        let mut sweeps = std::pin::pin!(load.run_unordered(sweeps));
        while let Some((marker, swept)) = sweeps.next().await {
            let Some(swept) = swept else {
                is_done = false;
                continue;
            };
            match swept {
                Ok(SweepResult { deleted, raced, failure }) => {
                    round.progressed += deleted;
                    round.raced += raced;
                    self.lock_memory().stats.expired += deleted;
                    match failure {
                        // Keep the marker while the partition has expired rows.
                        None if raced == 0 => finished.push(marker),
                        None => is_done = false,
                        Some(error) => failed.push((marker, error)),
                    }
                }
                Err(error) => failed.push((marker, error)),
            }
        }
        for (marker, error) in failed {
            is_done = false;
            let next = Instant::now() + SWEEP_AGAIN;
            self.lock_memory().sweeps_to_repeat.insert(marker_texts(&marker), next);
            self.report_failure(error, round);
        }
        match self.delete_swept_markers(finished).await {
            // A marker that was rewritten during the sweep causes another sweep.
            Ok(is_all_gone) => is_done &= is_all_gone,
            Err(error) => {
                is_done = false;
                self.report_failure(error, round);
            }
        }
        is_done
    }

    fn is_sweep_due(&self, marker: &StoredExpiryMarker) -> bool {
        let next = self.lock_memory().sweeps_to_repeat.get(&marker_texts(marker)).copied();
        next.is_none_or(|next| next <= Instant::now())
    }

    /// Deletes the expired rows of a partition, each under its ETag. The date of a row's page decides whether the
    /// row has expired. If the type has a time index, reads only its range instead of the whole partition.
    async fn sweep_partition(
        &self,
        schema: &'static Schema,
        ExpiryMarker { table, partition_key, .. }: &ExpiryMarker,
    ) -> Result<SweepResult> {
        // Filter by the estimated time, to read fewer rows. The page's own date decides about each row.
        let now = self.store().time.now();
        let index = schema.expiry_index();
        let range = index.and_then(|index| Schema::expiry_range(index, now).zip(Some(index)));
        let (filter, index) = match range {
            Some((range, index)) => (Keys::partition(partition_key).filter() & range, Some(index)),
            None => (expired_filter(schema, partition_key, now), None),
        };
        // A table that was deleted or dropped has nothing to sweep.
        let mut pages = self.store().pages(table, filter).empty_without_table();
        let mut swept = SweepResult::default();
        while let Some(page) = pages.next_page().await? {
            let date = page.date;
            let rows = match index {
                Some(index) => self.expired_owners(schema, table, index, page).await,
                None => expired_rows(schema, page),
            };
            let rows = match (schema.is_wide(), date) {
                (true, Some(date)) => self.read_all_parts(schema, table, rows, date).await,
                _ => rows,
            };
            let mut group = (Vec::new(), 0);
            for row in rows {
                let deletion = match row {
                    Ok(row) => self.delete_expired_entity(schema, table, row).await,
                    Err(error) => Err(error.in_table(table)),
                };
                let change = match deletion {
                    Ok(change) => change,
                    // An entity that is being moved is swept at its target, or here once the move was given
                    // up.
                    Err(error) if error.is_refused_by_move() => {
                        swept.raced += 1;
                        continue;
                    }
                    Err(error) => {
                        swept.failure.get_or_insert(error);
                        continue;
                    }
                };
                let (operations, _) = change.estimate_size()?;
                let operations = operations + change.shared_framework_row_count();
                if group.1 + operations > BATCH_OPERATIONS {
                    // The group is full: a transaction has at most 100 operations.
                    let full = std::mem::take(&mut group);
                    self.delete_group(table, full.0, &mut swept).await?;
                }
                group.0.push(change);
                group.1 += operations;
            }
            self.delete_group(table, group.0, &mut swept).await?;
        }
        Ok(swept)
    }

    /// Returns the primaries of a page's expired copies, and the rows that cannot be read. Each primary must have
    /// expired by the date of the page that it was read in.
    async fn expired_owners(
        &self,
        schema: &'static Schema,
        table: &str,
        index: &'static RowFamily,
        page: Rows,
    ) -> Vec<Result<Row>> {
        let Some(date) = page.date else { return Vec::new() };
        let is_over = |row: &Row| schema.expiry_of(row, Some(index)).is_some_and(|end| end <= date);
        let copies = page.rows.into_iter().filter(|row| row.as_ref().map_or(true, is_over));
        let owners = copies.map(|copy| async move {
            // There may be rows of other kinds among the copies.
            let Some((partition_key, row_key)) = schema.owner_of_copy(&copy?)? else {
                return Ok(None);
            };
            let filter = Keys::point(partition_key, row_key).filter();
            let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
            let page = self.store().scan(scan).await?;
            expired_rows(schema, page).pop().transpose()
        });
        let owners = stream::iter(owners).buffered(OWNERS_AT_ONCE);
        owners.filter_map(|owner| std::future::ready(owner.transpose())).collect().await
    }

    /// Reads the entities of a wide type whose first parts are `firsts`. Omits entities that were renewed or
    /// deleted in the meantime, and so have not expired by `date`.
    async fn read_all_parts(
        &self,
        schema: &'static Schema,
        table: &str,
        firsts: Vec<Result<Row>>,
        date: Ticks,
    ) -> Vec<Result<Row>> {
        let entities = firsts.into_iter().map(|first| async move {
            let first = first?;
            // Another program may have left parts missing. Delete the remaining ones anyway.
            let entity = self.store().read_even_if_torn(table, first.keys(), schema).await?;
            let is_over = |row: &Row| schema.is_primary_expired(row, date);
            Ok(entity.filter(is_over))
        });
        let entities = stream::iter(entities).buffered(OWNERS_AT_ONCE);
        entities.filter_map(|entity| std::future::ready(entity.transpose())).collect().await
    }

    /// Returns the deletion of an expired entity with all its rows. `row` is its stored row. For a wide entity it
    /// is the joined row, with its parts decrypted.
    async fn delete_expired_entity(
        &self,
        schema: &'static Schema,
        table: &str,
        row: Row,
    ) -> Result<Change> {
        let opened = if schema.is_wide() {
            row
        } else {
            self.store().decrypt_row_of_type(table, row, schema).await?
        };
        let deletion = deletion_of(self.outbox(), table, schema, &opened).await;
        deletion.map(Change::from_effect).map_err(|error| error.in_table(table))
    }

    /// Deletes entities of one partition in one transaction. Halves the transaction if it is too large or another
    /// writer changed a row.
    async fn delete_group(
        &self,
        table: &str,
        group: Vec<Change>,
        swept: &mut SweepResult,
    ) -> Result<()> {
        let mut waiting = vec![group];
        while let Some(mut group) = waiting.pop() {
            if group.is_empty() {
                continue;
            }
            match Commit::new(self.outbox(), table, &group).run().await {
                Ok(_) => swept.deleted += count_operations(&group),
                Err(error) if group.len() > 1 && (error.is_lost_race() || error.is_too_large()) => {
                    let rest = group.split_off(group.len() / 2);
                    waiting.extend([rest, group]);
                }
                // A renewal wins. Any other change is examined again.
                Err(error) if error.is_lost_race() => swept.raced += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Deletes markers under the ETags that were read, in transactions of 100. Returns `false` if a marker was
    /// rewritten and kept.
    async fn delete_swept_markers(&self, markers: Vec<StoredExpiryMarker>) -> Result<bool> {
        let mut partitions: BTreeMap<String, Vec<StoredExpiryMarker>> = BTreeMap::new();
        for marker in markers {
            partitions.entry(marker.keys().0.to_owned()).or_default().push(marker);
        }
        let mut is_all_gone = true;
        for markers in partitions.values().flat_map(|markers| markers.chunks(BATCH_OPERATIONS)) {
            // Delete under the ETags that were read, to keep markers that were rewritten in the meantime.
            let deletions = markers.iter().map(StoredExpiryMarker::delete_operation);
            let deletions = deletions.collect::<Result<_>>()?;
            is_all_gone &=
                self.delete_rows_of_partition(EXPIRY, deletions, Error::is_lost_race).await?;
        }
        Ok(is_all_gone)
    }
}

fn marker_texts(marker: &StoredExpiryMarker) -> (String, String) {
    let (partition_key, row_key) = marker.keys();
    (partition_key.to_owned(), row_key.to_owned())
}

fn count_operations(group: &[Change]) -> u64 {
    saturating_u64(group.len())
}

/// Returns the filter for the rows of a partition that may have expired by `now`.
fn expired_filter(schema: &'static Schema, partition_key: &str, now: Ticks) -> Filter {
    Keys::partition(partition_key).filter() & schema.expiry_comparison_filter(Comparison::Le, now)
}

/// Returns the primaries of a page that had expired at `page.date`, the store's time of the answer, and the
/// rows that cannot be read. Returns nothing if the store sent no date.
fn expired_rows(schema: &'static Schema, mut page: Rows) -> Vec<Result<Row>> {
    // Without the store's date, nothing counts as expired.
    let Some(date) = page.date else { return Vec::new() };
    // A row of an unknown version is left to a program that knows it.
    let is_over = |row: &Row| schema.is_primary_expired(row, date);
    page.rows.retain(|row| row.as_ref().map_or(true, is_over));
    page.rows
}
