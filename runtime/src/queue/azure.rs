//! Azure Storage queues.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::time::Instant;

use super::{
    port::{Queue, QueueCapabilities, check_name, check_time, lease_lost},
    received::{Poison, Received},
};
use crate::{
    AzureOptions,
    backend::{
        BoxFuture,
        azure::{AzureQueues, QueueMessage},
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
/// What is put before the receipt of a message whose text is no base64: it stays as it came.
const PLAIN: &str = "plain:";
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
    queues: AzureQueues,
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
        Self::of(AzureQueues::new(options)?, name.into(), RetryPolicy::default())
    }

    pub(crate) fn of(queues: AzureQueues, name: String, policy: RetryPolicy) -> Result<Self> {
        let poison = [&name, POISON].concat();
        check_name(&name)?;
        check_name(&poison)?;
        let retry = Retry::around(queues.azure().clone(), policy);
        Ok(Self { queues, retry, name, poison })
    }

    /// A request that is made again where it was not carried out; a write whose answer was lost is
    /// not.
    async fn again<'a, T>(&self, request: impl Fn() -> BoxFuture<'a, Result<T>>) -> Result<T> {
        self.retry.retry_other_read(request).await
    }

    async fn put(&self, queue: &str, text: &str, delay: Duration) -> Result<String> {
        let put = || -> BoxFuture<'_, Result<QueueMessage>> {
            Box::pin(self.queues.put_message(queue, text, delay))
        };
        let put = match self.again(put).await {
            Err(error) if is_missing(&error) => {
                self.again(|| Box::pin(self.queues.create_queue(queue))).await?;
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
        let got = self.again(|| Box::pin(self.queues.get_messages(queue, most, visibility))).await;
        let got = match got {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            got => got?,
        };
        Ok(got.into_iter().map(|one| received(one, until)).collect())
    }

    async fn hide(
        &self,
        message: &mut Received,
        visibility: Duration,
        body: Option<&str>,
    ) -> Result<()> {
        check_time("a visibility timeout", Duration::ZERO, visibility)?;
        let text = body.map_or_else(|| text_of(message), encoded)?;
        let until = Instant::now() + visibility;
        let updated = {
            let place = place(message);
            self.again(|| {
                Box::pin(self.queues.update_message(&self.name, place, &text, visibility))
            })
            .await
        };
        let receipt = updated.map_err(|error| lost(error, message))?;
        let is_plain = body.is_none() && is_plain(message);
        message.extended(until, if is_plain { [PLAIN, &receipt].concat() } else { receipt }, body);
        Ok(())
    }

    async fn remove(&self, queue: &str, message: &Received) -> Result<()> {
        let place = place(message);
        let deleted = self.again(|| Box::pin(self.queues.delete_message(queue, place))).await;
        deleted.map_err(|error| lost(error, message))
    }

    /// Not one step: the message is put aside first, so that it is not lost between.
    async fn put_aside(&self, message: &Received) -> Result<()> {
        let mut kept = message.clone();
        // Whoever does not have it does nothing.
        self.hide(&mut kept, WHILE, None).await?;
        self.put(&self.poison, &text_of(message)?, Duration::ZERO).await?;
        self.remove(&self.name, &kept).await
    }

    async fn list_poison(&self, most: usize) -> Result<Vec<Poison>> {
        let most = most.min(RECEIVE);
        if most == 0 {
            return Ok(Vec::new());
        }
        let found =
            match self.again(|| Box::pin(self.queues.peek_messages(&self.poison, most))).await {
                Err(error) if is_missing(&error) => return Ok(Vec::new()),
                found => found?,
            };
        let poison = |one: QueueMessage| {
            let place = one.id.clone();
            let body = decoded(&one.text).unwrap_or(one.text);
            Poison::new(one.id, body, one.count, None, place)
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
                let put = self.put(&self.name, &text_of(found)?, Duration::ZERO).await;
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
            let (text, place) = (text_of(other)?, place(other));
            let _ = self.queues.update_message(&self.poison, place, &text, Duration::ZERO).await;
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

/// The body of a text; `None`: it is not base64 of UTF-8, and what some other program sent as it is.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()
}

/// A message of a text.
fn received(one: QueueMessage, until: Instant) -> Received {
    match decoded(&one.text) {
        Some(body) => Received::new(one.id, body, one.count, until, one.receipt),
        None => {
            let receipt = [PLAIN, &one.receipt].concat();
            Received::new(one.id, one.text, one.count, until, receipt)
        }
    }
}

fn is_plain(message: &Received) -> bool {
    message.receipt().starts_with(PLAIN)
}

/// The id and the service's receipt.
fn place(message: &Received) -> (&str, &str) {
    let receipt = message.receipt();
    (message.id(), receipt.strip_prefix(PLAIN).unwrap_or(receipt))
}

/// The text of a message that was received, as it came.
fn text_of(message: &Received) -> Result<String> {
    if is_plain(message) { Ok(message.body().to_owned()) } else { encoded(message.body()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn came(text: &str) -> Received {
        let text = text.to_owned();
        let one = QueueMessage { id: "1".into(), receipt: "Yz==".into(), count: 1, text };
        received(one, Instant::now())
    }

    #[test]
    fn a_text_goes_on_as_it_came() {
        let texts = [
            STANDARD.encode("{}"),
            // Of other programs: plain, longer than what is sent from here, and bytes.
            r#"{"type":"Letter"}"#.to_owned(),
            "<>".repeat(TEXT / 2),
            STANDARD.encode([0xff, 0xfe, 0x00]),
        ];
        for text in texts {
            let message = came(&text);
            assert_eq!(text_of(&message).unwrap(), text);
            assert_eq!(place(&message), ("1", "Yz=="));
        }
        assert_eq!(came(&STANDARD.encode("{}")).body(), "{}");
    }
}
