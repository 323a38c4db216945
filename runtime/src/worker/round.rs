//! A round: reads the directory once and does the due work of every partition in it.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::{
    directory::{DirectoryPages, MarkersByPartition},
    partition::{Fences, OutboxChunk, OutboxRow, PartitionReader},
    pass::PassOutcome,
    state::{RoundResult, WorkSelectionByAge, Worker, table_and_keys_of},
    stats::WorkerStats,
    visit::{LastPartitionVisit, SeenPartitionState, TableAndPartitionKey},
};
use crate::{error::Result, limits::saturating_u64, plan::outbox::DirectoryMarker};

impl Worker {
    /// Reads the directory once, page by page, and does the due work of its partitions.
    pub(super) async fn run_round(&self, due: WorkSelectionByAge) -> Result<RoundResult> {
        let mut round = RoundResult::default();
        let (mut listed, mut damaged) = (BTreeSet::new(), 0);
        let looks = self.choose_idle_partitions(due);
        let mut pages = DirectoryPages::from_start(&self.client);
        while !pages.is_over() {
            if self.stopping.has_begun() {
                return Ok(round);
            }
            let Some(page) = pages.next_page().await? else { break };
            listed.extend(page.markers.keys().cloned());
            damaged += page.damaged;
            round.add_round(self.work_on_page(page.markers, &looks, due).await);
        }
        // Forget the partitions that left the directory.
        let is_listed =
            |table: &String, key: &String| listed.contains(&(table.clone(), key.clone()));
        let memory = &mut *self.lock_memory();
        memory.damaged_markers = damaged;
        memory.visits.retain(|partition, _| listed.contains(partition));
        memory.awaiting_second_look.retain(|[table, key, _], _| is_listed(table, key));
        memory.failure_counts.retain(|[table, key, _], _| is_listed(table, key));
        let seen = memory.visits.values().fold(WorkerStats::default(), WorkerStats::with_visit);
        self.metering().record_open_work(seen.open, seen.oldest);
        Ok(round)
    }

    /// Selects the partitions without due rows that this round visits.
    fn choose_idle_partitions(&self, due: WorkSelectionByAge) -> BTreeSet<TableAndPartitionKey> {
        if due == WorkSelectionByAge::All {
            // Every partition is visited.
            return BTreeSet::new();
        }
        let memory = &mut *self.lock_memory();
        memory.looks.choose_partitions_to_look_at(memory.visits.iter(), self.interval)
    }

    async fn work_on_page(
        &self,
        mut markers: MarkersByPartition,
        looks: &BTreeSet<TableAndPartitionKey>,
        due: WorkSelectionByAge,
    ) -> RoundResult {
        let mut round = RoundResult::default();
        let mut without_fence = Vec::new();
        markers.retain(|partition, _| {
            due == WorkSelectionByAge::All
                || looks.contains(partition)
                || self.is_visit_due(partition)
        });
        let mut markers: Vec<_> = markers.into_iter().collect();
        let load = self.store().begin_load(self.concurrency);
        self.rotate_randomly(&mut markers, load.in_flight());
        let partitions = markers.into_iter().map(|((table, partition_key), markers)| async move {
            if self.stopping.has_begun() {
                Ok(<(RoundResult, Vec<_>)>::default())
            } else {
                self.work_on_partition(&table, &partition_key, &markers, due).await
            }
        });
        let mut partitions = std::pin::pin!(load.run_unordered(partitions));
        while let Some(worked) = partitions.next().await {
            match worked {
                Ok((result, markers)) => {
                    round.add_round(result);
                    without_fence.extend(markers);
                }
                Err(error) => self.report_failure(error, &mut round),
            }
        }
        // Delete all markers of a page together, because markers of one shard share a transaction.
        if let Err(error) = self.delete_markers(without_fence).await {
            self.report_failure(error, &mut round);
        }
        // A failed deletion harms no work. The next round finds the markers again.
        round
    }

    /// Rotates a list of more partitions than are worked on at once by a random number, to make several workers begin
    /// with different partitions.
    fn rotate_randomly<T>(&self, partitions: &mut [T], at_once: usize) {
        if partitions.len() > at_once {
            let random = usize::try_from(self.store().random.random_number()).unwrap_or_default();
            partitions.rotate_left(random % partitions.len());
        }
    }

    fn is_visit_due(&self, partition: &TableAndPartitionKey) -> bool {
        let (now, known_types) = (Instant::now(), self.outbox().known_type_version_count());
        let memory = self.lock_memory();
        let visit = memory.visits.get(partition);
        visit.is_none_or(|visit| visit.is_due(now) || visit.may_recognize_unknown_rows(known_types))
    }

    /// Does the due work of one partition in chunks, and closes the partition if it is idle. Returns the PartitionKey
    /// and RowKey of each directory marker whose fence is gone.
    async fn work_on_partition(
        &self,
        table: &str,
        partition_key: &str,
        markers: &[DirectoryMarker],
        due: WorkSelectionByAge,
    ) -> Result<(RoundResult, Vec<(String, String)>)> {
        let (mut round, mut visit) = (RoundResult::default(), LastPartitionVisit::default());
        // Before the work: a type that becomes known in the meantime makes the next visit due.
        let known_types = self.outbox().known_type_version_count();
        let mut fences = Fences::empty_for_table(table);
        let mut remembered = self.lock_memory().rows_remembered_in(table, partition_key);
        let mut reader = PartitionReader::new(&self.client, table, partition_key);
        loop {
            match reader.next_chunk().await {
                Ok(Some(mut chunk)) => {
                    fences.take_fences_from(&mut chunk);
                    for row in chunk.dirty.iter().chain(&chunk.claims).chain(&chunk.messages) {
                        remembered.remove(&table_and_keys_of(table, &row.row));
                    }
                    self.work_on_chunk(chunk, due, &mut round, &mut visit).await;
                }
                Ok(None) => break,
                // Nothing can be committed in a table that is gone, so its fences are gone permanently.
                Err(error) if error.is_table_missing() && self.can_trust_store_reads() => {
                    let closed = markers.iter().map(|one| (one.shard.clone(), one.row_key.clone()));
                    return Ok((round, closed.collect()));
                }
                Err(error) if reader.is_at_start() => return Err(error),
                // The earlier rows were worked on, which counts.
                Err(error) => {
                    self.report_failure(error, &mut round);
                    return Ok((round, Vec::new()));
                }
            }
            if self.stopping.has_begun() {
                return Ok((round, Vec::new()));
            }
        }
        visit.unknown += saturating_u64(fences.damaged_fences.len());
        let closed = self.delete_fences_of_idle_partition(&fences, markers).await?;
        let seen = SeenPartitionState {
            fences: fences.fences.iter().map(|(_, row)| row.row.etag()).collect(),
            known_types,
        };
        let (key, lease) =
            ((table.to_owned(), partition_key.to_owned()), self.outbox().options.close_idle_after);
        let memory = &mut *self.lock_memory();
        // Rows that are no longer in the partition: other workers or their writers deleted them.
        remembered.iter().for_each(|row| memory.forget_row(row));
        visit.plan_next_visit(memory.visits.get(&key), seen, lease);
        memory.visits.insert(key, visit);
        Ok((round, closed))
    }

    /// Does the due work of one chunk of a partition's outbox rows.
    async fn work_on_chunk(
        &self,
        chunk: OutboxChunk,
        due: WorkSelectionByAge,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        visit.unknown += chunk.unknown;
        let mut chunk = chunk;
        let (table, mut rows) = (chunk.table.clone(), std::mem::take(&mut chunk.dirty));
        rows.retain(|row| self.is_due(&table, row, due, visit));
        self.metering().count_passes(&table, rows.len());
        let outcomes = self.pass_over_rows(&table, rows).await;
        self.record_passes(&table, outcomes, round, visit).await;
        self.settle_claims(&chunk, round, visit).await;
        self.handle_messages(&chunk, due, round, visit).await;
    }

    /// Returns whether a dirty row is due for a pass. Counts it as open or waiting.
    fn is_due(
        &self,
        table: &str,
        row: &OutboxRow,
        due: WorkSelectionByAge,
        visit: &mut LastPartitionVisit,
    ) -> bool {
        let options = &self.outbox().options;
        let etag_looked_at = self
            .lock_memory()
            .awaiting_second_look
            .get(&table_and_keys_of(table, &row.row))
            .cloned();
        let is_waiting = etag_looked_at == Some(row.row.etag());
        // A row that was worked on under this ETag is due again after the write deadline. A new row is due after its
        // writer's grace time.
        let left =
            row.time_until_age(if is_waiting { options.write_deadline } else { options.grace });
        if is_waiting && !left.is_zero() {
            visit.waiting += 1;
        } else {
            visit.add_open_row(row.age);
        }
        let is_due = left.is_zero() || (!is_waiting && due == WorkSelectionByAge::All);
        if !is_due {
            visit.revisit_after(left);
        }
        is_due
    }

    /// Counts the outcomes of the passes over a partition's dirty rows, and deletes the finished rows.
    async fn record_passes(
        &self,
        table: &str,
        outcomes: Vec<PassOutcome>,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        let mut finished = Vec::new();
        for outcome in outcomes {
            match outcome {
                PassOutcome::Finished(row) => finished.push(row),
                PassOutcome::AwaitsSecondLook(row) => {
                    let (place, etag) =
                        (table_and_keys_of(table, &row.dirty.row), row.dirty.row.etag());
                    // Remember its ETag: a newer commit changes the ETag, which makes the row due
                    // again.
                    self.lock_memory().awaiting_second_look.insert(place, etag);
                    visit.count_open_row_as_waiting();
                    visit.revisit_after(row.until_second_look);
                    round.progressed += u64::from(row.has_written);
                }
                // Its writer settles it soon, or the claim becomes old enough to be resolved.
                PassOutcome::Claimed => visit.revisit_after(self.outbox().options.grace),
                PassOutcome::UnknownType => visit.count_open_row_as_unknown(),
                PassOutcome::Failed(row, error) => {
                    self.handle_failure(table, &row, error, round, visit).await;
                }
            }
        }
        let finished_rows: Vec<_> =
            finished.iter().map(|row| table_and_keys_of(table, &row.dirty.row)).collect();
        // Only now, after everything in the rows is written.
        match self.remove_dirty_rows(table, finished).await {
            Ok(removed) => {
                {
                    let memory = &mut *self.lock_memory();
                    memory.stats.applied += removed.deleted;
                    // A row that was not deleted has a new ETag, which makes the worker's memory of it invalid.
                    finished_rows.iter().for_each(|row| memory.forget_row(row));
                }
                visit.subtract_open_rows(removed.deleted);
                round.progressed += removed.deleted;
                round.raced += removed.raced;
                if removed.raced > 0 {
                    visit.revisit_after(self.outbox().options.close_idle_after);
                }
            }
            Err(error) => {
                visit.revisit_after(self.outbox().options.close_idle_after);
                self.report_failure(error, round);
            }
        }
    }
}
