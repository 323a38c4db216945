//! Sends the transaction of one attempt, and determines why it failed from the row that failed.

use std::{collections::HashSet, sync::Arc};

use super::{
    claims::ClaimAndReservedKeys,
    expired::{ExpiredHolder, ExpiredRowsInTheWay},
    failure_cause::{FailureCause, workers_behind_error},
    outbox_plan::OutboxPlan,
    parts::{etags_of_parts, writes_entity},
    state::Outbox,
    unique_violation::OccupiedLocalCopy,
};
use crate::{
    batch::{Deadline, Written},
    error::{Error, Result},
    key::RowFamily,
    plan::{Change, Effect, RowsRead, TransactionPlan},
    row::Row,
    store::sealing::plan::OperationToSeal,
};

/// A transaction to send, with everything that its attempt has read.
pub(super) struct TransactionToSend<'p> {
    pub(super) outbox: &'p Arc<Outbox>,
    pub(super) table: &'p str,
    pub(super) changes: &'p [Change],
    pub(super) effects: &'p [Arc<Effect>],
    pub(super) read: RowsRead,
    pub(super) expired: &'p ExpiredRowsInTheWay,
    /// Whether an insert may replace an expired row in its way. `false` for a move, which handles rows in its way
    /// itself.
    pub(super) may_replace_expired: bool,
    /// The latest time for sending the transaction, if there is a limit.
    pub(super) deadline: Option<&'p Deadline>,
}

/// What to do after a transaction failed.
enum NextStep {
    /// Plan it again from the rows that were read.
    PlanAgain,
    /// Read everything again: another writer was first.
    ReadAgain,
}

impl TransactionToSend<'_> {
    /// Sends the transaction. If one of the library's own rows was not as planned, plans and sends it again.
    /// Returns the transaction that was sent and its answers, or `None` if another writer was first and everything
    /// must be read again.
    pub(super) async fn send(
        mut self,
        mut transaction: TransactionPlan,
        outbox_rows: &mut Option<OutboxPlan<'_>>,
        claims: Option<&ClaimAndReservedKeys>,
    ) -> Result<Option<(TransactionPlan, Vec<Written>)>> {
        let mut looked_up = HashSet::new();
        loop {
            if let Some(rows) = outbox_rows {
                rows.add_rows(self.outbox, &mut transaction, claims).await?;
            }
            let failure = match self.write(&transaction).await {
                Ok(written) => return Ok(Some((transaction, written))),
                Err(error) => error,
            };
            // Boxed because the future of every write would reserve space for it.
            let next = self.judge_failure(failure, &transaction, outbox_rows, &mut looked_up);
            match Box::pin(next).await? {
                NextStep::PlanAgain => {}
                NextStep::ReadAgain => return Ok(None),
            }
            // Plan it again, because omitting a row changes positions.
            transaction = TransactionPlan::new(self.effects, &self.read)?;
        }
    }

    /// Sends the operations of a transaction and returns the answer to each.
    async fn write(&self, transaction: &TransactionPlan) -> Result<Vec<Written>> {
        transaction.check_operation_count(self.table, 0)?;
        let planned = transaction.planned_operations().iter();
        let to_seal = planned.map(|one| OperationToSeal::new(one.operation.clone(), one.stored_as));
        self.outbox.store.seal_and_write(self.table, to_seal.collect(), self.deadline).await
    }

    /// Returns the next step after a failure, or the error for the caller.
    async fn judge_failure(
        &mut self,
        failure: Error,
        transaction: &TransactionPlan,
        outbox_rows: &mut Option<OutboxPlan<'_>>,
        looked_up: &mut HashSet<usize>,
    ) -> Result<NextStep> {
        match FailureCause::find_cause(&failure, transaction, self.changes) {
            FailureCause::Caller(verb) => {
                if self.is_expired_in_the_way(verb, &failure).await? {
                    return Ok(NextStep::ReadAgain);
                }
                // Do not retry a lost race of the caller's own condition, which only the caller can
                // handle.
                Err(failure.at_operation(verb))
            }
            FailureCause::OccupiedKey(verb, family, copy) => {
                self.judge_occupied_copy(failure, transaction, verb, (family, copy)).await
            }
            // The retries below terminate: each copy is omitted once, and each dirty row is merged once.
            //
            // An old copy that does not exist is omitted from this plan only. A writer that creates it also changes the
            // primary's ETag, and a new plan from that version deletes it.
            FailureCause::MissingCopy(row_key) if self.read.missing.insert(row_key.clone()) => {
                Ok(NextStep::PlanAgain)
            }
            FailureCause::MissingPart(verb) if looked_up.insert(verb) => {
                let parts = etags_of_parts(self.outbox, self.table, transaction, verb).await?;
                if parts.values().all(Option::is_none) {
                    return Err(failure.at_operation(verb));
                }
                self.read.parts.extend(parts);
                Ok(NextStep::PlanAgain)
            }
            // A part that was found has changed since.
            FailureCause::MissingPart(_) => Ok(NextStep::ReadAgain),
            FailureCause::OutboxRow(role)
                if outbox_rows
                    .as_mut()
                    .is_some_and(|rows| rows.adapt_to_failed_row(self.outbox, role)) =>
            {
                Ok(NextStep::PlanAgain)
            }
            FailureCause::MissingCopy(_) | FailureCause::OutboxRow(_) | FailureCause::Other => {
                Err(failure.without_operation())
            }
            FailureCause::Race => Ok(NextStep::ReadAgain),
            FailureCause::WorkersBehind(dirty) => {
                let primary = outbox_rows
                    .as_ref()
                    .and_then(|rows| rows.primary_of_dirty_row(self.outbox, dirty));
                Err(primary.map_or(failure, workers_behind_error))
            }
        }
    }

    /// Handles a local copy that could not be inserted. The store's error only says that a row exists. Reads the row to
    /// find its owner.
    async fn judge_occupied_copy(
        &self,
        failure: Error,
        transaction: &TransactionPlan,
        verb: usize,
        (family, copy): (&'static RowFamily, &Row),
    ) -> Result<NextStep> {
        let (table, Some(effect)) = (self.table, self.effects.get(verb)) else {
            return Err(failure);
        };
        let occupied = OccupiedLocalCopy { table, copy, family, effect };
        let Some(violation) = occupied.find_violation(self.outbox).await? else {
            return Ok(NextStep::ReadAgain);
        };
        if let (Some(row), Some(schema)) = (violation.expired, effect.schema)
            && !writes_entity(transaction, schema, &row)?
        {
            let table = table.to_owned();
            self.expired.add_holders([ExpiredHolder { table, schema, row }]);
        }
        Err(violation.error.at_operation(verb))
    }

    /// Returns whether a verb failed because of an expired row. Either an insert found one in its way, or the row
    /// that it was to replace was renewed or swept in the meantime.
    async fn is_expired_in_the_way(&self, verb: usize, failure: &Error) -> Result<bool> {
        // This insert was to replace an expired row. A lost race means that the row was renewed or swept.
        if self.expired.forget_expired_row(verb) {
            return Ok(failure.is_lost_race());
        }
        if !failure.row_exists() || !self.may_replace_expired {
            return Ok(false);
        }
        let Some(change) = self.changes.get(verb) else { return Ok(false) };
        self.expired.can_retry_occupied_insert(self.outbox, self.table, (verb, change)).await
    }
}
