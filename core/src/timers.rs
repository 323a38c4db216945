//! Waits by the timers of tokio where the running task has them, and without them elsewhere: outside of
//! a runtime, and in a runtime that was built without `enable_time`.

use std::{
    future::{Future, poll_fn},
    panic::catch_unwind,
    pin::pin,
    sync::{Mutex, PoisonError},
    task::Poll,
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Handle, Id},
    sync::oneshot,
    time::Instant,
};

/// The runtimes that have been found to have no timers. Ids of runtimes are not reused.
static WITHOUT_TIMERS: Mutex<Vec<Id>> = Mutex::new(Vec::new());

/// Returns whether the running task may use the timers of tokio.
fn are_available() -> bool {
    let Ok(runtime) = Handle::try_current() else { return false };
    // A runtime cannot be asked whether it has timers, and trying would abort this program.
    if cfg!(panic = "abort") {
        return true;
    }
    let mut without = WITHOUT_TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    if without.contains(&runtime.id()) {
        return false;
    }
    // Creating a timer panics where there are none. The hook for panics reports it once a runtime.
    let is_available = catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok();
    if !is_available {
        without.push(runtime.id());
    }
    is_available
}

/// The longest time that [`instant_after`] adds: about 30 years, the bound of tokio's own timers.
const FAR_AHEAD: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the instant `time` after `from`, and at most about 30 years after it. `from + time` would panic for
/// a time like [`Duration::MAX`], which options use for a wait without an end.
pub fn instant_after(from: Instant, time: Duration) -> Instant {
    from.checked_add(time.min(FAR_AHEAD)).unwrap_or(from)
}

/// Waits for some time. Without timers a thread counts it.
pub async fn sleep(time: Duration) {
    if are_available() {
        return tokio::time::sleep(time).await;
    }
    let (end, ended) = oneshot::channel();
    let counting = thread::Builder::new().name("entable-sleep".into()).spawn(move || {
        thread::sleep(time);
        // Whoever waited may have given up.
        let _ = end.send(());
    });
    // Without a thread the caller goes on at once: every wait is a courtesy to other writers.
    if counting.is_ok() {
        let _ = ended.await;
    }
}

/// Waits for a future. Returns `None` if it takes longer than `time`. Without timers, the time is checked only when
/// something wakes the task, so the wait may never end.
pub async fn timeout<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    if are_available() {
        return tokio::time::timeout(time, future).await.ok();
    }
    poll_until_instant(instant_after(Instant::now(), time), future).await
}

/// Runs a future and returns its output, or `None` if it is polled after `until` before it is complete.
/// Sets no timer: a future that never wakes its task again is not ended, so it must wake by itself.
pub async fn poll_until_instant<T>(until: Instant, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if Instant::now() < until {
            future.as_mut().poll(context).map(Some)
        } else {
            Poll::Ready(None)
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::Builder;

    use super::*;

    const SOON: Duration = Duration::from_millis(2);

    async fn waits() -> (bool, Option<u8>, Option<u8>) {
        let began = Instant::now();
        sleep(SOON).await;
        let slept = began.elapsed() >= SOON;
        let late = async {
            sleep(SOON * 2).await;
            1
        };
        (slept, timeout(SOON, late).await, timeout(SOON, async { 2 }).await)
    }

    #[test]
    fn a_wait_ends_with_timers_without_timers_and_without_a_runtime() {
        let expected = (true, None, Some(2));
        let bare = Builder::new_current_thread().build().unwrap();
        assert_eq!(bare.block_on(waits()), expected);
        assert!(!bare.block_on(async { are_available() }));
        let whole = Builder::new_current_thread().enable_time().build().unwrap();
        assert_eq!(whole.block_on(waits()), expected);
        assert!(whole.block_on(async { are_available() }));
        assert_eq!(
            futures_util::FutureExt::now_or_never(timeout(SOON, async { 2 })),
            Some(Some(2))
        );
        assert!(!are_available());
    }

    #[tokio::test(start_paused = true)]
    async fn timers_of_a_paused_clock_are_used() {
        let began = Instant::now();
        assert_eq!(timeout(Duration::from_secs(60), pending::<()>()).await, None);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(began.elapsed().as_secs(), 120);
    }
}
