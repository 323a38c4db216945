//! The program's own functions for messages, and what they are given.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::{Instant, timeout};

use super::failure::Failure;
use crate::{
    backend::Read,
    entity::Message,
    error::{BoxError, Error, ErrorKind, Result},
    plan::outbox::{StoredMessage, receipt_row_key},
    queue::Receipts,
    table::{Client, Transaction},
};

/// The handlers of a worker, by the name of the message.
#[derive(Clone, Default)]
pub(super) struct Handlers(BTreeMap<&'static str, Handler>);

type Call = dyn Fn(Context, &str) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync;

#[derive(Clone)]
struct Handler {
    version: u32,
    call: Arc<Call>,
}

impl Handlers {
    pub(super) fn add<M, F, T>(&mut self, handler: F)
    where
        M: Message,
        F: Fn(Context, M) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let call = move |context: Context, body: &str| match serde_json::from_str::<M>(body) {
            Ok(message) => handler(context, message).boxed(),
            Err(cause) => {
                let text = format!("the message cannot be read: {cause}");
                std::future::ready(Err(text.into())).boxed()
            }
        };
        self.0.insert(M::NAME, Handler { version: M::VERSION, call: Arc::new(call) });
    }

    /// Whether there is a handler that knows the message.
    pub(super) fn know(&self, message: &StoredMessage) -> bool {
        self.know_type(&message.name, u32::try_from(message.version).unwrap_or(u32::MAX))
    }

    /// Whether there is a handler for messages of that name, in that version or a later one.
    pub(super) fn know_type(&self, name: &str, version: u32) -> bool {
        self.0.get(name).is_some_and(|handler| version <= handler.version)
    }

    /// Hands a message over.
    pub(super) async fn handle(
        &self,
        context: Context,
        name: &str,
        body: &str,
        lease: Duration,
    ) -> Result<(), Failure> {
        let counted = |text: &str| Err(Failure::Counted(text.to_owned()));
        let Some(handler) = self.0.get(name) else {
            return counted("there is no handler for the message");
        };
        // Within the future is what comes before the handler's own: reading the message, too, is the
        // program's code.
        let handled = async { (handler.call)(context, body).await };
        let handled = AssertUnwindSafe(handled).catch_unwind();
        match timeout(lease, handled).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(Failure::of(error)),
            Ok(Err(_)) => counted("the handler panicked"),
            Err(_) => counted(&format!("the handler took more than its lease of {lease:?}")),
        }
    }
}

/// What a handler is given beside its message.
#[derive(Clone)]
pub struct Context {
    client: Client,
    id: String,
    attempts: u32,
    /// When the message is anybody's again.
    until: Instant,
    receipts: Arc<Mutex<Receipts>>,
    /// Where an effect took place for certain, this time or before.
    settled: Arc<Mutex<Receipts>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Context {
    pub(super) fn new(client: &Client, message: &StoredMessage, lease: Duration) -> Self {
        Self {
            client: client.clone(),
            id: message.id.clone(),
            attempts: u32::try_from(message.attempts).unwrap_or(0).saturating_add(1),
            until: Instant::now() + lease,
            receipts: Arc::new(Mutex::new(message.receipts.clone())),
            settled: Arc::default(),
        }
    }

    /// The same for a message of a queue.
    pub(super) fn of(
        client: &Client,
        id: String,
        attempts: u32,
        until: Instant,
        receipts: Receipts,
    ) -> Self {
        let receipts = Arc::new(Mutex::new(receipts));
        Self { client: client.clone(), id, attempts, until, receipts, settled: Arc::default() }
    }

    /// The client of the worker.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The message's own id, the same each time that it is handed over.
    pub fn message_id(&self) -> &str {
        &self.id
    }

    /// How often the message was taken, this time included.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn receipts(&self) -> Receipts {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Commits a transaction as the effect of the message: once, however often the message is handed
    /// over. `false`: it took place before.
    ///
    /// A message may have one effect in each partition.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::commit`]; `is_invalid` for a second effect in one partition, of which nobody
    /// could say whether it took place.
    pub async fn once(&self, egt: Transaction) -> Result<bool> {
        if Instant::now() >= self.until {
            let message = "the lease of the message is over";
            return Err(Error::new(ErrorKind::Contended, message));
        }
        let Some(place) = egt.place().await? else {
            return egt.effect_of_message(&self.id).commit().await.map(|_| true);
        };
        if has(&self.settled, &place) {
            return Err(second(&place));
        }
        put(&self.receipts, &place);
        let is_first = match egt.effect_of_message(&self.id).commit().await {
            Ok(_) => true,
            Err(error) => self.took_place(&place, error).await?,
        };
        put(&self.settled, &place);
        Ok(is_first)
    }

    /// `false` where a transaction failed because it took place before; its error otherwise.
    async fn took_place(&self, place: &(String, String), error: Error) -> Result<bool> {
        let ((table, partition_key), row_key) = (place, &*receipt_row_key(&self.id));
        match self.client.store().read(Read { table, partition_key, row_key, select: None }).await {
            Ok(Some(_)) => Ok(false),
            // Whether it took place before is not known: the message comes again.
            Err(unread) if !unread.is_not_found() => Err(unread),
            _ => Err(error),
        }
    }
}

fn has(places: &Mutex<Receipts>, place: &(String, String)) -> bool {
    places.lock().unwrap_or_else(PoisonError::into_inner).contains(place)
}

fn put(places: &Mutex<Receipts>, place: &(String, String)) {
    if !has(places, place) {
        places.lock().unwrap_or_else(PoisonError::into_inner).push(place.clone());
    }
}

fn second((table, partition_key): &(String, String)) -> Error {
    let message = "a message has one effect in a partition, and this is the second; put both into one transaction";
    Error::new(ErrorKind::Invalid, message).in_table(table).at_keys(partition_key, "")
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
