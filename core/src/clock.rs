//! Defines the clocks that stores take Timestamps from, including one that tests control.

use std::{
    fmt,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use time::OffsetDateTime;

use crate::{edm::Ticks, limits::saturating_i64};

/// A source of the current time. Stores take Timestamps from it.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Returns the current time in ticks of 100 ns.
    fn now(&self) -> Ticks;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Ticks {
        Ticks::try_from(OffsetDateTime::now_utc()).unwrap_or(Ticks::UNIX_EPOCH)
    }
}

/// A clock for tests. It moves only when [`advance`](Self::advance) is called.
///
/// ```
/// use entable_core::{Clock, SteppedClock, Ticks};
///
/// let clock = SteppedClock::new(Ticks::UNIX_EPOCH);
/// clock.advance(std::time::Duration::from_secs(1));
/// assert_eq!(clock.now().get() - Ticks::UNIX_EPOCH.get(), 10_000_000);
/// ```
#[derive(Debug)]
pub struct SteppedClock(AtomicI64);

impl SteppedClock {
    /// Creates a clock that shows `start`.
    pub fn new(start: Ticks) -> Self {
        Self(AtomicI64::new(start.get()))
    }

    /// Moves the clock forward by a duration cut to 100 ns, but not past [`Ticks::MAX`].
    pub fn advance(&self, by: Duration) {
        let by = saturating_i64(by.as_nanos() / 100);
        let later = |now: i64| Some(now.saturating_add(by).min(Ticks::MAX.get()));
        // The closure always returns `Some`, so the update cannot fail.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.load(Ordering::SeqCst)).unwrap_or(Ticks::MAX)
    }
}
