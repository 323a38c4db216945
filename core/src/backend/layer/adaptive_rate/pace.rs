//! A pace: the number of entities or requests that may be sent per second. A refusal lowers it, and a success raises
//! it.

use std::time::Duration;

use tokio::time::Instant;

/// The first value of a pace, as a share of the rate at the first refusal. By then the store has accepted a burst above
/// its limit for a while, so half of that rate is close to the limit.
const BEGINNING: f64 = 0.5;
/// The share of a pace that remains after a refusal.
const DECREASE: f64 = 0.9;
/// The growth of a new pace in a second of full use, as a share of the pace, until the next refusal. The first value is
/// a guess. It can be far too low for a partition that had little traffic before.
const SEEKING: f64 = 0.7;
/// The growth of a pace in a second of full use, as a share of the pace after the last refusal.
const INCREASE: f64 = 0.02;
/// The time in which the growth of a pace doubles while nothing is refused. A pace that became far too slow, for
/// example after a failure of the store, then recovers soon.
const DOUBLING: Duration = Duration::from_secs(5);
/// For this long after the pace was lowered, refusals do not lower it again. They answer requests that were sent at the
/// faster pace.
const REACTION: Duration = Duration::from_millis(100);
/// The minimum first value of a pace. A refusal before the store has accepted anything says nothing about the limit.
const FIRST: f64 = 100.0;
/// The minimum pace, in entities or requests per second. At this pace the layer still notices soon that the store
/// accepts more.
const SLOWEST: f64 = 1.0;

/// Limits how fast requests follow each other. The limit grows by addition and shrinks by multiplication.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// Units a second.
    rate: f64,
    /// `true` until the pace was too fast once.
    is_seeking: bool,
    /// The growth of the pace in a second, in entities or requests per second, right after it was lowered.
    step: f64,
    /// When the next request may be sent.
    next: Instant,
    lowered: Instant,
}

impl Pace {
    /// Creates a pace below `rate`, the rate at which the store accepted requests when it refused one.
    pub(super) fn starting_below(rate: f64, now: Instant) -> Self {
        let rate = (rate * BEGINNING).max(FIRST);
        Self { rate, is_seeking: true, step: rate * INCREASE, next: now, lowered: now }
    }

    /// Reserves the next free moment for a request, and returns it.
    pub(super) fn reserve(&mut self, amount: f64, now: Instant) -> Instant {
        let slot = self.next.max(now);
        self.next = slot + Duration::from_secs_f64(amount / self.rate);
        slot
    }

    /// Raises the pace after a success.
    pub(super) fn raise(&mut self, amount: f64, now: Instant) {
        let since = now.saturating_duration_since(self.lowered).min(12 * DOUBLING);
        let growth = self.step * (since.as_secs_f64() / DOUBLING.as_secs_f64()).exp2();
        let growth = if self.is_seeking { growth.max(self.rate * SEEKING) } else { growth };
        self.rate += growth * amount / self.rate;
    }

    /// Lowers the pace after a refusal by a tenth, unless it was lowered in the last 100 ms. Then holds requests back
    /// for the time that the store asks for, but for 10 s at most.
    pub(super) fn lower(&mut self, wait: Option<Duration>, now: Instant) {
        if let Some(wait) = wait {
            self.next = self.next.max(now + wait.min(LONGEST_WAIT));
        }
        if now.saturating_duration_since(self.lowered) < REACTION {
            return;
        }
        self.rate = (self.rate * DECREASE).max(SLOWEST);
        self.is_seeking = false;
        self.step = self.rate * INCREASE;
        self.lowered = now;
    }

    /// Returns whether the pace has delayed no request for 30 s and can be dropped.
    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.next.max(self.lowered)) > FORGOTTEN_AFTER
    }
}

/// The longest pause for all requests of a pace after the store has asked for a wait. The refused request itself waits
/// for as long as the retry layer decides.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A pace that has delayed no request for this time is dropped.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_each_other_at_the_pace() {
        let start = Instant::now();
        let mut pace = Pace::starting_below(100.0 / BEGINNING, start);
        assert_eq!(pace.reserve(1.0, start), start);
        assert_eq!(pace.reserve(50.0, start), start + Duration::from_millis(10));
        assert_eq!(pace.reserve(1.0, start), start + Duration::from_millis(510));
        // Time that nobody used is not saved up.
        let later = start + Duration::from_secs(5);
        assert_eq!(pace.reserve(1.0, later), later);
        assert_eq!(pace.reserve(1.0, later), later + Duration::from_millis(10));
    }

    #[test]
    fn refusals_of_one_moment_lower_it_once_and_use_raises_it() {
        let start = Instant::now();
        let mut pace = Pace::starting_below(1_800.0, start);
        assert!((pace.rate - 900.0).abs() < 1e-9);
        pace.lower(None, start + REACTION / 2);
        assert!((pace.rate - 900.0).abs() < 1e-9);
        pace.lower(None, start + REACTION);
        assert!((pace.rate - 810.0).abs() < 1e-9);
        // A second in which it is used up.
        for _ in 0..810 {
            pace.raise(1.0, start + REACTION);
        }
        assert!((pace.rate - 810.0 * 1.02).abs() < 0.5, "{}", pace.rate);
        let (before, later) = (pace.rate, start + REACTION + 2 * DOUBLING);
        pace.raise(100.0, later);
        assert!((pace.rate - before - 4.0 * 16.2 * 100.0 / before).abs() < 0.01, "{}", pace.rate);
        for _ in 0..1_000 {
            pace.lowered = start;
            pace.lower(None, start + REACTION);
        }
        assert!((pace.rate - SLOWEST).abs() < 1e-9);
    }

    #[test]
    fn a_new_pace_grows_fast_until_it_is_refused() {
        let start = Instant::now();
        let mut pace = Pace::starting_below(0.0, start);
        assert!((pace.rate - FIRST).abs() < 1e-9);
        pace.raise(100.0, start + REACTION);
        assert!((pace.rate - 170.0).abs() < 1e-9, "{}", pace.rate);
        pace.lower(None, start + REACTION);
        pace.raise(100.0, start + REACTION);
        assert!((pace.rate - 155.0).abs() < 0.1, "{}", pace.rate);
    }

    #[test]
    fn the_store_may_ask_for_a_pause() {
        let start = Instant::now();
        let mut pace = Pace::starting_below(1_000.0, start);
        pace.lower(Some(Duration::from_secs(2)), start);
        assert_eq!(pace.reserve(1.0, start), start + Duration::from_secs(2));
        pace.lower(Some(Duration::MAX), start);
        assert_eq!(pace.reserve(1.0, start), start + LONGEST_WAIT);
        assert!(!pace.is_forgotten(start + LONGEST_WAIT + FORGOTTEN_AFTER));
        assert!(pace.is_forgotten(start + 2 * (LONGEST_WAIT + FORGOTTEN_AFTER)));
    }
}
