//! Carrying an entity over: by the writer right after it began the move, or by any worker, or by
//! several at once.

use std::sync::Arc;

use super::{
    commit::commit_with, deadline::WriteDeadline, guard::Guard, outbox_plan::ExtraRows,
    state::Outbox,
};
use crate::{
    address::RowAt,
    entity::Schema,
    error::{Error, ErrorKind, Result},
    plan::{
        Change, Effect,
        moves::{
            Arrival, MoveMessage, abort, delete_source, insert_target, move_id, unmark,
            update_target,
        },
        outbox::{insert_receipt, receipt_row_key},
    },
    row::Row,
    store::backoff,
};

/// What became of a move.
#[derive(Debug)]
pub(crate) enum MoveOutcome {
    /// The entity is where it was to go.
    Moved,
    /// It stays where it was.
    Refused(Error),
}

/// A move on its way.
#[derive(Debug)]
pub(crate) struct MoveJob<'a> {
    pub(crate) outbox: &'a Arc<Outbox>,
    pub(crate) table: &'a str,
    pub(crate) partition_key: &'a str,
    pub(crate) id: &'a str,
    pub(crate) schema: &'static Schema,
    pub(crate) journey: &'a MoveMessage,
}

impl MoveJob<'_> {
    /// Makes the steps that are still to be made.
    pub(crate) async fn run(&self) -> Result<MoveOutcome> {
        for attempt in 0..backoff::ATTEMPTS {
            let flight = WriteDeadline::begin(self.outbox);
            let Some(source) = self.source().await? else { return Ok(MoveOutcome::Moved) };
            if let Err(error) = self.arrive(flight, &source).await {
                match error {
                    Stop::For(error) => return self.stay(&source, error).await,
                    Stop::Now(error) => return Err(error),
                }
            }
            match self.leave(flight, &source).await {
                Ok(()) => return Ok(MoveOutcome::Moved),
                // It was changed on its way: what arrived is brought up to that.
                Err(error) if error.is_precondition_failed() => {}
                Err(error) if error.is_not_found() => return Ok(MoveOutcome::Moved),
                Err(error) => return Err(error),
            }
            backoff::wait(&self.outbox.store.random, attempt).await;
        }
        let message = "the entity kept changing while it was moved";
        Err(Error::new(ErrorKind::Contended, message).in_table(self.table))
    }

    /// Gives the move up: where nothing arrived yet the entity stays, and can be written again. Its
    /// row is taken as it is: it may be what cannot be read.
    pub(crate) async fn give_up(&self) -> Result<()> {
        let Some(source) = self.outbox.store.row(self.source_at()).await? else { return Ok(()) };
        if !matches!(move_id(&source), Ok(Some(id)) if id == self.id) || self.has_arrived().await? {
            return Ok(());
        }
        let operation = unmark(&source)?;
        match self.outbox.store.apply_one(self.table, operation).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    async fn has_arrived(&self) -> Result<bool> {
        let MoveMessage { to_table, to_partition, .. } = self.journey;
        let receipt_row_key = receipt_row_key(self.id);
        let receipt = RowAt::new(to_table, to_partition, &receipt_row_key);
        Ok(self.outbox.store.row_or_no_table(receipt).await?.is_some())
    }

    /// Returns the address that the entity leaves.
    fn source_at(&self) -> RowAt<'_> {
        RowAt::new(self.table, self.partition_key, &self.journey.row_key)
    }

    /// The entity where it was, as long as it is on this way.
    async fn source(&self) -> Result<Option<Row>> {
        let row = self.read(self.source_at()).await?;
        Ok(row.filter(|row| matches!(move_id(row), Ok(Some(id)) if id == self.id)))
    }

    /// A row in its plain form: where it arrives it is encrypted for its own keys.
    async fn read(&self, at: RowAt<'_>) -> Result<Option<Row>> {
        match self.outbox.store.row(at).await? {
            Some(row) => self.outbox.store.opened(at.table, row, self.schema).await.map(Some),
            None => Ok(None),
        }
    }

    async fn commit(
        &self,
        flight: WriteDeadline,
        table: &str,
        effect: Effect,
        extra_rows: &ExtraRows,
    ) -> Result<()> {
        let changes = [Change::with_effect(effect)];
        flight
            .run(self.outbox, commit_with(self.outbox, table, &changes, extra_rows))
            .await
            .map(drop)
    }

    async fn arrive(&self, flight: WriteDeadline, source: &Row) -> Result<(), Stop> {
        let MoveMessage { to_table, to_partition, to_row, .. } = self.journey;
        let from = self.source_at().to_owned();
        let arrival = Arrival { id: self.id.to_owned(), from };
        let effect =
            insert_target(self.schema, source, self.journey, &arrival).map_err(Stop::For)?;
        let mut extra_rows =
            ExtraRows { partition_key: to_partition.clone(), ..ExtraRows::default() };
        extra_rows.from = Some(arrival.from.clone());
        if self.outbox.guards.holds(Guard::Receipt) {
            extra_rows.operations.push(insert_receipt(to_partition, self.id)?);
        }
        let Err(error) = self.commit(flight, to_table, effect, &extra_rows).await else {
            return Ok(());
        };
        if !error.ends_move() {
            return Err(Stop::Now(error));
        }
        let receipt_row_key = receipt_row_key(self.id);
        let receipt = self.read(RowAt::new(to_table, to_partition, &receipt_row_key)).await;
        match receipt {
            Ok(Some(_)) => {}
            Ok(None) => return Err(Stop::For(error)),
            Err(_) if error.is_table_missing() => return Err(Stop::For(error)),
            Err(error) => return Err(Stop::Now(error)),
        }
        // It arrived before; a writer that knows nothing of moves may have changed the source since.
        let Some(target) = self.read(RowAt::new(to_table, to_partition, to_row)).await? else {
            return Ok(());
        };
        match update_target(self.schema, source, &target, self.journey, &arrival)? {
            None => Ok(()),
            Some(effect) => self
                .commit(flight, to_table, effect, &ExtraRows::default())
                .await
                .map_err(Stop::Now),
        }
    }

    async fn leave(&self, flight: WriteDeadline, source: &Row) -> Result<()> {
        let source = match self.outbox.guards.holds(Guard::LeaveVersion) {
            true => source.clone(),
            false => source.clone().without_version(),
        };
        let effect = delete_source(self.schema, &source)?;
        self.commit(flight, self.table, effect, &ExtraRows::default()).await
    }

    async fn stay(&self, source: &Row, refused: Error) -> Result<MoveOutcome> {
        let effect = abort(self.schema, source)?;
        let flight = WriteDeadline::begin(self.outbox);
        self.commit(flight, self.table, effect, &ExtraRows::default()).await?;
        Ok(MoveOutcome::Refused(refused))
    }
}

/// Why an entity did not arrive.
enum Stop {
    /// It never will.
    For(Error),
    /// It may, another time.
    Now(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Now(error)
    }
}
