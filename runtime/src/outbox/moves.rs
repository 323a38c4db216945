//! Carries a moving entity to its target. The writer does so right after it began the move, or any
//! worker does, or several at once.

use std::sync::Arc;

use super::{
    commit::commit_until, deadline::WriteDeadline, guard::Guard, outbox_plan::ExtraRows,
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
        outbox::{MessageIdentity, insert_receipt, receipt_row_key},
    },
    row::Row,
    store::backoff::{self, Attempt},
};

/// How a move ended.
#[derive(Debug)]
pub(crate) enum MoveOutcome {
    /// The entity is at the target.
    Moved,
    /// The target refused the entity for good, and it stays at the source.
    Refused(Error),
}

/// A move that was begun: the entity at the source is marked with the move's id.
#[derive(Debug)]
pub(crate) struct MoveJob<'a> {
    pub(crate) outbox: &'a Arc<Outbox>,
    pub(crate) table: &'a str,
    pub(crate) partition_key: &'a str,
    pub(crate) id: &'a str,
    pub(crate) schema: &'static Schema,
    pub(crate) message: &'a MoveMessage,
}

impl MoveJob<'_> {
    /// Makes the steps of the move that are still to be made.
    pub(crate) async fn run(&self) -> Result<MoveOutcome> {
        let moved =
            backoff::retry(&self.outbox.store.random, backoff::ATTEMPTS, || self.run_once());
        moved.await?.ok_or_else(|| {
            let message = "the entity kept changing while it was moved";
            Error::new(ErrorKind::Contended, message).in_table(self.table)
        })
    }

    async fn run_once(&self) -> Result<Attempt<MoveOutcome>> {
        // One deadline for both writes: it starts before the source is read.
        let deadline = self.outbox.start_deadline();
        let moved = Attempt::Done(MoveOutcome::Moved);
        let Some(source) = self.read_source().await? else { return Ok(moved) };
        match self.write_target(&deadline, &source).await {
            Ok(()) => {}
            Err(TargetError::Refused(error)) => {
                return self.refuse(&source, error).await.map(Attempt::Done);
            }
            Err(TargetError::Failed(error)) => return Err(error),
        }
        // Only the version that was carried over is deleted. If the source has changed since, the next
        // attempt carries the change over too.
        match self.delete_source(&deadline, &source).await {
            Ok(()) => Ok(moved),
            Err(error) if error.is_precondition_failed() => Ok(Attempt::Raced),
            // Another worker made this step.
            Err(error) if error.is_not_found() => Ok(moved),
            Err(error) => Err(error),
        }
    }

    /// Gives the move up: unlocks the entity at the source, unless it has arrived at the target.
    pub(crate) async fn give_up(&self) -> Result<()> {
        // Read as it is stored: the entity may be what cannot be read.
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

    /// Returns whether the move's receipt is at the target.
    async fn has_arrived(&self) -> Result<bool> {
        let MoveMessage { to_table, to_partition, .. } = self.message;
        let receipt_row_key = receipt_row_key(self.id);
        let receipt = RowAt::new(to_table, to_partition, &receipt_row_key);
        Ok(self.outbox.store.row_or_no_table(receipt).await?.is_some())
    }

    /// Returns the address that the entity leaves.
    fn source_at(&self) -> RowAt<'_> {
        RowAt::new(self.table, self.partition_key, &self.message.row_key)
    }

    /// Reads the entity at the source; `None` if it is gone, or is not marked with this move.
    async fn read_source(&self) -> Result<Option<Row>> {
        let row = self.read(self.source_at()).await?;
        Ok(row.filter(|row| matches!(move_id(row), Ok(Some(id)) if id == self.id)))
    }

    /// Reads a row and decrypts it: at the target it is encrypted for its new keys.
    async fn read(&self, at: RowAt<'_>) -> Result<Option<Row>> {
        match self.outbox.store.row(at).await? {
            Some(row) => {
                self.outbox.store.decrypt_typed(at.table, row, self.schema).await.map(Some)
            }
            None => Ok(None),
        }
    }

    async fn commit(
        &self,
        deadline: &WriteDeadline,
        table: &str,
        effect: Effect,
        extra_rows: &ExtraRows,
    ) -> Result<()> {
        let changes = [Change::with_effect(effect)];
        let last_moment = deadline.last_moment();
        let committed = commit_until(self.outbox, table, &changes, extra_rows, last_moment);
        deadline.run(committed).await.map(drop)
    }

    /// Inserts the entity at the target, together with a receipt. If it arrived before, brings it up to
    /// the changes of the source since.
    async fn write_target(
        &self,
        deadline: &WriteDeadline,
        source: &Row,
    ) -> Result<(), TargetError> {
        let MoveMessage { to_table, to_partition, to_row, .. } = self.message;
        let from = self.source_at().to_owned();
        let arrival = Arrival { id: self.id.to_owned(), from };
        let effect = insert_target(self.schema, source, self.message, &arrival)
            .map_err(TargetError::Refused)?;
        let mut extra_rows =
            ExtraRows { partition_key: to_partition.clone(), ..ExtraRows::default() };
        extra_rows.from = Some(arrival.from.clone());
        let message = MessageIdentity::in_partition(self.table, self.partition_key, self.id);
        let receipt = insert_receipt(to_partition, &message)?;
        extra_rows.operations.extend(self.outbox.guards.keep(Guard::Receipt, receipt));
        let Err(error) = self.commit(deadline, to_table, effect, &extra_rows).await else {
            return Ok(());
        };
        // Throttling, lost answers and the like say nothing about the target: the move is tried again.
        if !error.ends_move() {
            return Err(TargetError::Failed(error));
        }
        let receipt_row_key = receipt_row_key(self.id);
        let receipt = self.read(RowAt::new(to_table, to_partition, &receipt_row_key)).await;
        match receipt {
            Ok(Some(_)) => {}
            Ok(None) => return Err(TargetError::Refused(error)),
            Err(_) if error.is_table_missing() => return Err(TargetError::Refused(error)),
            Err(error) => return Err(TargetError::Failed(error)),
        }
        // The entity arrived before. A program that knows nothing of moves may have changed the source
        // since.
        let Some(target) = self.read(RowAt::new(to_table, to_partition, to_row)).await? else {
            return Ok(());
        };
        match update_target(self.schema, source, &target, self.message, &arrival)? {
            None => Ok(()),
            Some(effect) => self
                .commit(deadline, to_table, effect, &ExtraRows::default())
                .await
                .map_err(TargetError::Failed),
        }
    }

    /// Deletes the entity at the source under the ETag of `source`.
    async fn delete_source(&self, deadline: &WriteDeadline, source: &Row) -> Result<()> {
        let source = self.outbox.guards.keep_etag(Guard::LeaveVersion, source.clone());
        let effect = delete_source(self.schema, &source)?;
        self.commit(deadline, self.table, effect, &ExtraRows::default()).await
    }

    /// Unlocks the entity at the source, since the target refused it with that error.
    async fn refuse(&self, source: &Row, refused: Error) -> Result<MoveOutcome> {
        let effect = abort(self.schema, source)?;
        let deadline = self.outbox.start_deadline();
        self.commit(&deadline, self.table, effect, &ExtraRows::default()).await?;
        Ok(MoveOutcome::Refused(refused))
    }
}

/// Why an entity did not arrive at the target.
enum TargetError {
    /// The target refuses the entity for good.
    Refused(Error),
    /// Another attempt may succeed.
    Failed(Error),
}

impl From<Error> for TargetError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
