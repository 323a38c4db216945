//! Messages of queues: received for a lease, handed over, and deleted.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, future::join_all, stream};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    failure::{Failure, back_off},
    handler::Context,
    messages::DELAY,
    round::{Due, Round},
    state::Worker,
};
use crate::{
    error::{Error, Result},
    queue::{
        Envelope, MessageQueue, Receipts, Received,
        port::{LONGEST, Queue},
    },
};

/// How long a message of a type that this program does not know is left to others.
const SKIP: Duration = Duration::from_secs(60);

/// The shortest time that a queue hides a message for when it is received.
const SHORTEST: Duration = Duration::from_secs(1);

/// What became of a message.
enum Handled {
    /// It is gone, or done.
    Done,
    Failed,
    Poisoned,
    Unknown,
    /// Somebody else has it.
    Raced,
}

/// Counts the messages that nobody here knows, without those that were not met for some time.
pub(super) fn still_unknown(unknown: &mut BTreeMap<String, Instant>) -> u64 {
    unknown.retain(|_, met| met.elapsed() < SKIP * 3);
    u64::try_from(unknown.len()).unwrap_or(u64::MAX)
}

impl Worker {
    /// Hands over what is visible in the queues, until nothing is.
    pub(super) async fn drain_queues(&self) -> Round {
        let mut round = Round::default();
        for queue in &self.queues {
            loop {
                let received = match self.receive(queue, self.concurrency).await {
                    Ok(received) if received.is_empty() => break,
                    Ok(received) => received,
                    Err(error) => {
                        self.failed_for_now(error, &mut round);
                        break;
                    }
                };
                let handled = stream::iter(received)
                    .map(|message| self.take_over(queue, message, Due::Everything))
                    .buffer_unordered(self.concurrency);
                let handled: Vec<Result<Handled>> = handled.collect().await;
                let mut is_over = false;
                for handled in handled {
                    is_over |= handled.is_err();
                    self.note(handled, &mut round);
                }
                if is_over {
                    break;
                }
            }
        }
        round
    }

    /// Hands over the messages of the queues, for ever.
    pub(super) async fn run_queues(&self) {
        join_all(self.queues.iter().map(|queue| self.run_queue(queue))).await;
    }

    async fn run_queue(&self, queue: &MessageQueue) {
        // Dropped with this future, and with it all that is under way.
        let mut busy = JoinSet::new();
        loop {
            while busy.try_join_next().is_some() {}
            let received = match self.concurrency.saturating_sub(busy.len()) {
                0 => Vec::new(),
                free => self.receive(queue, free).await.unwrap_or_else(|_| {
                    self.memory().stats.failures += 1;
                    Vec::new()
                }),
            };
            let is_idle = received.is_empty();
            for message in received {
                let (worker, queue) = (self.clone(), queue.clone());
                busy.spawn(async move {
                    let handled = worker.take_over(&queue, message, Due::Aged).await;
                    worker.note(handled, &mut Round::default());
                });
            }
            if busy.is_empty() {
                sleep(self.interval).await;
            } else if is_idle {
                // Until there is room, or it is time to look again.
                let _ = timeout(self.interval, busy.join_next()).await;
            }
        }
    }

    async fn receive(&self, queue: &MessageQueue, most: usize) -> Result<Vec<Received>> {
        let most = most.min(queue.port().capabilities().receive);
        // A handler may be told to be quicker than any queue hides its message.
        let hidden = self.lease.clamp(SHORTEST, LONGEST);
        let received = queue.port().receive(most, hidden).await?;
        let memory = &mut *self.memory();
        memory.stats.received += u64::try_from(received.len()).unwrap_or(0);
        still_unknown(&mut memory.unknown);
        Ok(received)
    }

    fn note(&self, handled: Result<Handled>, round: &mut Round) {
        let stats = &mut self.memory().stats;
        match handled {
            Ok(Handled::Done) => stats.applied += 1,
            Ok(Handled::Poisoned) => stats.poisoned += 1,
            Ok(Handled::Failed) => stats.retried += 1,
            Ok(Handled::Unknown) => return,
            Ok(Handled::Raced) => {
                round.raced += 1;
                return;
            }
            Err(error) => {
                stats.failures += 1;
                round.fail(error);
                return;
            }
        }
        round.moved += 1;
    }

    /// Whatever has to be done with one message. An error that is not the handler's leaves it to come
    /// again.
    async fn take_over(
        &self,
        queue: &MessageQueue,
        mut message: Received,
        due: Due,
    ) -> Result<Handled> {
        let port = &**queue.port();
        if message.until() <= Instant::now() {
            // The answer took that long: it comes again.
            return Ok(Handled::Raced);
        }
        let taken = match Envelope::parse(message.body()) {
            Ok(envelope) => self.open(port, &mut message, envelope, due).await,
            Err(error) => {
                let most = self.client.outbox().options.poison_after;
                match message.dequeue_count() >= most {
                    true => put_aside(port, &message, &error.to_string()).await,
                    // Another program may know what it is.
                    false => self.skip(port, &mut message, None).await,
                }
            }
        };
        match taken {
            Err(error) if error.is_lease_lost() => Ok(Handled::Raced),
            taken => taken,
        }
    }

    async fn open(
        &self,
        port: &dyn Queue,
        message: &mut Received,
        mut envelope: Envelope,
        due: Due,
    ) -> Result<Handled> {
        let id = match envelope.id.as_str() {
            "" => message.id().to_owned(),
            id => id.to_owned(),
        };
        let is_known = self.handlers.know_type(&envelope.name, envelope.version);
        if !envelope.has_known_format() || !(is_known || envelope.done) {
            self.memory().unknown.insert(id, Instant::now());
            envelope.skipped = envelope.skipped.saturating_add(1);
            return self.skip(port, message, Some(&envelope)).await;
        }
        self.memory().unknown.remove(&id);
        if envelope.done {
            self.remove_receipts(&id, &envelope.receipts).await?;
            port.delete(message).await?;
            return Ok(Handled::Done);
        }
        let count = message.dequeue_count().saturating_sub(envelope.skipped).max(1);
        let most = self.client.outbox().options.poison_after;
        if count > most {
            let reason = format!("it was received {count} times and never finished");
            return put_aside(port, message, &reason).await;
        }
        let (until, receipts) = (message.until(), envelope.receipts.clone());
        let context = Context::of(&self.client, id, count, until, receipts);
        let lease = until.saturating_duration_since(Instant::now()).min(self.lease);
        let (name, body) = (&envelope.name, envelope.body());
        let handled = self.handlers.handle(context.clone(), name, body, lease).await;
        let receipts = context.receipts();
        match handled {
            Ok(()) => self.finish_received(port, message, envelope, receipts).await,
            Err(Failure::Passing(error)) => {
                let wait = self.wait_for(&error, envelope.skipped, due);
                envelope.skipped = envelope.skipped.saturating_add(1);
                let noted = [envelope.text()?, envelope.with_receipts(receipts).text()?];
                hide(port, message, wait, &noted).await?;
                Err(error)
            }
            Err(Failure::Counted(reason)) if count >= most => {
                put_aside(port, message, &reason).await
            }
            Err(Failure::Counted(_)) => {
                let wait = if due == Due::Everything { Duration::ZERO } else { DELAY * count };
                let noted = envelope.with_receipts(receipts).text()?;
                hide(port, message, wait, &[noted]).await?;
                Ok(Handled::Failed)
            }
        }
    }

    /// How long a message waits after a failure that passes. Who drains tries again at once, and
    /// waits between its rounds.
    fn wait_for(&self, error: &Error, tries: u32, due: Due) -> Duration {
        if due == Due::Everything {
            return Duration::ZERO;
        }
        let random = self.client.outbox().store.random.number();
        let tries = i32::try_from(tries).unwrap_or(i32::MAX);
        back_off(tries, random, error.retry_after()).min(LONGEST)
    }

    /// A message that was handled is deleted; one with receipts stays, hidden and as done, as long as
    /// anybody could hand it over again.
    async fn finish_received(
        &self,
        port: &dyn Queue,
        message: &mut Received,
        envelope: Envelope,
        receipts: Receipts,
    ) -> Result<Handled> {
        if receipts.is_empty() {
            port.delete(message).await?;
        } else {
            let done = envelope.into_handled(receipts).text()?;
            let flight = self.client.outbox().options.flight;
            port.extend(message, flight.min(LONGEST), Some(&done)).await?;
        }
        Ok(Handled::Done)
    }

    /// Leaves a message to others for some time; that it was received here is no failure.
    async fn skip(
        &self,
        port: &dyn Queue,
        message: &mut Received,
        noted: Option<&Envelope>,
    ) -> Result<Handled> {
        let noted: Vec<String> = noted.iter().map(|noted| noted.text()).collect::<Result<_>>()?;
        hide(port, message, SKIP, &noted).await?;
        Ok(Handled::Unknown)
    }
}

/// Hides a message for some time, with the last of these texts that there is room for.
async fn hide(
    port: &dyn Queue,
    message: &mut Received,
    wait: Duration,
    noted: &[String],
) -> Result<()> {
    for text in noted.iter().rev() {
        match port.extend(message, wait, Some(text)).await {
            Err(error) if error.is_too_large() => {}
            hidden => return hidden,
        }
    }
    port.extend(message, wait, None).await
}

async fn put_aside(port: &dyn Queue, message: &Received, reason: &str) -> Result<Handled, Error> {
    port.poison(message, reason).await?;
    Ok(Handled::Poisoned)
}
