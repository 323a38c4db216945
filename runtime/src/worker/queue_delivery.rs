//! A delivery of a message by a queue, and the ways in which it ends. Each is a request under the message's pop receipt.

use std::time::Duration;

use super::{
    delivery::Delivery,
    failure::{FAILURE_DELAY, backoff_after_failure},
    outcome::MessageOutcome,
    poison::{EXPIRED, NOT_AUTHENTIC},
    state::{WorkSelectionByAge, Worker},
};
use crate::{
    error::{Error, Result},
    limits::saturating_i32,
    queue::{Envelope, LONGEST, Queue, Receipts, Received},
};

/// A received message whose envelope this program can read.
pub(super) struct QueueDelivery<'q> {
    pub(super) worker: &'q Worker,
    pub(super) port: &'q dyn Queue,
    pub(super) message: &'q mut Received,
    /// The envelope as it was received.
    pub(super) envelope: &'q Envelope,
    /// The places of the receipts that the message had, and of those that its handler has added.
    pub(super) receipts: Receipts,
    /// How often the message was received, without the deliveries that were not attempts.
    pub(super) count: u32,
    pub(super) due: WorkSelectionByAge,
}

impl QueueDelivery<'_> {
    /// Moves the message to the queue's poison messages.
    pub(super) async fn poison(&self, reason: &str) -> Result<MessageOutcome> {
        self.port.poison(self.message, reason).await?;
        Ok(MessageOutcome::Poisoned)
    }

    /// Hides the message for `wait` and stores the envelope.
    async fn hide(&mut self, wait: Duration, envelope: Envelope) -> Result<()> {
        // Keep the receipts if there is room. Without them the message's effects still happen once, but their receipts
        // would never be deleted.
        let without = envelope.to_message_text()?;
        let with = envelope.with_receipts(self.receipts.clone()).to_message_text()?;
        hide_message(self.port, self.message, wait, &[without, with]).await
    }

    /// Returns how long to hide the message: `wait`, but not at all in a drain, which waits between its rounds.
    fn wait_outside_drain(&self, wait: Duration) -> Duration {
        if self.due == WorkSelectionByAge::All { Duration::ZERO } else { wait }
    }
}

impl Delivery for QueueDelivery<'_> {
    async fn finish(&mut self) -> Result<MessageOutcome> {
        if self.receipts.is_empty() {
            self.port.delete(self.message).await?;
        } else {
            // Marked, so the next receiver only removes the receipts.
            let done = self.envelope.clone().mark_handled_and_drop_body(self.receipts.clone());
            let write_deadline = self.worker.outbox().options.write_deadline;
            let text = done.to_message_text()?;
            self.port.extend(self.message, write_deadline.min(LONGEST), Some(&text)).await?;
        }
        Ok(MessageOutcome::Done)
    }

    async fn postpone(&mut self, error: Error) -> Result<MessageOutcome> {
        let random = self.worker.outbox().store.random.random_number();
        let tries = saturating_i32(self.envelope.skipped);
        let wait = backoff_after_failure(tries, random, error.retry_after()).min(LONGEST);
        self.hide(self.wait_outside_drain(wait), self.envelope.clone().without_attempt()).await?;
        Err(error)
    }

    async fn wait_for_keys(&mut self, error: Error) -> Result<MessageOutcome> {
        self.postpone(error).await
    }

    async fn count_failure(&mut self, reason: &str) -> Result<MessageOutcome> {
        // The last of `poison_after` attempts.
        if self.count >= self.worker.outbox().options.poison_after {
            return self.poison(reason).await;
        }
        let wait = self.wait_outside_drain(FAILURE_DELAY.saturating_mul(self.count));
        self.hide(wait, self.envelope.clone()).await?;
        Ok(MessageOutcome::Failed)
    }

    async fn give_back(&mut self) -> Result<MessageOutcome> {
        self.hide(Duration::ZERO, self.envelope.clone().without_attempt()).await?;
        Ok(MessageOutcome::Left)
    }

    async fn poison_unauthentic(&mut self) -> Result<MessageOutcome> {
        self.port.poison(self.message, NOT_AUTHENTIC).await?;
        Ok(MessageOutcome::Refused)
    }

    async fn poison_expired(&mut self) -> Result<MessageOutcome> {
        self.poison(EXPIRED).await
    }
}

/// Hides a message for `wait` and replaces its text by the last of `texts` that fits into the queue. Keeps the
/// old text if none fits.
pub(super) async fn hide_message(
    port: &dyn Queue,
    message: &mut Received,
    wait: Duration,
    texts: &[String],
) -> Result<()> {
    // Start with the last text, which is the longest: its receipts may not fit.
    for text in texts.iter().rev() {
        match port.extend(message, wait, Some(text)).await {
            Err(error) if error.is_too_large() => {}
            hidden => return hidden,
        }
    }
    port.extend(message, wait, None).await
}
