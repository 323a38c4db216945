//! The program's message handlers, and the context that they receive.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{failure::HandlerFailure, stopping::StopSignal};
use crate::{
    address::Names,
    authentic::MessageAuthenticity,
    backend::ReadRequest,
    batch::Deadline,
    entity::Message,
    error::{BoxError, Error, ErrorKind, Result},
    limits::{STRING_UNITS, saturating_u32, utf16_units},
    plan::outbox::{MessageIdentity, StoredMessage, receipt_row_key, receipts_json},
    queue::Receipts,
    table::{Client, Transaction},
    timers::instant_after,
};

/// The handlers of a worker, by message type name.
#[derive(Clone, Default)]
pub(super) struct MessageHandlers(BTreeMap<&'static str, Handler>);

/// A handler that receives its message as JSON.
type HandlerFn = dyn Fn(Context, &str) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync;

#[derive(Clone)]
struct Handler {
    version: u32,
    authenticity: MessageAuthenticity,
    expires: Option<Duration>,
    call: Arc<HandlerFn>,
}

/// A lease that its holder can extend. A single task owns it, because a renewal changes the ETag or receipt
/// for the next write.
pub(super) trait RenewableLease: Send {
    /// Returns the deadline after which the holder must treat the lease as ended. It counts from before the request
    /// that took or extended the lease, and therefore never ends later than the store's or queue's lease.
    fn deadline(&self) -> &Deadline;

    /// Extends the lease by its length, starting now. Returns `false` if another worker took or deleted the
    /// message. Fails if the answer does not arrive before the lease ends.
    fn renew(&mut self) -> BoxFuture<'_, Result<bool>>;
}

impl MessageHandlers {
    pub(super) fn add_handler<M, F, T>(&mut self, handler: F)
    where
        M: Message,
        F: Fn(Context, M) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let call = move |context: Context, body: &str| match serde_json::from_str::<M>(body) {
            Ok(message) => handler(context, message).boxed(),
            Err(cause) => {
                let text = format!("the message cannot be read: {cause}");
                // A message that cannot be read counts as a failure of its handler.
                std::future::ready(Err(text.into())).boxed()
            }
        };
        let handler = Handler {
            version: M::VERSION,
            authenticity: M::AUTHENTICITY,
            expires: M::EXPIRES,
            call: Arc::new(call),
        };
        self.0.insert(M::NAME, handler);
    }

    /// Returns whether messages with this name need a code, as their handler's message type declares. Returns
    /// `ByClient` if there is no handler for the name.
    pub(super) fn authenticity(&self, name: &str) -> MessageAuthenticity {
        self.0.get(name).map(|handler| handler.authenticity).unwrap_or_default()
    }

    /// Returns the time after which messages with this name expire. Returns `None` if they never expire or have
    /// no handler.
    pub(super) fn message_lifetime(&self, name: &str) -> Option<Duration> {
        self.0.get(name)?.expires
    }

    /// Returns whether there is a handler for the type and version of the message.
    pub(super) fn can_handle_message(&self, message: &StoredMessage) -> bool {
        self.can_handle_version(&message.name, saturating_u32(message.version))
    }

    /// Returns whether there is a handler for this message type in this version or a newer one.
    pub(super) fn can_handle_version(&self, name: &str, version: u32) -> bool {
        self.0.get(name).is_some_and(|handler| version <= handler.version)
    }

    /// Calls the handler of a message and renews the message's lease while it runs. Fails if the message has no
    /// handler. Otherwise drops the handler and fails in three cases: `most` has passed; the lease ends or another
    /// worker has the message; or the worker was stopped and its grace period has passed.
    pub(super) async fn handle_message(
        &self,
        context: Context,
        name: &str,
        body: &str,
        lease: &mut dyn RenewableLease,
        most: Duration,
        stopping: &StopSignal,
    ) -> Result<(), HandlerFailure> {
        let longest_end = instant_after(Instant::now(), most);
        let counted = |text: &str| Err(HandlerFailure::Counted(text.to_owned()));
        // The caller checks this too. A missing handler must not lose the message.
        let Some(handler) = self.0.get(name) else {
            return counted("no handler is registered for the message");
        };
        // Call the handler inside the future: it parses the message, which runs user code that may also
        // panic.
        let until = context.until.clone();
        let handled = async { (handler.call)(context, body).await };
        let handled = pin!(AssertUnwindSafe(handled).catch_unwind());
        let over = pin!(stopping.wait_for_end());
        let mut handled = select(handled, over);
        let outcome = |done| match done {
            Either::Left((Ok(Ok(())), _)) => Ok(()),
            Either::Left((Ok(Err(error)), _)) => Err(HandlerFailure::classify_error(error)),
            Either::Left((Err(_), _)) => counted("the handler panicked"),
            Either::Right(_) => Err(HandlerFailure::Stopped),
        };
        loop {
            let end = lease.deadline().end_instant();
            // A lease that outlives the handler is not renewed.
            let is_last = end >= longest_end;
            let wake = if is_last {
                end.min(longest_end)
            } else {
                // Renew halfway, which leaves time to retry a failed renewal before the end.
                end - end.saturating_duration_since(Instant::now()) / 2
            };
            if let Ok(done) = timeout_at(wake, &mut handled).await {
                return outcome(done);
            }
            // Drop the handler when the lease ends, because another worker may then take the message.
            if is_last || Instant::now() >= end {
                return counted(&format!("the handler took more than its lease of {most:?}"));
            }
            let renewed = match select(&mut handled, lease.renew()).await {
                Either::Right((renewed, _)) => renewed,
                Either::Left((done, renewal)) => {
                    // The message is finished under the ETag from the renewal.
                    drop(renewal.await);
                    return outcome(done);
                }
            };
            match renewed {
                // The context receives the new end, until which `once` allows effects.
                Ok(true) => {
                    until
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone_from(lease.deadline());
                }
                Ok(false) => return counted("another worker has the message"),
                // Tried again until the lease ends.
                Err(_) => {
                    if let Either::Left((done, _)) =
                        select(&mut handled, pin!(sleep(RENEWAL_PAUSE))).await
                    {
                        return outcome(done);
                    }
                }
            }
        }
    }
}

/// The time between two attempts to renew a lease.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// The context of a handler: the worker's client, and effects that happen once.
#[derive(Clone)]
pub struct Context {
    client: Client,
    message: MessageIdentity,
    attempts: u32,
    /// The end of the lease, after which other workers may take the message. A renewal changes it.
    until: Arc<Mutex<Deadline>>,
    /// The partitions where this call or an earlier one began an effect.
    receipts: Arc<Mutex<Receipts>>,
    /// The partitions where this call found that an effect has certainly happened.
    settled: Arc<Mutex<Receipts>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.message.id).finish_non_exhaustive()
    }
}

impl Context {
    /// Creates the context for a message of the outbox.
    pub(super) fn context_of_outbox_message(
        client: &Client,
        table: &str,
        message: &StoredMessage,
        until: Deadline,
    ) -> Self {
        Self {
            client: client.clone(),
            message: message.message_identity(client.store().names().name(table)),
            attempts: u32::try_from(message.attempts).unwrap_or(0).saturating_add(1),
            until: Arc::new(Mutex::new(until)),
            receipts: Arc::new(Mutex::new(message.receipts.clone())),
            settled: Arc::default(),
        }
    }

    /// Creates the context for a message of a queue.
    pub(super) fn context_of_queue_message(
        client: &Client,
        message: MessageIdentity,
        attempts: u32,
        until: Deadline,
        receipts: Receipts,
    ) -> Self {
        let (until, receipts) = (Arc::new(Mutex::new(until)), Arc::new(Mutex::new(receipts)));
        Self { client: client.clone(), message, attempts, until, receipts, settled: Arc::default() }
    }

    /// Returns the client of the worker.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the message's id, which is the same in every delivery.
    pub fn message_id(&self) -> &str {
        &self.message.id
    }

    /// Returns the number of deliveries of the message, including this one.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns whether the list of partitions with effects of this message still fits into one String property
    /// with `place` added. A message with a longer list could not be marked as done.
    fn has_room_for_receipt(&self, place: &(String, String)) -> bool {
        let mut receipts = self.receipt_places();
        if !contains_place(&receipts, place, self.client.store().names()) {
            receipts.push(place.clone());
        }
        utf16_units(&receipts_json(&receipts)) <= STRING_UNITS
    }

    /// Returns the places of the message's receipts: table and PartitionKey of each partition in which this call
    /// or an earlier one began an effect. A completed effect wrote a receipt row there.
    pub(super) fn receipt_places(&self) -> Receipts {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Commits a transaction as the effect of the message. The effect happens once, however often the message is
    /// delivered. Returns `false` if it already happened.
    ///
    /// A message may have one effect in each partition.
    ///
    /// # Errors
    ///
    /// Fails as [`Transaction::commit`] does. Fails with `is_contended` after the lease has expired, and with
    /// `is_too_large` if the message has effects in too many partitions. Fails with `is_invalid` for a second effect
    /// in one partition, because its receipt would not show which of the two happened.
    pub async fn once(&self, egt: Transaction) -> Result<bool> {
        let deadline = self.until.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if deadline.is_over() {
            let message = "the lease of the message has expired";
            return Err(Error::new(ErrorKind::Contended, message));
        }
        // A transaction without changes has no partition and no receipt.
        let Some(place) = egt.target_partition().await? else {
            return egt.effect_of_message(&self.message, deadline).commit().await.map(|_| true);
        };
        // Both effects would share one receipt, which could not distinguish them.
        let names = self.client.store().names();
        let is_settled = {
            let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
            contains_place(&settled, &place, names)
        };
        if is_settled {
            return Err(second_effect_error(&place));
        }
        if !self.has_room_for_receipt(&place) {
            return Err(too_many_effects_error(&place));
        }
        // Before the commit: an effect whose answer is lost must be found when the message is deleted.
        add_place(&self.receipts, &place, names);
        // Pass the deadline to the transaction: its reads may outlast the lease, and by then another worker may
        // have completed the effect and removed its receipt.
        let is_first = match egt.effect_of_message(&self.message, deadline).commit().await {
            Ok(_) => true,
            Err(error) => self.find_earlier_effect(&place, error).await?,
        };
        add_place(&self.settled, &place, names);
        Ok(is_first)
    }

    /// Finds out whether a transaction failed because an earlier call of the handler had the same effect. Returns
    /// `false`, for "not the first", if the message's receipt exists. Otherwise fails with the transaction's error.
    async fn find_earlier_effect(&self, place: &(String, String), error: Error) -> Result<bool> {
        let ((table, partition_key), row_key) = (place, &*receipt_row_key(&self.message.id));
        match self
            .client
            .store()
            .read(ReadRequest { table, partition_key, row_key, select: None })
            .await
        {
            // Whoever put another message's receipt there must not be able to suppress this effect.
            Ok(Some(receipt)) if !self.message.owns_receipt(&receipt)? => Err(error),
            Ok(Some(_)) => Ok(false),
            // It is unknown whether the effect happened. With this error, the message is delivered again.
            Err(unknown) if !unknown.is_not_found() => Err(unknown),
            _ => Err(error),
        }
    }
}

/// Returns whether `places` contains the partition, possibly under another spelling of its table: if case does
/// not matter, `Staff` and `staff` have the same receipt.
fn contains_place(
    places: &Receipts,
    (table, partition_key): &(String, String),
    names: Names,
) -> bool {
    places.iter().any(|(other, key)| key == partition_key && names.is_same_table(other, table))
}

fn add_place(places: &Mutex<Receipts>, place: &(String, String), names: Names) {
    let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
    if !contains_place(&places, place, names) {
        places.push(place.clone());
    }
}

fn too_many_effects_error((table, partition_key): &(String, String)) -> Error {
    let message = format!(
        "the message has effects in too many partitions: their tables and keys may take at most {STRING_UNITS} UTF-16 \
         units; emit a message for each group of partitions"
    );
    Error::new(ErrorKind::TooLarge, message).in_table(table).at_keys(partition_key, "")
}

fn second_effect_error((table, partition_key): &(String, String)) -> Error {
    let message = "a message can have one effect per partition, and this is the second; put both into one transaction";
    Error::new(ErrorKind::Invalid, message).in_table(table).at_keys(partition_key, "")
}

impl fmt::Debug for MessageHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
