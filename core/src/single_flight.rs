//! A map that runs at most one piece of work per key at a time.
//!
//! A *slot* holds the state of one key, and a *turn*. A task that finds no answer in the slot takes
//! the turn and works; tasks that need an answer for the same key wait for the turn and look into
//! the slot again.
//!
//! A turn is lost by a worker that was woken and is not polled, as [`turn`](crate::turn) explains.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::turn::{SeenWhileWaiting, Turn, TurnTaker};

/// A map of slots by key. At most one task at a time works for a key; different keys do not wait
/// for each other.
pub struct SingleFlight<K, S> {
    slots: Mutex<HashMap<K, Arc<FlightSlot<S>>>>,
}

/// The state of one key, and the turn of the task that works for that key.
#[derive(Debug, Default)]
pub struct FlightSlot<S> {
    turn: Turn,
    state: Mutex<S>,
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
    pub fn lock_slots(&self) -> MutexGuard<'_, HashMap<K, Arc<FlightSlot<S>>>> {
        // No task leaves the map half changed: a poisoned lock is as good as a sound one.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slot of `key`, and adds it if it is missing.
    ///
    /// Before adding a slot to a map with at least `prune_from` slots, removes every slot that no task holds
    /// and for which `keep` returns `false`. `keep` gets the slot's state and the number of slots in the map.
    pub fn flight_slot_of_key(
        &self,
        key: K,
        prune_from: usize,
        keep: impl Fn(&S, usize) -> bool,
    ) -> Arc<FlightSlot<S>> {
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

impl<S> FlightSlot<S> {
    /// Locks the value that the slot keeps for its key. The lock must not be held across an `await`.
    pub fn lock_state(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer that `find` takes from the state. If there is none, waits for the turn,
    /// asks `find` once more, and runs `work` if there is still none.
    ///
    /// `work` writes its result into the state itself. If the future is dropped during `work`, another
    /// task takes the turn. If it is not polled for a second after something woke it, another task takes
    /// the turn over: this `work` may then end after a later one, so it must not replace a newer result.
    pub async fn find_or_run<T>(
        &self,
        mut find: impl FnMut(&S) -> Option<T>,
        work: impl AsyncFnOnce() -> T,
    ) -> T {
        if let Some(answer) = find(&self.lock_state()) {
            return answer;
        }
        let (worker, mut waited) = (TurnTaker::default(), SeenWhileWaiting::default());
        let _turn = loop {
            match self.turn.take_or_wait(&worker, waited).await {
                Ok(turn) => break turn,
                Err(seen) => waited = seen,
            }
            if waited.is_for_end()
                && let Some(answer) = find(&self.lock_state())
            {
                return answer;
            }
        };
        // The task that had the turn before may have left the answer.
        if let Some(answer) = find(&self.lock_state()) {
            return answer;
        }
        worker.run(work()).await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures_util::FutureExt;
    use tokio::{sync::oneshot, time::timeout};

    use super::*;
    use crate::turn::LONGEST_STALL;

    #[tokio::test]
    async fn one_task_works_for_a_key_and_the_others_take_its_answer() {
        let flights = SingleFlight::<&str, Option<usize>>::default();
        let runs = AtomicUsize::new(0);
        let get = |key| {
            let slot = flights.flight_slot_of_key(key, 0, |_, _| true);
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
        let slot = FlightSlot::<Option<u8>>::default();
        let endless = slot.find_or_run(|state| *state, async || std::future::pending().await);
        assert!(endless.now_or_never().is_none());
        assert_eq!(slot.find_or_run(|state| *state, async || 7).await, 7);
    }

    fn at_once() -> oneshot::Receiver<()> {
        oneshot::channel().1
    }

    /// Returns an answer that is not kept, once `opened` is sent or its sender is dropped.
    async fn wait_for_work(
        slot: &FlightSlot<Option<u8>>,
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
        let slot = FlightSlot::default();
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
        let slot = FlightSlot::default();
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
                let slot = flights.flight_slot_of_key(1, 0, |_, _| true);
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
        let held = flights.flight_slot_of_key(1, 0, |_, _| true);
        drop(flights.flight_slot_of_key(2, 0, |_, _| true));
        drop(flights.flight_slot_of_key(3, 3, |_, _| false));
        assert_eq!(flights.lock_slots().len(), 3, "there is room for three");
        drop(flights.flight_slot_of_key(4, 3, |_, count| count < 3));
        let mut keys: Vec<u8> = flights.lock_slots().keys().copied().collect();
        keys.sort_unstable();
        assert_eq!(keys, [1, 4]);
        drop(held);
    }
}
