//! How often and after how long a request is made again.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;

use crate::error::Error;

/// When a request that failed is made again.
///
/// ```
/// use std::time::Duration;
/// use entable::backend::layer::RetryPolicy;
///
/// let policy = RetryPolicy::new().attempts(4).delays(Duration::from_millis(50), Duration::from_secs(2));
/// assert_eq!(policy, policy.clone());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    pub(super) attempts: u32,
    first_delay: Duration,
    longest_delay: Duration,
    pub(super) elapsed: Duration,
    pub(super) budget: u32,
    pub(super) operation_ids: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryPolicy {
    /// Six attempts within two minutes; waits of up to 200 ms, 400 ms, .. and at most 20 s; a budget of
    /// 100 retries for all requests together.
    pub const fn new() -> Self {
        Self {
            attempts: 6,
            first_delay: Duration::from_millis(200),
            longest_delay: Duration::from_secs(20),
            elapsed: Duration::from_secs(120),
            budget: 100,
            operation_ids: false,
        }
    }

    /// One attempt: a failure is reported as it is, but still looked into where a write's answer
    /// was lost.
    pub const fn never() -> Self {
        Self { attempts: 1, ..Self::new() }
    }

    /// How often a request is made at most, the first time included.
    #[must_use]
    pub const fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// The bound of the first wait, which doubles with each attempt, and the bound that it does not
    /// exceed. A wait is a random time below its bound, so that clients that failed together do not
    /// come back together; where the service asks for more, that is kept.
    #[must_use]
    pub const fn delays(self, first: Duration, longest: Duration) -> Self {
        Self { first_delay: first, longest_delay: longest, ..self }
    }

    /// How long a request goes on being made, from its first attempt.
    #[must_use]
    pub const fn give_up_after(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }

    /// How many retries all requests together may spend; ten requests that succeed give one back.
    /// It keeps a service that is down from being asked many times over by everybody.
    #[must_use]
    pub const fn budget(self, retries: u32) -> Self {
        Self { budget: retries, ..self }
    }

    /// Whether each written row carries the id of its write in the property `OpId`: then a write
    /// whose answer was lost can be recognised. Off at first, since it adds a property to the
    /// rows.
    #[must_use]
    pub const fn operation_ids(self, on: bool) -> Self {
        Self { operation_ids: on, ..self }
    }

    fn delay(&self, attempt: u32) -> Duration {
        let bound = self.first_delay.saturating_mul(1 << attempt.min(20)).min(self.longest_delay);
        let bound = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
        let (random, _) = Uuid::new_v4().as_u64_pair();
        Duration::from_micros(random % bound.saturating_add(1))
    }
}

/// Retries that are left for all requests of a layer, in tenths.
#[derive(Debug)]
pub(super) struct Budget {
    tenths: AtomicI64,
    full: i64,
}

impl Budget {
    pub(super) fn new(retries: u32) -> Self {
        let full = i64::from(retries) * 10;
        Self { tenths: AtomicI64::new(full), full }
    }

    pub(super) fn refund(&self) {
        let add = |tenths| (tenths < self.full).then_some(tenths + 1);
        let _ = self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn spend(&self) -> bool {
        let take = |tenths| (tenths >= 10).then_some(tenths - 10);
        self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// The attempts of one request.
pub(super) struct Attempts<'a> {
    policy: &'a RetryPolicy,
    budget: &'a Budget,
    began: Instant,
    made: u32,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(policy: &'a RetryPolicy, budget: &'a Budget) -> Self {
        Self { policy, budget, began: Instant::now(), made: 0 }
    }

    /// Waits before the next attempt. `false`: there is none.
    pub(super) async fn wait_after(&mut self, error: &Error) -> bool {
        self.made += 1;
        let wanted = self.policy.delay(self.made - 1);
        let delay = error.retry_after().map_or(wanted, |asked| asked.saturating_add(wanted));
        let left = self.policy.elapsed.saturating_sub(self.began.elapsed());
        if self.made >= self.policy.attempts || delay > left || !self.budget.spend() {
            return false;
        }
        tokio::time::sleep(delay).await;
        true
    }
}
