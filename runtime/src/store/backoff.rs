//! The loop for writes that can lose a race: read, change, write under a condition. If another writer was first, it
//! tries again after a random wait.

use std::{future::Future, time::Duration};

use crate::{
    error::{Error, ErrorKind, Result},
    random::RandomSource,
    timers,
};

/// The number of attempts of a read-change-write loop that does not set its own.
pub(crate) const ATTEMPTS: u32 = 16;

/// The result of one attempt of a [`retry_lost_races`] loop.
#[derive(Debug)]
pub(crate) enum Attempt<T> {
    /// The loop ends with this value.
    Done(T),
    /// Another writer was first, so try again.
    Raced,
    /// Another write must end first, so try again. If the last attempt ends this way, the loop fails with this
    /// error.
    Busy(Error),
}

/// Runs `attempt` until it is done or fails, at most `attempts` times, with a wait after each lost race. Returns `None`
/// if every attempt lost its race. Does not take an `AsyncFnMut`, because the compiler cannot prove that its futures
/// are `Send`.
pub(crate) async fn retry_lost_races<T, F: Future<Output = Result<Attempt<T>>>>(
    random: &RandomSource,
    attempts: u32,
    mut attempt: impl FnMut() -> F,
) -> Result<Option<T>> {
    let mut busy = None;
    for number in 0..attempts {
        match attempt().await? {
            Attempt::Done(value) => return Ok(Some(value)),
            Attempt::Raced => busy = None,
            Attempt::Busy(error) => busy = Some(error),
        }
        wait_before_retry(random, number).await;
    }
    busy.map_or(Ok(None), Err)
}

/// Returns the error for a loop of [`ATTEMPTS`] attempts that all lost their races.
pub(crate) fn contended_error() -> Error {
    contended_attempts_error(ATTEMPTS)
}

/// Returns the error for a loop in which all of this many attempts lost their races.
pub(crate) fn contended_attempts_error(attempts: u32) -> Error {
    let message = format!("other writers were faster {attempts} times in a row; try again later");
    Error::new(ErrorKind::Contended, message)
}

/// Waits a random time below a limit that doubles with every attempt, from 1 ms to 256 ms.
pub(crate) async fn wait_before_retry(random: &RandomSource, attempt: u32) {
    // A random wait keeps writers that collided from colliding again.
    let bound = 1_u64 << attempt.min(8);
    let micros = random.random_number() % (bound * 1000);
    timers::sleep(Duration::from_micros(micros)).await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_ends_when_it_is_done_fails_or_has_no_attempt_left() {
        let random = RandomSource::seeded(7);
        let runs = Cell::new(0);
        let third = retry_lost_races(&random, 5, || async {
            runs.set(runs.get() + 1);
            Ok(if runs.get() == 3 { Attempt::Done("done") } else { Attempt::Raced })
        });
        assert_eq!((third.await.unwrap(), runs.take()), (Some("done"), 3));
        let never = retry_lost_races(&random, 5, || async {
            runs.set(runs.get() + 1);
            Ok(Attempt::<()>::Raced)
        });
        assert_eq!((never.await.unwrap(), runs.take()), (None, 5));
        let failing =
            retry_lost_races(&random, 5, || async { Err::<Attempt<()>, _>(contended_error()) });
        assert!(failing.await.unwrap_err().is_contended());
    }
}
