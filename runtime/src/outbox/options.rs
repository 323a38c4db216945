//! Options of the outbox: its times, how much work it does at once, and how often a write is tried.

use std::time::Duration;

use crate::{
    error::{Error, ErrorKind, Result},
    store::backoff,
};

/// The time for which the service may go on with a request after its client gave the request up.
pub(crate) const SERVER_LIMIT: Duration = Duration::from_secs(30);

/// Options for the work in other partitions: its times, and how much of it is done at once.
///
/// All programs that write the same tables must have the same [`flight`](Self::flight). Every other
/// time only decides when work is tried or given up: a wrong one costs requests, never data.
///
/// ```
/// use std::time::Duration;
/// use entable::{OutboxOptions, prelude::*};
///
/// let options = OutboxOptions::default().grace(Duration::from_secs(30)).background(16);
/// let client = Client::builder()
///     .backend(entable::backend::Memory::new())
///     .outbox(options)
///     .build()?;
/// # let _ = client;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OutboxOptions {
    pub(crate) flight: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) lease: Duration,
    pub(crate) background: usize,
    /// Overrides whether a write waits for its remote copies; `None` waits where `is_exclusive` is
    /// true.
    pub(crate) copies_before_answer: Option<bool>,
    /// Whether the store belongs to this process alone. The outbox sets it from the backend's
    /// capabilities.
    pub(crate) is_exclusive: bool,
    pub(crate) poison_after: u32,
    pub(crate) claim: Duration,
    pub(crate) attempts: u32,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self {
            flight: Self::FLIGHT,
            request_timeout: Self::REQUEST_TIMEOUT,
            grace: Self::GRACE,
            lease: Self::LEASE,
            background: Self::BACKGROUND,
            copies_before_answer: None,
            is_exclusive: false,
            poison_after: Self::POISON_AFTER,
            claim: Self::CLAIM,
            attempts: Self::ATTEMPTS,
        }
    }
}

impl OutboxOptions {
    /// Default of [`flight`](Self::flight): 5 minutes.
    pub const FLIGHT: Duration = Duration::from_secs(5 * 60);
    /// Default of [`request_timeout`](Self::request_timeout): 60 s.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
    /// Default of [`grace`](Self::grace): 10 s.
    pub const GRACE: Duration = Duration::from_secs(10);
    /// Default of [`lease`](Self::lease): 60 s.
    pub const LEASE: Duration = Duration::from_secs(60);
    /// Default of [`background`](Self::background): 64.
    pub const BACKGROUND: usize = 64;
    /// Default of [`poison_after`](Self::poison_after): 5.
    pub const POISON_AFTER: u32 = 5;
    /// Default of [`claim`](Self::claim): 5 minutes.
    pub const CLAIM: Duration = Duration::from_secs(5 * 60);
    /// Default of [`attempts`](Self::attempts): 16.
    pub const ATTEMPTS: u32 = backoff::ATTEMPTS;

    /// Sets how long after the read or the commit of an entity its remote copies may still be written:
    /// 5 minutes by default. Every client gives later writes up, and leaves them to a worker.
    ///
    /// Must be longer than the sum of the request timeout and 30 s, the time for which the service
    /// may go on with a request. Otherwise no client can be built with these options.
    #[must_use]
    pub fn flight(self, flight: Duration) -> Self {
        Self { flight, ..self }
    }

    /// Sets how long one request to another partition may take: 60 s by default. It counts towards the
    /// flight.
    #[must_use]
    pub fn request_timeout(self, request_timeout: Duration) -> Self {
        Self { request_timeout, ..self }
    }

    /// Sets how old open work is before a worker takes it: 10 s by default. The writer itself has
    /// finished most work by then.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets how long a partition has no open work before it leaves the directory: 60 s by default.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets how many writes may have their remote copies written in the background at a time: 64 by
    /// default. The copies of further writes are left to workers; with 0, those of all writes.
    #[must_use]
    pub fn background(self, background: usize) -> Self {
        Self { background, ..self }
    }

    /// Sets whether a write returns only when its remote copies and lists are written too, or have been
    /// left to a worker. By default it does where the backend's
    /// [`exclusive`](crate::backend::Capabilities::exclusive) is `true` (memory and the embedded store),
    /// and returns right after its commit on the service.
    ///
    /// ```
    /// use entable::{OutboxOptions, backend::Memory, prelude::*};
    ///
    /// let outbox = OutboxOptions::default().copies_before_answer(false); // as on the service
    /// let client = Client::builder().backend(Memory::new()).outbox(outbox).build()?;
    /// # let _ = client;
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn copies_before_answer(self, before: bool) -> Self {
        Self { copies_before_answer: Some(before), ..self }
    }

    /// Sets after how many permanent failures, which another attempt cannot cure, work is put into the
    /// poison table: 5 by default.
    #[must_use]
    pub fn poison_after(self, poison_after: u32) -> Self {
        Self { poison_after, ..self }
    }

    /// Sets how old a claim on a unique remote key is before a worker takes its writer for dead: 5
    /// minutes by default. A writer that is slower fails, with nothing written.
    #[must_use]
    pub fn claim(self, claim: Duration) -> Self {
        Self { claim, ..self }
    }

    /// Sets how often a write that reads first, such as `update`, is tried while writers of other
    /// clients are faster: 16 by default, at least 1. Then it fails with `is_contended`. Writers of one
    /// client wait for each other instead.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// Returns the options. Fails with `Invalid` if the flight is not longer than a request may
    /// take.
    pub(crate) fn checked(self) -> Result<Self> {
        // A request that begins at the last moment may run for its timeout, and the service may go on
        // with it for longer.
        let least = self.request_timeout.saturating_add(SERVER_LIMIT);
        if self.flight > least {
            return Ok(self);
        }
        let message = format!(
            "a flight of {:?} leaves no time: a request may take {:?}, and the service {SERVER_LIMIT:?} more",
            self.flight, self.request_timeout
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}
