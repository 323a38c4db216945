//! Messages: taken for a while, handed over, and removed by whoever took them last.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{
    directory::is_gone,
    failure::{Failure, back_off},
    handler::Context,
    partition::{Aged, Partition},
    round::{Due, ROWS, Round},
    state::Worker,
    stats::Visit,
};
use crate::{
    batch::{Condition, Operation},
    edm::Ticks,
    entity::{Message, Schema},
    error::{Error, ErrorKind, Result, Retry},
    outbox::{
        guard::Guard,
        moves::{MoveJob, MoveOutcome},
    },
    plan::{
        moves::MoveMessage,
        outbox::{StoredMessage, add_duration, receipt_row_key},
    },
    row::ETag,
};

/// How long a message waits after a failure, for each failure so far.
pub(super) const DELAY: Duration = Duration::from_secs(5);

/// What became of a message.
enum Handled {
    /// It is gone, or done.
    Done,
    /// Its handler failed, which counts.
    Failed,
    /// Its handler failed for a reason that passes; how long it waits.
    Postponed(Error, Duration),
    Poisoned,
    /// It is about what a newer program wrote.
    Unknown,
    /// Somebody else has it.
    Raced,
}

impl Worker {
    /// Hands over the messages of a partition that are due.
    pub(super) async fn messages(
        &self,
        partition: &Partition,
        due: Due,
        round: &mut Round,
        visit: &mut Visit,
    ) {
        let mut taken = Vec::new();
        for aged in &partition.messages {
            match StoredMessage::from_row(aged.row.clone()) {
                Ok(message) if self.is_message_due(&message, aged, partition.date, due, visit) => {
                    taken.push(message);
                }
                Ok(_) => {}
                // Nobody can handle it: it is damaged.
                Err(error) => match self.failed(&partition.table, aged, error).await {
                    Ok(gone) => {
                        visit.again_in(Duration::ZERO);
                        visit.unknown += u64::from(!gone);
                        round.moved += 1;
                    }
                    Err(error) => self.failed_for_now(error, round),
                },
            }
        }
        let (table, date) = (partition.table.as_str(), partition.date);
        let handled = stream::iter(taken)
            .map(|message| async move { self.message(table, &message, date).await })
            .buffer_unordered(ROWS);
        let handled: Vec<Result<Handled>> = handled.collect().await;
        for handled in handled {
            match handled {
                Ok(Handled::Done) => {
                    self.memory().stats.applied += 1;
                    visit.leave(1);
                    round.moved += 1;
                }
                Ok(Handled::Poisoned) => {
                    self.memory().stats.poisoned += 1;
                    visit.leave(1);
                    round.moved += 1;
                }
                Ok(Handled::Failed) => {
                    self.memory().stats.retried += 1;
                    visit.again_in(DELAY);
                    round.moved += 1;
                }
                Ok(Handled::Postponed(error, wait)) => {
                    self.memory().stats.retried += 1;
                    visit.again_in(wait);
                    self.failed_for_now(error, round);
                }
                Ok(Handled::Unknown) => {
                    visit.leave(1);
                    visit.unknown += 1;
                }
                Ok(Handled::Raced) => round.raced += 1,
                Err(error) => self.failed_for_now(error, round),
            }
        }
    }

    fn is_message_due(
        &self,
        message: &StoredMessage,
        aged: &Aged,
        date: Option<Ticks>,
        due: Due,
        visit: &mut Visit,
    ) -> bool {
        let flight = self.client.outbox().options.flight;
        if message.is_done {
            let is_over = aged.age.is_some_and(|age| age >= flight);
            if !is_over {
                visit.waiting += 1;
                visit.again_in(flight.saturating_sub(aged.age.unwrap_or_default()));
            }
            return is_over;
        }
        if message.poison.is_some() {
            visit.meet(aged.age);
            return true;
        }
        if !self.handlers.know(message) && !self.knows_move(message) {
            visit.unknown += 1;
            return false;
        }
        visit.meet(aged.age);
        let has_lease = self.client.outbox().guards.holds(Guard::Lease)
            && date.is_some_and(|now| message.is_leased(now));
        let waits = due == Due::Aged && date.is_some_and(|now| message.is_delayed(now));
        if has_lease || waits {
            visit.again_in(DELAY);
        }
        !has_lease && !waits
    }

    async fn message(
        &self,
        table: &str,
        message: &StoredMessage,
        date: Option<Ticks>,
    ) -> Result<Handled> {
        if message.is_done {
            return self.forget(table, message).await;
        }
        if let Some(error) = &message.poison {
            // Whoever said so came no further.
            self.let_go(table, message).await?;
            self.put_aside(table, &message.row, message.row.etag(), error).await?;
            return Ok(Handled::Poisoned);
        }
        let now = date.unwrap_or_else(|| self.client.outbox().clock.now());
        let Some(handle) =
            self.change(table, message.lease(add_duration(now, self.lease))?).await?
        else {
            return Ok(Handled::Raced);
        };
        if message.name == MoveMessage::NAME {
            return self.carry(table, message, handle, now).await;
        }
        let context = Context::new(&self.client, message, self.lease);
        let (name, body) = (&message.name, &message.body);
        let handled = self.handlers.handle(context.clone(), name, body, self.lease).await;
        // Where its effects took place is known next time as well, whatever the handler does then.
        let message = &message.clone().with_receipts(context.receipts());
        match handled {
            Ok(()) => self.finish(table, message, handle, &message.receipts).await,
            Err(Failure::Passing(error)) => self.postpone(table, message, handle, error, now).await,
            Err(Failure::Counted(error)) => {
                self.give_back(table, message, handle, &error, now).await
            }
        }
    }

    fn knows_move(&self, message: &StoredMessage) -> bool {
        let known = i32::try_from(MoveMessage::VERSION).unwrap_or(i32::MAX);
        let is_move = message.name == MoveMessage::NAME && message.version <= known;
        is_move && self.journey(message).is_ok_and(|(_, schema)| schema.is_some())
    }

    fn journey(&self, message: &StoredMessage) -> Result<(MoveMessage, Option<&'static Schema>)> {
        let journey: MoveMessage = serde_json::from_str(&message.body).map_err(|cause| {
            Error::new(ErrorKind::Decode, "the message is no move").with_source(cause)
        })?;
        let schema = self.client.outbox().known_types.named(&journey.entity_type);
        Ok((journey, schema))
    }

    /// Carries an entity over.
    async fn carry(
        &self,
        table: &str,
        message: &StoredMessage,
        handle: Option<ETag>,
        now: Ticks,
    ) -> Result<Handled> {
        let (journey, Some(schema)) = self.journey(message)? else { return Ok(Handled::Raced) };
        let carry = self.carry_of(table, message, &journey, schema);
        match tokio::time::timeout(self.lease, carry.run()).await {
            Ok(Ok(MoveOutcome::Moved)) => {
                let receipts = [(journey.to_table.clone(), journey.to_partition.clone())];
                self.finish(table, message, handle, &receipts).await
            }
            Ok(Ok(MoveOutcome::Refused(error))) => {
                self.put_aside(table, &message.row, handle, &error.to_string()).await?;
                Ok(Handled::Poisoned)
            }
            Ok(Err(error)) if error.is_unrecognized_entity() => {
                self.change(table, message.release(handle)?).await?;
                Ok(Handled::Unknown)
            }
            Ok(Err(error)) if error.retry() == Retry::Never => {
                self.give_back(table, message, handle, &error.to_string(), now).await
            }
            Ok(Err(error)) => {
                // What may pass is no failure of the message.
                self.change(table, message.release(handle)?).await?;
                Err(error)
            }
            Err(_) => Ok(Handled::Raced),
        }
    }

    fn carry_of<'a>(
        &'a self,
        table: &'a str,
        message: &'a StoredMessage,
        journey: &'a MoveMessage,
        schema: &'static Schema,
    ) -> MoveJob<'a> {
        let (outbox, partition_key) = (self.client.outbox(), message.row.partition_key());
        MoveJob { outbox, table, partition_key, id: &message.id, schema, journey }
    }

    /// Lets go of the entity of a move that failed for good: it can be written again where it is,
    /// unless it arrived already.
    async fn let_go(&self, table: &str, message: &StoredMessage) -> Result<()> {
        if !self.knows_move(message) {
            return Ok(());
        }
        let (journey, Some(schema)) = self.journey(message)? else { return Ok(()) };
        match self.carry_of(table, message, &journey, schema).give_up().await {
            Err(error) if error.retry() != Retry::Never => Err(error),
            _ => Ok(()),
        }
    }

    /// A message that was handled is removed; one with receipts stays as done as long as anybody
    /// could hand it over again.
    async fn finish(
        &self,
        table: &str,
        message: &StoredMessage,
        handle: Option<ETag>,
        receipts: &[(String, String)],
    ) -> Result<Handled> {
        let operation = match receipts {
            [] => message.delete(handle)?,
            receipts => message.mark_done(handle, receipts)?,
        };
        let changed = self.change(table, operation).await?;
        Ok(changed.map_or(Handled::Raced, |_| Handled::Done))
    }

    async fn give_back(
        &self,
        table: &str,
        message: &StoredMessage,
        handle: Option<ETag>,
        error: &str,
        now: Ticks,
    ) -> Result<Handled> {
        let failures = message.failures.saturating_add(1);
        let most = self.client.outbox().options.poison_after;
        if failures >= i32::try_from(most).unwrap_or(i32::MAX) {
            return self.poison_message(table, message, handle, error).await;
        }
        let wait = DELAY.saturating_mul(u32::try_from(failures).unwrap_or(1));
        let changed = self
            .change(table, message.record_failure(handle, error, add_duration(now, wait))?)
            .await?;
        Ok(changed.map_or(Handled::Raced, |_| Handled::Failed))
    }

    /// Gives a message back whose handler failed for a reason that passes.
    async fn postpone(
        &self,
        table: &str,
        message: &StoredMessage,
        handle: Option<ETag>,
        error: Error,
        now: Ticks,
    ) -> Result<Handled> {
        let tries = message.attempts.saturating_sub(message.failures);
        let wait = back_off(tries, self.client.outbox().store.random.number(), error.retry_after());
        let postponed = message.postpone(handle, &error.to_string(), add_duration(now, wait))?;
        let changed = self.change(table, postponed).await?;
        Ok(changed.map_or(Handled::Raced, |_| Handled::Postponed(error, wait)))
    }

    /// Puts a message into the poison table. It says so itself first: from then on nobody hands it
    /// over, and what is in the table was not handled meanwhile by somebody else.
    async fn poison_message(
        &self,
        table: &str,
        message: &StoredMessage,
        handle: Option<ETag>,
        error: &str,
    ) -> Result<Handled> {
        let marked = self.change(table, message.mark_poisoned(handle, error)?).await?;
        let Some(version) = marked else { return Ok(Handled::Raced) };
        self.let_go(table, message).await?;
        self.put_aside(table, &message.row, version, error).await?;
        Ok(Handled::Poisoned)
    }

    /// Removes a message that is done for good, its receipts first.
    async fn forget(&self, table: &str, message: &StoredMessage) -> Result<Handled> {
        self.remove_receipts(&message.id, &message.receipts).await?;
        let removed = self.change(table, message.delete(message.row.etag())?).await?;
        Ok(removed.map_or(Handled::Raced, |_| Handled::Done))
    }

    /// Removes what says that a message had its effects.
    pub(super) async fn remove_receipts(
        &self,
        id: &str,
        receipts: &[(String, String)],
    ) -> Result<()> {
        let row_key = receipt_row_key(id);
        for (table, partition_key) in receipts {
            let delete = Operation::delete(partition_key, &row_key, Condition::Any)?;
            match self.client.store().apply_one(table, delete).await {
                Ok(_) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Changes a message in the version that one has; `None`: somebody else has it.
    async fn change(&self, table: &str, operation: Operation) -> Result<Option<Option<ETag>>> {
        match self.client.store().apply_one(table, operation).await {
            Ok(written) => Ok(Some(written.etag)),
            Err(error) if error.is_superseded() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
