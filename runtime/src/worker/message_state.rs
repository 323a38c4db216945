//! Ends the work on one outbox message: finishes, postpones, counts, gives back, refuses, or puts it aside. Each
//! is a write under the ETag of the message's row that this worker read or wrote with its lease.

use super::{
    delivery::Delivery,
    failure::{FAILURE_DELAY, backoff_after_failure},
    outcome::MessageOutcome,
    poison::{EXPIRED, NOT_AUTHENTIC},
    state::Worker,
};
use crate::{
    batch::Operation,
    edm::Ticks,
    error::{Error, Result},
    limits::saturating_i32,
    plan::outbox::{StoredMessage, add_duration},
    row::ETag,
};

/// An outbox message in a state that this worker may change: as it was read, or as its own lease was written.
pub(super) struct MessageState<'m> {
    pub(super) worker: &'m Worker,
    pub(super) table: &'m str,
    pub(super) message: &'m StoredMessage,
    /// The ETag of the message's row that this worker read or last wrote. It is the condition of all writes here.
    pub(super) etag: Option<ETag>,
    /// The store's time when work on the message began.
    pub(super) now: Ticks,
}

impl MessageState<'_> {
    /// Deletes a handled message. If it has receipts, marks it as done instead and keeps it until no worker can
    /// still deliver it.
    pub(super) async fn finish_with_receipts(
        &self,
        receipts: &[(String, String)],
    ) -> Result<MessageOutcome> {
        if receipts.is_empty() {
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

    /// Ends the lease of the message.
    pub(super) async fn release_lease(&self) -> Result<()> {
        let released = self.message.release_lease_operation(self.etag.clone())?;
        self.worker.write_leased_message(self.table, released).await.map(drop)
    }

    /// Moves a message to the poison table. First marks it, which prevents further deliveries. Without the mark,
    /// another worker could take the message between the two writes, and a message that succeeded would be in the
    /// poison table.
    pub(super) async fn poison(&self, error: &impl ToString) -> Result<MessageOutcome> {
        let error = &error.to_string();
        let marked = self.message.mark_poisoned(self.etag.clone(), error)?;
        match self.worker.write_leased_message(self.table, marked).await? {
            Some(etag @ Some(_)) => Self { etag, ..*self }.poison_marked_message(error).await,
            // Without an ETag the mark may not be the last write. The next round reads the message again.
            Some(None) | None => Ok(MessageOutcome::Raced),
        }
    }

    /// Finishes a message that is marked for the poison table: if it is a move, gives it up. Then copies the
    /// message to the poison table.
    pub(super) async fn poison_marked_message(&self, error: &str) -> Result<MessageOutcome> {
        let Self { worker, table, message, ref etag, .. } = *self;
        let Some(target) = worker.give_up_move(table, message).await? else {
            self.put_aside(error).await?;
            return Ok(MessageOutcome::Poisoned);
        };
        worker.copy_row_to_poison(table, &message.row, etag.as_ref(), error).await?;
        // The message stays, marked as done. It removes the tombstone once no carrier is under way any more.
        worker.write_leased_message(table, message.mark_done(etag.clone(), &[target])?).await?;
        Ok(MessageOutcome::Poisoned)
    }

    async fn put_aside(&self, reason: &str) -> Result<()> {
        let Self { worker, table, message, ref etag, .. } = *self;
        worker.move_row_to_poison(table, &message.row, etag.clone(), reason).await
    }

    /// Writes the message. Returns `outcome`, or `Raced` if another worker changed or deleted the message.
    async fn write_or_race(
        &self,
        operation: Operation,
        outcome: MessageOutcome,
    ) -> Result<MessageOutcome> {
        let written = self.worker.write_leased_message(self.table, operation).await?;
        Ok(written.map_or(MessageOutcome::Raced, |_| outcome))
    }
}

impl Delivery for MessageState<'_> {
    async fn finish(&mut self) -> Result<MessageOutcome> {
        self.finish_with_receipts(&self.message.receipts).await
    }

    async fn postpone(&mut self, error: Error) -> Result<MessageOutcome> {
        // Only temporary failures count for this wait.
        let tries = self.message.attempts.saturating_sub(self.message.failures);
        let random = self.worker.outbox().store.random.random_number();
        let wait = backoff_after_failure(tries, random, error.retry_after());
        let until = add_duration(self.now, wait);
        let postponed =
            self.message.postpone_operation(self.etag.clone(), &error.to_string(), until)?;
        self.write_or_race(postponed, MessageOutcome::Postponed(error, wait)).await
    }

    async fn wait_for_keys(&mut self, error: Error) -> Result<MessageOutcome> {
        // The message is not leased, so nothing keeps the next round from trying again.
        Err(error)
    }

    async fn count_failure(&mut self, reason: &str) -> Result<MessageOutcome> {
        let failures = self.message.failures.saturating_add(1);
        let most = self.worker.outbox().options.poison_after;
        if failures >= saturating_i32(most) {
            return self.poison(&reason).await;
        }
        let wait = FAILURE_DELAY.saturating_mul(u32::try_from(failures).unwrap_or(1));
        let until = add_duration(self.now, wait);
        let counted = self.message.failure_operation(self.etag.clone(), reason, until)?;
        self.write_or_race(counted, MessageOutcome::Failed).await
    }

    async fn give_back(&mut self) -> Result<MessageOutcome> {
        self.release_lease().await?;
        Ok(MessageOutcome::Left)
    }

    async fn poison_unauthentic(&mut self) -> Result<MessageOutcome> {
        // Do not use any of its text, which may be forged.
        self.put_aside(NOT_AUTHENTIC).await?;
        Ok(MessageOutcome::Refused)
    }

    async fn poison_expired(&mut self) -> Result<MessageOutcome> {
        self.put_aside(EXPIRED).await?;
        Ok(MessageOutcome::Poisoned)
    }
}
