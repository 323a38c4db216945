//! Locks for rows and remote lists. Writers of one client that read before they write take turns, to avoid losing
//! races to each other. Locks only save requests. Correctness depends on ETags, which also protect against writers
//! of other clients and writers that lost a lock or waited too long for one.

use std::{
    collections::{HashMap, hash_map::RandomState},
    future::Future,
    hash::BuildHasher,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    plan::outbox::ListAddress,
    turn::{Turn, TurnTaker},
};

/// The maximum wait for one lock. A writer may wait this long for slow answers of the store.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The locks that writers hold or wait for.
#[derive(Debug, Default)]
pub(crate) struct KeyedLocks {
    turns: Mutex<HashMap<LockKey, Arc<Turn>>>,
    hasher: RandomState,
}

/// A hash of what a lock protects. Rows and lists with equal hashes share a lock, which only costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LockKey(u64);

/// The use of a lock by one writer, which holds it or waits for it. The lock exists while it is used.
struct LockUse<'l> {
    locks: &'l KeyedLocks,
    key: LockKey,
    turn: Arc<Turn>,
}

impl KeyedLocks {
    /// Returns the key of the lock for a row of a table, given by PartitionKey and RowKey.
    pub(crate) fn key_of_row(&self, table: &str, keys: (&str, &str)) -> LockKey {
        // Lower case for every store, because two tables that share a lock only lose time.
        LockKey(self.hasher.hash_one(("row", table.to_ascii_lowercase(), keys)))
    }

    /// Returns the key of the lock for a remote list.
    pub(crate) fn key_of_list(&self, list: &ListAddress) -> LockKey {
        LockKey(self.hasher.hash_one(("list", list)))
    }

    /// Waits for the locks and runs `work` while holding them. Without locks, only runs `work`.
    ///
    /// A writer that was woken but not polled for a second loses its locks to a waiting writer. A writer that has
    /// waited for a minute continues without the lock.
    pub(crate) async fn run_with_locks<T>(
        &self,
        mut keys: Vec<LockKey>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        if keys.is_empty() {
            return work.await;
        }
        // All writers use the same order, so two writers of several rows cannot deadlock.
        keys.sort_unstable();
        keys.dedup();
        let uses: Vec<LockUse<'_>> = keys.into_iter().map(|key| self.use_lock(key)).collect();
        let worker = TurnTaker::default();
        let locked = async {
            let mut held = Vec::with_capacity(uses.len());
            for lock in &uses {
                held.extend(lock.turn.wait_for_turn(&worker, LONGEST_WAIT).await);
            }
            work.as_mut().await
        };
        worker.run(locked).await
    }

    fn use_lock(&self, key: LockKey) -> LockUse<'_> {
        let turn = self.lock_turns().entry(key).or_default().clone();
        LockUse { locks: self, key, turn }
    }

    fn lock_turns(&self) -> MutexGuard<'_, HashMap<LockKey, Arc<Turn>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LockUse<'_> {
    fn drop(&mut self) {
        let mut turns = self.locks.lock_turns();
        // Only the map and this use are left: nobody else holds the lock or waits for it.
        if Arc::strong_count(&self.turn) == 2 {
            turns.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;
    use tokio::{
        sync::oneshot,
        time::{Instant, sleep},
    };

    use super::*;
    use crate::{address::Names, turn::LONGEST_STALL};

    /// Holds the locks of rows of one partition until `end` is sent or its sender is dropped.
    async fn hold(locks: &KeyedLocks, table: &str, rows: &[&str], end: oneshot::Receiver<()>) {
        let keys = rows.iter().map(|row| locks.key_of_row(table, ("Sales", row))).collect();
        locks.run_with_locks(keys, end.map(drop)).await;
    }

    fn at_once() -> oneshot::Receiver<()> {
        oneshot::channel().1
    }

    #[tokio::test]
    async fn a_lock_is_kept_while_somebody_wants_it_and_no_longer() {
        let locks = KeyedLocks::default();
        let (end, ended) = oneshot::channel();
        let mut first = Box::pin(hold(&locks, "Staff", &["1", "2", "1"], ended));
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(locks.lock_turns().len(), 2);
        let mut second = Box::pin(hold(&locks, "STAFF", &["2"], at_once()));
        assert!((&mut second).now_or_never().is_none());
        assert!(hold(&locks, "Staff", &["3"], at_once()).now_or_never().is_some());
        end.send(()).unwrap();
        first.await;
        assert_eq!(locks.lock_turns().len(), 1, "the second one waits for it");
        second.await;
        assert_eq!(locks.lock_turns().len(), 0);
        let mut first = Box::pin(hold(&locks, "Staff", &["2"], oneshot::channel().1));
        let mut gave_up = Box::pin(
            locks.run_with_locks(vec![locks.key_of_row("Staff", ("Sales", "2"))], pending::<()>()),
        );
        assert!((&mut gave_up).now_or_never().is_none());
        assert!((&mut first).now_or_never().is_none());
        drop(gave_up);
        assert!(first.now_or_never().is_some());
        assert_eq!(locks.lock_turns().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_nobody_polls_loses_its_locks_after_a_second() {
        let locks = KeyedLocks::default();
        let (end, ended) = oneshot::channel();
        let mut first = Box::pin(hold(&locks, "Staff", &["1", "2"], ended));
        assert!((&mut first).now_or_never().is_none());
        end.send(()).unwrap();
        let began = Instant::now();
        hold(&locks, "Staff", &["2"], at_once()).await;
        assert_eq!(began.elapsed(), LONGEST_STALL);
        // The lock is free or has another holder, so nobody waits for the first one again.
        hold(&locks, "Staff", &["2"], at_once()).await;
        assert_eq!(began.elapsed(), LONGEST_STALL);
        first.await;
        assert_eq!(locks.lock_turns().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_those_who_wait_gets_the_lock_that_a_writer_loses() {
        let locks = KeyedLocks::default();
        let key = locks.key_of_row("Staff", ("Sales", "1"));
        let (end, ended) = oneshot::channel();
        let mut stalled = Box::pin(hold(&locks, "Staff", &["1"], ended));
        assert!((&mut stalled).now_or_never().is_none());
        end.send(()).unwrap();
        let running = std::cell::Cell::new(0);
        let write = || {
            locks.run_with_locks(vec![key], async {
                assert_eq!(running.replace(1), 0, "one at a time");
                sleep(Duration::from_secs(5)).await;
                running.set(0);
            })
        };
        let began = Instant::now();
        tokio::join!(write(), write(), write());
        assert_eq!(began.elapsed(), LONGEST_STALL + Duration::from_secs(15));
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_waits_for_a_slow_answer_keeps_its_lock_for_a_minute() {
        let locks = KeyedLocks::default();
        let key = || vec![locks.key_of_row("Staff", ("Sales", "1"))];
        let slow = locks.run_with_locks(key(), sleep(Duration::from_secs(3600)));
        let began = Instant::now();
        let second = async {
            locks.run_with_locks(key(), ready(())).await;
            assert_eq!(began.elapsed(), LONGEST_WAIT);
            assert_eq!(locks.lock_turns().len(), 1, "the first one has it");
        };
        tokio::join!(slow, second);
        assert_eq!(locks.lock_turns().len(), 0);
    }

    #[test]
    fn a_lock_is_waited_for_without_a_runtime() {
        let locks = KeyedLocks::default();
        let (end, ended) = oneshot::channel();
        let mut first = Box::pin(hold(&locks, "Staff", &["1"], ended));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(hold(&locks, "Staff", &["1"], at_once()));
        assert!((&mut second).now_or_never().is_none());
        end.send(()).unwrap();
        assert!(first.now_or_never().is_some());
        assert!(second.now_or_never().is_some());
    }

    #[test]
    fn rows_and_lists_have_locks_of_their_own() {
        let locks = KeyedLocks::default();
        let row = Names::ANY_CASE.row_at("Staff", "Sales", "names").to_owned();
        let of_row = locks.key_of_row("Staff", ("Sales", "names"));
        let of_list = locks.key_of_list(&ListAddress { in_blob: false, row: row.clone() });
        let in_blob = locks.key_of_list(&ListAddress { in_blob: true, row });
        assert!(of_row != of_list && of_list != in_blob);
    }
}
