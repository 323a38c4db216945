//! Decides in one place how to react to an error: start again, leave the work to others, try later, or count it
//! towards the poison table.

use std::time::Duration;

use super::{
    failure::FAILURE_DELAY,
    partition::OutboxRow,
    state::{RoundResult, Worker},
    visit::LastPartitionVisit,
};
use crate::error::{Error, Result, RetryChance};

/// The worker's reaction to work that failed.
#[derive(Debug)]
pub(super) enum FailureReaction {
    /// Start again immediately: another actor changed a row first, or the write deadline passed.
    BeginAgain,
    /// Leave the work to programs that know its type.
    LeaveToOthers,
    /// Count the failure, which is permanent.
    Count(Error),
    /// Report the failure and try again in the next round, without a limit.
    TryLater(Error),
}

impl FailureReaction {
    /// Returns the reaction to an outbox row whose work failed.
    pub(super) fn reaction_for_row(error: Error) -> Self {
        // If a row changed or disappeared in the meantime, the work has not failed, although `NotFound` is a
        // permanent failure for a message.
        if error.is_lost_race() || error.is_contended() {
            Self::BeginAgain
        } else {
            Self::reaction_for_message(error)
        }
    }

    /// Returns the reaction to a failed message.
    pub(super) fn reaction_for_message(error: Error) -> Self {
        if error.is_unrecognized_entity() {
            return Self::LeaveToOthers;
        }
        match error.retry_chance() {
            RetryChance::Never => Self::Count(error),
            // Throttling and lost connections must never put work aside, however often they occur.
            RetryChance::PassesAlone | RetryChance::Unclear => Self::TryLater(error),
        }
    }
}

/// The result of working on a message.
#[derive(Debug)]
pub(super) enum MessageOutcome {
    /// The message was deleted or marked as done.
    Done,
    /// The handler failed, which counts towards the poison table.
    Failed,
    /// The handler failed for a temporary reason. The message is hidden for this time.
    Postponed(Error, Duration),
    Poisoned,
    /// The message was put into the poison table because its code is wrong or missing.
    Refused,
    /// This program does not know the message's type, or the type of the entity to move.
    Unknown,
    /// Another worker holds or has finished the message.
    Raced,
    /// The worker is stopping and did not take the message, or gave it back.
    Left,
}

impl Worker {
    /// Counts a failure that does not count towards the poison table, and passes it to the listener. Keeps the first
    /// failure of a round for the caller.
    pub(super) fn report_failure(&self, error: Error, round: &mut RoundResult) {
        self.count_and_report_failure(&error);
        round.keep_first_failure(error);
    }

    /// Reacts to the failure of an outbox row's work: tries again, leaves the row, or counts the failure.
    pub(super) async fn handle_failure(
        &self,
        table: &str,
        row: &OutboxRow,
        error: Error,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        match FailureReaction::reaction_for_row(error) {
            FailureReaction::BeginAgain => {
                self.lock_memory().stats.retried += 1;
                round.raced += 1;
                visit.revisit_after(Duration::ZERO);
            }
            // Keep the row. Programs that know its type find it in the same partition.
            FailureReaction::LeaveToOthers => visit.count_open_row_as_unknown(),
            FailureReaction::Count(error) => {
                visit.revisit_after(Duration::ZERO);
                match self.count_failure_or_poison(table, row, &error).await {
                    Ok(is_poisoned) => {
                        visit.subtract_open_rows(u64::from(is_poisoned));
                        // A counted failure is progress for `drain`, which continues until the work is in the
                        // poison table.
                        round.progressed += 1;
                        round.counted += u64::from(!is_poisoned);
                    }
                    Err(error) => self.report_failure(error, round),
                }
            }
            FailureReaction::TryLater(error) => {
                // The failure is temporary, such as throttling. Keep the row, however often it fails.
                visit.revisit_after(Duration::ZERO);
                self.report_failure(error, round);
            }
        }
    }

    /// Counts the outcome of a message and schedules the next visit of its partition.
    pub(super) fn count_message(
        &self,
        outcome: Result<MessageOutcome>,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        match outcome {
            Ok(MessageOutcome::Done) => {
                self.lock_memory().stats.applied += 1;
                visit.subtract_open_rows(1);
                round.progressed += 1;
            }
            Ok(MessageOutcome::Poisoned) => {
                self.lock_memory().stats.poisoned += 1;
                self.metering().count_poisoned();
                visit.subtract_open_rows(1);
                round.progressed += 1;
            }
            Ok(MessageOutcome::Refused) => {
                let stats = &mut self.lock_memory().stats;
                stats.refused += 1;
                stats.poisoned += 1;
                self.metering().count_poisoned();
                visit.subtract_open_rows(1);
                round.progressed += 1;
            }
            Ok(MessageOutcome::Failed) => {
                self.lock_memory().stats.retried += 1;
                visit.revisit_after(FAILURE_DELAY);
                round.progressed += 1;
                round.counted += 1;
            }
            Ok(MessageOutcome::Postponed(error, wait)) => {
                self.lock_memory().stats.retried += 1;
                visit.revisit_after(wait);
                self.report_failure(error, round);
            }
            Ok(MessageOutcome::Unknown) => visit.count_open_row_as_unknown(),
            Ok(MessageOutcome::Raced) => {
                // The new holder may die, so visit the partition again after a lease.
                visit.revisit_after(self.outbox().options.close_idle_after);
                round.raced += 1;
            }
            // The next worker may take it immediately.
            Ok(MessageOutcome::Left) => visit.revisit_after(Duration::ZERO),
            Err(error) => {
                visit.revisit_after(self.outbox().options.close_idle_after);
                self.report_failure(error, round);
            }
        }
    }
}
