//! The port of a queue: texts that wait, are received for a while, and are deleted.

use std::{fmt, sync::Arc, time::Duration};

use super::received::{Poison, Received};
use crate::{
    backend::BoxFuture,
    error::{Error, ErrorKind, Result},
};

/// What a queue can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCapabilities {
    /// What it is called in messages.
    pub name: &'static str,
    /// Messages that one request receives at most.
    pub receive: usize,
    /// Whether a poison message keeps why it was put aside.
    pub keeps_reason: bool,
}

impl QueueCapabilities {
    /// The capabilities of a queue that keeps no reasons: for implementations of [`Queue`].
    pub const fn new(name: &'static str, receive: usize) -> Self {
        Self { name, receive, keeps_reason: false }
    }

    /// The same for one that keeps why messages were put aside.
    #[must_use]
    pub const fn with_reasons(self) -> Self {
        Self { keeps_reason: true, ..self }
    }
}

/// The longest time that a message may be hidden for: when it is sent, received or extended.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Characters of a queue's name ("Naming queues and metadata").
const NAME: (usize, usize) = (3, 63);

/// A queue: texts that wait, are received for a while, and are deleted by whoever received them
/// last.
///
/// The contract, for implementations and for callers:
///
/// * Delivery is at least once and in no order. A message stays until it is deleted, for however
///   long; none is ever dropped.
/// * `receive` hides a message for the visibility timeout, by the queue's own clock: until then
///   nobody else gets it. Whoever got it has it until [`Received::until`], which is earlier by the time
///   that the request took. Then it is visible again, to be received by anybody.
/// * The dequeue count is how often a message was received, the time at hand included.
/// * `extend`, `delete` and `poison` take effect only for the receiver that has the message: anybody
///   else is told `is_lease_lost`, and nothing changed. So is a receiver whose time is over as soon
///   as another one took the message; before, it still has it.
/// * A queue that is not there is empty, and comes into being with the first message.
/// * A change whose outcome is unknown is `is_ambiguous`. A `send` may then have left a message, one
///   or, where it was made again, two of the same [id](Received::id) or content.
/// * A future that is dropped may or may not have changed something.
///
/// ```
/// use std::time::Duration;
/// use entable::{Client, Queue};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// let queue = client.queue("letters");
/// let queue = queue.port();
/// queue.send("hello", Duration::ZERO).await?;
/// let received = queue.receive(1, Duration::from_secs(30)).await?;
/// assert_eq!((received[0].body(), received[0].dequeue_count()), ("hello", 1));
/// queue.delete(&received[0]).await?;
/// assert!(queue.delete(&received[0]).await.unwrap_err().is_lease_lost());
/// # Ok::<(), entable::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Queue: Send + Sync + fmt::Debug + 'static {
    /// Its name.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> QueueCapabilities;

    /// Adds a message that is visible after `delay`; its id. `is_too_large` for a body over the
    /// queue's limit, `is_invalid` for a delay of more than [`LONGEST`].
    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>>;

    /// At most so many messages, each hidden from others for `visibility`; fewer or none where there
    /// are no more, or others were first. `is_invalid` for less than a second or more than
    /// [`LONGEST`].
    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>>;

    /// Hides a message for `visibility` from now on, and changes its body where one is given. With no
    /// time at all it is given back: anybody may receive it at once.
    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>>;

    /// Removes a message for good.
    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>>;

    /// Puts a message aside: nobody receives it any more, and it is kept with its dequeue count, and
    /// with the reason where [`keeps_reason`](QueueCapabilities::keeps_reason) says so.
    fn poison<'a>(&'a self, message: &'a Received, reason: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Messages that were put aside, at most so many.
    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>>;

    /// Makes a message that was put aside visible again, with a dequeue count that begins anew;
    /// `is_not_found` where it is not among those put aside any more.
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

/// Refuses a name that the service refuses for a queue.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let (least, most) = NAME;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_shaped = name.chars().all(|c| is_plain(c) || c == '-')
        && name.starts_with(is_plain)
        && name.ends_with(is_plain)
        && !name.contains("--");
    if is_shaped && (least..=most).contains(&name.len()) {
        return Ok(());
    }
    let message = format!(
        "`{}` is no name of a queue: {least} to {most} lower-case letters, digits and single hyphens between them",
        name.escape_debug()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Refuses a time that no message is hidden for.
pub(crate) fn check_time(what: &str, least: Duration, time: Duration) -> Result<()> {
    if (least..=LONGEST).contains(&time) {
        return Ok(());
    }
    let message = format!("{what} of {time:?} is not between {least:?} and 7 days");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The error of whoever does not have the message any more.
pub(crate) fn lease_lost(id: &str) -> Error {
    let message = format!(
        "the message `{}` is not this receiver's any more: its visibility timeout is over, or it was deleted",
        id.escape_debug()
    );
    Error::new(ErrorKind::LeaseLost, message)
}
