//! What is kept, by name: one flight at a time for each.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::Clock,
    edm::Ticks,
    error::{Error, Result, SealFault},
    seal::provider::KeyFuture,
};

/// Names that are remembered. Rows name keys, and whoever writes rows can name any: names without a
/// key are dropped above it.
const NAMES: usize = 1024;
/// How long a "no such key" is believed, and a store that is down left alone while stale keys serve.
const PAUSE: Duration = Duration::from_secs(5);

/// How long things are good for.
#[derive(Clone, Copy)]
pub(super) struct Life<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) life: Duration,
    pub(super) stale: Duration,
}

/// What is kept, by name.
pub(super) struct Slots<K, V>(Mutex<HashMap<K, Arc<Slot<V>>>>);

struct Slot<V> {
    /// Whoever holds it asks; the others wait for it and look again.
    flight: tokio::sync::Mutex<()>,
    state: Mutex<State<V>>,
}

struct State<V> {
    kept: Option<(Arc<V>, Ticks)>,
    /// The last answer that was none, and when it was asked for.
    failed: Option<(Error, Ticks)>,
    /// How many flights failed.
    failures: u64,
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `at` is within `span` before `now`; a clock that was set back makes nothing younger.
fn is_within(at: Ticks, now: Ticks, span: Duration) -> bool {
    let span = i64::try_from(span.as_nanos() / 100).unwrap_or(i64::MAX);
    let age = now.get() - at.get();
    age >= 0 && age < span
}

impl<K: Hash + Eq, V> Slots<K, V> {
    /// The value of that name and when it was asked for: kept, or from the one flight for it.
    pub(super) async fn get<'a>(
        &self,
        name: K,
        life: Life<'_>,
        fetch: impl FnOnce() -> KeyFuture<'a, Arc<V>>,
    ) -> Result<(Arc<V>, Ticks)> {
        let slot = self.slot(name, life);
        let seen = {
            let state = locked(&slot.state);
            if let Some(answer) = state.answer(life) {
                return answer;
            }
            state.failures
        };
        let _flight = slot.flight.lock().await;
        {
            let state = locked(&slot.state);
            if let Some(answer) = state.answer(life) {
                return answer;
            }
            // The flight that was waited for is as good as one's own.
            if let Some((error, _)) = state.failed.as_ref().filter(|_| state.failures != seen) {
                return Err(error.clone());
            }
        }
        // A key is as old as the question for it.
        let at = life.clock.now();
        let answer = fetch().await;
        locked(&slot.state).land(answer, at, life)
    }

    /// Keeps what came along with something else.
    pub(super) fn keep(&self, name: K, value: &Arc<V>, at: Ticks, life: Life<'_>) {
        let slot = self.slot(name, life);
        let mut state = locked(&slot.state);
        if state.kept.as_ref().is_none_or(|(_, kept)| *kept < at) {
            state.kept = Some((value.clone(), at));
            state.failed = None;
        }
    }

    pub(super) fn clear(&self) {
        locked(&self.0).clear();
    }

    fn slot(&self, name: K, life: Life<'_>) -> Arc<Slot<V>> {
        let mut slots = locked(&self.0);
        if let Some(slot) = slots.get(&name) {
            return slot.clone();
        }
        // A name that is new is rare: the time to look for keys whose own is over.
        let now = life.clock.now();
        let is_over = slots.len() >= NAMES;
        slots.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || locked(&slot.state).is_wanted(now, life, is_over)
        });
        slots.entry(name).or_default().clone()
    }
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        let state = State { kept: None, failed: None, failures: 0 };
        Self { flight: tokio::sync::Mutex::default(), state: Mutex::new(state) }
    }
}

impl<V> State<V> {
    /// Whether it is worth remembering: a key of its time, or a failure that is believed yet.
    fn is_wanted(&self, now: Ticks, life: Life<'_>, is_over: bool) -> bool {
        let span = life.life.saturating_add(life.stale);
        let is_kept = self.kept.as_ref().is_some_and(|(_, at)| is_within(*at, now, span));
        let is_failed = self.failed.as_ref().is_some_and(|(_, at)| is_within(*at, now, PAUSE));
        is_kept || (is_failed && !is_over)
    }

    /// The answer that needs no flight.
    fn answer(&self, life: Life<'_>) -> Option<Result<(Arc<V>, Ticks)>> {
        let now = life.clock.now();
        if let Some((value, at)) =
            self.kept.as_ref().filter(|(_, at)| is_within(*at, now, life.life))
        {
            return Some(Ok((value.clone(), *at)));
        }
        let (error, _) = self.failed.as_ref().filter(|(_, at)| is_within(*at, now, PAUSE))?;
        if let Some(stale) = self.stale(error, now, life) {
            return Some(Ok(stale));
        }
        let is_no = matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_)));
        is_no.then(|| Err(error.clone()))
    }

    /// The value beyond its time, where the store does not answer and that is allowed.
    fn stale(&self, error: &Error, now: Ticks, life: Life<'_>) -> Option<(Arc<V>, Ticks)> {
        let retryable = SealFault::KeyUnavailable { retryable: true };
        let (value, at) = self.kept.as_ref().filter(|_| error.seal_fault() == Some(retryable))?;
        let allowed =
            !life.stale.is_zero() && is_within(*at, now, life.life.saturating_add(life.stale));
        allowed.then(|| (value.clone(), *at))
    }

    /// Takes a flight's answer.
    fn land(
        &mut self,
        answer: Result<Arc<V>>,
        at: Ticks,
        life: Life<'_>,
    ) -> Result<(Arc<V>, Ticks)> {
        match answer {
            Ok(value) => {
                self.kept = Some((value.clone(), at));
                self.failed = None;
                Ok((value, at))
            }
            Err(error) => {
                self.failures += 1;
                let stale = self.stale(&error, life.clock.now(), life);
                let retryable = SealFault::KeyUnavailable { retryable: true };
                if error.seal_fault() != Some(retryable) {
                    // The store has it no longer.
                    self.kept = None;
                }
                self.failed = Some((error.clone(), at));
                stale.ok_or(error)
            }
        }
    }
}
