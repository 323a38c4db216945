//! Defines the deadline of a write: the last moment at which the program may send it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    clock::Clock,
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    limits::saturating_i64,
    timers::instant_after,
};

/// The latest time that a write may be sent. It is checked on two clocks: the timers' clock stops while
/// the machine is suspended, and the wall clock can be set back.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use entable_core::{Deadline, SystemClock};
///
/// let deadline = Deadline::after(Duration::from_secs(60), Arc::new(SystemClock));
/// assert!(deadline.check().is_ok());
/// let over = Deadline::after(Duration::ZERO, Arc::new(SystemClock));
/// assert!(over.check().unwrap_err().is_contended());
/// ```
#[derive(Debug, Clone)]
pub struct Deadline {
    until: Instant,
    wall_until: Ticks,
    clock: Arc<dyn Clock>,
}

impl Deadline {
    /// Creates a deadline `time` from now.
    pub fn after(time: Duration, clock: Arc<dyn Clock>) -> Self {
        let ticks = saturating_i64(time.as_nanos() / 100);
        // The wall clock covers suspensions, during which the timers' clock stops.
        let wall_until = Ticks::new(clock.now().get().saturating_add(ticks)).unwrap_or(Ticks::MAX);
        Self { until: instant_after(Instant::now(), time), wall_until, clock }
    }

    /// Returns the deadline, or one that ends at `end` of the timers' clock if that is earlier.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use entable_core::{Deadline, SystemClock};
    /// use tokio::time::Instant;
    ///
    /// let deadline = Deadline::after(Duration::from_secs(60), Arc::new(SystemClock));
    /// let end = Instant::now();
    /// assert_eq!(deadline.capped_at(end).end_instant(), end);
    /// ```
    pub fn capped_at(self, end: Instant) -> Self {
        Self { until: self.until.min(end), ..self }
    }

    /// Returns the end of the deadline by the timers' clock.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use entable_core::{Deadline, SystemClock};
    /// use tokio::time::Instant;
    ///
    /// let deadline = Deadline::after(Duration::from_secs(60), Arc::new(SystemClock));
    /// assert!(deadline.end_instant() > Instant::now());
    /// ```
    pub fn end_instant(&self) -> Instant {
        self.until
    }

    /// Returns a deadline that passes when the first of the two passes, or `None` if both are `None`.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use entable_core::{Deadline, SystemClock};
    ///
    /// let deadline = Deadline::after(Duration::from_secs(60), Arc::new(SystemClock));
    /// let later = Deadline::after(Duration::from_secs(90), Arc::new(SystemClock));
    /// let earlier = Deadline::earlier_of(Some(&later), Some(&deadline));
    /// assert_eq!(earlier.map(|earlier| earlier.end_instant()), Some(deadline.end_instant()));
    /// ```
    pub fn earlier_of(one: Option<&Self>, other: Option<&Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other).cloned() };
        // Each end for itself: after a suspension, the deadline that ends first by the timers' clock may end
        // last by the wall clock.
        Some(Self {
            until: one.until.min(other.until),
            wall_until: one.wall_until.min(other.wall_until),
            clock: one.clock.clone(),
        })
    }

    /// Returns whether either clock has reached the deadline.
    pub fn is_over(&self) -> bool {
        // Either clock ends it: one stops during a suspension, the other can be set back.
        Instant::now() >= self.until || self.clock.now() >= self.wall_until
    }

    /// Fails if the deadline has passed.
    ///
    /// # Errors
    ///
    /// `is_contended`: what the write relies on may have changed since the deadline began.
    pub fn check(&self) -> Result<()> {
        if !self.is_over() {
            return Ok(());
        }
        let message =
            "too late to send the write: the read, lease or upload that it relies on is too old";
        Err(Error::new(ErrorKind::Contended, message))
    }
}
