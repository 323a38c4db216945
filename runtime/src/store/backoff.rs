//! How long to wait before trying again after losing a race: full jitter.

use std::time::Duration;

use crate::{
    error::{Error, ErrorKind},
    table::Client,
};

/// Attempts of a read-change-write loop.
pub(crate) const ATTEMPTS: u32 = 16;

/// The error of a loop that has no attempt left.
pub(crate) fn contended() -> Error {
    let message = format!("other writers were first {ATTEMPTS} times in a row");
    Error::new(ErrorKind::Contended, message)
}

/// Waits a random time below a bound that doubles with every attempt, from 1 ms to 256 ms.
pub(crate) async fn wait(client: &Client, attempt: u32) {
    let bound = 1_u64 << attempt.min(8);
    let random = client.outbox().chance.number() % (bound * 1000);
    tokio::time::sleep(Duration::from_micros(random)).await;
}
