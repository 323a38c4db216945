//! Options of the outbox: its times, how much work it does concurrently and before it answers, how often a write is
//! tried, and after how many failures a message is put aside.

use std::time::Duration;

use crate::{
    error::{Error, ErrorKind, Result},
    store::backoff,
};

/// How long the service may continue with a request after the client has given it up.
pub(crate) const SERVER_LIMIT: Duration = Duration::from_secs(30);

/// Options for work in other partitions: times, and how much work is done concurrently.
///
/// All programs that write the same tables must have the same [`write_deadline`](Self::write_deadline). Other times only decide
/// when work is tried or given up. A poor choice costs requests, but never data.
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
    pub(crate) write_deadline: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) close_idle_after: Duration,
    pub(crate) background: usize,
    /// Overrides whether a write waits for its remote copies. If `None`, it waits if `is_exclusive` is `true`.
    pub(crate) copies_before_answer: Option<bool>,
    /// Whether the store belongs to this process alone. The outbox sets it from the backend's capabilities.
    pub(crate) is_exclusive: bool,
    pub(crate) poison_after: u32,
    pub(crate) claim_time: Duration,
    pub(crate) attempts: u32,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self {
            write_deadline: Self::WRITE_DEADLINE,
            request_timeout: Self::REQUEST_TIMEOUT,
            grace: Self::GRACE,
            close_idle_after: Self::CLOSE_IDLE_AFTER,
            background: Self::BACKGROUND,
            copies_before_answer: None,
            is_exclusive: false,
            poison_after: Self::POISON_AFTER,
            claim_time: Self::CLAIM_TIME,
            attempts: Self::ATTEMPTS,
        }
    }
}

impl OutboxOptions {
    /// The default of [`write_deadline`](Self::write_deadline): 5 minutes.
    pub const WRITE_DEADLINE: Duration = Duration::from_secs(5 * 60);
    /// The default of [`request_timeout`](Self::request_timeout): 60 s.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
    /// The default of [`grace`](Self::grace): 10 s.
    pub const GRACE: Duration = Duration::from_secs(10);
    /// The default of [`close_idle_after`](Self::close_idle_after): 60 s.
    pub const CLOSE_IDLE_AFTER: Duration = Duration::from_secs(60);
    /// The default of [`background`](Self::background): 64.
    pub const BACKGROUND: usize = 64;
    /// The default of [`poison_after`](Self::poison_after): 5.
    pub const POISON_AFTER: u32 = 5;
    /// The default of [`claim_time`](Self::claim_time): 5 minutes.
    pub const CLAIM_TIME: Duration = Duration::from_secs(5 * 60);
    /// The default of [`attempts`](Self::attempts): 16.
    pub const ATTEMPTS: u32 = backoff::ATTEMPTS;

    /// Sets how long a client may write the remote copies of an entity, counted from just before it commits or reads
    /// the entity's primary. The default is 5 minutes. The client does not send a write that could end later, but
    /// leaves it to a worker.
    ///
    /// Must be longer than the request timeout plus 30 s, the time for which the service may continue with a request.
    /// Otherwise no client can be built with these options.
    #[must_use]
    pub fn write_deadline(self, write_deadline: Duration) -> Self {
        Self { write_deadline, ..self }
    }

    /// Sets how long one request to another partition may take. The default is 60 s. It counts towards the write
    /// deadline.
    #[must_use]
    pub fn request_timeout(self, request_timeout: Duration) -> Self {
        Self { request_timeout, ..self }
    }

    /// Sets how old open work must be before a worker takes it. The default is 10 s. The writer itself has usually
    /// finished it by then.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets how long a partition must have no open work before it leaves the directory. The default is 60 s.
    #[must_use]
    pub fn close_idle_after(self, close_idle_after: Duration) -> Self {
        Self { close_idle_after, ..self }
    }

    /// Sets how many writes may have their remote copies written in the background at the same time. The default is
    /// 64. Copies of further writes are left to workers. With 0, all copies are left to workers.
    #[must_use]
    pub fn background(self, background: usize) -> Self {
        Self { background, ..self }
    }

    /// Sets whether a write returns only when its remote copies and lists are written or left to a worker. By default
    /// this is so if the backend's [`exclusive`](crate::backend::Capabilities::exclusive) is `true` (memory and the
    /// embedded store). On the service, a write returns right after its commit.
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

    /// Sets after how many permanent failures work is moved to the poison table. The default is 5.
    #[must_use]
    pub fn poison_after(self, poison_after: u32) -> Self {
        Self { poison_after, ..self }
    }

    /// Sets how old a claim on a unique remote key must be before a worker considers its writer dead. The default is 5
    /// minutes. A slower writer fails and writes nothing.
    #[must_use]
    pub fn claim_time(self, claim_time: Duration) -> Self {
        Self { claim_time, ..self }
    }

    /// Sets how often a write that reads first, such as `update`, is tried while writers of other clients are faster.
    /// The default is 16, the minimum 1. Then the write fails with `is_contended`. Writers of one client wait for each
    /// other instead.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// Returns the options. Fails with `is_invalid` unless the write deadline is longer than a request may take.
    pub(crate) fn checked(self) -> Result<Self> {
        // A request that begins at the last moment may run until its timeout, and the service may continue with
        // it for longer.
        let least = self.request_timeout.saturating_add(SERVER_LIMIT);
        if self.write_deadline > least {
            return Ok(self);
        }
        let message = format!(
            "a write deadline of {:?} leaves no time: a request may take {:?}, and the service {SERVER_LIMIT:?} more",
            self.write_deadline, self.request_timeout
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}
