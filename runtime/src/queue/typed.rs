//! Messages of the program's own types, through any queue.

use std::{fmt, sync::Arc, time::Duration};

use super::{envelope::Envelope, port::Queue, received::Poison};
use crate::{entity::Message, error::Result, random::RandomSource};

/// A queue of the program's own messages: types that derive [`Message`](macro@crate::Message).
///
/// Cheap to clone. [`Client::queue`](crate::Client::queue) has its messages in the client's own
/// store, [`over`](Self::over) in any [`Queue`]. [`Worker::queue`](crate::Worker) hands them to
/// the program's functions.
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
}

impl MessageQueue {
    /// Messages through that queue.
    pub fn over(queue: impl Queue) -> Self {
        Self::of(Arc::new(queue), RandomSource::default())
    }

    pub(crate) fn of(port: Arc<dyn Queue>, random: RandomSource) -> Self {
        Self { port, random: Arc::new(random) }
    }

    /// The queue itself, for texts of one's own.
    pub fn port(&self) -> &Arc<dyn Queue> {
        &self.port
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.port.name()
    }

    /// Adds a message; the id under which handlers get it, which is the same each time.
    ///
    /// # Errors
    ///
    /// `is_too_large` for a message over the queue's limit, `is_invalid` for one that cannot be JSON;
    /// `is_ambiguous` where the message may be there.
    pub async fn send<M: Message>(&self, message: &M) -> Result<String> {
        self.send_after(message, Duration::ZERO).await
    }

    /// Adds a message that nobody gets before some time is over.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); `is_invalid` for more than [`LONGEST`](crate::queue::LONGEST).
    pub async fn send_after<M: Message>(&self, message: &M, delay: Duration) -> Result<String> {
        let envelope = Envelope::of(self.random.id(), message)?;
        self.port.send(&envelope.sent()?, delay).await?;
        Ok(envelope.id)
    }

    /// Messages that were put aside because their handlers kept failing, at most so many.
    ///
    /// # Errors
    ///
    /// The queue's.
    pub async fn poisoned(&self, most: usize) -> Result<Vec<Poison>> {
        self.port.poisoned(most).await
    }

    /// Puts a message back that was put aside; its deliveries are counted anew.
    ///
    /// # Errors
    ///
    /// `is_not_found` where it is not among those put aside any more.
    pub async fn requeue(&self, poison: &Poison) -> Result<()> {
        self.port.requeue(poison).await
    }
}

impl Poison {
    /// The name of the message, where it is one of a [`MessageQueue`].
    pub fn message(&self) -> Option<String> {
        Envelope::parse(self.body()).ok().map(|envelope| envelope.name)
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageQueue").field("port", &self.port).finish_non_exhaustive()
    }
}
