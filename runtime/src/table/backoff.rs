//! How long to wait before trying again after losing a race: full jitter.

use std::time::Duration;

/// Attempts of a read-change-write loop.
pub(super) const ATTEMPTS: u32 = 16;

/// Waits a random time below a bound that doubles with every attempt, from 1 ms to 256 ms.
pub(super) async fn wait(attempt: u32) {
    let bound = 1_u64 << attempt.min(8);
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    tokio::time::sleep(Duration::from_micros(random % (bound * 1000))).await;
}
