//! The times of the outbox, and how much it does at once.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// How long the service may go on with a request that its client has given up.
pub(crate) const SERVER_LIMIT: Duration = Duration::from_secs(30);

/// How work in other partitions is done: times, and how much of it at once.
///
/// Every time but [`flight`](Self::flight) only decides when it is worth trying. All programs that
/// write the same tables have to have the same `flight`.
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
    pub(crate) poison_after: u32,
    pub(crate) claim: Duration,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self {
            flight: Self::FLIGHT,
            request_timeout: Self::REQUEST_TIMEOUT,
            grace: Self::GRACE,
            lease: Self::LEASE,
            background: Self::BACKGROUND,
            poison_after: Self::POISON_AFTER,
            claim: Self::CLAIM,
        }
    }
}

impl OutboxOptions {
    /// How long after the read or the write of a primary the rows that follow from it elsewhere may
    /// still be written: nobody does so later.
    pub const FLIGHT: Duration = Duration::from_secs(5 * 60);
    /// How long one request to another partition may take; it counts towards the flight.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
    /// How old open work is before a worker takes it: the writer itself is faster.
    pub const GRACE: Duration = Duration::from_secs(10);
    /// How long a partition is idle before it leaves the directory.
    pub const LEASE: Duration = Duration::from_secs(60);
    /// Writes whose copies elsewhere are written in the background at a time; those of others are
    /// left to a worker.
    pub const BACKGROUND: usize = 64;
    /// Failures for good after which work is put into the poison table.
    pub const POISON_AFTER: u32 = 5;
    /// How old a claim on a unique value in another partition is before a worker takes it for that
    /// of a writer that died.
    pub const CLAIM: Duration = Duration::from_secs(5 * 60);

    /// In place of [`FLIGHT`](Self::FLIGHT).
    #[must_use]
    pub fn flight(self, flight: Duration) -> Self {
        Self { flight, ..self }
    }

    /// In place of [`REQUEST_TIMEOUT`](Self::REQUEST_TIMEOUT).
    #[must_use]
    pub fn request_timeout(self, request_timeout: Duration) -> Self {
        Self { request_timeout, ..self }
    }

    /// In place of [`GRACE`](Self::GRACE).
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// In place of [`LEASE`](Self::LEASE).
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// In place of [`BACKGROUND`](Self::BACKGROUND); 0: all of it is left to workers.
    #[must_use]
    pub fn background(self, background: usize) -> Self {
        Self { background, ..self }
    }

    /// In place of [`POISON_AFTER`](Self::POISON_AFTER).
    #[must_use]
    pub fn poison_after(self, poison_after: u32) -> Self {
        Self { poison_after, ..self }
    }

    /// In place of [`CLAIM`](Self::CLAIM): a writer that is slower fails, with nothing written.
    #[must_use]
    pub fn claim(self, claim: Duration) -> Self {
        Self { claim, ..self }
    }

    pub(crate) fn checked(self) -> Result<Self> {
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
