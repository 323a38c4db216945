//! The time of a store, as far as its client knows it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{clock::Clock, edm::Ticks};

/// Dates of answers are cut to seconds.
const RESOLUTION: i64 = Ticks::PER_SECOND;

/// The client's clock, corrected by the dates of the store's answers.
#[derive(Debug)]
pub(crate) struct ServerClock {
    clock: Arc<dyn Clock>,
    /// How far the store is ahead; `None`: it never said.
    ahead: Mutex<Option<i64>>,
}

impl ServerClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, ahead: Mutex::new(None) }
    }

    /// Whether the store has said what time it is.
    pub(crate) fn is_set(&self) -> bool {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The client's own time, which is compared with the store's.
    pub(crate) fn local(&self) -> i64 {
        self.clock.now().get()
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Ticks {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(0);
        Ticks::new(self.local().saturating_add(ahead).max(0)).unwrap_or(Ticks::MAX)
    }

    /// Takes note that the store does not say what time it is.
    pub(crate) fn trust(&self) {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(0);
    }

    /// Takes note of the date of an answer to a request that was made at `asked`, by the client's own
    /// time. A correction that agrees with it is kept: the date says no more.
    pub(crate) fn set(&self, date: Ticks, asked: i64) {
        let least = date.get().saturating_sub(self.local());
        let most = date.get().saturating_sub(asked).saturating_add(RESOLUTION);
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ahead.unwrap_or(0);
        let agrees = least <= known && known <= most;
        *ahead = Some(if agrees { known } else { least });
    }
}

/// A time some time after another.
pub(crate) fn after(now: Ticks, wait: Duration) -> Ticks {
    Ticks::new(now.get().saturating_add(ticks(wait))).unwrap_or(Ticks::MAX)
}

/// A time as ticks.
pub(crate) fn ticks(wait: Duration) -> i64 {
    i64::try_from(wait.as_nanos() / 100).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SteppedClock;

    fn at(seconds: i64) -> Ticks {
        Ticks::new(630_000_000_000_000_000 + seconds * Ticks::PER_SECOND).unwrap()
    }

    #[test]
    fn a_clock_that_agrees_is_believed() {
        let clock = Arc::new(SteppedClock::new(at(100)));
        let server = ServerClock::new(clock.clone());
        assert!(!server.is_set());
        clock.advance(Duration::from_millis(300));
        let local = server.local();
        server.set(at(100), local);
        assert!(server.is_set());
        assert_eq!(server.now().get(), local);
    }

    #[test]
    fn a_clock_that_is_hours_off_is_corrected_both_ways() {
        for local in [at(100), at(20_000)] {
            let server = ServerClock::new(Arc::new(SteppedClock::new(local)));
            server.set(at(10_000), server.local());
            assert_eq!(server.now(), at(10_000));
        }
    }
}
