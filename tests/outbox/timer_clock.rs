//! A clock that goes with the timers of a test.

use entable::{Clock, Ticks};
use tokio::time::Instant;

/// A clock that goes with the timers of the test.
#[derive(Debug)]
pub(crate) struct TimerClock(pub(crate) Instant);

impl Clock for TimerClock {
    fn now(&self) -> Ticks {
        let elapsed = i64::try_from(self.0.elapsed().as_nanos() / 100).unwrap();
        Ticks::new(630_000_000_000_000_000 + elapsed).unwrap()
    }
}
