//! Turns: one task at a time works on something, and the others wait.
//!
//! A program may keep a future without polling it, even while it waits for another task that needs the
//! turn. A free turn therefore goes to the first task that is polled. A worker that was woken and then not
//! polled for a second loses its turn to a waiting task. A worker that waits for a slow answer keeps it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::timers;

/// The longest time a worker may stay unpolled after a wake. Then a waiting task takes over the turn.
pub const LONGEST_STALL: Duration = Duration::from_secs(1);

/// The right to work on something. One worker has it at a time.
#[derive(Debug, Default)]
pub struct Turn {
    /// The progress of the worker that has the turn, or `None` while the turn is free.
    progress: Mutex<Option<Arc<Progress>>>,
    /// Wakes the tasks that wait for the turn when a worker ends.
    ended: Notify,
}

/// Counts the wakes and polls of a worker. The count is odd from a wake to the next poll.
#[derive(Debug, Default)]
struct Progress(AtomicU64);

/// A task that takes turns, one or several, and works while it has them.
#[derive(Debug, Default)]
pub struct TurnTaker(Arc<Progress>);

/// A turn that a worker has; dropping this frees it.
#[derive(Debug)]
pub struct HeldTurn<'t> {
    turn: &'t Turn,
    progress: Arc<Progress>,
}

/// What a task that waits for a turn has seen: nothing yet, the end of a worker, or a worker that goes on.
#[derive(Debug, Default)]
pub(crate) struct SeenWhileWaiting(Option<SeenTurnTaker>);

/// The worker that has a turn, and the count of its progress when a waiting task looked.
#[derive(Debug)]
struct SeenTurnTaker {
    progress: Arc<Progress>,
    count: u64,
}

/// The waker of a worker's task. Notes each wake in the worker's progress.
struct NotingWaker {
    task: Waker,
    progress: Arc<Progress>,
}

impl TurnTaker {
    /// Runs work that takes turns or waits for them. Counts its wakes and polls.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut waker: Option<(Waker, Waker)> = None;
        poll_fn(|context| {
            self.0.note_poll();
            let task = context.waker();
            let (_, noting) = match waker.take() {
                Some(made) if made.0.will_wake(task) => waker.insert(made),
                _ => {
                    let (task, progress) = (task.clone(), self.0.clone());
                    let noting = NotingWaker { task: task.clone(), progress };
                    waker.insert((task, Waker::from(Arc::new(noting))))
                }
            };
            work.as_mut().poll(&mut Context::from_waker(noting))
        })
        .await
    }
}

impl SeenWhileWaiting {
    /// Returns whether a worker has ended.
    pub(crate) const fn is_for_end(&self) -> bool {
        self.0.is_none()
    }
}

impl Turn {
    /// Takes the turn for a worker. If another one has it, waits until that one ends, or for the time that a
    /// worker may stay unpolled. The caller then calls again, with what this call has seen.
    ///
    /// Without timers, a worker that is not polled is noticed only when the waiting task is woken.
    pub(crate) async fn take_or_wait(
        &self,
        worker: &TurnTaker,
        seen: SeenWhileWaiting,
    ) -> Result<HeldTurn<'_>, SeenWhileWaiting> {
        // Listen before looking; otherwise the end of the worker could be missed.
        let mut ended = pin!(self.ended.notified());
        ended.as_mut().enable();
        let found = match self.try_take(worker, seen) {
            Ok(turn) => return Ok(turn),
            Err(found) => found,
        };
        let has_ended = timers::timeout(LONGEST_STALL, ended).await.is_some();
        Err(SeenWhileWaiting((!has_ended).then_some(found)))
    }

    /// Waits for the turn. Returns `None` after `longest`.
    pub async fn wait_for_turn(
        &self,
        worker: &TurnTaker,
        longest: Duration,
    ) -> Option<HeldTurn<'_>> {
        let until = timers::instant_after(Instant::now(), longest);
        let mut seen = SeenWhileWaiting::default();
        loop {
            match self.take_or_wait(worker, seen).await {
                Ok(turn) => return Some(turn),
                Err(_) if Instant::now() >= until => return None,
                Err(waited) => seen = waited,
            }
        }
    }

    /// Takes the turn if it is free, or if its worker is the one that was seen, had been woken then and was
    /// not polled since. Otherwise returns the worker.
    fn try_take(
        &self,
        worker: &TurnTaker,
        seen: SeenWhileWaiting,
    ) -> Result<HeldTurn<'_>, SeenTurnTaker> {
        let mut holder = self.lock_progress();
        if let Some(progress) = &*holder {
            let found = SeenTurnTaker::look_at(progress);
            if !seen.0.is_some_and(|seen| found.has_stalled_since(&seen)) {
                return Err(found);
            }
        }
        *holder = Some(worker.0.clone());
        Ok(HeldTurn { turn: self, progress: worker.0.clone() })
    }

    fn lock_progress(&self) -> MutexGuard<'_, Option<Arc<Progress>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        {
            let mut worker = self.turn.lock_progress();
            // A turn that was taken over is not this worker's to free.
            worker.take_if(|worker| Arc::ptr_eq(worker, &self.progress));
        }
        self.turn.ended.notify_waiters();
    }
}

impl Progress {
    fn note_wake(&self) {
        self.0.fetch_or(1, Ordering::AcqRel);
    }

    fn note_poll(&self) {
        // Only the worker itself counts up, and a wake leaves an odd count as it is.
        if self.0.load(Ordering::Acquire) % 2 == 1 {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl SeenTurnTaker {
    fn look_at(progress: &Arc<Progress>) -> Self {
        Self { progress: progress.clone(), count: progress.0.load(Ordering::Acquire) }
    }

    /// Returns whether the worker was already woken when it was `earlier`, and was not polled since.
    fn has_stalled_since(&self, earlier: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.progress, &earlier.progress) && self.count == earlier.count;
        is_same && self.count % 2 == 1
    }
}

impl Wake for NotingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Noted first: the poll that follows the wake clears it.
        self.progress.note_wake();
        self.task.wake_by_ref();
    }
}
