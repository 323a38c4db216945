//! Changes of a received message by its receiver: extend, delete, and move to poison. Also returns
//! poison to the queue.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    message_row::{PopReceipt, Visibility, check_body},
    receive::due_time_that_changes_row_key,
    table_queue::{MAX_ATTEMPTS, TABLE, TableQueue},
};
use crate::{
    backend::ReadRequest,
    batch::Operation,
    error::{Error, ErrorKind, Result},
    guard::Guard,
    queue::{Poison, Received, check_duration, lease_lost_error},
    row::ETag,
    server_clock::{duration_ticks, later_time},
};

/// The outcome of a change whose answer was lost, by a later read of the message's row.
enum Outcome {
    /// The row still has the ETag of the receipt: the change has not taken place so far.
    NotApplied,
    /// The row is gone, and no other receiver could have taken it: the change has taken place.
    Applied,
    /// The read does not show the outcome.
    Unclear,
}

impl TableQueue {
    /// Hides a received message for `visibility` from now, with a new body if one is given. Fails with
    /// `is_lease_lost` if another receiver received or deleted the message in the meantime.
    pub(crate) async fn extend_message(
        &self,
        received: &mut Received,
        visibility: Duration,
        body: Option<&str>,
    ) -> Result<()> {
        check_duration("a visibility timeout", Duration::ZERO, visibility)?;
        // The row is replaced, so an unchanged body has to be written again.
        let body = body.map_or_else(|| received.body().to_owned(), str::to_owned);
        check_body(&body)?;
        let receipt = PopReceipt::parse(received.receipt())?;
        let message = receipt.rebuild_message(received.id(), &body, received.dequeue_count());
        let (until, holder) = (Instant::now() + visibility, self.random.random_id());
        let due = later_time(self.clock.now(), visibility);
        let due = due_time_that_changes_row_key(&message, due, &receipt.row_key);
        let hidden_ticks = duration_ticks(visibility);
        let row = message.queued_row(Visibility { due, hidden_ticks, holder: &holder })?;
        let row_key = message.row_key(due);
        // One transaction: the message is always in exactly one row.
        let change = vec![receipt.delete_operation()?, Operation::insert(row)];
        let etag = match self.apply_as_holder(received, &receipt, change).await? {
            Some(etag) => Some(etag),
            None => {
                self.etag_if_written_by_request(&message.partition_key, &row_key, &holder).await?
            }
        };
        // No row: with a timeout of zero another receiver may have taken the message since.
        let etag = etag.ok_or_else(|| lease_lost_error(received.id()));
        let etag = if visibility.is_zero() { etag.unwrap_or("W/\"\"".into()) } else { etag? };
        let receipt = PopReceipt::encode(&message, &row_key, etag.to_string());
        received.extended(until, receipt, Some(&body));
        Ok(())
    }

    /// Deletes a received message. Fails with `is_lease_lost` if another receiver received or deleted the message
    /// in the meantime.
    pub(crate) async fn delete_message(&self, received: &Received) -> Result<()> {
        let receipt = PopReceipt::parse(received.receipt())?;
        self.apply_as_holder(received, &receipt, vec![receipt.delete_operation()?]).await.map(drop)
    }

    /// Moves a received message to the poison messages and stores `reason` with it. Fails with `is_lease_lost` if
    /// another receiver received or deleted the message in the meantime.
    pub(crate) async fn move_to_poison(&self, received: &Received, reason: &str) -> Result<()> {
        let receipt = PopReceipt::parse(received.receipt())?;
        let message =
            receipt.rebuild_message(received.id(), received.body(), received.dequeue_count());
        let change = vec![receipt.delete_operation()?, message.insert_as_poison(reason)?];
        self.apply_as_holder(received, &receipt, change).await.map(drop)
    }

    /// Sends a change that begins with the deletion of the message's row. Returns the ETag of the
    /// last row of the change, or `None` if the answer with it was lost.
    ///
    /// # Errors
    ///
    /// `is_lease_lost` if another receiver took the message, `is_ambiguous` if the outcome is
    /// unknown.
    async fn apply_as_holder(
        &self,
        received: &Received,
        receipt: &PopReceipt,
        change: Vec<Operation>,
    ) -> Result<Option<ETag>> {
        let (mut attempt, mut earlier_loss) = (0, None);
        loop {
            attempt += 1;
            let error = match self.send_transaction(change.clone()).await {
                Ok(mut written) => return Ok(written.pop().and_then(|one| one.etag)),
                Err(error) => error,
            };
            let is_held = Instant::now() < received.until();
            match earlier_loss.take() {
                // While the message is held, only the earlier attempt can have deleted its row.
                Some(_) if error.is_lost_race() && is_held => return Ok(None),
                Some(earlier_loss) if error.is_lost_race() => return Err(earlier_loss),
                None if error.is_lost_race() => return Err(lease_lost_error(received.id())),
                _ if !error.is_answer_lost() => return Err(error),
                _ => {}
            }
            if !self.guards.is_guard_enabled(Guard::ReadAfterLostAnswer) {
                return Ok(None);
            }
            let error = unknown_outcome(error);
            match self.read_outcome(received, receipt).await {
                Ok(Outcome::Applied) => return Ok(None),
                Ok(Outcome::NotApplied) if attempt < MAX_ATTEMPTS => earlier_loss = Some(error),
                _ => return Err(error),
            }
        }
    }

    /// Reads the message's row to learn whether a change took place whose answer was lost.
    async fn read_outcome(&self, received: &Received, receipt: &PopReceipt) -> Result<Outcome> {
        let (partition_key, row_key) = (&*receipt.partition_key, &*receipt.row_key);
        let read = ReadRequest { table: TABLE, partition_key, row_key, select: None };
        let row = self.backend.read(read).await?;
        // After the lease another receiver may have taken or deleted the row.
        let is_held = Instant::now() < received.until();
        Ok(match row {
            Some(row) if row.etag() == Some(ETag::from(&*receipt.etag)) => Outcome::NotApplied,
            None if is_held => Outcome::Applied,
            _ => Outcome::Unclear,
        })
    }

    /// Returns a poison message to the queue, visible at once and with a dequeue count of zero.
    pub(crate) async fn requeue_poison(&self, poison: &Poison) -> Result<()> {
        let receipt = PopReceipt::parse(poison.place())?;
        let message = receipt.rebuild_message(poison.id(), poison.body(), 0);
        // The due time is written by the store's clock.
        self.ensure_clock().await?;
        let visibility = Visibility { due: self.clock.now(), hidden_ticks: 0, holder: "" };
        let insert = Operation::insert(message.queued_row(visibility)?);
        let change = vec![receipt.delete_operation()?, insert];
        let Err(error) = self.send_transaction(change).await else { return Ok(()) };
        if !error.is_lost_race() {
            return Err(error);
        }
        let message = "the message is no longer among the poison messages";
        Err(Error::new(ErrorKind::NotFound, message).with_source(error))
    }
}

/// Returns `error`, of a change whose answer was lost, as an ambiguous error: the change may have
/// taken place.
fn unknown_outcome(error: Error) -> Error {
    if error.is_ambiguous() {
        return error;
    }
    let message =
        "the answer was lost; the message may have changed, and is delivered again if it has not";
    Error::new(ErrorKind::Ambiguous, message).with_source(error)
}
