//! Receives messages from queues, delivers them to handlers, and deletes them.

use std::{pin::pin, time::Duration};

use futures_util::{
    StreamExt,
    future::{join_all, select},
};
use tokio::{task::JoinSet, time::Instant};

use super::{
    delivery::{Delivery, settle_delivery},
    handler::Context,
    lease::QueueLease,
    outcome::MessageOutcome,
    queue_delivery::{QueueDelivery, hide_message},
    state::{RoundResult, UNKNOWN_MESSAGE_WAIT, WorkSelectionByAge, Worker},
    verify::SignedMessage,
    visit::LastPartitionVisit,
};
use crate::{
    batch::Deadline,
    error::Result,
    plan::outbox::MessageIdentity,
    queue::{Envelope, LONGEST, MessageQueue, Queue, Received},
    timers::instant_after,
};

/// The minimum time that a queue can hide a received message.
const MIN_HIDDEN_TIME: Duration = Duration::from_secs(1);

impl Worker {
    /// Receives the visible messages of all queues and delivers them to handlers, until none is visible.
    pub(super) async fn drain_queues(&self) -> RoundResult {
        let mut round = RoundResult::default();
        for queue in &self.queues {
            loop {
                let load = self.store().begin_load(self.concurrency);
                let received = match self.receive_messages(queue, load.in_flight()).await {
                    Ok(received) if received.is_empty() => break,
                    Ok(received) => received,
                    Err(error) => {
                        self.report_failure(error, &mut round);
                        break;
                    }
                };
                let outcomes = received
                    .into_iter()
                    .map(|message| self.handle_received(queue, message, WorkSelectionByAge::All));
                let outcomes: Vec<Result<MessageOutcome>> =
                    load.run_unordered(outcomes).collect().await;
                // End the round: a queue that fails would otherwise be asked again immediately. `drain` waits.
                let mut has_failed = false;
                for outcome in outcomes {
                    has_failed |= matches!(outcome, Err(_) | Ok(MessageOutcome::Failed));
                    self.count_queue_message(outcome, &mut round);
                }
                if has_failed {
                    break;
                }
            }
        }
        round
    }

    /// Receives and handles the messages of all queues until the worker stops.
    pub(super) async fn run_queues(&self) {
        join_all(self.queues.iter().map(|queue| self.run_queue(queue))).await;
    }

    async fn run_queue(&self, queue: &MessageQueue) {
        // Dropping this future drops the set, and with it all running handlers.
        let mut busy = JoinSet::new();
        // Only a queue with messages is a load, so that an idle one takes no place from others.
        let mut load = None;
        loop {
            // Remove finished handlers from the set, to make room for others.
            while busy.try_join_next().is_some() {}
            if self.stopping.has_begun() {
                // Handlers finish, or are dropped when their time has passed.
                while busy.join_next().await.is_some() {}
                return;
            }
            let places =
                load.get_or_insert_with(|| self.store().begin_load(self.concurrency)).in_flight();
            let received = match places.saturating_sub(busy.len()) {
                0 => Vec::new(),
                free => self.receive_messages(queue, free).await.unwrap_or_else(|error| {
                    self.count_and_report_failure(&error);
                    Vec::new()
                }),
            };
            let is_idle = received.is_empty();
            for message in received {
                let (worker, queue) = (self.clone(), queue.clone());
                busy.spawn(async move {
                    let outcome = worker
                        .handle_received(&queue, message, WorkSelectionByAge::PastGrace)
                        .await;
                    worker.count_queue_message(outcome, &mut RoundResult::default());
                });
            }
            if busy.is_empty() {
                load = None;
                self.stopping.sleep(self.interval).await;
            } else if is_idle {
                // Wait until a handler finishes, which makes room, or until the interval has passed. Then receive
                // again.
                let ended = pin!(busy.join_next());
                let _ = select(ended, pin!(self.stopping.sleep(self.interval))).await;
            }
        }
    }

    /// Receives messages, each with the time until which the queue hides it.
    async fn receive_messages(
        &self,
        queue: &MessageQueue,
        most: usize,
    ) -> Result<Vec<(Received, Deadline)>> {
        let most = most.min(queue.port().capabilities().receive);
        // Queues limit how long a message can be hidden.
        let hidden = self.lease.clamp(MIN_HIDDEN_TIME, LONGEST);
        // Counts from before the request, like the queue's own time.
        let deadline = Deadline::after(hidden, self.outbox().clock.clone());
        let received = queue.port().receive(most, hidden).await?;
        let memory = &mut *self.lock_memory();
        memory.stats.received += u64::try_from(received.len()).unwrap_or(0);
        memory.count_unknown_messages();
        let with_deadline = |message: Received| {
            let deadline = deadline.clone().capped_at(message.until());
            (message, deadline)
        };
        Ok(received.into_iter().map(with_deadline).collect())
    }

    fn count_queue_message(&self, outcome: Result<MessageOutcome>, round: &mut RoundResult) {
        // Queue messages are in no partition that could be visited again.
        self.count_message(outcome, round, &mut LastPartitionVisit::default());
    }

    /// Handles one received message. If this fails with an error of this library or of the queue, the message
    /// becomes visible again when its lease ends.
    async fn handle_received(
        &self,
        queue: &MessageQueue,
        (mut message, until): (Received, Deadline),
        due: WorkSelectionByAge,
    ) -> Result<MessageOutcome> {
        let port = &**queue.port();
        if until.is_over() {
            // The queue's answer took longer than the lease, or the machine was suspended. Another worker may have
            // the message.
            return Ok(MessageOutcome::Raced);
        }
        let outcome = match Envelope::parse(message.body()) {
            Ok(envelope) => self.handle_envelope(port, (&mut message, until), envelope, due).await,
            Err(error) => {
                let most = self.outbox().options.poison_after;
                if message.dequeue_count() >= most {
                    let poisoned = port.poison(&message, &error.to_string()).await;
                    poisoned.map(|()| MessageOutcome::Poisoned)
                } else {
                    // A newer program may be able to read it.
                    hide_for_other_programs(port, &mut message, None).await
                }
            }
        };
        match outcome {
            Err(error) if error.is_lease_lost() => Ok(MessageOutcome::Raced),
            outcome => outcome,
        }
    }

    /// Delivers a message to its handler, then deletes, hides or puts aside the message.
    async fn handle_envelope(
        &self,
        port: &dyn Queue,
        (message, until): (&mut Received, Deadline),
        envelope: Envelope,
        due: WorkSelectionByAge,
    ) -> Result<MessageOutcome> {
        // An envelope without an id gets the queue's own id.
        let id = match envelope.id.as_str() {
            "" => message.id().to_owned(),
            id => id.to_owned(),
        };
        if !self.can_end_message(&envelope) {
            self.lock_memory().unknown_messages.insert(id, Instant::now());
            let envelope = envelope.without_attempt();
            return hide_for_other_programs(port, message, Some(&envelope)).await;
        }
        self.lock_memory().unknown_messages.remove(&id);
        // Deliveries that were not attempts do not count.
        let count = message.dequeue_count().saturating_sub(envelope.skipped).max(1);
        let (envelope, receipts) = (&envelope, envelope.receipts.clone());
        let delivery =
            QueueDelivery { worker: self, port, message, envelope, receipts, count, due };
        if envelope.done {
            return self.end_done_message(delivery, &id).await;
        }
        self.call_handler(delivery, &id, until).await
    }

    /// Returns whether this program knows the message well enough to handle it, or to delete it once it is done.
    fn can_end_message(&self, envelope: &Envelope) -> bool {
        let is_known = self.handlers.can_handle_version(&envelope.name, envelope.version)
            && self.can_verify_message(&envelope.name);
        // Without a code, only the type's declaration shows whether one is missing.
        let may_end = envelope.done
            && (envelope.has_code() || !self.outbox().codes.requires_code_by_default());
        envelope.has_known_format() && (is_known || may_end)
    }

    /// Verifies a message that is not done, calls its handler under the message's lease, and ends the delivery.
    async fn call_handler(
        &self,
        mut delivery: QueueDelivery<'_>,
        id: &str,
        until: Deadline,
    ) -> Result<MessageOutcome> {
        let QueueDelivery { port, envelope, count, .. } = delivery;
        if count > self.outbox().options.poison_after {
            let reason = format!("it was received {count} times and never finished");
            return delivery.poison(&reason).await;
        }
        if self.stopping.has_begun() {
            return delivery.give_back().await;
        }
        let signed = SignedMessage::for_queue(port.name(), id, envelope);
        let now = self.outbox().server.now();
        if let Some(refused) = self.refuse_delivery(&signed, Some(now), &mut delivery).await? {
            return Ok(refused);
        }
        // The envelope's id stays the same when the message is put back and gets a new id from the
        // queue.
        let identity = MessageIdentity::in_queue(port.name(), id);
        let (held, receipts) = (until.clone(), envelope.receipts.clone());
        let context =
            Context::context_of_queue_message(&self.client, identity, count, held, receipts);
        let (name, body) = (&envelope.name, envelope.body_json());
        let (time, stopping) = (self.handler_time_limit(), &self.stopping);
        let length = self.lease.clamp(MIN_HIDDEN_TIME, LONGEST);
        let until = until.capped_at(instant_after(Instant::now(), self.lease));
        let (message, clock) = (&mut *delivery.message, &self.outbox().clock);
        let mut lease = QueueLease { port, message, length, until, clock };
        let handled = self
            .handlers
            .handle_message(context.clone(), name, body, &mut lease, time, stopping)
            .await;
        delivery.receipts = context.receipt_places();
        settle_delivery(&mut delivery, handled).await
    }

    /// Deletes the receipts of a message that was done one write deadline ago, then the message.
    async fn end_done_message(
        &self,
        mut delivery: QueueDelivery<'_>,
        id: &str,
    ) -> Result<MessageOutcome> {
        let QueueDelivery { port, envelope, .. } = delivery;
        // A forged message could name another one, whose receipts keep its effects from happening twice.
        let signed = SignedMessage::for_queue(port.name(), id, envelope);
        if let Some(refused) = self.refuse_delivery(&signed, None, &mut delivery).await? {
            return Ok(refused);
        }
        // Receipts first: without the message, nothing would find them.
        let identity = MessageIdentity::in_queue(port.name(), id);
        self.remove_receipts(&identity, &envelope.receipts).await?;
        port.delete(delivery.message).await?;
        Ok(MessageOutcome::Done)
    }
}

/// Hides a message for a minute, for a program that can handle it.
async fn hide_for_other_programs(
    port: &dyn Queue,
    message: &mut Received,
    envelope: Option<&Envelope>,
) -> Result<MessageOutcome> {
    let texts: Vec<String> =
        envelope.iter().map(|envelope| envelope.to_message_text()).collect::<Result<_>>()?;
    hide_message(port, message, UNKNOWN_MESSAGE_WAIT, &texts).await?;
    Ok(MessageOutcome::Unknown)
}
