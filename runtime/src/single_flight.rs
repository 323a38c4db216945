//! A map that runs at most one piece of work per key at a time.
//!
//! A *slot* holds the state of one key, and a *turn*. A task that finds no answer in the slot takes
//! the turn and works; tasks that need an answer for the same key wait for the turn and look into
//! the slot again.
//!
//! Programs may keep a future and not poll it, and may even wait meanwhile for a task that needs its
//! turn. So a free turn goes to the first task that is polled, and a worker that was woken and is not
//! polled loses its turn.

use std::{
    collections::HashMap,
    fmt,
    future::{Future, poll_fn},
    hash::Hash,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use tokio::sync::Notify;

use crate::timers;

/// The time for which a worker may stay unpolled after something woke it. A task that waits longer
/// takes the turn over.
const LONGEST_STALL: Duration = Duration::from_secs(1);

/// A map of slots by key. At most one task at a time works for a key; different keys do not wait
/// for each other.
pub(crate) struct SingleFlight<K, S> {
    slots: Mutex<HashMap<K, Arc<Slot<S>>>>,
}

/// The state of one key, and the turn of the task that works for that key.
#[derive(Debug, Default)]
pub(crate) struct Slot<S> {
    turn: Turn,
    state: Mutex<S>,
}

/// The right to work for a key. One worker has it at a time.
#[derive(Debug, Default)]
struct Turn {
    /// The progress of the worker that has the turn; `None` while the turn is free.
    worker: Mutex<Option<Arc<Progress>>>,
    /// Wakes the tasks that wait for the turn when a worker ends.
    ended: Notify,
}

/// Counts the wakes and polls of a worker. The count is odd from a wake to the next poll.
#[derive(Debug, Default)]
struct Progress(AtomicU64);

/// A turn that the present task has; dropping this frees it.
#[derive(Debug)]
struct HeldTurn<'t> {
    turn: &'t Turn,
    progress: Arc<Progress>,
}

/// A worker, and the count of its progress when a waiting task looked.
struct SeenWorker {
    progress: Arc<Progress>,
    count: u64,
}

/// The waker of a worker's task. Notes each wake in the worker's progress.
struct NotingWaker {
    task: Waker,
    progress: Arc<Progress>,
}

impl<K, S> Default for SingleFlight<K, S> {
    fn default() -> Self {
        Self { slots: Mutex::default() }
    }
}

impl<K: fmt::Debug, S: fmt::Debug> fmt::Debug for SingleFlight<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("slots", &self.slots).finish()
    }
}

impl<K: Hash + Eq, S: Default> SingleFlight<K, S> {
    /// Locks the map of slots, to look a slot up without adding it, or to remove slots. A task that
    /// holds a removed slot finishes its work; later tasks get a new slot.
    pub(crate) fn lock_slots(&self) -> MutexGuard<'_, HashMap<K, Arc<Slot<S>>>> {
        // No task leaves the map half changed: a poisoned lock is as good as a sound one.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slot of `key`, and adds it if there is none.
    ///
    /// Before it adds a slot to a map with at least `prune_from` slots, it removes every slot that
    /// no task holds and for which `keep` returns `false`. `keep` gets the slot's state and the
    /// number of slots in the map.
    pub(crate) fn slot_of_key(
        &self,
        key: K,
        prune_from: usize,
        keep: impl Fn(&S, usize) -> bool,
    ) -> Arc<Slot<S>> {
        let mut slots = self.lock_slots();
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        let count = slots.len();
        if count >= prune_from {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1 || keep(&slot.lock_state(), count));
        }
        slots.entry(key).or_default().clone()
    }
}

impl<S> Slot<S> {
    /// Locks the value that the slot keeps for its key. The lock must not be held across an `await`.
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer that `find` takes from the state. If there is none, waits for the turn,
    /// asks `find` once more, and runs `work` if there is still none.
    ///
    /// `work` writes its result into the state itself. If the future is dropped during `work`, another
    /// task takes the turn. If it is not polled for a second after something woke it, another task takes
    /// the turn over: this `work` may then end after a later one, so it must not replace a newer result.
    ///
    /// Without timers, a worker that is not polled is noticed only when the waiting task is woken.
    pub(crate) async fn find_or_run<T>(
        &self,
        mut find: impl FnMut(&S) -> Option<T>,
        work: impl AsyncFnOnce() -> T,
    ) -> T {
        if let Some(answer) = find(&self.lock_state()) {
            return answer;
        }
        let mut seen = None;
        let turn = loop {
            // Listens before it looks, so that it cannot miss the end of the worker.
            let mut ended = pin!(self.turn.ended.notified());
            ended.as_mut().enable();
            match self.turn.try_take(seen) {
                Ok(turn) => break turn,
                Err(worker) => seen = Some(worker),
            }
            if timers::timeout(LONGEST_STALL, ended).await.is_some() {
                seen = None;
                if let Some(answer) = find(&self.lock_state()) {
                    return answer;
                }
            }
        };
        // The task that had the turn before may have left the answer.
        if let Some(answer) = find(&self.lock_state()) {
            return answer;
        }
        turn.run(work()).await
    }
}

impl Turn {
    /// Takes the turn if it is free, or if its worker is the one in `seen` and was woken before and not
    /// polled since. Otherwise returns the worker.
    fn try_take(&self, seen: Option<SeenWorker>) -> Result<HeldTurn<'_>, SeenWorker> {
        let mut worker = self.lock_worker();
        if let Some(progress) = &*worker {
            let found = SeenWorker::look_at(progress);
            if !seen.is_some_and(|seen| found.has_stalled_since(&seen)) {
                return Err(found);
            }
        }
        let progress = Arc::<Progress>::default();
        *worker = Some(progress.clone());
        Ok(HeldTurn { turn: self, progress })
    }

    fn lock_worker(&self) -> MutexGuard<'_, Option<Arc<Progress>>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldTurn<'_> {
    /// Runs the work, and counts its wakes and polls.
    async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut waker: Option<(Waker, Waker)> = None;
        poll_fn(|context| {
            self.progress.note_poll();
            let task = context.waker();
            let (_, noting) = match waker.take() {
                Some(made) if made.0.will_wake(task) => waker.insert(made),
                _ => {
                    let (task, progress) = (task.clone(), self.progress.clone());
                    let noting = NotingWaker { task: task.clone(), progress };
                    waker.insert((task, Waker::from(Arc::new(noting))))
                }
            };
            work.as_mut().poll(&mut Context::from_waker(noting))
        })
        .await
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        {
            let mut worker = self.turn.lock_worker();
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

impl SeenWorker {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt;
    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    #[tokio::test]
    async fn one_task_works_for_a_key_and_the_others_take_its_answer() {
        let flights = SingleFlight::<&str, Option<usize>>::default();
        let runs = AtomicUsize::new(0);
        let get = |key| {
            let slot = flights.slot_of_key(key, 0, |_, _| true);
            let runs = &runs;
            async move {
                let work = async || {
                    tokio::task::yield_now().await;
                    let run = runs.fetch_add(1, Ordering::SeqCst);
                    *slot.lock_state().get_or_insert(run)
                };
                slot.find_or_run(|state| *state, work).await
            }
        };
        assert_eq!(tokio::join!(get("a"), get("a"), get("a")), (0, 0, 0));
        assert_eq!(tokio::join!(get("a"), get("b")), (0, 1));
    }

    #[tokio::test]
    async fn a_dropped_work_passes_its_turn_on() {
        let slot = Slot::<Option<u8>>::default();
        let endless = slot.find_or_run(|state| *state, async || std::future::pending().await);
        assert!(endless.now_or_never().is_none());
        assert_eq!(slot.find_or_run(|state| *state, async || 7).await, 7);
    }

    fn at_once() -> oneshot::Receiver<()> {
        oneshot::channel().1
    }

    /// Returns an answer that is not kept, once `opened` is sent or its sender is dropped.
    async fn wait_for_work(
        slot: &Slot<Option<u8>>,
        opened: oneshot::Receiver<()>,
        answer: u8,
    ) -> u8 {
        let work = async || {
            let _ = opened.await;
            answer
        };
        slot.find_or_run(|state| *state, work).await
    }

    #[test]
    fn a_turn_is_not_kept_for_a_task_that_nobody_polls() {
        let slot = Slot::default();
        let (open, opened) = oneshot::channel();
        let mut first = Box::pin(wait_for_work(&slot, opened, 1));
        let mut second = Box::pin(wait_for_work(&slot, at_once(), 2));
        assert_eq!((&mut first).now_or_never(), None);
        assert_eq!((&mut second).now_or_never(), None);
        open.send(()).unwrap();
        assert_eq!((&mut first).now_or_never(), Some(1));
        assert_eq!(wait_for_work(&slot, at_once(), 3).now_or_never(), Some(3));
        assert_eq!(second.now_or_never(), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_nobody_polls_loses_its_turn_and_not_the_turn_of_another() {
        let slot = Slot::default();
        let (open, opened) = oneshot::channel();
        let mut first = Box::pin(wait_for_work(&slot, opened, 1));
        assert_eq!((&mut first).now_or_never(), None);
        open.send(()).unwrap();
        let began = tokio::time::Instant::now();
        let (open_second, opened) = oneshot::channel();
        let mut second = Box::pin(wait_for_work(&slot, opened, 2));
        assert_eq!(timeout(Duration::from_secs(10), &mut second).await.ok(), None, "it works");
        // The first one ends, and the turn stays with the second.
        assert_eq!(first.await, 1);
        let mut third = Box::pin(wait_for_work(&slot, at_once(), 3));
        assert_eq!(timeout(Duration::from_secs(10), &mut third).await.ok(), None, "it waits");
        open_second.send(()).unwrap();
        assert_eq!(tokio::join!(second, third), (2, 3));
        assert_eq!(began.elapsed().as_secs(), 20);
        let (open, opened) = oneshot::channel();
        let mut fourth = Box::pin(wait_for_work(&slot, opened, 4));
        assert_eq!((&mut fourth).now_or_never(), None);
        open.send(()).unwrap();
        let began = tokio::time::Instant::now();
        assert_eq!(wait_for_work(&slot, at_once(), 5).await, 5);
        assert_eq!(began.elapsed(), LONGEST_STALL);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_work_is_done_once_for_all_who_wait() {
        let flights = Arc::new(SingleFlight::<u8, Option<usize>>::default());
        let runs = Arc::new(AtomicUsize::new(0));
        let tasks = (0..50).map(|_| {
            let (flights, runs) = (flights.clone(), runs.clone());
            tokio::spawn(async move {
                let slot = flights.slot_of_key(1, 0, |_, _| true);
                let work = async || {
                    for _ in 0..100 {
                        tokio::time::sleep(Duration::from_millis(700)).await;
                    }
                    *slot.lock_state().insert(runs.fetch_add(1, Ordering::SeqCst))
                };
                slot.find_or_run(|state| *state, work).await
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            assert_eq!(task.await.unwrap(), 0);
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn unwanted_slots_go_when_one_is_added_and_held_ones_stay() {
        let flights = SingleFlight::<u8, Option<u8>>::default();
        let held = flights.slot_of_key(1, 0, |_, _| true);
        drop(flights.slot_of_key(2, 0, |_, _| true));
        drop(flights.slot_of_key(3, 3, |_, _| false));
        assert_eq!(flights.lock_slots().len(), 3, "there is room for three");
        drop(flights.slot_of_key(4, 3, |_, count| count < 3));
        let mut keys: Vec<u8> = flights.lock_slots().keys().copied().collect();
        keys.sort_unstable();
        assert_eq!(keys, [1, 4]);
        drop(held);
    }
}
