//! Messages that a queue returns: received ones and poison.

use std::fmt;

use serde::Deserialize;
use tokio::time::Instant;

/// A received message, with the pop receipt that its receiver shows to the queue.
#[derive(Clone)]
pub struct Received {
    id: String,
    body: String,
    dequeue_count: u32,
    until: Instant,
    receipt: String,
}

impl Received {
    /// Creates a received message. Implementations of [`Queue`](super::Queue) call
    /// this: `until` counts from before the request was sent, and only the queue interprets
    /// `receipt`.
    pub fn new(
        id: impl Into<String>,
        body: impl Into<String>,
        dequeue_count: u32,
        until: Instant,
        receipt: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), body: body.into(), dequeue_count, until, receipt: receipt.into() }
    }

    /// Returns the message's id, which stays equal across deliveries.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the message's text.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Returns how often the message was received, including this time.
    pub fn dequeue_count(&self) -> u32 {
        self.dequeue_count
    }

    /// Returns until when no other receiver can hold the message, by this process's clock.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Returns the pop receipt, which proves to the queue that the receiver holds the message. It
    /// changes with each [`extend`](super::Queue::extend).
    pub fn receipt(&self) -> &str {
        &self.receipt
    }

    /// Updates the message after its queue extended it. Implementations of
    /// [`Queue`](super::Queue) call this.
    pub fn extended(&mut self, until: Instant, receipt: String, body: Option<&str>) {
        (self.until, self.receipt) = (until, receipt);
        if let Some(body) = body {
            body.clone_into(&mut self.body);
        }
    }
}

// Without the body, which may be private and does not belong in a log.
impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("id", &self.id)
            .field("dequeue_count", &self.dequeue_count)
            .finish_non_exhaustive()
    }
}

/// The member that every typed message has. `docs/queues.md` specifies the others.
#[derive(Deserialize)]
struct TypedMessage {
    #[serde(rename = "type")]
    message_type: String,
}

/// A poison message: it failed too often and is no longer received.
#[derive(Clone)]
pub struct Poison {
    id: String,
    body: String,
    dequeue_count: u32,
    reason: Option<String>,
    place: String,
}

impl Poison {
    /// Creates a poison message. Implementations of [`Queue`](super::Queue) call this;
    /// only the queue interprets `place`.
    pub fn new(
        id: impl Into<String>,
        body: impl Into<String>,
        dequeue_count: u32,
        reason: Option<String>,
        place: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), body: body.into(), dequeue_count, reason, place: place.into() }
    }

    /// Returns the message's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the message's text.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Returns the name of the message's type, if the body is the JSON object of a typed message: its member `type`.
    ///
    /// ```
    /// use entable_core::queue::Poison;
    ///
    /// let body = r#"{"type":"ArchiveEmployee","version":1,"body":{}}"#;
    /// let poison = Poison::new("7", body, 5, None, "");
    /// assert_eq!(poison.message().as_deref(), Some("ArchiveEmployee"));
    /// assert_eq!(Poison::new("8", "hello", 5, None, "").message(), None);
    /// ```
    pub fn message(&self) -> Option<String> {
        serde_json::from_str(&self.body).ok().map(|typed: TypedMessage| typed.message_type)
    }

    /// Returns how often the message was received before it became poison.
    pub fn dequeue_count(&self) -> u32 {
        self.dequeue_count
    }

    /// Returns why the message became poison, if the queue stores reasons.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns where the queue stores the message, in a form that only the queue interprets.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Debug for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poison")
            .field("id", &self.id)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}
