//! Measures in simulated time how many requests a caller waits for, one after another.

use std::time::Duration;

use entable::backend::layer::{InjectedFault, RequestKind};
use tokio::time::Instant;

use crate::store::Store;

/// The time that each delayed request takes.
pub const LATENCY: Duration = Duration::from_millis(100);

/// Delays each of the next requests of a kind by [`LATENCY`].
pub fn delay(store: &Store, kind: RequestKind, requests: usize) {
    store.fault.clear();
    (0..requests).for_each(|nth| store.fault.inject(kind, nth, InjectedFault::Delay(LATENCY)));
}

/// The number of latencies since the beginning. Time is paused, so it moves when every task waits for a
/// timer, and a busy machine does not change the number. tokio rounds each timer up to a millisecond.
pub fn latencies_since(begun: Instant) -> u128 {
    begun.elapsed().as_millis() / LATENCY.as_millis()
}
