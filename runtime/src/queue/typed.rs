//! Typed messages through any queue.

use std::{fmt, sync::Arc, time::Duration};

use super::{Poison, Queue, envelope::Envelope};
use crate::{
    authentic::{MessageAuthenticity, WorkAuthenticity, WorkCodes, WorkRefusal},
    clock::{Clock, SystemClock},
    entity::Message,
    error::{Error, Result, SealFault},
    random::RandomSource,
};

/// A queue of typed messages: types that derive [`Message`](macro@crate::Message).
///
/// Clones are cheap. [`Client::queue`](crate::Client::queue) keeps the messages in the client's own store;
/// [`over`](Self::over) accepts any [`Queue`]. [`Worker::queue`](crate::Worker) delivers the messages to
/// handlers.
///
/// ```
/// use entable::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[table(name = "ArchiveEmployee", version = 1)]
/// struct ArchiveEmployee { department: String, id: u32 }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// let queue = client.queue("archive");
/// queue.send(&ArchiveEmployee { department: "Sales".into(), id: 456 }).await?;
///
/// let worker = client.worker().queue(&queue).on(|cx, message: ArchiveEmployee| async move {
///     assert_eq!((message.id, cx.attempts()), (456, 1));
///     Ok(())
/// });
/// assert_eq!(worker.drain().await?.applied, 1);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MessageQueue {
    port: Arc<dyn Queue>,
    random: Arc<RandomSource>,
    /// Signs the messages that are sent.
    codes: WorkCodes,
    clock: Arc<dyn Clock>,
}

impl MessageQueue {
    /// Sends and receives typed messages through `queue`, without keys. Messages are sent unsigned. Workers with
    /// keys refuse them unless their type is declared `unauthenticated`. Use
    /// [`Client::queue_over`](crate::Client::queue_over) to sign with the keys of a client.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let queue = entable::MessageQueue::over(Client::memory().table_queue("welcome"));
    /// assert_eq!(queue.name(), "welcome");
    /// # Ok(())
    /// # }
    /// ```
    pub fn over(queue: impl Queue) -> Self {
        let clock = Arc::new(SystemClock);
        Self::over_with_codes(Arc::new(queue), RandomSource::default(), WorkCodes::default(), clock)
    }

    /// Sends and receives typed messages through `port`, with ids from `random`. Messages are signed with the
    /// keys in `codes`, if there are any.
    pub(crate) fn over_with_codes(
        port: Arc<dyn Queue>,
        random: RandomSource,
        codes: WorkCodes,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { port, random: Arc::new(random), codes, clock }
    }

    /// Returns the underlying queue, which transports plain texts.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let queue = Client::memory().queue("welcome");
    /// assert!(queue.port().poisoned(10).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn port(&self) -> &Arc<dyn Queue> {
        &self.port
    }

    /// Returns the queue's name.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(Client::memory().queue("archive").name(), "archive");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        self.port.name()
    }

    /// Adds a message and returns its id, which handlers see on every delivery.
    ///
    /// # Errors
    ///
    /// * `is_too_large` if the message exceeds the queue's limit;
    /// * `is_invalid` if the message cannot be written as JSON;
    /// * `is_ambiguous` if the answer was lost and the queue may hold the message;
    /// * `is_key_unavailable` if the message has to be signed and there is no key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # #[derive(serde::Serialize, serde::Deserialize, Message)]
    /// # struct Welcome { id: u32 }
    /// let queue = Client::memory().queue("welcome");
    /// let id = queue.send(&Welcome { id: 8 }).await?;
    /// assert_eq!(id.len(), 24);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send<M: Message>(&self, message: &M) -> Result<String> {
        self.send_after(message, Duration::ZERO).await
    }

    /// Adds a message that becomes visible after `delay`, and returns its id.
    ///
    /// # Errors
    ///
    /// The errors of [`send`](Self::send), and `is_invalid` for a delay longer than
    /// [`LONGEST`](crate::queue::LONGEST).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # #[derive(serde::Serialize, serde::Deserialize, Message)]
    /// # struct Welcome { id: u32 }
    /// let client = Client::memory();
    /// let queue = client.queue("welcome");
    /// queue.send_after(&Welcome { id: 8 }, std::time::Duration::from_secs(60)).await?;
    /// assert_eq!(client.worker().queue(&queue).drain().await?.received, 0, "not yet");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_after<M: Message>(&self, message: &M, delay: Duration) -> Result<String> {
        self.codes.check_can_sign_message(M::NAME, M::AUTHENTICITY)?;
        // An id of our own: the queue's may change when a message is moved or sent again.
        let envelope = Envelope::wrap_message(self.random.random_id(), message, self.clock.now())?;
        let must = self.codes.requires_code_for_message(M::AUTHENTICITY);
        let work = envelope.work_covered_by_code(self.name(), &envelope.id);
        // The queue's name is part of the code: a copy of the message in another queue fails to
        // verify.
        let code = self.codes.sign_work(None, &work, must).await?;
        let envelope = envelope.with_code(code);
        self.port.send(&envelope.padded_text()?, delay).await?;
        Ok(envelope.id)
    }

    /// Returns at most `most` poison messages: messages that a receiver put aside, such as a worker after
    /// [`poison_after`](crate::OutboxOptions::poison_after) failures of the handler.
    ///
    /// # Errors
    ///
    /// The errors of the underlying [`Queue`], such as `is_denied` if the service refuses the credentials.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert!(Client::memory().queue("archive").poisoned(10).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poisoned(&self, most: usize) -> Result<Vec<Poison>> {
        self.port.poisoned(most).await
    }

    /// Returns whether somebody with the keys sent a poison message to this queue. For a message without a code,
    /// returns `Unverified` if the client requires codes, since only the message's type decides whether it needs
    /// one. Otherwise returns `Unsigned`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # use std::time::Duration;
    /// # let queue = Client::memory().queue("welcome");
    /// queue.port().send("{}", Duration::ZERO).await?;
    /// let received = queue.port().receive(1, Duration::from_secs(60)).await?;
    /// queue.port().poison(&received[0], "no handler takes it").await?;
    ///
    /// let poison = queue.poisoned(10).await?;
    /// let authenticity = queue.authenticity(&poison[0]).await;
    /// assert_eq!(authenticity, entable::WorkAuthenticity::Unverified, "it is no message");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn authenticity(&self, poison: &Poison) -> WorkAuthenticity {
        self.verify_poison(poison).await.unwrap_or(WorkAuthenticity::Unverified)
    }

    async fn verify_poison(&self, poison: &Poison) -> Result<WorkAuthenticity> {
        // A text of another program, which nobody signs.
        let Ok(envelope) = Envelope::parse(poison.body()) else {
            return Ok(WorkAuthenticity::Unverified);
        };
        let Some(code) = envelope.authenticity_code() else {
            // Only the message's type decides whether it needs a code, and types are unknown here.
            return Ok(if self.codes.requires_code_for_message(MessageAuthenticity::ByClient) {
                WorkAuthenticity::Unverified
            } else {
                WorkAuthenticity::Unsigned
            });
        };
        if !self.codes.has_keys() {
            return Ok(WorkAuthenticity::Unverified);
        }
        let work = envelope.work_covered_by_code(self.name(), &envelope.id);
        match self.codes.verify_work(None, &work, Some(&code), true).await {
            Ok(()) => Ok(WorkAuthenticity::Authentic),
            Err(WorkRefusal::NotAuthentic) => Ok(WorkAuthenticity::NotAuthentic),
            Err(WorkRefusal::Counts(error) | WorkRefusal::Passes(error)) => Err(error),
        }
    }

    /// Makes a poison message visible again, with a dequeue count of zero. A client with keys verifies its
    /// code first, if it has one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// use std::time::Duration;
    ///
    /// let queue = Client::memory().queue("welcome");
    /// // Below the typed messages the queue moves texts.
    /// queue.port().send("{}", Duration::ZERO).await?;
    /// let received = queue.port().receive(1, Duration::from_secs(60)).await?;
    /// queue.port().poison(&received[0], "no handler takes it").await?;
    ///
    /// let poison = queue.poisoned(10).await?;
    /// queue.requeue(&poison[0]).await?;
    /// assert!(queue.poisoned(10).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `is_not_found` if it is no longer among the poison messages; `is_decrypt` for a wrong code, and the
    /// error of the key store if its key cannot be had.
    pub async fn requeue(&self, poison: &Poison) -> Result<()> {
        if self.verify_poison(poison).await? == WorkAuthenticity::NotAuthentic {
            let message = format!(
                "the message is not authentic: no holder of the keys sent this content to the queue `{}`",
                self.name().escape_debug()
            );
            return Err(Error::seal(SealFault::Authentication, message));
        }
        self.port.requeue(poison).await
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageQueue").field("port", &self.port).finish_non_exhaustive()
    }
}
