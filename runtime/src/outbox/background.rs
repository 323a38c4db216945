//! Work that goes on after a write was answered: bounded, and left to a worker under pressure.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, time::Instant};

use crate::{
    entity::BackgroundWork,
    error::{Error, ErrorKind, Result},
};

/// How long nothing is done in the background after the service asked for less traffic.
const PAUSE: Duration = Duration::from_secs(1);

/// What is under way in the background of a client.
#[derive(Debug, Default)]
pub(crate) struct Background {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    running: AtomicUsize,
    idle: Notify,
    /// Until when nothing begins.
    paused: Mutex<Option<Instant>>,
}

/// One piece of work, which counts as running until it is dropped.
struct Running(Arc<State>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl Background {
    /// Begins some work, if fewer than `most` are running.
    pub(crate) fn begin(
        &self,
        most: usize,
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) -> BackgroundWork {
        let Some((running, runtime)) = self.admit(most) else {
            return BackgroundWork::finished(Err(left()));
        };
        let state = self.state.clone();
        let task = runtime.spawn(async move {
            let done = work.await;
            if done.as_ref().is_err_and(Error::is_throttled) {
                state.pause();
            }
            drop(running);
            done
        });
        BackgroundWork::from_work(async move { task.await.unwrap_or_else(|_| Err(left())) })
    }

    fn admit(&self, most: usize) -> Option<(Running, Handle)> {
        let runtime = Handle::try_current().ok()?;
        if self.state.is_paused() {
            return None;
        }
        let room = |running: usize| (running < most).then_some(running + 1);
        let admitted = self.state.running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room);
        admitted.ok()?;
        Some((Running(self.state.clone()), runtime))
    }

    /// Returns when nothing is running.
    pub(crate) async fn settled(&self) {
        loop {
            let idle = self.state.idle.notified();
            if self.state.running.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl State {
    fn pause(&self) {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PAUSE);
    }

    fn is_paused(&self) -> bool {
        let paused = *self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.is_some_and(|until| Instant::now() < until)
    }
}

/// What is left to a worker.
fn left() -> Error {
    let message = "the copies in other partitions were left to a worker";
    Error::new(ErrorKind::Contended, message)
}
