//! Hands the messages of one partition to their handlers, and deletes finished messages. A message is leased by a write under its ETag; only the holder of the last lease may
//! change it.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{
    failure::{FAILURE_DELAY, HandlerFailure, ignore_newer_or_missing, wait_after_failure},
    handler::{Context, Lease},
    lease::{OutboxLease, StoreTime},
    outcome::MessageOutcome,
    partition::{Chunk, OutboxRow},
    poison::{EXPIRED, NOT_AUTHENTIC},
    state::{ROWS_AT_ONCE, RoundResult, WorkSelectionByAge, Worker},
    visit::PartitionVisit,
};
use crate::{
    address::RowAt,
    authentic::{MessageAuthenticity, WorkAuthenticity, WorkRefusal, is_message_expired},
    batch::{Condition, Operation},
    edm::Ticks,
    entity::Message,
    error::{Error, ErrorKind, Result},
    guard::{Guard, Mutation},
    plan::{
        moves::MoveMessage,
        outbox::{
            MessageIdentity, StoredMessage, WorkAndConsentCodes, add_duration, receipt_row_key,
        },
    },
    row::{ETag, Row},
};

impl Worker {
    /// Hands the due messages of a chunk to their handlers.
    pub(super) async fn handle_messages(
        &self,
        chunk: &Chunk,
        due: WorkSelectionByAge,
        round: &mut RoundResult,
        visit: &mut PartitionVisit,
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
                match self.stopping.has_begun() {
                    true => Ok(MessageOutcome::Left),
                    false => self.handle_message(table, &message, time).await,
                }
            })
            .buffer_unordered(ROWS_AT_ONCE);
        let outcomes: Vec<Result<MessageOutcome>> = outcomes.collect().await;
        for outcome in outcomes {
            self.count_message(outcome, round, visit);
        }
    }

    /// Counts a message that cannot be read as unknown. After too many rounds puts it into the
    /// poison table.
    async fn handle_damaged_message(
        &self,
        table: &str,
        row: &OutboxRow,
        error: Error,
        round: &mut RoundResult,
        visit: &mut PartitionVisit,
    ) {
        match self.count_failure_or_poison(table, row, &error).await {
            Ok(is_poisoned) => {
                // Visited again at once, so that `drain` counts it to the end.
                visit.revisit_after(Duration::ZERO);
                visit.unknown += u64::from(!is_poisoned);
                round.progressed += 1;
            }
            Err(error) => {
                visit.revisit_after(self.outbox().options.lease);
                self.report_failure(error, round);
            }
        }
    }

    /// Returns whether a message is due, and counts it as open, waiting or unknown.
    fn is_message_due(
        &self,
        message: &StoredMessage,
        row: &OutboxRow,
        date: Option<Ticks>,
        due: WorkSelectionByAge,
        visit: &mut PartitionVisit,
    ) -> bool {
        let flight = self.outbox().options.flight;
        if message.is_done {
            // Its receipts stay until no worker can still hand it over.
            let is_flight_over = row.is_older_than(flight);
            if !is_flight_over {
                visit.waiting += 1;
                visit.revisit_after(row.time_until_age(flight));
            }
            return is_flight_over;
        }
        if message.poison.is_some() {
            // Due for every worker, with or without a handler: only the last two writes are
            // missing.
            visit.add_open_row(row.age);
            return true;
        }
        let is_known =
            self.handlers.has_handler_for(message) && self.can_verify_message(&message.name);
        if !is_known && !self.knows_entity_of_move(message) {
            visit.unknown += 1;
            return false;
        }
        visit.add_open_row(row.age);
        // An unknown date means no lease: the write under the ETag decides.
        let has_lease = self.outbox().guards.guard_holds(Guard::Lease)
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

    /// Returns whether this client can verify messages of that name: those that are declared
    /// `authenticated` need keys.
    pub(super) fn can_verify_message(&self, name: &str) -> bool {
        self.handlers.authenticity(name) != MessageAuthenticity::Required
            || self.outbox().codes.has_keys()
    }

    /// Does the next step for one message: deletes it, puts it into the poison table, or leases it
    /// and calls its handler.
    async fn handle_message(
        &self,
        table: &str,
        message: &StoredMessage,
        time: StoreTime,
    ) -> Result<MessageOutcome> {
        if message.is_done {
            return self.delete_done_message(table, message).await;
        }
        if let Some(error) = &message.poison {
            // The worker that marked it died before the last steps.
            let error = error.clone();
            return self.put_poisoned_aside(table, message, message.row.etag(), &error).await;
        }
        let now = time.now(&*self.outbox().clock);
        // Before the message is taken. It is taken in the very version that was verified, so that the
        // handler gets the body that was verified.
        if message.name == MoveMessage::NAME {
            return self.handle_move(table, message, time).await;
        }
        if let Some(outcome) = self.refuse_unauthentic(table, message, now).await? {
            return Ok(outcome);
        }
        let Some(mut lease) = OutboxLease::take_lease(self, table, message, time).await? else {
            // Another worker took or deleted the message since it was read.
            return Ok(MessageOutcome::Raced);
        };
        let context =
            Context::context_of_outbox_message(&self.client, table, message, lease.end_time());
        let (name, body) = (&message.name, &message.body);
        let (time, stopping) = (self.time_of_handlers(), &self.stopping);
        let handled = self
            .handlers
            .handle_message(context.clone(), name, body, &mut lease, time, stopping)
            .await;
        let lease_etag = lease.etag;
        // The receipts are stored whatever the outcome is, so that the message's deletion finds all of
        // them.
        let message = &message.clone().with_receipts(context.receipts());
        match handled {
            Ok(()) => self.finish_message(table, message, lease_etag, &message.receipts).await,
            Err(HandlerFailure::Passing(error)) => {
                self.postpone_message(table, message, lease_etag, error, now).await
            }
            Err(HandlerFailure::Counted(error)) => {
                self.record_failure(table, message, lease_etag, &error, now).await
            }
            Err(HandlerFailure::Stopped) => {
                self.give_message_back(table, message, lease_etag).await
            }
        }
    }

    /// Verifies the code and the age of a message. Returns the outcome of a message that must not
    /// be handled, or `None` for one that may.
    async fn refuse_unauthentic(
        &self,
        table: &str,
        message: &StoredMessage,
        now: Ticks,
    ) -> Result<Option<MessageOutcome>> {
        let codes = &self.outbox().codes;
        if !self.outbox().guards.guard_holds(Guard::VerifiedFirst) {
            return Ok(None);
        }
        let is_required =
            codes.requires_code_for_message(self.handlers.authenticity(&message.name));
        let partition_key = Some(message.row.partition_key());
        let (work, code) = (message.as_work(table), message.codes.code.as_deref());
        let expires = self.handlers.message_lifetime(&message.name);
        match codes.verify_work(partition_key, &work, code, is_required).await {
            // Signed, but without the time that its type's expiry needs: refused below.
            Ok(()) if is_required && expires.is_some() && message.sent.is_none() => {}
            Ok(()) if is_message_expired(message.sent, expires, Some(now)) => {
                self.move_row_to_poison(table, &message.row, message.row.etag(), EXPIRED).await?;
                return Ok(Some(MessageOutcome::Poisoned));
            }
            Ok(()) => return Ok(None),
            Err(WorkRefusal::NotAuthentic) => {}
            Err(WorkRefusal::Passes(error)) => return Err(error),
            Err(WorkRefusal::Counts(error)) => {
                let (error, etag) = (error.to_string(), message.row.etag());
                return self.record_failure(table, message, etag, &error, now).await.map(Some);
            }
        }
        // None of its texts is used: a forger may have chosen each of them.
        self.move_row_to_poison(table, &message.row, message.row.etag(), NOT_AUTHENTIC).await?;
        Ok(Some(MessageOutcome::Refused))
    }

    /// Verifies the code of a message or a move in the poison table. Returns `Unverified` if that is
    /// impossible, together with the error if an error prevented it, such as a failed request.
    pub(super) async fn verify_put_aside(
        &self,
        table: &str,
        row: &Row,
    ) -> (WorkAuthenticity, Option<Error>) {
        let codes = &self.outbox().codes;
        let Ok(message) = StoredMessage::from_row(row.clone()) else {
            return (WorkAuthenticity::Unverified, None);
        };
        let is_move = message.name == MoveMessage::NAME;
        let is_required = match is_move {
            true => codes.requires_code_by_default(),
            false => codes.requires_code_for_message(self.handlers.authenticity(&message.name)),
        };
        // Without a code, only the declaration of the type tells whether one is missing.
        let Some(code) = message.codes.code.as_deref() else {
            let is_declared = is_move || self.handlers.has_handler_for(&message);
            return match is_required {
                true if !is_declared => (WorkAuthenticity::Unverified, None),
                true => (WorkAuthenticity::NotAuthentic, None),
                false => (WorkAuthenticity::Unsigned, None),
            };
        };
        if !codes.has_keys() {
            return (WorkAuthenticity::Unverified, None);
        }
        let verified = match is_move {
            true => match self.verify_move_put_aside(table, &message).await {
                Ok(Some(verified)) => verified,
                Ok(None) => return (WorkAuthenticity::Unverified, None),
                Err(error) => return (WorkAuthenticity::Unverified, Some(error)),
            },
            false => {
                let (partition_key, work) = (Some(row.partition_key()), message.as_work(table));
                codes.verify_work(partition_key, &work, Some(code), is_required).await
            }
        };
        let lacks_time =
            self.handlers.message_lifetime(&message.name).is_some() && message.sent.is_none();
        match verified {
            Ok(()) if is_required && lacks_time => (WorkAuthenticity::NotAuthentic, None),
            Ok(()) => (WorkAuthenticity::Authentic, None),
            Err(WorkRefusal::NotAuthentic) => (WorkAuthenticity::NotAuthentic, None),
            Err(WorkRefusal::Counts(error) | WorkRefusal::Passes(error)) => {
                (WorkAuthenticity::Unverified, Some(error))
            }
        }
    }

    /// Signs a message or a move with this client's keys, for an operator who vouches for it.
    pub(super) async fn sign_anew(&self, table: &str, row: &Row) -> Result<WorkAndConsentCodes> {
        let message = StoredMessage::from_row(row.clone())?;
        if message.name != MoveMessage::NAME {
            let (codes, partition_key) = (&self.outbox().codes, Some(row.partition_key()));
            let code = codes.sign_work(partition_key, &message.as_work(table), true).await?;
            return Ok(WorkAndConsentCodes { code, consent: None });
        }
        let (move_message, Some(schema)) = self.parse_move(&message)? else {
            let message = "this program does not know the type of the entity that moves";
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_table(table));
        };
        self.move_job(table, &message, &move_message, schema).sign_move().await
    }

    /// Ends the lease of a message that this worker stops handling, so that other workers may take
    /// it at once.
    pub(super) async fn give_message_back(
        &self,
        table: &str,
        message: &StoredMessage,
        lease_etag: Option<ETag>,
    ) -> Result<MessageOutcome> {
        if !self.outbox().guards.has_mutation(Mutation::LeaseKept) {
            self.write_leased_message(table, message.release_operation(lease_etag)?).await?;
        }
        Ok(MessageOutcome::Left)
    }

    /// Deletes a handled message. If it has receipts, marks it as done instead; it stays until no
    /// worker can hand it over any more.
    pub(super) async fn finish_message(
        &self,
        table: &str,
        message: &StoredMessage,
        lease_etag: Option<ETag>,
        receipts: &[(String, String)],
    ) -> Result<MessageOutcome> {
        let operation = match receipts {
            _ if self.outbox().guards.has_mutation(Mutation::ReceiptsOrphaned) => {
                message.delete_operation(lease_etag)?
            }
            [] => message.delete_operation(lease_etag)?,
            receipts => message.mark_done(lease_etag, receipts)?,
        };
        let changed = self.write_leased_message(table, operation).await?;
        Ok(changed.map_or(MessageOutcome::Raced, |_| MessageOutcome::Done))
    }

    /// Records a failure that counts, and hides the message for a time that grows with the
    /// failures. After too many failures puts it into the poison table.
    pub(super) async fn record_failure(
        &self,
        table: &str,
        message: &StoredMessage,
        lease_etag: Option<ETag>,
        error: &str,
        now: Ticks,
    ) -> Result<MessageOutcome> {
        let failures = message.failures.saturating_add(1);
        let most = self.outbox().options.poison_after;
        if failures >= i32::try_from(most).unwrap_or(i32::MAX) {
            return self.poison_message(table, message, lease_etag, error).await;
        }
        let wait = FAILURE_DELAY.saturating_mul(u32::try_from(failures).unwrap_or(1));
        let changed = self
            .write_leased_message(
                table,
                message.failure_operation(lease_etag, error, add_duration(now, wait))?,
            )
            .await?;
        Ok(changed.map_or(MessageOutcome::Raced, |_| MessageOutcome::Failed))
    }

    /// Hides a message whose handler failed for a temporary reason. The failure does not count.
    async fn postpone_message(
        &self,
        table: &str,
        message: &StoredMessage,
        lease_etag: Option<ETag>,
        error: Error,
        now: Ticks,
    ) -> Result<MessageOutcome> {
        // Only failures that pass count for this wait.
        let tries = message.attempts.saturating_sub(message.failures);
        let wait = wait_after_failure(
            tries,
            self.outbox().store.random.random_number(),
            error.retry_after(),
        );
        let postponed =
            message.postpone_operation(lease_etag, &error.to_string(), add_duration(now, wait))?;
        let changed = self.write_leased_message(table, postponed).await?;
        Ok(changed.map_or(MessageOutcome::Raced, |_| MessageOutcome::Postponed(error, wait)))
    }

    /// Puts a message into the poison table. First marks it, so that no worker hands it over any
    /// more.
    // Without the mark, another worker could take the message between the two writes, and it would
    // be in the poison table although it succeeded.
    pub(super) async fn poison_message(
        &self,
        table: &str,
        message: &StoredMessage,
        lease_etag: Option<ETag>,
        error: &str,
    ) -> Result<MessageOutcome> {
        let marked =
            self.write_leased_message(table, message.mark_poisoned(lease_etag, error)?).await?;
        let Some(version) = marked else { return Ok(MessageOutcome::Raced) };
        self.put_poisoned_aside(table, message, version, error).await
    }

    /// Finishes a message that is marked for the poison table: gives its move up, if it is a move,
    /// and copies the message into that table.
    async fn put_poisoned_aside(
        &self,
        table: &str,
        message: &StoredMessage,
        version: Option<ETag>,
        error: &str,
    ) -> Result<MessageOutcome> {
        let Some(target) = self.give_up_move(table, message).await? else {
            self.move_row_to_poison(table, &message.row, version, error).await?;
            return Ok(MessageOutcome::Poisoned);
        };
        self.copy_row_to_poison(table, &message.row, version.as_ref(), error).await?;
        // The message stays as done, which removes the tombstone when no carrier is under way any more.
        let done = message.mark_done(version, &[target])?;
        self.write_leased_message(table, done).await?;
        Ok(MessageOutcome::Poisoned)
    }

    /// Deletes the receipts of a message that was done one write deadline ago, then the message. In
    /// the other order nobody would find the receipts again.
    async fn delete_done_message(
        &self,
        table: &str,
        message: &StoredMessage,
    ) -> Result<MessageOutcome> {
        self.remove_receipts(
            &message.message_identity(table, self.store().table_case()),
            &message.receipts,
        )
        .await?;
        // Under the ETag that was read: a write since then means that another worker has it.
        let removed =
            self.write_leased_message(table, message.delete_operation(message.row.etag())?).await?;
        Ok(removed.map_or(MessageOutcome::Raced, |_| MessageOutcome::Done))
    }

    /// Deletes the receipts of a message in the given partitions (table and PartitionKey).
    pub(super) async fn remove_receipts(
        &self,
        message: &MessageIdentity,
        receipts: &[(String, String)],
    ) -> Result<()> {
        let row_key = receipt_row_key(&message.id);
        for (table, partition_key) in receipts {
            // A message names these partitions by itself. A receipt of another message there stays, or
            // that message's effect would take place twice.
            let at = RowAt::new(table, partition_key, &row_key);
            let Some(receipt) = self.store().row_if_table_exists(at).await? else { continue };
            let is_own = message.owns_receipt(&receipt)?;
            if !is_own && self.outbox().guards.guard_holds(Guard::OwnReceipt) {
                continue;
            }
            let seen = Condition::for_etag(receipt.etag());
            let delete = Operation::delete(partition_key, &row_key, seen)?;
            ignore_newer_or_missing(self.store().apply_one_unsealed(table, delete).await)?;
        }
        Ok(())
    }
}
