//! One look at everything that is open.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{
    Memory, Place, Worker,
    directory::{self, Found},
    partition::{Aged, Partition},
    pass::Passed,
};
use crate::{
    error::{Error, Result},
    plan::outbox::Marker,
};

/// Rows of one partition that are worked on at a time.
const ROWS: usize = 8;

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
    fn add(&mut self, other: Self) {
        self.moved += other.moved;
        self.raced += other.raced;
        self.failure = self.failure.take().or(other.failure);
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }
}

impl Worker {
    /// Works through the directory once.
    pub(super) async fn round(&self, due: Due) -> Result<Round> {
        self.memory().stats.look_again();
        let mut round = Round::default();
        let mut from = None;
        loop {
            let (found, next) = directory::page(&self.client, from.as_ref()).await?;
            round.add(self.work_on(found, due).await);
            match next {
                Some(next) => from = Some(next),
                None => return Ok(round),
            }
        }
    }

    async fn work_on(&self, found: Found, due: Due) -> Round {
        let mut round = Round::default();
        let mut closed = Vec::new();
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

    async fn work_on_partition(
        &self,
        table: &str,
        partition_key: &str,
        markers: &[Marker],
        due: Due,
    ) -> Result<(Round, Vec<(String, String)>)> {
        let partition = match Partition::read(&self.client, table, partition_key).await {
            Ok(partition) => partition,
            // Nothing can be committed there any more.
            Err(error) if error.code() == Some("TableNotFound") => {
                let gone =
                    markers.iter().map(|marker| (marker.shard.clone(), marker.row_key.clone()));
                return Ok((Round::default(), gone.collect()));
            }
            Err(error) => return Err(error),
        };
        let mut round = Round::default();
        self.memory().stats.unknown += partition.unknown;
        let due = partition.dirty.iter().filter(|aged| self.is_due(table, aged, due));
        let passes = stream::iter(due).map(|aged| self.pass(table, aged)).buffer_unordered(ROWS);
        let passed: Vec<Passed> = passes.collect().await;
        self.settle(table, passed, &mut round).await;
        let closed = self.close(&partition, markers).await?;
        Ok((round, closed))
    }

    /// Whether a row is worth a pass now.
    fn is_due(&self, table: &str, aged: &Aged, due: Due) -> bool {
        let options = &self.client.outbox().options;
        let is = |least: Duration| aged.age.is_some_and(|age| age >= least);
        let memory = &mut *self.memory();
        let waits = memory.looked.get(&place(table, aged)) == Some(&aged.row.etag());
        if waits && !is(options.flight) {
            memory.stats.waiting += 1;
            return false;
        }
        memory.stats.meet(aged.age);
        due == Due::Everything || is(options.grace)
    }

    /// Takes note of what became of the rows of a partition, and removes what is done.
    async fn settle(&self, table: &str, passed: Vec<Passed>, round: &mut Round) {
        let mut done = Vec::new();
        for passed in passed {
            match passed {
                Passed::Done(open) => done.push(open),
                Passed::Waits(open, written) => {
                    let memory = &mut *self.memory();
                    memory.waits((table, &open.row), written);
                    round.moved += u64::from(written);
                }
                Passed::Raced => {
                    self.memory().stats.retried += 1;
                    round.raced += 1;
                }
                Passed::Unknown => {
                    let stats = &mut self.memory().stats;
                    stats.open -= 1;
                    stats.unknown += 1;
                }
                Passed::Failed(aged, error) => match self.failed(table, &aged, error).await {
                    Ok(()) => round.moved += 1,
                    Err(error) => {
                        self.memory().stats.failures += 1;
                        round.fail(error);
                    }
                },
            }
        }
        match self.remove(table, done).await {
            Ok(removed) => {
                let stats = &mut self.memory().stats;
                stats.applied += removed.gone;
                stats.open = stats.open.saturating_sub(removed.gone);
                round.moved += removed.gone;
                round.raced += removed.raced;
            }
            Err(error) => round.fail(error),
        }
    }
}

impl Memory {
    /// A row whose work is done, and has to be looked at once more.
    fn waits(&mut self, (table, row): (&str, &crate::row::Row), written: bool) {
        self.looked.insert(place_of(table, row), row.etag());
        self.stats.open = self.stats.open.saturating_sub(1);
        self.stats.waiting += 1;
        let _ = written;
    }
}

pub(super) fn place(table: &str, aged: &Aged) -> Place {
    place_of(table, &aged.row)
}

pub(super) fn place_of(table: &str, row: &crate::row::Row) -> Place {
    (table.to_owned(), row.partition_key().to_owned(), row.row_key().to_owned())
}
