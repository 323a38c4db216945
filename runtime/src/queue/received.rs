//! Messages as they come out of a queue.

use std::fmt;

use tokio::time::Instant;

/// A message that was received, and what proves it to the queue.
#[derive(Clone)]
pub struct Received {
    id: String,
    body: String,
    dequeue_count: u32,
    until: Instant,
    receipt: String,
}

impl Received {
    /// A message as a queue hands it out: for implementations of [`Queue`](crate::queue::Queue). `until` is
    /// counted from before the request; `receipt` is the queue's own.
    pub fn new(
        id: impl Into<String>,
        body: impl Into<String>,
        dequeue_count: u32,
        until: Instant,
        receipt: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), body: body.into(), dequeue_count, until, receipt: receipt.into() }
    }

    /// Its id, the same each time that it is received.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// How often it was received, this time included.
    pub fn dequeue_count(&self) -> u32 {
        self.dequeue_count
    }

    /// Until when nobody else has it, by this process's own clock.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// What proves to the queue that one has it: another one after each
    /// [`extend`](crate::queue::Queue).
    pub fn receipt(&self) -> &str {
        &self.receipt
    }

    /// The message after it was extended: for implementations of [`Queue`](crate::queue::Queue).
    pub fn extended(&mut self, until: Instant, receipt: String, body: Option<&str>) {
        (self.until, self.receipt) = (until, receipt);
        if let Some(body) = body {
            body.clone_into(&mut self.body);
        }
    }
}

/// What is in a body is the program's own business, and in no log.
impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("id", &self.id)
            .field("dequeue_count", &self.dequeue_count)
            .finish_non_exhaustive()
    }
}

/// A message that was put aside.
#[derive(Clone)]
pub struct Poison {
    id: String,
    body: String,
    dequeue_count: u32,
    reason: Option<String>,
    place: String,
}

impl Poison {
    /// A message that was put aside: for implementations of [`Queue`](crate::queue::Queue); `place` is the
    /// queue's own.
    pub fn new(
        id: impl Into<String>,
        body: impl Into<String>,
        dequeue_count: u32,
        reason: Option<String>,
        place: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), body: body.into(), dequeue_count, reason, place: place.into() }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// How often it was received before it was put aside.
    pub fn dequeue_count(&self) -> u32 {
        self.dequeue_count
    }

    /// Why it was put aside, where the queue keeps that.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Where it is, in the queue's own words.
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
