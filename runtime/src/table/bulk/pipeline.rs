//! Runs a bulk write: gathers changes into groups, keeps several transactions in flight, and collects
//! their outcomes.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{Either, poll_immediate, select},
    stream::FuturesUnordered,
};
use tokio::time::Instant;

use super::{
    group::{ChangeGroup, InputPosition, OpenGroups},
    group_writer::{GroupWriteOutcome, GroupWriter, Splittable, write_groups_in_order},
    handled::HandledEntities,
    report::{BulkReport, Failure, Progress},
    rewrite::{LostRace, Rewrite},
};
use crate::{
    backend::BoxFuture,
    entity::Stored,
    error::{BoxError, Error, Result},
    limits::saturating_u64,
    outbox::{
        blind_tokens::fill_tokens_of_change, commit::Commit, kept_claims::KeptClaims,
        registration::register_partitions,
    },
    plan::Change,
    store::{InFlight, Load},
    table::{Client, job::Listener, writable::Rewritable},
    timers,
};

/// The most partitions of open groups that are registered together with a group that is sent.
const REGISTERED_AHEAD: usize = 1_600;

/// Gathers the changes of one bulk write and sends them.
pub(super) struct Pipeline {
    client: Client,
    /// Says how many transactions may be in flight.
    load: Load,
    on_progress: Listener<Progress>,
    open: OpenGroups,
    in_flight: FuturesUnordered<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
    /// The groups of the transactions in flight, by number.
    groups_in_flight: Vec<(u64, Arc<ChangeGroup>)>,
    /// The number of the next transaction.
    next_number: u64,
    /// The position of the next input item.
    next_index: usize,
    report: BulkReport,
    /// The entities that another writer changed first.
    lost_races: Vec<LostRace>,
    /// The entities that the query of a rewrite may find again. Empty for writes without a query.
    pub(super) handled: HandledEntities,
}

/// The result of one group, however many transactions it took.
#[derive(Default)]
struct Outcome {
    number: u64,
    table: String,
    done: u64,
    requests: u64,
    failed: Vec<FailedChange>,
}

/// A change that was not written.
struct FailedChange {
    item: InputPosition,
    change: Change,
    error: Error,
}

impl Pipeline {
    /// Creates an empty pipeline.
    pub(super) fn new(
        client: Client,
        concurrency: InFlight,
        on_progress: Listener<Progress>,
    ) -> Self {
        Self {
            load: client.store().begin_load(concurrency),
            client,
            on_progress,
            open: OpenGroups::default(),
            in_flight: FuturesUnordered::new(),
            groups_in_flight: Vec::new(),
            next_number: 0,
            next_index: 0,
            report: BulkReport::default(),
            lost_races: Vec::new(),
            handled: HandledEntities::without_query(),
        }
    }

    /// Adds the write of the next input item to the group of its partition, or records the error that prevents
    /// the write. Returns what must be done before the next item, if there is anything: to send groups that are full.
    // Most items only join a group, so this is not an async function, and programs do not compile the rest.
    pub(super) fn add_item(
        &mut self,
        table: String,
        change: Result<Change>,
        done_when_missing: bool,
    ) -> Option<BoxFuture<'_, ()>> {
        match change {
            Ok(change) if change.needs_tokens() => {
                Some(Box::pin(self.add_item_with_tokens(table, change, done_when_missing)))
            }
            change => self.add_change(table, change, done_when_missing),
        }
    }

    async fn add_item_with_tokens(
        &mut self,
        table: String,
        change: Change,
        done_when_missing: bool,
    ) {
        let client = self.client.clone();
        // A transaction in flight may hold the key request that this change waits for.
        let filled = fill_tokens_of_change(client.outbox(), &table, change);
        let change = self.drive_transactions_while(filled).await;
        if let Some(sent) = self.add_change(table, change, done_when_missing) {
            sent.await;
        }
    }

    /// Adds a change with complete keys as the next input item, as [`add_item`](Self::add_item) does.
    pub(super) fn add_change(
        &mut self,
        table: String,
        change: Result<Change>,
        done_when_missing: bool,
    ) -> Option<BoxFuture<'_, ()>> {
        let item = InputPosition { index: self.next_index, done_when_missing };
        self.next_index += 1;
        let sized = change.and_then(|change| {
            let size = change.estimate_size()?;
            self.handled.note_change(&table, &change, item.index)?;
            Ok((change, size))
        });
        match sized {
            Ok((change, size)) => {
                let ready = self.open.add_change_and_take_ready(table, change, size, item);
                if ready.is_empty() {
                    return None;
                }
                Some(Box::pin(self.send_all_groups(ready)))
            }
            Err(error) => {
                let error = error.in_table(&table);
                self.report.failed.push(Failure { index: item.index, error });
                self.notify_progress();
                None
            }
        }
    }

    /// Waits for the next input while transactions are in flight. Meanwhile, sends every group that has been
    /// open for `linger`.
    pub(super) async fn wait_for_input<T>(
        &mut self,
        input: impl Future<Output = T>,
        linger: Duration,
    ) -> T {
        let mut input = pin!(input);
        // Input that is ready needs no timer, and no group has to wait for it.
        if let Some(item) = poll_immediate(input.as_mut()).await {
            return item;
        }
        while let Some(due) = self.open.next_due_time(linger) {
            let timer = pin!(timers::sleep(due.saturating_duration_since(Instant::now())));
            if let Either::Left((item, _)) =
                select(pin!(self.drive_transactions_while(input.as_mut())), timer).await
            {
                return item;
            }
            let due = self.open.take_groups_due(linger);
            self.send_all_groups(due).await;
        }
        self.drive_transactions_while(input).await
    }

    /// Waits for a future and returns its output. Meanwhile, drives the transactions in flight and records their
    /// outcomes.
    pub(super) async fn drive_transactions_while<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = pin!(future);
        while !self.in_flight.is_empty() {
            match select(future.as_mut(), self.in_flight.next()).await {
                Either::Left((output, _)) => return output,
                Either::Right((Some(outcome), _)) => self.record_outcome(outcome),
                // Never occurs: a transaction is in flight.
                Either::Right((None, _)) => {}
            }
        }
        future.await
    }

    /// Returns whether this run has already handled an entity of the query, through another row or at the keys
    /// that the entity had before the run moved it ahead. Waits for a transaction in flight that may have moved
    /// the entity.
    ///
    /// # Errors
    ///
    /// Fails if an earlier write may have moved the entity here, its answer was lost, and the row that would
    /// decide this cannot be read.
    pub(super) async fn was_handled<T: Rewritable>(
        &mut self,
        stored: &Stored<T>,
        rewrite: &Rewrite<T, impl FnMut(&mut T) -> Result<(), BoxError>>,
    ) -> Result<bool> {
        if self.handled.finds_all_once() {
            return Ok(false);
        }
        let primary = self.drive_transactions_while(rewrite.primary_keys(stored)).await;
        let Some((partition_key, row_key)) = &primary else { return Ok(false) };
        let keys = (&**partition_key, &**row_key);
        if self.handled.was_found(&rewrite.table, keys) {
            return Ok(true);
        }
        for index in self.handled.indexes_at(&rewrite.table, keys) {
            // A change that was not sent has moved nothing.
            if self.open.has_item(&rewrite.table, partition_key, index) {
                continue;
            }
            while self.groups_in_flight.iter().any(|(_, group)| group.has_item(index)) {
                self.await_outcome().await;
            }
            let has_moved = self.has_moved(&rewrite.table, index).await?;
            // A change that failed is forgotten.
            if self.handled.forget_moved_primary(&rewrite.table, keys, index) && has_moved {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a change that was sent and did not fail moved its entity. If the answer was lost, reads
    /// the row at the earlier keys to find out.
    async fn has_moved(&mut self, table: &str, index: usize) -> Result<bool> {
        let Some((partition_key, row_key)) = self.handled.earlier_keys_in_doubt(index).cloned()
        else {
            return Ok(true);
        };
        let client = self.client.clone();
        let read =
            client.store().read_row(client.store().names().row_at(table, &partition_key, &row_key));
        Ok(self.drive_transactions_while(read).await?.is_none())
    }

    /// Sends groups after registering their partitions in the outbox where needed.
    async fn send_all_groups(&mut self, groups: Vec<ChangeGroup>) {
        let outbox = self.client.outbox();
        let is_new =
            |(table, key): &(String, String)| !outbox.registrations.is_registered(table, key);
        let partitions = groups.iter().filter_map(ChangeGroup::partition_to_register);
        let mut partitions: Vec<_> = partitions.filter(is_new).collect();
        if !partitions.is_empty() {
            // The partitions of the open groups will need a registration too. Registering many
            // partitions together costs little more than one.
            let waiting = self.open.partitions_to_register().filter(is_new);
            partitions.extend(waiting.take(REGISTERED_AHEAD));
            partitions.sort_unstable();
            partitions.dedup();
            // The commit of a group registers its own partition.
            if partitions.len() > 1 {
                let registered = register_partitions_boxed(self.client.clone(), partitions);
                self.drive_transactions_while(registered).await;
            }
        }
        for group in groups {
            self.send_group(group).await;
        }
    }

    /// Sends a group once there is room and no transaction in flight writes any of its rows.
    async fn send_group(&mut self, group: ChangeGroup) {
        while self.in_flight.len() >= self.load.in_flight()
            || self.groups_in_flight.iter().any(|(_, other)| other.may_write_same_rows(&group))
        {
            self.await_outcome().await;
        }
        for lost in &mut self.lost_races {
            lost.followers.extend(group.index_of_move_to(&lost.partition_key, &lost.row_key));
        }
        let number = self.next_number;
        self.next_number += 1;
        let group = Arc::new(group);
        self.groups_in_flight.push((number, group.clone()));
        self.in_flight.push(write_group_boxed(self.client.clone(), number, group));
    }

    async fn await_outcome(&mut self) {
        if let Some(outcome) = self.in_flight.next().await {
            self.record_outcome(outcome);
        }
    }

    fn record_outcome(&mut self, outcome: Outcome) {
        self.groups_in_flight.retain(|(number, _)| *number != outcome.number);
        self.report.done += outcome.done;
        self.report.requests += outcome.requests;
        for FailedChange { item, change, error } in outcome.failed {
            let index = item.index;
            self.handled.note_failure(&outcome.table, &change, index, &error);
            if error.is_row_changed_or_gone() {
                // The error may name another row, such as a later part of a wide entity or a copy.
                let (partition_key, row_key) = change.keys();
                let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
                let followers = Vec::new();
                self.lost_races.push(LostRace { index, partition_key, row_key, followers });
            }
            self.report.failed.push(Failure { index, error });
        }
        self.notify_progress();
    }

    fn notify_progress(&self) {
        self.on_progress.notify_callback(|| self.report.progress());
    }

    /// Sends all open groups and waits for all transactions.
    async fn send_and_await_all(&mut self) {
        let rest = self.open.take_all_groups();
        self.send_all_groups(rest).await;
        while !self.in_flight.is_empty() {
            self.await_outcome().await;
        }
    }

    /// Writes all changes that still wait in groups. Then reads, changes and writes every entity again whose
    /// write failed because another writer had changed or deleted it.
    pub(super) async fn retry_lost_races<T: Rewritable>(
        &mut self,
        rewrite: &mut Rewrite<T, impl FnMut(&mut T) -> Result<(), BoxError>>,
    ) {
        self.send_and_await_all().await;
        for lost in std::mem::take(&mut self.lost_races) {
            let index = lost.index;
            let keys_are_taken = self.are_keys_taken(&lost, &rewrite.table);
            let (handled, requests) = (&mut self.handled, &mut self.report.requests);
            let result = if keys_are_taken {
                rewrite.end_as_deleted(&lost)
            } else {
                rewrite.change_entity_again(&lost, handled, requests).await
            };
            // The second attempt decides and replaces the failure of the first.
            self.report.failed.retain(|failure| failure.index != index);
            match result {
                Ok(()) => self.report.done += 1,
                Err(error) => self.report.failed.push(Failure { index, error }),
            }
            self.notify_progress();
        }
    }

    /// Returns whether this run moved another entity to the keys of an entity that lost its race by being deleted.
    fn are_keys_taken(&self, lost: &LostRace, table: &str) -> bool {
        let has_failed = |index| self.report.failed.iter().any(|failure| failure.index == index);
        let moved_before = self.handled.indexes_at(table, (&lost.partition_key, &lost.row_key));
        moved_before.iter().chain(&lost.followers).any(|index| !has_failed(*index))
    }

    /// Writes everything that is left and returns the report.
    pub(super) fn finish_all(mut self) -> BoxFuture<'static, BulkReport> {
        Box::pin(async move {
            self.send_and_await_all().await;
            self.report.failed.sort_by_key(|failure| failure.index);
            self.report
        })
    }
}

/// Returns whether a change failed because its entity does not exist. A wide entity exists if its first part
/// does, and the change has that part's keys.
fn is_entity_missing(error: &Error, change: &Change) -> bool {
    error.is_row_missing() && error.keys().is_none_or(|keys| keys == change.keys())
}

/// Registers partitions in the outbox. Boxed, because a registration's future is large.
fn register_partitions_boxed(
    client: Client,
    partitions: Vec<(String, String)>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { register_partitions(client.outbox(), partitions).await })
}

// In a function of its own, so that programs do not compile the write of a group.
fn write_group_boxed(
    client: Client,
    number: u64,
    group: Arc<ChangeGroup>,
) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
    Box::pin(write_group(client, number, group))
}

/// Writes one group.
async fn write_group(client: Client, number: u64, group: Arc<ChangeGroup>) -> Outcome {
    let outcome = Outcome { number, table: group.table.clone(), ..Outcome::default() };
    let mut writer = ChangeWriter { client: &client, kept: KeptClaims::default(), outcome };
    // The writer records each failure for its item, so the result holds no error.
    drop(write_groups_in_order(&mut writer, &client.store().random, [group.clone_changes()]).await);
    // Boxed because few groups have reservations to release.
    Box::pin(writer.kept.release_all(client.outbox())).await;
    writer.outcome
}

/// Commits the changes of a group. A change that fails is recorded and taken out, which lets the other
/// changes be written.
struct ChangeWriter<'c> {
    client: &'c Client,
    /// Unique values that the group's changes have reserved. They are kept while failed changes are taken out.
    kept: KeptClaims,
    outcome: Outcome,
}

impl GroupWriter for ChangeWriter<'_> {
    type Group = ChangeGroup;

    async fn attempt(&mut self, mut group: ChangeGroup) -> Result<GroupWriteOutcome<ChangeGroup>> {
        let outcome = &mut self.outcome;
        outcome.requests += 1;
        let (outbox, changes) = (self.client.outbox(), &group.changes);
        let commit = Commit::new(outbox, &group.table, changes).keeping_claims(&self.kept);
        let error = match commit.run().await {
            Ok(_) => {
                outcome.done += saturating_u64(group.rows());
                return Ok(GroupWriteOutcome::Done);
            }
            Err(error) => error,
        };
        if error.is_too_large() && group.rows() > 1 {
            return Ok(GroupWriteOutcome::TooLarge(group));
        }
        if is_group_gone(self.client, &group, &error) {
            outcome.done += saturating_u64(group.rows());
            return Ok(GroupWriteOutcome::Done);
        }
        match error.failed_index().and_then(|position| group.remove_change(position)) {
            Some((item, change))
                if item.done_when_missing && is_entity_missing(&error, &change) =>
            {
                outcome.done += 1;
            }
            Some((item, change)) => {
                let error = error.without_operation();
                outcome.failed.push(FailedChange { item, change, error });
            }
            // An error without a position, such as a lost answer, applies to every change.
            None => {
                let failed = group.items.into_iter().zip(group.changes);
                outcome.failed.extend(failed.map(|(item, change)| FailedChange {
                    item,
                    change,
                    error: error.clone(),
                }));
                return Ok(GroupWriteOutcome::Done);
            }
        }
        Ok(GroupWriteOutcome::Rest(group))
    }
}

/// Returns whether the group only deletes entities of a dated table that does not exist. The table was
/// dropped together with its entities.
fn is_group_gone(client: &Client, group: &ChangeGroup, error: &Error) -> bool {
    let names = client.store().names();
    let is_dated = |change: &Change| {
        let dated = change.schema().and_then(|schema| schema.dated.as_ref());
        dated.is_some_and(|dated| dated.period_of(names.name(&group.table)).is_some())
    };
    error.is_table_missing()
        && error.table().is_none_or(|table| names.is_same_table(table, &group.table))
        && group.items.iter().all(|item| item.done_when_missing)
        && group.changes.iter().all(is_dated)
}
