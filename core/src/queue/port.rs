//! The trait that every queue implements.

use std::{fmt, sync::Arc, time::Duration};

use super::received::{Poison, Received};
use crate::{backend::BoxFuture, error::Result};

/// The properties of a queue implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCapabilities {
    /// The implementation's name, for error messages.
    pub name: &'static str,
    /// The most messages that one request receives.
    pub receive: usize,
    /// Whether the queue stores why a message became poison.
    pub keeps_reason: bool,
}

impl QueueCapabilities {
    /// Creates the capabilities of a queue that stores no reasons for poison. Implementations of
    /// [`Queue`] call this.
    pub const fn new(name: &'static str, receive: usize) -> Self {
        Self { name, receive, keeps_reason: false }
    }

    /// Says that the queue stores why messages became poison.
    #[must_use]
    pub const fn with_reasons(self) -> Self {
        Self { keeps_reason: true, ..self }
    }
}

/// The longest delay or visibility timeout of a message: 7 days.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A queue of texts: a receiver holds a message for a limited time and deletes it when done.
///
/// Implementations promise, and callers may rely on:
///
/// * Delivery is at least once and unordered. A message stays until it is deleted; it never expires.
/// * `receive` hides a message from other receivers for the visibility timeout, by the queue's own
///   clock. Then the message becomes visible to every receiver again. [`Received::until`] is the
///   receiver's safe estimate of that moment: it counts the timeout from before the request.
/// * The dequeue count is the number of times the message was received, including this time.
/// * `extend`, `delete` and `poison` succeed only for the message's last receiver, even after its timeout,
///   until another receiver gets the message. Others get `is_lease_lost`, and nothing changes.
/// * A queue without messages need not exist. The first message creates it.
/// * A change with an unknown outcome fails with `is_ambiguous`. A `send` may then have left one message or,
///   if it was repeated, two with the same [id](Received::id) or the same content.
/// * If you drop a future, its change may or may not take place.
///
/// ```
/// use std::time::Duration;
/// use entable_core::{Result, queue::Queue};
///
/// /// Prints the text of each message that is visible, and deletes it.
/// async fn print_all(queue: &dyn Queue) -> Result<()> {
///     loop {
///         let received = queue.receive(32, Duration::from_secs(30)).await?;
///         for message in &received {
///             println!("{} (delivery {})", message.body(), message.dequeue_count());
///             queue.delete(message).await?;
///         }
///         if received.is_empty() {
///             return Ok(());
///         }
///     }
/// }
/// ```
pub trait Queue: Send + Sync + fmt::Debug + 'static {
    /// Returns the queue's name.
    fn name(&self) -> &str;

    /// Returns the properties of this implementation.
    fn capabilities(&self) -> QueueCapabilities;

    /// Adds a message that becomes visible after `delay`, and returns its id. Fails with
    /// `is_too_large` for a body over the queue's limit, and with `is_invalid` for a delay longer
    /// than [`LONGEST`].
    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>>;

    /// Receives at most `most` messages, and hides each from other receivers for `visibility`. May
    /// return fewer, or none, while other receivers take messages. Fails with `is_invalid` for a
    /// `visibility` below one second or above [`LONGEST`].
    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>>;

    /// Hides a received message for `visibility` from now on, and replaces its body if one is given.
    /// A `visibility` of zero gives the message back: every receiver may receive it at once.
    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>>;

    /// Deletes a received message.
    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>>;

    /// Moves a received message to the poison messages, which are not received. The queue keeps its
    /// dequeue count, and `reason` if [`keeps_reason`](QueueCapabilities::keeps_reason) is set.
    fn poison<'a>(&'a self, message: &'a Received, reason: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Returns at most `most` poison messages.
    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>>;

    /// Makes a poison message visible again, with a dequeue count of zero. Fails with `is_not_found`
    /// if it is no longer among the poison messages.
    fn requeue<'a>(&'a self, poison: &'a Poison) -> BoxFuture<'a, Result<()>>;
}

#[deny(clippy::missing_trait_methods)]
impl<Q: Queue + ?Sized> Queue for Arc<Q> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn capabilities(&self) -> QueueCapabilities {
        (**self).capabilities()
    }

    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>> {
        (**self).send(body, delay)
    }

    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>> {
        (**self).receive(most, visibility)
    }

    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        (**self).extend(message, visibility, body)
    }

    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>> {
        (**self).delete(message)
    }

    fn poison<'a>(&'a self, message: &'a Received, reason: &'a str) -> BoxFuture<'a, Result<()>> {
        (**self).poison(message, reason)
    }

    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>> {
        (**self).poisoned(most)
    }

    fn requeue<'a>(&'a self, poison: &'a Poison) -> BoxFuture<'a, Result<()>> {
        (**self).requeue(poison)
    }
}
