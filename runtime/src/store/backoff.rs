//! The wait before a write that lost a race is tried again: a random time, longer with each attempt.

use std::time::Duration;

use crate::{
    error::{Error, ErrorKind},
    random::RandomSource,
};

/// How often a read-change-write loop tries.
pub(crate) const ATTEMPTS: u32 = 16;

/// Returns the error of a loop that has no attempt left.
pub(crate) fn contended() -> Error {
    let message = format!("other writers were first {ATTEMPTS} times in a row");
    Error::new(ErrorKind::Contended, message)
}

/// Waits a random time below a bound that doubles with every attempt, from 1 ms to 256 ms.
pub(crate) async fn wait(random: &RandomSource, attempt: u32) {
    let bound = 1_u64 << attempt.min(8);
    let micros = random.number() % (bound * 1000);
    tokio::time::sleep(Duration::from_micros(micros)).await;
}
