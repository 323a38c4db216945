//! Leases of messages. The holder counts a lease from before the request is sent. For the holder it therefore
//! ends before it ends in the store, and no other worker takes a message that is still held.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::{handler::RenewableLease, state::Worker};
use crate::{
    batch::{Batch, Deadline, Operation, Written},
    clock::Clock,
    edm::{Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    plan::outbox::{StoredMessage, add_duration},
    queue::{Queue, Received},
    row::ETag,
};

/// How much later a lease ends in the store than for its holder, because dates in answers are rounded down to
/// seconds.
const LEASE_SLACK: Duration = Duration::from_secs(1);

/// The store's time, estimated from the date of one answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreTime {
    /// The date of the answer, or `None` if the store sends none.
    date: Option<Ticks>,
    /// When the request was sent.
    sent: Instant,
}

impl StoreTime {
    /// Creates the estimate from the date of an answer and the time when its request was sent.
    pub(super) fn new(date: Option<Ticks>, sent: Instant) -> Self {
        Self { date, sent }
    }

    /// Returns the store's current time, or slightly more: adds the whole time since the request was sent to the
    /// date of the answer, although the store set the date later.
    pub(super) fn now(self, clock: &dyn Clock) -> Ticks {
        self.date.map_or_else(|| clock.now(), |date| add_duration(date, self.sent.elapsed()))
    }
}

/// The lease of an outbox message: its property `Leased`, written under the message's ETag.
pub(super) struct OutboxLease<'w> {
    worker: &'w Worker,
    table: &'w str,
    message: &'w StoredMessage,
    time: StoreTime,
    until: Deadline,
    /// The ETag of the lease's last write, which is the condition of its next write.
    pub(super) etag: Option<ETag>,
}

impl<'w> OutboxLease<'w> {
    /// Takes a lease on a message. Returns `None` if another worker changed or deleted it since it was read.
    pub(super) async fn take_lease(
        worker: &'w Worker,
        table: &'w str,
        message: &'w StoredMessage,
        time: StoreTime,
    ) -> Result<Option<Self>> {
        let etag = message.row.etag();
        // Not held yet: the lease begins with the answer to its write.
        let until = Deadline::after(Duration::ZERO, worker.outbox().clock.clone());
        let mut lease = Self { worker, table, message, time, until, etag };
        let is_taken = lease.extend_lease(|until, _| message.lease_operation(until)).await?;
        Ok(is_taken.then_some(lease))
    }

    /// Writes a new end of the lease under the last ETag. Returns `false` if another worker has the message.
    async fn extend_lease(
        &mut self,
        write: impl FnOnce(Ticks, Option<ETag>) -> Result<Operation>,
    ) -> Result<bool> {
        let (clock, length) = (&self.worker.outbox().clock, self.worker.lease);
        // Counts from before the request, which ends the holder's lease before the store's.
        let until = Deadline::after(length, clock.clone());
        let now = self.time.now(&**clock);
        // One second longer than for the holder, because the store's date has no fractions.
        let end = add_duration(now, length.saturating_add(LEASE_SLACK));
        let operation = write(end, self.etag.clone())?;
        let deadline = self.worker.outbox().start_deadline();
        match deadline
            .send_if_before_deadline(self.worker.write_leased_message(self.table, operation))
            .await
        {
            Ok(Some(Some(etag))) => self.etag = Some(etag),
            // The stored version may be this holder's own: a layer below repeats requests, and does not
            // return an ETag after a lost answer.
            Ok(None | Some(None)) => return self.adopt_own_write(end, &until).await,
            // The write may have arrived. Only its own end of the lease proves that.
            Err(error) if !error.is_certainly_not_executed() => {
                if !self.adopt_own_write(end, &until).await.is_ok_and(|is_own| is_own) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        self.until = until;
        Ok(true)
    }

    /// Returns whether the message contains the end that this holder wrote with a request whose answer was lost.
    /// If so, uses the ETag of that write from now on.
    async fn adopt_own_write(&mut self, end: Ticks, until: &Deadline) -> Result<bool> {
        let (store, (partition_key, row_key)) = (self.worker.store(), self.message.row.keys());
        let at = store.names().row_at(self.table, partition_key, row_key);
        let Some(row) = store.read_row(at).await? else { return Ok(false) };
        if row.get("Leased")? != Some(ValueRef::DateTime(end)) {
            return Ok(false);
        }
        self.etag = row.etag();
        self.until = until.clone();
        Ok(true)
    }
}

impl RenewableLease for OutboxLease<'_> {
    fn deadline(&self) -> &Deadline {
        &self.until
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<bool>> {
        let (message, until) = (self.message, self.until.end_instant());
        Box::pin(async move {
            // Do not wait for a renewal beyond the lease's end.
            let renewed =
                self.extend_lease(|until, etag| message.renew_lease_operation(etag, until));
            timeout_at(until, renewed).await.unwrap_or_else(|_| Err(renewal_too_slow_error()))
        })
    }
}

impl Worker {
    /// Writes a message under the ETag of its lease. Returns the new ETag, or `None` if another worker changed or
    /// deleted the message.
    pub(super) async fn write_leased_message(
        &self,
        table: &str,
        operation: Operation,
    ) -> Result<Option<Option<ETag>>> {
        match self.store().apply(&Batch::single(table, operation)?).await {
            Ok(written) => Written::of_single_operation(written).map(|written| Some(written.etag)),
            Err(error) if error.is_row_changed_or_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The lease of a message from a queue, which hides the message.
pub(super) struct QueueLease<'q> {
    pub(super) port: &'q dyn Queue,
    pub(super) message: &'q mut Received,
    pub(super) length: Duration,
    /// The deadline after which this holder must not rely on the lease: the end of the queue's lease, or of the
    /// worker's own if that is earlier.
    pub(super) until: Deadline,
    pub(super) clock: &'q Arc<dyn Clock>,
}

impl RenewableLease for QueueLease<'_> {
    fn deadline(&self) -> &Deadline {
        &self.until
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let until = self.until.end_instant();
            // Counts from before the request.
            let renewed = Deadline::after(self.length, self.clock.clone());
            let extended = self.port.extend(self.message, self.length, None);
            match timeout_at(until, extended).await {
                Ok(Ok(())) => {
                    self.until = renewed.capped_at(self.message.until());
                    Ok(true)
                }
                Ok(Err(error)) if error.is_lease_lost() => Ok(false),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(renewal_too_slow_error()),
            }
        })
    }
}

fn renewal_too_slow_error() -> Error {
    Error::new(ErrorKind::Ambiguous, "the lease of the message ended before it was renewed")
}
