//! The end of a worker's run: it takes nothing new from then on, and handlers have a time to end.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// Tells the tasks of one run that the worker stops. Clones are of one run.
#[derive(Debug, Clone)]
pub(super) struct Stopping(Arc<watch::Sender<Option<Instant>>>);

impl Default for Stopping {
    /// Creates the state of a run that goes on.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Stopping {
    /// Begins the stop. Handlers have `time` to end.
    pub(super) fn begin(&self, time: Duration) {
        self.0.send_replace(Some(Instant::now() + time));
    }

    /// Returns whether nothing new may be taken.
    pub(super) fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the stop begins. Returns the moment at which the handlers' time is over.
    async fn wait_for_begin(&self) -> Instant {
        let mut state = self.0.subscribe();
        loop {
            let end = *state.borrow_and_update();
            if let Some(end) = end {
                return end;
            }
            // `self` holds the sender, so that this never fails.
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the time of the handlers is over.
    pub(super) async fn wait_for_end(&self) {
        sleep_until(self.wait_for_begin().await).await;
    }

    /// Waits for `time`, or until the stop begins.
    pub(super) async fn sleep(&self, time: Duration) {
        // Either way the caller looks whether the stop has begun.
        let _ = timeout(time, self.wait_for_begin()).await;
    }
}
