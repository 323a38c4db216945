//! The retry policy: how often a failed request is retried, and after what delays.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{error::Error, limits::saturating_u64, timers};

/// Limits of retries: attempts, delays, total time, and a budget for all requests together.
///
/// ```
/// use std::time::Duration;
/// use entable_core::backend::layer::RetryPolicy;
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
    /// Returns the default policy: six attempts within two minutes; delays of up to 200 ms, 400 ms and so
    /// on, at most 20 s; a budget of 100 retries for all requests together.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// assert_eq!(RetryPolicy::new(), RetryPolicy::default());
    /// assert_eq!(RetryPolicy::new(), RetryPolicy::never().attempts(6));
    /// ```
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

    /// Returns a policy of one attempt. After a lost answer, the rows of a write are still read to find out
    /// whether it was carried out.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// assert_eq!(RetryPolicy::never(), RetryPolicy::new().attempts(1));
    /// ```
    pub const fn never() -> Self {
        Self { attempts: 1, ..Self::new() }
    }

    /// Sets the maximum number of attempts for a request, including the first.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// let twice = RetryPolicy::new().attempts(2);
    /// assert_ne!(twice, RetryPolicy::new());
    /// assert_eq!(twice.attempts(6), RetryPolicy::new());
    /// ```
    #[must_use]
    pub const fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Sets the upper bound of the first delay and the maximum bound. The bound doubles with each attempt. Each delay
    /// is a random time below its bound, so clients that failed together do not retry together. If the service asks for
    /// a wait, the delay is added to it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// let default = RetryPolicy::new().delays(Duration::from_millis(200), Duration::from_secs(20));
    /// assert_eq!(default, RetryPolicy::new());
    /// ```
    #[must_use]
    pub const fn delays(self, first: Duration, longest: Duration) -> Self {
        Self { first_delay: first, longest_delay: longest, ..self }
    }

    /// Sets how long after the first attempt another attempt may begin. An attempt that has begun
    /// is not cut short.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// assert_eq!(RetryPolicy::new().give_up_after(Duration::from_secs(120)), RetryPolicy::new());
    /// ```
    #[must_use]
    pub const fn give_up_after(self, elapsed: Duration) -> Self {
        Self { elapsed, ..self }
    }

    /// Sets how many retries all requests together may spend; ten successful requests return one. The
    /// budget limits the load that retries add to a service that is down.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// assert_eq!(RetryPolicy::new().budget(100), RetryPolicy::new());
    /// ```
    #[must_use]
    pub const fn budget(self, retries: u32) -> Self {
        Self { budget: retries, ..self }
    }

    /// Sets whether each written row gets the id of its write in the property `OpId`. The retry layer uses it to
    /// recognise a write whose answer was lost. Off by default, because it adds a property to the rows. A row is
    /// written without the id if it has no room for it, by count or by size, or if it has an `OpId` of its own that is
    /// not a Binary of 12 bytes. A merge that does not include the stored row's own `OpId` replaces it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::RetryPolicy;
    /// assert_eq!(RetryPolicy::new().operation_ids(false), RetryPolicy::new());
    /// assert_ne!(RetryPolicy::new().operation_ids(true), RetryPolicy::new());
    /// ```
    #[must_use]
    pub const fn operation_ids(self, on: bool) -> Self {
        Self { operation_ids: on, ..self }
    }

    /// Returns a random delay before the retry after attempt number `attempt`, counted from 0.
    fn retry_delay(&self, attempt: u32) -> Duration {
        // A shift by 32 bits or more would overflow. After 20 doublings, 200 ms have become two
        // days.
        let bound = self.first_delay.saturating_mul(1 << attempt.min(20)).min(self.longest_delay);
        let bound = saturating_u64(bound.as_micros());
        let (random, _) = Uuid::new_v4().as_u64_pair();
        Duration::from_micros(random % bound.saturating_add(1))
    }
}

/// The retries that are left for all requests of a layer, in tenths of a retry.
#[derive(Debug)]
pub(super) struct RetryBudget {
    tenths: AtomicI64,
    full: i64,
}

impl RetryBudget {
    pub(super) fn new(retries: u32) -> Self {
        let full = i64::from(retries) * 10;
        Self { tenths: AtomicI64::new(full), full }
    }

    /// Puts a tenth of a retry back into the budget, after a successful request. Does nothing if
    /// the budget is full.
    pub(super) fn refund_tenth_of_retry(&self) {
        let add = |tenths| (tenths < self.full).then_some(tenths + 1);
        // Fails only where the budget is full, which is fine.
        let _ = self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes one retry. Returns `false` if none is left.
    fn spend_retry(&self) -> bool {
        let take = |tenths| (tenths >= 10).then_some(tenths - 10);
        self.tenths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// The attempts of one request so far.
pub(super) struct RetryState<'a> {
    policy: &'a RetryPolicy,
    budget: &'a RetryBudget,
    began: Instant,
    made: u32,
}

impl<'a> RetryState<'a> {
    pub(super) fn new(policy: &'a RetryPolicy, budget: &'a RetryBudget) -> Self {
        Self { policy, budget, began: Instant::now(), made: 0 }
    }

    /// Counts a failed attempt and waits before the next. The wait includes the time that the
    /// service asked for in `error`. Returns `false` without waiting if the policy's attempts or
    /// the budget of retries are used up, or if the wait would outlast the policy's time.
    pub(super) async fn wait_for_next_attempt(&mut self, error: &Error) -> bool {
        self.made += 1;
        let wanted = self.policy.retry_delay(self.made - 1);
        let delay = error.retry_after().map_or(wanted, |asked| asked.saturating_add(wanted));
        let left = self.policy.elapsed.saturating_sub(self.began.elapsed());
        // The budget is asked last: a request that gives up anyway takes nothing from it.
        if self.made >= self.policy.attempts || delay > left || !self.budget.spend_retry() {
            return false;
        }
        timers::sleep(delay).await;
        true
    }
}
