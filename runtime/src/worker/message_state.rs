//! Ends the work on one message of the outbox: finishes, postpones, counts, gives back, refuses, or
//! puts aside. Each is a write under the ETag of the message's row as this worker read or leased it.

use super::{
    failure::{FAILURE_DELAY, wait_after_failure},
    outcome::MessageOutcome,
    poison::{EXPIRED, NOT_AUTHENTIC},
    state::Worker,
};
use crate::{
    batch::Operation,
    edm::Ticks,
    error::{Error, Result},
    guard::Mutation,
    plan::outbox::{StoredMessage, add_duration},
    row::ETag,
};

/// A message of the outbox in the state that this worker may change: as it was read, or as its own lease
/// was written.
pub(super) struct MessageState<'m> {
    pub(super) worker: &'m Worker,
    pub(super) table: &'m str,
    pub(super) message: &'m StoredMessage,
    /// The ETag of the message's row as this worker read it or last wrote it. All writes here have it as
    /// their condition.
    pub(super) etag: Option<ETag>,
    /// The store's time when the work on the message began.
    pub(super) now: Ticks,
}

impl MessageState<'_> {
    /// Deletes a handled message. If it has receipts, marks it as done instead; it stays until no
    /// worker can hand it over any more.
    pub(super) async fn finish(&self, receipts: &[(String, String)]) -> Result<MessageOutcome> {
        let is_orphaned = self.worker.outbox().guards.has_mutation(Mutation::ReceiptsOrphaned);
        if receipts.is_empty() || is_orphaned {
            return self.delete().await;
        }
        let done = self.message.mark_done(self.etag.clone(), receipts)?;
        self.write_or_race(done, MessageOutcome::Done).await
    }

    /// Deletes the message.
    pub(super) async fn delete(&self) -> Result<MessageOutcome> {
        let deletion = self.message.delete_operation(self.etag.clone())?;
        self.write_or_race(deletion, MessageOutcome::Done).await
    }

    /// Hides a message whose handler failed for a temporary reason. The failure does not count.
    pub(super) async fn postpone(&self, error: Error) -> Result<MessageOutcome> {
        // Only failures that pass count for this wait.
        let tries = self.message.attempts.saturating_sub(self.message.failures);
        let random = self.worker.outbox().store.random.random_number();
        let wait = wait_after_failure(tries, random, error.retry_after());
        let until = add_duration(self.now, wait);
        let postponed =
            self.message.postpone_operation(self.etag.clone(), &error.to_string(), until)?;
        self.write_or_race(postponed, MessageOutcome::Postponed(error, wait)).await
    }

    /// Records a failure that counts, and hides the message for a time that grows with the
    /// failures. After too many failures puts it into the poison table.
    pub(super) async fn count_failure(&self, error: &impl ToString) -> Result<MessageOutcome> {
        let failures = self.message.failures.saturating_add(1);
        let most = self.worker.outbox().options.poison_after;
        if failures >= i32::try_from(most).unwrap_or(i32::MAX) {
            return self.poison(error).await;
        }
        let wait = FAILURE_DELAY.saturating_mul(u32::try_from(failures).unwrap_or(1));
        let until = add_duration(self.now, wait);
        let counted =
            self.message.failure_operation(self.etag.clone(), &error.to_string(), until)?;
        self.write_or_race(counted, MessageOutcome::Failed).await
    }

    /// Ends the lease of a message that this worker stops handling, so that other workers may take
    /// it at once.
    pub(super) async fn give_back(&self) -> Result<MessageOutcome> {
        if !self.worker.outbox().guards.has_mutation(Mutation::LeaseKept) {
            self.release().await?;
        }
        Ok(MessageOutcome::Left)
    }

    /// Ends the lease of the message.
    pub(super) async fn release(&self) -> Result<()> {
        let released = self.message.release_operation(self.etag.clone())?;
        self.worker.write_leased_message(self.table, released).await.map(drop)
    }

    /// Puts a message that is not authentic into the poison table. If it is a move, the entity at
    /// the source stays marked.
    pub(super) async fn refuse(&self) -> Result<MessageOutcome> {
        // None of its texts is used: a forger may have chosen each of them.
        self.put_aside(NOT_AUTHENTIC).await?;
        Ok(MessageOutcome::Refused)
    }

    /// Puts a message that was sent longer ago than its type allows into the poison table.
    pub(super) async fn put_expired_aside(&self) -> Result<MessageOutcome> {
        self.put_aside(EXPIRED).await?;
        Ok(MessageOutcome::Poisoned)
    }

    /// Puts a message into the poison table. First marks it, so that no worker hands it over any
    /// more.
    // Without the mark, another worker could take the message between the two writes, and it would
    // be in the poison table although it succeeded.
    pub(super) async fn poison(&self, error: &impl ToString) -> Result<MessageOutcome> {
        let error = &error.to_string();
        let marked = self.message.mark_poisoned(self.etag.clone(), error)?;
        match self.worker.write_leased_message(self.table, marked).await? {
            Some(etag @ Some(_)) => Self { etag, ..*self }.put_poisoned_aside(error).await,
            // Without an ETag the mark may not be the last write. The next round reads the message again.
            Some(None) | None => Ok(MessageOutcome::Raced),
        }
    }

    /// Finishes a message that is marked for the poison table: gives its move up, if it is a move,
    /// and copies the message into that table.
    pub(super) async fn put_poisoned_aside(&self, error: &str) -> Result<MessageOutcome> {
        let Self { worker, table, message, ref etag, .. } = *self;
        let Some(target) = worker.give_up_move(table, message).await? else {
            self.put_aside(error).await?;
            return Ok(MessageOutcome::Poisoned);
        };
        worker.copy_row_to_poison(table, &message.row, etag.as_ref(), error).await?;
        // The message stays as done, which removes the tombstone when no carrier is under way any more.
        worker.write_leased_message(table, message.mark_done(etag.clone(), &[target])?).await?;
        Ok(MessageOutcome::Poisoned)
    }

    async fn put_aside(&self, reason: &str) -> Result<()> {
        let Self { worker, table, message, ref etag, .. } = *self;
        worker.move_row_to_poison(table, &message.row, etag.clone(), reason).await
    }

    /// Sends a write of the message. Returns `outcome`, or `Raced` if another worker changed or
    /// deleted the message.
    async fn write_or_race(
        &self,
        operation: Operation,
        outcome: MessageOutcome,
    ) -> Result<MessageOutcome> {
        let written = self.worker.write_leased_message(self.table, operation).await?;
        Ok(written.map_or(MessageOutcome::Raced, |_| outcome))
    }
}
