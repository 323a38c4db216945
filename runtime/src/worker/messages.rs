//! Delivers the messages of one partition to their handlers, and deletes finished messages. A lease is a write
//! under the message's ETag. Only the holder of the last lease may change the message.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{
    delivery::settle_delivery,
    failure::{FAILURE_DELAY, ignore_newer_or_missing},
    handler::{Context, RenewableLease},
    lease::{OutboxLease, StoreTime},
    message_state::MessageState,
    outcome::MessageOutcome,
    partition::{OutboxChunk, OutboxRow},
    state::{ROWS_AT_ONCE, RoundResult, WorkSelectionByAge, Worker},
    verify::SignedMessage,
    visit::LastPartitionVisit,
};
use crate::{
    batch::{Batch, Condition, Operation},
    edm::Ticks,
    entity::Message,
    error::{Error, Result},
    guard::Guard,
    plan::{
        moves::MoveMessage,
        outbox::{MessageIdentity, StoredMessage, receipt_row_key},
    },
};

impl Worker {
    /// Delivers the due messages of a chunk to their handlers.
    pub(super) async fn handle_messages(
        &self,
        chunk: &OutboxChunk,
        due: WorkSelectionByAge,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        let mut due_messages = Vec::new();
        for row in &chunk.messages {
            match StoredMessage::from_row(row.row.clone()) {
                Ok(message) if self.is_message_due(&message, row, chunk.date, due, visit) => {
                    due_messages.push(message);
                }
                Ok(_) => {}
                Err(error) => {
                    self.handle_damaged_message(&chunk.table, row, error, round, visit).await;
                }
            }
        }
        let (table, time) = (chunk.table.as_str(), chunk.store_time());
        let outcomes = stream::iter(due_messages)
            .map(|message| async move {
                if self.stopping.has_begun() {
                    Ok(MessageOutcome::Left)
                } else {
                    self.handle_message(table, &message, time).await
                }
            })
            .buffer_unordered(ROWS_AT_ONCE);
        let outcomes: Vec<Result<MessageOutcome>> = outcomes.collect().await;
        for outcome in outcomes {
            self.count_message(outcome, round, visit);
        }
    }

    /// Counts a message that cannot be read as unknown. After too many rounds, moves it to the poison table.
    async fn handle_damaged_message(
        &self,
        table: &str,
        row: &OutboxRow,
        error: Error,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        match self.count_failure_or_poison(table, row, &error).await {
            Ok(is_poisoned) => {
                // Visit it again immediately, which lets `drain` count it to the end.
                visit.revisit_after(Duration::ZERO);
                visit.unknown += u64::from(!is_poisoned);
                round.progressed += 1;
            }
            Err(error) => {
                visit.revisit_after(self.outbox().options.close_idle_after);
                self.report_failure(error, round);
            }
        }
    }

    /// Returns whether a message is due. Counts it as open, waiting or unknown.
    fn is_message_due(
        &self,
        message: &StoredMessage,
        row: &OutboxRow,
        date: Option<Ticks>,
        due: WorkSelectionByAge,
        visit: &mut LastPartitionVisit,
    ) -> bool {
        let write_deadline = self.outbox().options.write_deadline;
        if message.is_done {
            // Keep its receipts until no worker can still deliver it.
            let is_deadline_over = row.is_older_than(write_deadline);
            if !is_deadline_over {
                visit.waiting += 1;
                visit.revisit_after(row.time_until_age(write_deadline));
            }
            return is_deadline_over;
        }
        if message.poison.is_some() {
            // Due for every worker, with or without a handler: only the last two writes are missing.
            visit.add_open_row(row.age);
            return true;
        }
        let is_known =
            self.handlers.can_handle_message(message) && self.can_verify_message(&message.name);
        if !is_known && !self.knows_entity_of_move(message) {
            visit.unknown += 1;
            return false;
        }
        visit.add_open_row(row.age);
        // Without a date the message counts as not leased, and the write under the ETag decides.
        let has_lease = self.outbox().guards.is_guard_enabled(Guard::Lease)
            && date.is_some_and(|now| message.is_leased(now));
        let delay = date.and_then(|now| message.delay_left(now));
        let delay = delay.filter(|_| due == WorkSelectionByAge::PastGrace);
        if has_lease {
            // Its holder may give it back before the lease ends.
            visit.revisit_after(FAILURE_DELAY);
        } else if let Some(delay) = delay {
            visit.revisit_after(delay);
        }
        !has_lease && delay.is_none()
    }

    /// Takes the next step for one message: deletes it, moves it to the poison table, or leases it and calls its
    /// handler.
    async fn handle_message(
        &self,
        table: &str,
        message: &StoredMessage,
        time: StoreTime,
    ) -> Result<MessageOutcome> {
        let now = time.now(&*self.outbox().clock);
        let mut read = MessageState { worker: self, table, message, etag: message.row.etag(), now };
        if message.is_done {
            return self.delete_done_message(&read).await;
        }
        if let Some(error) = &message.poison {
            // The worker that marked it died before the last steps.
            return read.poison_marked_message(error).await;
        }
        // Verify before taking the message under the verified row's ETag. The handler then receives the verified
        // body.
        if message.name == MoveMessage::NAME {
            return self.handle_move(read, time).await;
        }
        if let Some(outcome) = self.refuse_unauthentic(&mut read).await? {
            return Ok(outcome);
        }
        let Some(mut lease) = OutboxLease::take_lease(self, table, message, time).await? else {
            // Another worker took or deleted the message since it was read.
            return Ok(MessageOutcome::Raced);
        };
        let until = lease.deadline().clone();
        let context = Context::context_of_outbox_message(&self.client, table, message, until);
        let (name, body) = (&message.name, &message.body);
        let (time, stopping) = (self.handler_time_limit(), &self.stopping);
        let handled = self
            .handlers
            .handle_message(context.clone(), name, body, &mut lease, time, stopping)
            .await;
        // Store the receipts whatever the outcome: the deletion of the message must find all of them.
        let message = &message.clone().with_receipts(context.receipt_places());
        settle_delivery(&mut MessageState { message, etag: lease.etag, ..read }, handled).await
    }

    /// Verifies the code and the age of a message. Returns the outcome if the message must not be handled, or
    /// `None` if it may.
    async fn refuse_unauthentic(
        &self,
        read: &mut MessageState<'_>,
    ) -> Result<Option<MessageOutcome>> {
        if !self.outbox().guards.is_guard_enabled(Guard::VerifiedFirst) {
            return Ok(None);
        }
        let signed = SignedMessage::for_outbox(self.store().names().name(read.table), read.message);
        let now = read.now;
        self.refuse_delivery(&signed, Some(now), read).await
    }

    /// Deletes the receipts of a message that was done one write deadline ago, then the message. In the other order,
    /// a crash would leave receipts that nothing finds.
    async fn delete_done_message(&self, read: &MessageState<'_>) -> Result<MessageOutcome> {
        let message = read.message;
        let identity = message.message_identity(self.store().names().name(read.table));
        self.remove_receipts(&identity, &message.receipts).await?;
        // Delete under the ETag that was read: a later write means that another worker has it.
        read.delete().await
    }

    /// Deletes the receipts of a message in the given partitions (table and PartitionKey).
    pub(super) async fn remove_receipts(
        &self,
        message: &MessageIdentity,
        receipts: &[(String, String)],
    ) -> Result<()> {
        let row_key = receipt_row_key(&message.id);
        for (table, partition_key) in receipts {
            // The message itself lists these partitions. Keep the receipt of any other message, whose effect would
            // otherwise happen twice.
            let at = self.store().names().row_at(table, partition_key, &row_key);
            let Some(receipt) = self.store().row_if_table_exists(at).await? else { continue };
            let is_own = message.owns_receipt(&receipt)?;
            if !is_own && self.outbox().guards.is_guard_enabled(Guard::OwnReceipt) {
                continue;
            }
            let seen = Condition::for_etag(receipt.etag());
            let delete = Operation::delete(partition_key, &row_key, seen)?;
            ignore_newer_or_missing(self.store().apply(&Batch::single(table, delete)?).await)?;
        }
        Ok(())
    }
}
