//! Implements the trait [`Queue`] for queues of Azure Storage.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use entable_core::{
    backend::{
        BoxFuture,
        layer::{Retry, RetryPolicy},
    },
    error::{Error, ErrorKind, Result},
    queue::{
        Poison, Queue, QueueCapabilities, Received, check_duration, check_name, lease_lost_error,
    },
};
use tokio::time::Instant;

use super::requests::{AzureQueues, QueueMessage};
use crate::{backend::Azure, options::AzureOptions};

/// The most bytes of a message's text.
const MAX_TEXT: usize = 64 * 1024;
/// The most bytes of a body: 48 KiB. The text is its base64.
const MAX_BODY: usize = MAX_TEXT / 4 * 3;
/// The most messages that one request receives.
const MAX_RECEIVED: usize = 32;
/// The suffix of the queue of poison messages. Azure Functions use it too.
const POISON_SUFFIX: &str = "-poison";
/// The prefix of the receipt of a message whose text is not base64, and is written back unchanged.
const PLAIN_PREFIX: &str = "plain:";
/// How long a message is held while it moves to or from the poison queue.
const MOVE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most pages of poison messages that a requeue searches.
const MAX_POISON_PAGES: usize = 32;

/// A queue of an Azure Storage account, or of the emulator.
///
/// Messages never expire. Bodies are sent as base64, which Azure Functions expect. A received text that is
/// not base64 is returned unchanged. Poison messages go to `<queue>-poison` with unchanged bodies.
///
/// ```
/// use entable_azure::{AzureOptions, AzureQueue};
/// use entable_core::Queue;
///
/// let options = AzureOptions::from_connection_string("UseDevelopmentStorage=true")?;
/// let queue = AzureQueue::new(options, "archive")?;
/// assert_eq!(queue.name(), "archive");
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AzureQueue {
    queues: AzureQueues,
    retry: Retry,
    name: String,
    poison: String,
}

impl AzureQueue {
    /// Creates a client for the queue `name` in the account of `options`, without sending a request. The first
    /// message creates the queue. Requests that fail with a transient error are repeated.
    ///
    /// # Errors
    ///
    /// `is_invalid` for an invalid name, or for options without a queue endpoint.
    pub fn new(options: AzureOptions, name: impl Into<String>) -> Result<Self> {
        Self::with_retry_policy(AzureQueues::new(options)?, name.into(), RetryPolicy::default())
    }

    /// Creates a client for the queue `name` in the account of a backend, without sending a request. Requests that
    /// fail with a transient error are repeated by `policy`.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions, AzureQueue};
    /// use entable_core::{Queue, RetryPolicy};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// assert_eq!(AzureQueue::of_account(&azure, "archive", RetryPolicy::never())?.name(), "archive");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`new`](Self::new).
    pub fn of_account(azure: &Azure, name: impl Into<String>, policy: RetryPolicy) -> Result<Self> {
        Self::with_retry_policy(azure.queues()?, name.into(), policy)
    }

    fn with_retry_policy(queues: AzureQueues, name: String, policy: RetryPolicy) -> Result<Self> {
        let poison = [&name, POISON_SUFFIX].concat();
        check_name(&name)?;
        check_name(&poison)?;
        let retry = Retry::around(queues.azure_backend().clone(), policy);
        Ok(Self { queues, retry, name, poison })
    }

    /// Sends a request. Repeats it if the service certainly did not carry it out.
    async fn with_retry<'a, T>(&self, request: impl Fn() -> BoxFuture<'a, Result<T>>) -> Result<T> {
        self.retry.retry_non_backend_read(request).await
    }

    /// Adds a text to a queue, which it creates if necessary, and returns the message's id.
    async fn put_text(&self, queue: &str, text: &str, delay: Duration) -> Result<String> {
        let put = || -> BoxFuture<'_, Result<QueueMessage>> {
            Box::pin(self.queues.put_message(queue, text, delay))
        };
        let put = match self.with_retry(put).await {
            Err(error) if is_queue_missing(&error) => {
                // Create the queue only when it is missing; a send to an existing queue stays one request.
                self.with_retry(|| Box::pin(self.queues.create_queue(queue))).await?;
                self.with_retry(put).await?
            }
            put => put?,
        };
        Ok(put.id)
    }

    /// Adds a message and returns its id.
    async fn send_message(&self, body: &str, delay: Duration) -> Result<String> {
        check_duration("a delay", Duration::ZERO, delay)?;
        self.put_text(&self.name, &encode_body(body)?, delay).await
    }

    /// Receives messages of a queue. A missing queue has none.
    async fn receive_from(
        &self,
        queue: &str,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>> {
        check_duration("a visibility timeout", Duration::from_secs(1), visibility)?;
        let most = most.min(MAX_RECEIVED);
        if most == 0 {
            return Ok(Vec::new());
        }
        // Count from before the request: the lease then ends here before it ends in the service.
        let until = Instant::now() + visibility;
        let got =
            self.with_retry(|| Box::pin(self.queues.get_messages(queue, most, visibility))).await;
        let got = match got {
            Err(error) if is_queue_missing(&error) => return Ok(Vec::new()),
            got => got?,
        };
        Ok(got.into_iter().map(|one| received_message(one, until)).collect())
    }

    /// Hides a received message for `visibility`, with a new body if one is given.
    async fn extend_message(
        &self,
        message: &mut Received,
        visibility: Duration,
        body: Option<&str>,
    ) -> Result<()> {
        check_duration("a visibility timeout", Duration::ZERO, visibility)?;
        // The service takes a text with each update, so an unchanged one is sent again.
        let text = body.map_or_else(|| original_text(message), encode_body)?;
        let until = Instant::now() + visibility;
        let updated = {
            let held = id_and_receipt(message);
            self.with_retry(|| {
                Box::pin(self.queues.update_message(&self.name, held, &text, visibility))
            })
            .await
        };
        let receipt = updated.map_err(|error| as_lease_lost(error, message))?;
        // An unchanged body keeps its form: another program may read the text.
        let is_plain = body.is_none() && is_plain_text_message(message);
        message.extended(
            until,
            if is_plain { [PLAIN_PREFIX, &receipt].concat() } else { receipt },
            body,
        );
        Ok(())
    }

    /// Deletes a received message of a queue.
    async fn delete_from(&self, queue: &str, message: &Received) -> Result<()> {
        let held = id_and_receipt(message);
        let deleted = self.with_retry(|| Box::pin(self.queues.delete_message(queue, held))).await;
        deleted.map_err(|error| as_lease_lost(error, message))
    }

    /// Moves a received message to the poison queue.
    async fn move_to_poison(&self, message: &Received) -> Result<()> {
        let mut kept = message.clone();
        // Fails unless this receiver holds the message, so a late receiver changes nothing.
        self.extend_message(&mut kept, MOVE_TIMEOUT, None).await?;
        // Add before deleting: a crash in between leaves the message twice and never loses it.
        self.put_text(&self.poison, &original_text(message)?, Duration::ZERO).await?;
        self.delete_from(&self.name, &kept).await
    }

    /// Returns poison messages without receiving them.
    async fn poison_messages(&self, most: usize) -> Result<Vec<Poison>> {
        let most = most.min(MAX_RECEIVED);
        if most == 0 {
            return Ok(Vec::new());
        }
        let found =
            match self.with_retry(|| Box::pin(self.queues.peek_messages(&self.poison, most))).await
            {
                Err(error) if is_queue_missing(&error) => return Ok(Vec::new()),
                found => found?,
            };
        let poison = |one: QueueMessage| {
            let place = one.id.clone();
            let body = decode_text(&one.text).unwrap_or(one.text);
            Poison::new(one.id, body, one.count, None, place)
        };
        Ok(found.into_iter().map(poison).collect())
    }

    /// Moves a poison message back to the queue: receives poison messages until it finds the message.
    async fn requeue_poison(&self, poison: &Poison) -> Result<()> {
        // The service returns messages only in its own order, so this takes other messages and gives them
        // back.
        let mut others = Vec::new();
        let mut found = None;
        for _ in 0..MAX_POISON_PAGES {
            let taken = self.receive_from(&self.poison, MAX_RECEIVED, MOVE_TIMEOUT).await?;
            let is_over = taken.is_empty();
            for one in taken {
                if one.id() == poison.place() { found = Some(one) } else { others.push(one) }
            }
            if is_over || found.is_some() {
                break;
            }
        }
        let done = match &found {
            Some(found) => {
                // Add before deleting: a crash in between leaves the message twice and never loses it.
                let put = self.put_text(&self.name, &original_text(found)?, Duration::ZERO).await;
                match put {
                    Ok(_) => self.delete_from(&self.poison, found).await,
                    Err(error) => Err(error),
                }
            }
            None => {
                let message = "the message is no longer among the poison messages";
                Err(Error::new(ErrorKind::NotFound, message))
            }
        };
        for other in &others {
            // If this fails, the message becomes visible after its timeout anyway.
            let (text, held) = (original_text(other)?, id_and_receipt(other));
            let _ = self.queues.update_message(&self.poison, held, &text, Duration::ZERO).await;
        }
        done
    }
}

/// Encodes a body as the service's text. Fails with `is_too_large` for more than 48 KiB.
fn encode_body(body: &str) -> Result<String> {
    if body.len() <= MAX_BODY {
        return Ok(STANDARD.encode(body));
    }
    let message = format!(
        "the message has {} bytes, the limit is {MAX_BODY} ({MAX_TEXT} as base64); store large data elsewhere and put \
         a reference in the message",
        body.len()
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Decodes the base64 text of a message. Returns `None` if it is not base64 of UTF-8, since another program
/// sent the message as plain text.
fn decode_text(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()
}

/// Converts a message of the service, held until `until`.
fn received_message(one: QueueMessage, until: Instant) -> Received {
    match decode_text(&one.text) {
        Some(body) => Received::new(one.id, body, one.count, until, one.receipt),
        None => {
            let receipt = [PLAIN_PREFIX, &one.receipt].concat();
            Received::new(one.id, one.text, one.count, until, receipt)
        }
    }
}

/// Returns whether the message's text was not base64.
fn is_plain_text_message(message: &Received) -> bool {
    message.receipt().starts_with(PLAIN_PREFIX)
}

/// Returns the message's id and the service's own pop receipt.
fn id_and_receipt(message: &Received) -> (&str, &str) {
    let receipt = message.receipt();
    (message.id(), receipt.strip_prefix(PLAIN_PREFIX).unwrap_or(receipt))
}

/// Returns the text of a received message exactly as the service returned it.
fn original_text(message: &Received) -> Result<String> {
    if is_plain_text_message(message) {
        Ok(message.body().to_owned())
    } else {
        encode_body(message.body())
    }
}

/// A code of the Queue service that says that a queue, or a message as it was received, is gone.
/// `ServiceCode` knows the codes of the Table service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueCode {
    QueueNotFound,
    MessageNotFound,
    PopReceiptMismatch,
}

impl QueueCode {
    /// Returns the error's code, or `None` for any other failure.
    fn of_error(error: &Error) -> Option<Self> {
        match error.code()? {
            "QueueNotFound" => Some(Self::QueueNotFound),
            "MessageNotFound" => Some(Self::MessageNotFound),
            "PopReceiptMismatch" => Some(Self::PopReceiptMismatch),
            _ => None,
        }
    }
}

/// Returns whether a request failed because the queue does not exist.
fn is_queue_missing(error: &Error) -> bool {
    QueueCode::of_error(error) == Some(QueueCode::QueueNotFound)
}

/// Turns an error of the service which says that the receiver no longer holds the message into one
/// with `is_lease_lost`. Returns other errors unchanged.
fn as_lease_lost(error: Error, message: &Received) -> Error {
    match QueueCode::of_error(&error) {
        Some(
            QueueCode::QueueNotFound | QueueCode::MessageNotFound | QueueCode::PopReceiptMismatch,
        ) => lease_lost_error(message.id()).with_source(error),
        None => error,
    }
}

#[deny(clippy::missing_trait_methods)]
impl Queue for AzureQueue {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> QueueCapabilities {
        QueueCapabilities::new("azure", MAX_RECEIVED)
    }

    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>> {
        Box::pin(self.send_message(body, delay))
    }

    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>> {
        Box::pin(self.receive_from(&self.name, most, visibility))
    }

    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.extend_message(message, visibility, body))
    }

    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.delete_from(&self.name, message))
    }

    fn poison<'a>(&'a self, message: &'a Received, _: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.move_to_poison(message))
    }

    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>> {
        Box::pin(self.poison_messages(most))
    }

    fn requeue<'a>(&'a self, poison: &'a Poison) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.requeue_poison(poison))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::transport::{HttpAnswer, HttpRequest, SendFailure, Transport};

    /// A queue service that answers by a script, each time after 10 s, and records what it was asked.
    #[derive(Debug, Default)]
    struct Service {
        answers: Mutex<VecDeque<HttpAnswer>>,
        asked: Mutex<Vec<(String, String)>>,
    }

    impl Transport for Service {
        fn send<'a>(
            &'a self,
            request: &'a HttpRequest,
        ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let body = String::from_utf8_lossy(request.body()).into_owned();
                let (_, path) = request.url().split_once(".net").unwrap();
                let line = format!("{} {}", request.method().as_str(), path.replacen('?', " ", 1));
                self.asked.lock().unwrap().push((line, body));
                Ok(self.answers.lock().unwrap().pop_front().unwrap())
            })
        }
    }

    impl Service {
        /// Returns the queue `letters` of a scripted service. Each element of `answers` is one answer: its HTTP
        /// status, then a pop receipt (or an error code, if the status is 400 or above), then its body.
        fn with_answers(answers: &[(u16, &'static str, &str)]) -> (Arc<Self>, AzureQueue) {
            let answer = |&(status, value, body): &(u16, &'static str, &str)| {
                let name = if status < 400 { "x-ms-popreceipt" } else { "x-ms-error-code" };
                HttpAnswer::new(status).with_header(name, value).with_body(body.to_owned())
            };
            let answers = Mutex::new(answers.iter().map(answer).collect());
            let service = Arc::new(Self { answers, asked: Mutex::default() });
            let key = STANDARD.encode([7; 32]);
            let options = AzureOptions::from_account_key("myaccount", &key).unwrap();
            let queue = AzureQueue::new(options.transport(service.clone()), "letters").unwrap();
            (service, queue)
        }

        /// Returns the requests since the last call.
        fn asked(&self) -> Vec<(String, String)> {
            assert_eq!(self.answers.lock().unwrap().len(), 0, "not all answers were asked for");
            std::mem::take(&mut self.asked.lock().unwrap())
        }

        fn lines(&self) -> Vec<String> {
            self.asked().into_iter().map(|(line, _)| line).collect()
        }
    }

    /// An answer with messages, each an id with a text, whose receipt is `r-` before the id.
    fn list(messages: &[(&str, &str)]) -> String {
        let one = |(id, text): &(&str, &str)| {
            format!(
                "<QueueMessage><MessageId>{id}</MessageId><PopReceipt>r-{id}</PopReceipt><DequeueCount>1</DequeueCount><MessageText>{text}</MessageText></QueueMessage>"
            )
        };
        let all: String = messages.iter().map(one).collect();
        format!("<QueueMessagesList>{all}</QueueMessagesList>")
    }

    fn message_text(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_counts_from_before_its_request() {
        let (service, queue) =
            Service::with_answers(&[(200, "", &list(&[("a", "plain")])), (204, "r-2", "")]);
        let began = Instant::now();
        let visibility = Duration::from_secs(60);
        let mut message = queue.receive(100, visibility).await.unwrap().pop().unwrap();
        assert_eq!(message.until(), began + visibility);
        let began = Instant::now();
        queue.extend(&mut message, Duration::from_millis(30_500), None).await.unwrap();
        assert_eq!(message.until(), began + Duration::from_millis(30_500));
        assert_eq!(id_and_receipt(&message), ("a", "r-2"));
        let asked = service.asked();
        assert_eq!(asked[0].0, "GET /letters/messages numofmessages=32&visibilitytimeout=60");
        assert_eq!(asked[1].0, "PUT /letters/messages/a popreceipt=r-a&visibilitytimeout=31");
        // Another program may read the text: it stays as that program wrote it.
        assert_eq!(asked[1].1, message_text("plain"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_body_of_a_plain_message_is_base64() {
        let text = STANDARD.encode("new");
        let (service, queue) = Service::with_answers(&[
            (200, "", &list(&[("a", "plain")])),
            (204, "r-2", ""),
            (204, "r-3", ""),
        ]);
        let second = Duration::from_secs(1);
        let mut message = queue.receive(1, second).await.unwrap().pop().unwrap();
        queue.extend(&mut message, second, Some("new")).await.unwrap();
        queue.extend(&mut message, second, None).await.unwrap();
        let asked = service.asked();
        assert_eq!((&*asked[1].1, &*asked[2].1), (&*message_text(&text), &*message_text(&text)));
        assert_eq!(asked[2].0, "PUT /letters/messages/a popreceipt=r-2&visibilitytimeout=1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_poison_message_is_held_then_added_then_deleted() {
        let put = list(&[("b", "")]);
        let (service, queue) = Service::with_answers(&[
            (204, "r-2", ""),
            (404, "QueueNotFound", ""),
            (201, "", ""),
            (201, "", &put),
            (204, "", ""),
        ]);
        let text = STANDARD.encode("{}");
        let message = came(&text);
        queue.poison(&message, "broken").await.unwrap();
        let asked = service.asked();
        let lines: Vec<_> = asked.iter().map(|(line, _)| &**line).collect();
        let add = "POST /letters-poison/messages messagettl=-1&visibilitytimeout=0";
        assert_eq!(
            lines,
            [
                "PUT /letters/messages/1 popreceipt=Yz%3D%3D&visibilitytimeout=30",
                add,
                "PUT /letters-poison",
                add,
                "DELETE /letters/messages/1 popreceipt=r-2",
            ]
        );
        assert_eq!(asked[3].1, message_text(&text));
    }

    #[tokio::test(start_paused = true)]
    async fn who_lost_a_message_changes_nothing() {
        for code in ["MessageNotFound", "PopReceiptMismatch", "QueueNotFound"] {
            let (service, queue) = Service::with_answers(&[(404, code, ""), (404, code, "")]);
            let message = came("plain");
            assert!(queue.poison(&message, "broken").await.unwrap_err().is_lease_lost());
            assert!(queue.delete(&message).await.unwrap_err().is_lease_lost());
            assert_eq!(service.lines().len(), 2, "{code}");
        }
        let (service, queue) = Service::with_answers(&[(403, "AuthenticationFailed", "")]);
        assert!(!queue.delete(&came("plain")).await.unwrap_err().is_lease_lost());
        assert_eq!(service.lines().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_put_back_before_it_is_no_longer_poison() {
        let (service, queue) = Service::with_answers(&[
            (200, "", &list(&[("a", "one"), ("b", "two")])),
            (200, "", &list(&[("a", "one"), ("b", "two")])),
            (201, "", &list(&[("c", "")])),
            (204, "", ""),
            (204, "r-3", ""),
        ]);
        let poison = queue.poisoned(5).await.unwrap().pop().unwrap();
        queue.requeue(&poison).await.unwrap();
        let asked = service.asked();
        let lines: Vec<_> = asked.iter().map(|(line, _)| &**line).collect();
        assert_eq!(
            lines,
            [
                "GET /letters-poison/messages peekonly=true&numofmessages=5",
                "GET /letters-poison/messages numofmessages=32&visibilitytimeout=30",
                "POST /letters/messages messagettl=-1&visibilitytimeout=0",
                "DELETE /letters-poison/messages/b popreceipt=r-b",
                // The other message is poison as before, for all who look.
                "PUT /letters-poison/messages/a popreceipt=r-a&visibilitytimeout=0",
            ]
        );
        assert_eq!((&*asked[2].1, &*asked[4].1), (&*message_text("two"), &*message_text("one")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_poison_message_that_is_gone_is_not_found() {
        let (service, queue) = Service::with_answers(&[
            (200, "", &list(&[("b", "two")])),
            (200, "", &list(&[("a", "one")])),
            (200, "", &list(&[])),
            (204, "r-3", ""),
        ]);
        let poison = queue.poisoned(5).await.unwrap().pop().unwrap();
        assert!(queue.requeue(&poison).await.unwrap_err().is_not_found());
        let back = "PUT /letters-poison/messages/a popreceipt=r-a&visibilitytimeout=0";
        assert_eq!(service.lines().last().unwrap(), back);
        let (_, queue) = Service::with_answers(&[(404, "QueueNotFound", "")]);
        assert_eq!(queue.receive(1, MOVE_TIMEOUT).await.unwrap().len(), 0);
    }

    fn came(text: &str) -> Received {
        let text = text.to_owned();
        let one = QueueMessage { id: "1".into(), receipt: "Yz==".into(), count: 1, text };
        received_message(one, Instant::now())
    }

    #[test]
    fn a_text_of_any_program_is_written_back_unchanged() {
        let texts = [
            STANDARD.encode("{}"),
            // From other programs: plain text, more than this crate sends, and bytes.
            r#"{"type":"Letter"}"#.to_owned(),
            "<>".repeat(MAX_TEXT / 2),
            STANDARD.encode([0xff, 0xfe, 0x00]),
        ];
        for text in texts {
            let message = came(&text);
            assert_eq!(original_text(&message).unwrap(), text);
            assert_eq!(id_and_receipt(&message), ("1", "Yz=="));
        }
        assert_eq!(came(&STANDARD.encode("{}")).body(), "{}");
    }
}
