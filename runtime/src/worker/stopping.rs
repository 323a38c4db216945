//! The stop of a worker's run: the worker then takes nothing new, and handlers have some time to finish.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use crate::timers::instant_after;

/// The stop signal of one run. Clones share the signal.
#[derive(Debug, Clone)]
pub(super) struct StopSignal(Arc<watch::Sender<Option<Instant>>>);

impl Default for StopSignal {
    /// Creates the signal of a run that has not been stopped.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl StopSignal {
    /// Asks the worker to stop. Running handlers have `time` to finish.
    pub(super) fn begin_stop(&self, time: Duration) {
        self.0.send_replace(Some(instant_after(Instant::now(), time)));
    }

    /// Returns whether the stop has begun, in which case nothing new may be taken.
    pub(super) fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the stop begins. Returns when the handlers' time ends.
    async fn wait_for_begin(&self) -> Instant {
        let mut state = self.0.subscribe();
        loop {
            let end = *state.borrow_and_update();
            if let Some(end) = end {
                return end;
            }
            // `self` holds the sender, so this never fails.
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the time for handlers after the stop has passed.
    pub(super) async fn wait_for_end(&self) {
        sleep_until(self.wait_for_begin().await).await;
    }

    /// Waits for `time`, or until the stop begins.
    pub(super) async fn sleep(&self, time: Duration) {
        // Either way, the caller checks whether the stop has begun.
        let _ = timeout(time, self.wait_for_begin()).await;
    }
}
