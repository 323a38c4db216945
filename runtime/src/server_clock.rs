//! An estimate of the store's time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{clock::Clock, edm::Ticks, limits::saturating_i64};

/// The resolution of the date in an answer of the store, in ticks.
const DATE_RESOLUTION: i64 = Ticks::PER_SECOND;

/// An estimate of the store's time: the client's clock, corrected by the dates of the store's answers.
#[derive(Debug)]
pub(crate) struct ServerClock {
    clock: Arc<dyn Clock>,
    /// The ticks that the store's clock is ahead of the client's, or `None` before the first answer.
    offset: Mutex<Option<i64>>,
}

impl ServerClock {
    /// Creates an estimate that equals the client's clock until an answer corrects it.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, offset: Mutex::new(None) }
    }

    /// Returns whether an answer of the store has corrected or confirmed the clock.
    pub(crate) fn is_known(&self) -> bool {
        self.offset.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the uncorrected time of the client's clock, in ticks.
    pub(crate) fn local_ticks(&self) -> i64 {
        self.clock.now().get()
    }

    /// Returns the estimate of the store's time.
    pub(crate) fn now(&self) -> Ticks {
        let offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(0);
        Ticks::new(self.local_ticks().saturating_add(offset).max(0)).unwrap_or(Ticks::MAX)
    }

    /// Accepts the client's clock as it is, because the store's answers carry no date.
    pub(crate) fn accept_local_time(&self) {
        // A date that came earlier is the better source.
        self.offset.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(0);
    }

    /// Corrects the clock by the date of an answer to a request that was sent at `sent` (local ticks).
    pub(crate) fn correct_by_date(&self, date: Ticks, sent: i64) {
        // The date has whole seconds and its request took a while, so it only gives a range of offsets. A known
        // offset within the range is kept, because the date is not more exact.
        let least = date.get().saturating_sub(self.local_ticks());
        let most = date.get().saturating_sub(sent).saturating_add(DATE_RESOLUTION);
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        let known = offset.unwrap_or(0);
        let agrees = least <= known && known <= most;
        *offset = Some(if agrees { known } else { least });
    }
}

/// Returns the time that is `wait` later than `now`.
pub(crate) fn later_time(now: Ticks, wait: Duration) -> Ticks {
    Ticks::new(now.get().saturating_add(duration_ticks(wait))).unwrap_or(Ticks::MAX)
}

/// Returns the time that is `wait` earlier than `now`.
pub(crate) fn earlier_time(now: Ticks, wait: Duration) -> Ticks {
    let ticks = now.get().saturating_sub(duration_ticks(wait)).max(0);
    Ticks::new(ticks).unwrap_or(Ticks::MIN)
}

/// Returns a duration in ticks of 100 ns.
pub(crate) fn duration_ticks(wait: Duration) -> i64 {
    saturating_i64(wait.as_nanos() / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SteppedClock;

    fn at(seconds: i64) -> Ticks {
        Ticks::new(630_000_000_000_000_000 + seconds * Ticks::PER_SECOND).unwrap()
    }

    #[test]
    fn a_clock_that_agrees_with_the_store_is_kept() {
        let clock = Arc::new(SteppedClock::new(at(100)));
        let server = ServerClock::new(clock.clone());
        assert!(!server.is_known());
        clock.advance(Duration::from_millis(300));
        let local = server.local_ticks();
        server.correct_by_date(at(100), local);
        assert!(server.is_known());
        assert_eq!(server.now().get(), local);
    }

    #[test]
    fn a_clock_that_is_hours_off_is_corrected_both_ways() {
        for local in [at(100), at(20_000)] {
            let server = ServerClock::new(Arc::new(SteppedClock::new(local)));
            server.correct_by_date(at(10_000), server.local_ticks());
            assert_eq!(server.now(), at(10_000));
        }
    }
}
