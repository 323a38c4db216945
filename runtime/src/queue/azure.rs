//! Azure Storage queues.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::time::Instant;

use super::{Poison, Queue, QueueCapabilities, Received, check_name, check_time, lease_lost};
use crate::{
    AzureOptions,
    backend::{
        BoxFuture,
        azure::{Queues, Text},
        layer::{Retry, RetryPolicy},
    },
    error::{Error, ErrorKind, Result},
};

/// Bytes that the service takes in a message's text.
const TEXT: usize = 64 * 1024;
/// Bytes of a message whose base64 is such a text: 48 KiB.
const BODY: usize = TEXT / 4 * 3;
/// Messages that one request receives.
const RECEIVE: usize = 32;
/// What the name of the queue of poison messages ends with, as Azure Functions have it.
const POISON: &str = "-poison";
/// How long a message is kept to oneself while it is put aside or back.
const WHILE: Duration = Duration::from_secs(30);
/// Looks for a message among those that were put aside.
const LOOKS: usize = 32;

/// A queue of an Azure Storage account, or of the emulator.
///
/// Messages do not expire. A body is sent as base64, as Azure Functions expect it; one that is not
/// base64 is received as it is. Poison messages go to `<queue>-poison`, with their bodies as they
/// are.
///
/// ```
/// use entable::{AzureOptions, AzureQueue, queue::MessageQueue};
///
/// let options = AzureOptions::from_connection_string("UseDevelopmentStorage=true")?;
/// let queue = MessageQueue::over(AzureQueue::new(options, "archive")?);
/// assert_eq!(queue.name(), "archive");
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AzureQueue {
    queues: Queues,
    retry: Retry,
    name: String,
    poison: String,
}

impl AzureQueue {
    /// The queue of that name in the account that the options name. Nothing is sent yet; requests that
    /// fail for a moment are made again.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a name that no queue has, or options that do not tell where the queues are.
    pub fn new(options: AzureOptions, name: impl Into<String>) -> Result<Self> {
        Self::of(Queues::new(options)?, name.into(), RetryPolicy::default())
    }

    pub(crate) fn of(queues: Queues, name: String, policy: RetryPolicy) -> Result<Self> {
        let poison = [&name, POISON].concat();
        check_name(&name)?;
        check_name(&poison)?;
        let retry = Retry::around(queues.azure().clone(), policy);
        Ok(Self { queues, retry, name, poison })
    }

    /// A request that is made again where it was not carried out; a write whose answer was lost is
    /// not.
    async fn again<'a, T>(&self, request: impl Fn() -> BoxFuture<'a, Result<T>>) -> Result<T> {
        self.retry.repeat(request).await
    }

    async fn put(&self, queue: &str, text: &str, delay: Duration) -> Result<String> {
        let put =
            || -> BoxFuture<'_, Result<Text>> { Box::pin(self.queues.put(queue, text, delay)) };
        let put = match self.again(put).await {
            Err(error) if is_missing(&error) => {
                self.again(|| Box::pin(self.queues.create(queue))).await?;
                self.again(put).await?
            }
            put => put?,
        };
        Ok(put.id)
    }

    async fn add(&self, body: &str, delay: Duration) -> Result<String> {
        check_time("a delay", Duration::ZERO, delay)?;
        self.put(&self.name, &encoded(body)?, delay).await
    }

    async fn take(&self, queue: &str, most: usize, visibility: Duration) -> Result<Vec<Received>> {
        check_time("a visibility timeout", Duration::from_secs(1), visibility)?;
        let most = most.min(RECEIVE);
        if most == 0 {
            return Ok(Vec::new());
        }
        let until = Instant::now() + visibility;
        let got = self.again(|| Box::pin(self.queues.get(queue, most, visibility))).await;
        let got = match got {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            got => got?,
        };
        let received =
            |one: Text| Received::new(one.id, decoded(one.text), one.count, until, one.receipt);
        Ok(got.into_iter().map(received).collect())
    }

    async fn hide(
        &self,
        message: &mut Received,
        visibility: Duration,
        body: Option<&str>,
    ) -> Result<()> {
        check_time("a visibility timeout", Duration::ZERO, visibility)?;
        let text = encoded(body.unwrap_or(message.body()))?;
        let until = Instant::now() + visibility;
        let updated = {
            let place = (message.id(), message.receipt());
            self.again(|| Box::pin(self.queues.update(&self.name, place, &text, visibility))).await
        };
        let receipt = updated.map_err(|error| lost(error, message))?;
        message.extended(until, receipt, body);
        Ok(())
    }

    async fn remove(&self, queue: &str, message: &Received) -> Result<()> {
        let place = (message.id(), message.receipt());
        let deleted = self.again(|| Box::pin(self.queues.delete(queue, place))).await;
        deleted.map_err(|error| lost(error, message))
    }

    /// Not one step: the message is put aside first, so that it is not lost between.
    async fn put_aside(&self, message: &Received) -> Result<()> {
        let mut kept = message.clone();
        // Whoever does not have it does nothing.
        self.hide(&mut kept, WHILE, None).await?;
        self.put(&self.poison, &encoded(message.body())?, Duration::ZERO).await?;
        self.remove(&self.name, &kept).await
    }

    async fn list_poison(&self, most: usize) -> Result<Vec<Poison>> {
        let most = most.min(RECEIVE);
        if most == 0 {
            return Ok(Vec::new());
        }
        let found = match self.again(|| Box::pin(self.queues.peek(&self.poison, most))).await {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            found => found?,
        };
        let poison = |one: Text| {
            let place = one.id.clone();
            Poison::new(one.id, decoded(one.text), one.count, None, place)
        };
        Ok(found.into_iter().map(poison).collect())
    }

    async fn put_back(&self, poison: &Poison) -> Result<()> {
        let mut others = Vec::new();
        let mut found = None;
        for _ in 0..LOOKS {
            let taken = self.take(&self.poison, RECEIVE, WHILE).await?;
            let is_over = taken.is_empty();
            for one in taken {
                match one.id() == poison.place() {
                    true => found = Some(one),
                    false => others.push(one),
                }
            }
            if is_over || found.is_some() {
                break;
            }
        }
        let done = match &found {
            Some(found) => {
                let put = self.put(&self.name, &encoded(found.body())?, Duration::ZERO).await;
                match put {
                    Ok(_) => self.remove(&self.poison, found).await,
                    Err(error) => Err(error),
                }
            }
            None => {
                let message = "the message is not among those put aside any more";
                Err(Error::new(ErrorKind::NotFound, message))
            }
        };
        for other in &others {
            // Visible again by itself a little later, where this fails.
            let (text, place) = (encoded(other.body())?, (other.id(), other.receipt()));
            let _ = self.queues.update(&self.poison, place, &text, Duration::ZERO).await;
        }
        done
    }
}

fn encoded(body: &str) -> Result<String> {
    if body.len() <= BODY {
        return Ok(STANDARD.encode(body));
    }
    let message = format!(
        "the message has {} bytes, {BODY} are allowed: its base64 may have {TEXT}; store what is large, and name it in the message",
        body.len()
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// The body of a text; one that is not base64 of UTF-8 is what some other program sent as it is.
fn decoded(text: String) -> String {
    let bytes = STANDARD.decode(text.trim()).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(text)
}

fn is_missing(error: &Error) -> bool {
    error.code() == Some("QueueNotFound")
}

/// What a refused change of a message means.
fn lost(error: Error, message: &Received) -> Error {
    match error.code() {
        Some("MessageNotFound" | "PopReceiptMismatch" | "QueueNotFound") => {
            lease_lost(message.id()).with_source(error)
        }
        _ => error,
    }
}

#[deny(clippy::missing_trait_methods)]
impl Queue for AzureQueue {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> QueueCapabilities {
        QueueCapabilities::new("azure", RECEIVE)
    }

    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>> {
        Box::pin(self.add(body, delay))
    }

    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>> {
        Box::pin(self.take(&self.name, most, visibility))
    }

    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.hide(message, visibility, body))
    }

    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.remove(&self.name, message))
    }

    fn poison<'a>(&'a self, message: &'a Received, _: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.put_aside(message))
    }

    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>> {
        Box::pin(self.list_poison(most))
    }

    fn requeue<'a>(&'a self, poison: &'a Poison) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.put_back(poison))
    }
}
