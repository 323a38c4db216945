//! Runs the work that follows a commit, either before the write is answered, or afterwards in one of a limited
//! number of tasks. After the service throttles such work, no new work starts for a second. Work that does not
//! start is left to a worker.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{runtime::Handle, sync::Notify, time::Instant};

use crate::{
    entity::BackgroundWork,
    error::{Error, ErrorKind, Result},
};

/// How long no background work starts after the service throttled a request.
const THROTTLE_PAUSE: Duration = Duration::from_secs(1);

/// The background tasks of a client.
#[derive(Debug, Default)]
pub(crate) struct BackgroundTasks {
    state: Arc<TaskCounter>,
}

#[derive(Debug, Default)]
struct TaskCounter {
    running: AtomicUsize,
    idle: Notify,
    /// No work starts before this time, because the service throttled an earlier request.
    paused_until: Mutex<Option<Instant>>,
}

/// Counts one running task until it is dropped, even if the task is aborted.
struct CountedTask(Arc<TaskCounter>);

impl CountedTask {
    /// Awaits the work and returns its result. The work counts as running in the meantime.
    async fn count_while_running(self, work: BoxFuture<'static, Result<()>>) -> Result<()> {
        let done = work.await;
        self.0.pause_if_throttled(&done);
        done
    }
}

impl Drop for CountedTask {
    fn drop(&mut self) {
        // Only the last task wakes the waiters, each of which reads the count again.
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// Runs work that a caller waits for. If the caller drops this future, a spawned task continues the work.
struct AwaitedWork(Option<(CountedTask, BoxFuture<'static, Result<()>>)>);

impl Future for AwaitedWork {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Some((running, work)) = &mut self.0 else {
            return Poll::Ready(Err(left_to_worker_error()));
        };
        let done = ready!(work.as_mut().poll(context));
        running.0.pause_if_throttled(&done);
        // Taken out, to keep `drop` from spawning completed work.
        self.0 = None;
        Poll::Ready(done)
    }
}

impl Drop for AwaitedWork {
    fn drop(&mut self) {
        // The write is committed: even if the caller stops waiting for the answer, its copies are written.
        if let (Some((running, work)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(running.count_while_running(work));
        }
    }
}

impl BackgroundTasks {
    /// Runs the work to its end. If `most` is 0 or during a pause, leaves the work to a worker instead. Any other
    /// `most` does not limit how many callers run their work, because a waiting caller starts no further work. Needs
    /// no runtime. If the caller drops the future in a runtime, a task finishes the work.
    pub(crate) async fn run_unless_paused(
        &self,
        most: usize,
        work: BoxFuture<'static, Result<()>>,
    ) -> BackgroundWork {
        if most == 0 || self.state.is_paused() {
            return BackgroundWork::from_result(Err(left_to_worker_error()));
        }
        self.state.running.fetch_add(1, Ordering::SeqCst);
        let running = CountedTask(self.state.clone());
        BackgroundWork::from_result(AwaitedWork(Some((running, work))).await)
    }

    /// Spawns the work if fewer than `most` tasks are running. Otherwise, during a pause, or outside a runtime, leaves
    /// the work to a worker.
    pub(crate) fn begin_task(
        &self,
        most: usize,
        work: BoxFuture<'static, Result<()>>,
    ) -> BackgroundWork {
        let Some((running, runtime)) = self.count_new_task(most) else {
            return BackgroundWork::from_result(Err(left_to_worker_error()));
        };
        let task = runtime.spawn(running.count_while_running(work));
        BackgroundWork::from_work(
            // A task that was aborted with its runtime also leaves the work to a worker.
            async move { task.await.unwrap_or_else(|_| Err(left_to_worker_error())) },
        )
    }

    /// Counts one more task and returns the runtime to spawn it on. Returns `None` without a runtime, during a pause,
    /// and if `most` tasks are already running.
    fn count_new_task(&self, most: usize) -> Option<(CountedTask, Handle)> {
        // Nothing can be spawned without a tokio runtime.
        let runtime = Handle::try_current().ok()?;
        if self.state.is_paused() {
            return None;
        }
        let room = |running: usize| (running < most).then_some(running + 1);
        // Compare and count in one step: two tasks must not both take the last place.
        let admitted = self.state.running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room);
        admitted.ok()?;
        Some((CountedTask(self.state.clone()), runtime))
    }

    /// Waits until no task is running.
    pub(crate) async fn wait_until_idle(&self) {
        loop {
            // Ask before the count is read, in order not to miss a task that ends in between.
            let idle = self.state.idle.notified();
            if self.state.running.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl TaskCounter {
    /// Starts a pause if the work failed because the service throttled it. Later background work then does not
    /// compete with writes that callers wait for.
    fn pause_if_throttled(&self, done: &Result<()>) {
        if done.as_ref().is_err_and(Error::is_throttled) {
            self.pause_tasks();
        }
    }

    fn pause_tasks(&self) {
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + THROTTLE_PAUSE);
    }

    fn is_paused(&self) -> bool {
        let paused = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        paused.is_some_and(|until| Instant::now() < until)
    }
}

pub(super) fn left_to_worker_error() -> Error {
    let message = "the copies in other partitions were left to a worker";
    Error::new(ErrorKind::Contended, message)
}
