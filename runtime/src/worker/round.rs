//! One look at everything that is open.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    directory::{self, Found},
    partition::{Aged, Partition},
    pass::Passed,
    state::{RowTexts, Worker},
    stats::Visit,
};
use crate::{
    error::{Error, Result},
    plan::outbox::DirectoryMarker,
    row::Row,
};

/// Rows of one partition that are worked on at a time.
pub(super) const ROWS: usize = 8;

/// Which work is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Young work too.
    Everything,
    /// What the writer has had time for.
    Aged,
}

/// What came of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Work that got further.
    pub(super) moved: u64,
    /// Work that another actor was first at.
    pub(super) raced: u64,
    /// The first failure of the backend.
    pub(super) failure: Option<Error>,
}

impl Round {
    /// A round that did not come far.
    pub(super) fn failed(failure: Error) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.moved += other.moved;
        self.raced += other.raced;
        self.failure = self.failure.take().or(other.failure);
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }
}

impl Worker {
    /// Works through the directory once.
    pub(super) async fn round(&self, due: Due) -> Result<Round> {
        let mut round = Round::default();
        let (mut met, mut unread, mut from) = (BTreeSet::new(), 0, None);
        loop {
            let page = directory::page(&self.client, from.as_ref()).await?;
            met.extend(page.found.keys().cloned());
            unread += page.unread;
            round.add(self.work_on(page.found, due).await);
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        let memory = &mut *self.memory();
        memory.unread_markers = unread;
        memory.visits.retain(|partition, _| met.contains(partition));
        memory.looked.retain(|[table, key, _], _| met.contains(&(table.clone(), key.clone())));
        memory.failures.retain(|[table, key, _], _| met.contains(&(table.clone(), key.clone())));
        Ok(round)
    }

    async fn work_on(&self, mut found: Found, due: Due) -> Round {
        let mut round = Round::default();
        let mut closed = Vec::new();
        found.retain(|partition, _| due == Due::Everything || self.is_worth_a_visit(partition));
        let partitions = stream::iter(found).map(|((table, partition_key), markers)| async move {
            self.work_on_partition(&table, &partition_key, &markers, due).await
        });
        let mut partitions = std::pin::pin!(partitions.buffer_unordered(self.concurrency));
        while let Some(worked) = partitions.next().await {
            match worked {
                Ok((one, markers)) => {
                    round.add(one);
                    closed.extend(markers);
                }
                Err(error) => {
                    self.memory().stats.failures += 1;
                    round.fail(error);
                }
            }
        }
        if let Err(error) = self.unmark(closed).await {
            round.fail(error);
        }
        round
    }

    fn is_worth_a_visit(&self, partition: &(String, String)) -> bool {
        let memory = self.memory();
        let next = memory.visits.get(partition).and_then(|visit| visit.next);
        next.is_none_or(|next| next <= Instant::now())
    }

    async fn work_on_partition(
        &self,
        table: &str,
        partition_key: &str,
        markers: &[DirectoryMarker],
        due: Due,
    ) -> Result<(Round, Vec<(String, String)>)> {
        let partition = match Partition::read(&self.client, table, partition_key).await {
            Ok(partition) => partition,
            // Nothing can be committed there any more.
            Err(error) if error.is_table_missing() => {
                let gone = markers.iter().map(|m| (m.shard.clone(), m.row_key.clone()));
                return Ok((Round::default(), gone.collect()));
            }
            Err(error) => return Err(error),
        };
        let (mut round, mut visit) = (Round::default(), Visit::default());
        visit.unknown =
            partition.unknown + u64::try_from(partition.unread.len()).unwrap_or(u64::MAX);
        let rows = partition.dirty.iter().cloned();
        let rows: Vec<_> = rows.filter(|aged| self.is_due(table, aged, due, &mut visit)).collect();
        let passed = self.passes(table, rows).await;
        self.settle(table, passed, &mut round, &mut visit).await;
        self.claims(&partition, &mut round, &mut visit).await;
        self.messages(&partition, due, &mut round, &mut visit).await;
        let closed = self.close(&partition, markers).await?;
        visit.again_in(self.client.outbox().options.lease);
        let key = (table.to_owned(), partition_key.to_owned());
        self.memory().visits.insert(key, visit);
        Ok((round, closed))
    }

    /// Whether a row is worth a pass now.
    fn is_due(&self, table: &str, aged: &Aged, due: Due, visit: &mut Visit) -> bool {
        let options = &self.client.outbox().options;
        let left = |least: Duration| least.saturating_sub(aged.age.unwrap_or_default());
        let waits =
            self.memory().looked.get(&row_texts(table, &aged.row)) == Some(&aged.row.etag());
        let least = if waits { options.flight } else { options.grace };
        if waits && !left(least).is_zero() {
            visit.waiting += 1;
        } else {
            visit.meet(aged.age);
        }
        let is_due = left(least).is_zero() || (!waits && due == Due::Everything);
        if !is_due {
            visit.again_in(left(least));
        }
        is_due
    }

    /// Takes note of what became of the rows of a partition, and removes what is done.
    async fn settle(&self, table: &str, passed: Vec<Passed>, round: &mut Round, visit: &mut Visit) {
        let mut done = Vec::new();
        for passed in passed {
            match passed {
                Passed::Done(open) => done.push(open),
                Passed::Waits(open, wrote) => {
                    self.memory().looked.insert(row_texts(table, &open.row), open.row.etag());
                    visit.leave(1);
                    visit.waiting += 1;
                    round.moved += u64::from(wrote);
                }
                Passed::Claimed => visit.again_in(self.client.outbox().options.grace),
                Passed::Raced => {
                    self.memory().stats.retried += 1;
                    round.raced += 1;
                    visit.again_in(Duration::ZERO);
                }
                Passed::Unknown => {
                    visit.leave(1);
                    visit.unknown += 1;
                }
                Passed::Failed(aged, error) => {
                    visit.again_in(Duration::ZERO);
                    match self.failed(table, &aged, error).await {
                        Ok(gone) => {
                            visit.leave(u64::from(gone));
                            round.moved += 1;
                        }
                        Err(error) => self.failed_for_now(error, round),
                    }
                }
            }
        }
        match self.remove(table, done).await {
            Ok(removed) => {
                self.memory().stats.applied += removed.gone;
                visit.leave(removed.gone);
                round.moved += removed.gone;
                round.raced += removed.raced;
            }
            Err(error) => self.failed_for_now(error, round),
        }
    }

    pub(super) fn failed_for_now(&self, error: Error, round: &mut Round) {
        self.memory().stats.failures += 1;
        round.fail(error);
    }
}

/// Returns the texts of a row's address, by which the worker remembers the row.
pub(super) fn row_texts(table: &str, row: &Row) -> RowTexts {
    [table, row.partition_key(), row.row_key()].map(str::to_owned)
}
