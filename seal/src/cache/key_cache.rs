//! A cache of keys with an age limit, which asks the key store at most once at a time for a key.

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::provider::KeyFuture;
use entable_core::{
    __runtime::{limits::saturating_i64, metering, single_flight::SingleFlight},
    clock::Clock,
    edm::Ticks,
    error::{Error, Result, SealFault},
};

/// At this many names, failed look-ups are no longer remembered. Rows name keys, and a writer of rows can name any key:
/// without a bound, such names would fill the memory.
const REMEMBERED_NAMES: usize = 1024;
/// How long a "no such key" answer is trusted. Also how long a key store that does not answer is left alone while an
/// expired key can be used.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How long the keys of a cache are used, and by what clock.
#[derive(Clone, Copy)]
pub(crate) struct Lifetime<'a> {
    pub(crate) clock: &'a dyn Clock,
    /// How long a key is used without asking again.
    pub(crate) fresh: Duration,
    /// How much longer a key is used while the key store does not answer.
    pub(crate) stale: Duration,
}

/// A cache of keys by name. Each entry holds the time of the request for its key.
pub(crate) struct KeyCache<K, V> {
    entries: SingleFlight<K, CacheEntry<V>>,
    /// Number of times that the cache was cleared: an answer that was requested before a clearing must
    /// not fill the cache.
    cleared: AtomicU64,
}

/// The cached key of one name, and the last failure to fetch it.
struct CacheEntry<V> {
    /// The key, and when it was requested from the key store.
    key: Option<(Arc<V>, Ticks)>,
    /// The error of the last request that failed, and when it was sent.
    failed: Option<(Error, Ticks)>,
    /// Number of requests that failed.
    failures: u64,
    /// Number of requests that were begun.
    begun: u64,
    /// Number of the latest request that was answered.
    answered: u64,
}

impl<K, V> Default for KeyCache<K, V> {
    fn default() -> Self {
        Self { entries: SingleFlight::default(), cleared: AtomicU64::new(0) }
    }
}

impl<V> Default for CacheEntry<V> {
    fn default() -> Self {
        Self { key: None, failed: None, failures: 0, begun: 0, answered: 0 }
    }
}

/// Returns whether less than `span` has passed from `at` to `now`. Returns `false` if `at` is after `now`: setting the
/// clock back must not make a key or failure younger.
fn is_time_within(at: Ticks, now: Ticks, span: Duration) -> bool {
    let span = saturating_i64(span.as_nanos() / 100);
    let age = now.get() - at.get();
    age >= 0 && age < span
}

impl<K: Hash + Eq, V> KeyCache<K, V> {
    /// Returns the key of that name and the time of the request for it. Calls `fetch` if the cache
    /// has no usable answer; concurrent tasks share one call and its error.
    pub(crate) async fn get<'a>(
        &self,
        name: K,
        lifetime: Lifetime<'_>,
        fetch: impl FnOnce() -> KeyFuture<'a, Arc<V>>,
    ) -> Result<(Arc<V>, Ticks)> {
        let slot = self.entries.flight_slot_of_key(name, 0, stays_cached(lifetime));
        let mut failures_before = None;
        let find = |entry: &CacheEntry<V>| {
            let usable = entry.usable_answer(lifetime);
            if usable.is_some() {
                metering::count_cache_lookup("keys", true);
                return usable;
            }
            match failures_before {
                None => {
                    failures_before = Some(entry.failures);
                    None
                }
                // The task that was waited for asked after this one came: its error is the answer.
                Some(before) if entry.failures != before => {
                    entry.failed.as_ref().map(|(error, _)| Err(error.clone()))
                }
                Some(_) => None,
            }
        };
        let ask = async || {
            metering::count_cache_lookup("keys", false);
            // A key is as old as the question for it, not as its answer.
            let at = lifetime.clock.now();
            let request = slot.lock_state().begin_request();
            let answer = fetch().await;
            slot.lock_state().record_answer(answer, request, at, lifetime)
        };
        slot.find_or_run(find, ask).await
    }

    /// Returns how many times the cache was cleared.
    pub(super) fn times_cleared(&self) -> u64 {
        self.cleared.load(Ordering::Acquire)
    }

    /// Stores a key that the answer to a request for another name contained. The request was sent at `at`.
    /// Does nothing if the cache was cleared after [`times_cleared`](Self::times_cleared) returned
    /// `cleared`, or if an answer to a later request is known.
    pub(super) fn insert_key_from_answer(
        &self,
        name: K,
        key: &Arc<V>,
        at: Ticks,
        cleared: u64,
        lifetime: Lifetime<'_>,
    ) {
        let slot = self.entries.flight_slot_of_key(name, 0, stays_cached(lifetime));
        // Compared after the slot was taken: a clearing from now on removes this slot from the cache.
        if self.times_cleared() != cleared {
            return;
        }
        let mut entry = slot.lock_state();
        // An answer that was requested later is kept: it may know of a key that was withdrawn.
        let has_later_key = entry.key.as_ref().is_some_and(|(_, asked)| *asked >= at);
        if !has_later_key && !entry.was_refused_after(at) {
            entry.key = Some((key.clone(), at));
            entry.failed = None;
        }
    }

    /// Removes all keys.
    pub(super) fn clear(&self) {
        // Counted before the keys go: an insert that still finds the earlier count took a slot that is
        // about to go.
        self.cleared.fetch_add(1, Ordering::AcqRel);
        self.entries.lock_slots().clear();
    }
}

/// Returns a predicate for the entries to keep when a name is added: keys within their lifetime, and recent failures
/// while there are fewer than [`REMEMBERED_NAMES`] names.
fn stays_cached<V>(lifetime: Lifetime<'_>) -> impl Fn(&CacheEntry<V>, usize) -> bool {
    let now = lifetime.clock.now();
    let span = lifetime.fresh.saturating_add(lifetime.stale);
    move |entry, names| {
        let has_key = entry.key.as_ref().is_some_and(|(_, at)| is_time_within(*at, now, span));
        let has_failed = entry.failed.as_ref();
        let has_failed =
            has_failed.is_some_and(|(_, at)| is_time_within(*at, now, PAUSE_AFTER_FAILURE));
        has_key || (has_failed && names < REMEMBERED_NAMES)
    }
}

/// Returns whether the error says that the key store did not answer; any other error is an answer.
fn is_unanswered(error: &Error) -> bool {
    error.seal_fault() == Some(SealFault::KeyUnavailable { retryable: true })
}

impl<V> CacheEntry<V> {
    /// Returns the cached answer that needs no request: a fresh key, an expired key while the key
    /// store does not answer, or a recent "no such key". Returns `None` if the key store has to be
    /// asked.
    fn usable_answer(&self, lifetime: Lifetime<'_>) -> Option<Result<(Arc<V>, Ticks)>> {
        let now = lifetime.clock.now();
        let fresh = self.key.as_ref().filter(|(_, at)| is_time_within(*at, now, lifetime.fresh));
        if let Some((key, at)) = fresh {
            return Some(Ok((key.clone(), *at)));
        }
        let failed = self.failed.as_ref();
        let (error, _) = failed.filter(|(_, at)| is_time_within(*at, now, PAUSE_AFTER_FAILURE))?;
        if let Some(stale) = self.stale_key(error, now, lifetime) {
            return Some(Ok(stale));
        }
        // Only this answer is final; any other failure is asked again.
        let is_no = matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_)));
        is_no.then(|| Err(error.clone()))
    }

    /// Returns whether the key store answered a request sent after `at`, and gave no key.
    fn was_refused_after(&self, at: Ticks) -> bool {
        self.failed.as_ref().is_some_and(|(error, asked)| *asked > at && !is_unanswered(error))
    }

    /// Returns the expired key if `error` says that the key store does not answer and the lifetime
    /// allows expired keys.
    fn stale_key(
        &self,
        error: &Error,
        now: Ticks,
        lifetime: Lifetime<'_>,
    ) -> Option<(Arc<V>, Ticks)> {
        let (key, at) = self.key.as_ref().filter(|_| is_unanswered(error))?;
        let span = lifetime.fresh.saturating_add(lifetime.stale);
        let is_allowed = !lifetime.stale.is_zero() && is_time_within(*at, now, span);
        is_allowed.then(|| (key.clone(), *at))
    }

    /// Returns the number of a request that is about to be sent.
    fn begin_request(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// Stores the answer to the request of that number, sent at `at`, unless a later request was answered.
    /// Returns the key with the time of its request. For an error, returns the expired key if the key store
    /// did not answer and `lifetime` allows expired keys, else the error.
    fn record_answer(
        &mut self,
        answer: Result<Arc<V>>,
        request: u64,
        at: Ticks,
        lifetime: Lifetime<'_>,
    ) -> Result<(Arc<V>, Ticks)> {
        // A task that was not polled may bring its answer late: the key may be withdrawn meanwhile.
        let is_latest = request > self.answered;
        self.answered = self.answered.max(request);
        match answer {
            Ok(key) => {
                if is_latest {
                    self.key = Some((key.clone(), at));
                    self.failed = None;
                }
                Ok((key, at))
            }
            Err(error) => {
                let stale = self.stale_key(&error, lifetime.clock.now(), lifetime);
                if is_latest {
                    self.failures += 1;
                    if !is_unanswered(&error) {
                        // The key store answered: it does not give this key out any more.
                        self.key = None;
                    }
                    self.failed = Some((error.clone(), at));
                }
                stale.ok_or(error)
            }
        }
    }
}
