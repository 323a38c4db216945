//! A leaky bucket, which limits a rate and allows short bursts.

use std::time::Duration;

use tokio::time::Instant;

/// Measures how much of a rate is used up. Fills with every entity or request that is admitted, and drains at a
/// constant rate.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    level: f64,
    at: Instant,
}

/// The speed at which a bucket drains, and its capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    pub(super) a_second: f64,
    pub(super) burst: Duration,
}

impl Bucket {
    pub(super) const fn new(at: Instant) -> Self {
        Self { level: 0.0, at }
    }

    /// Adds `amount` if the bucket is not full yet, and returns whether it was added. The last amount may go
    /// over the edge: otherwise a transaction larger than the bucket would never be admitted.
    pub(super) fn admit(&mut self, amount: f64, rate: Rate, now: Instant) -> bool {
        self.drain(rate, now);
        if self.level >= rate.a_second * rate.burst.as_secs_f64() {
            return false;
        }
        self.level += amount;
        true
    }

    /// Adds an amount that is known only after the request, such as the rows of a page.
    pub(super) fn charge(&mut self, amount: f64, rate: Rate, now: Instant) {
        self.drain(rate, now);
        self.level += amount;
    }

    /// Returns whether the bucket is empty and can be dropped.
    pub(super) fn is_empty(&mut self, rate: Rate, now: Instant) -> bool {
        self.drain(rate, now);
        self.level <= 0.0
    }

    fn drain(&mut self, rate: Rate, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level - passed * rate.a_second).max(0.0);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { a_second: 100.0, burst: Duration::from_millis(100) };

    #[test]
    fn a_full_bucket_admits_what_has_drained() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let admitted = (0..30).filter(|_| bucket.admit(1.0, RATE, start)).count();
        assert_eq!(admitted, 10);
        let later = start + Duration::from_millis(50);
        assert_eq!((0..30).filter(|_| bucket.admit(1.0, RATE, later)).count(), 5);
        assert!(!bucket.is_empty(RATE, later + Duration::from_millis(99)));
        assert!(bucket.is_empty(RATE, later + Duration::from_millis(101)));
    }

    #[test]
    fn an_amount_larger_than_the_bucket_is_admitted_and_paid_off() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        assert!(bucket.admit(50.0, RATE, start));
        assert!(!bucket.admit(1.0, RATE, start + Duration::from_millis(399)));
        assert!(bucket.admit(1.0, RATE, start + Duration::from_millis(401)));
        bucket.charge(1_000.0, RATE, start + Duration::from_millis(401));
        assert!(!bucket.admit(1.0, RATE, start + Duration::from_secs(10)));
        assert!(bucket.admit(1.0, RATE, start + Duration::from_secs(11)));
    }
}
