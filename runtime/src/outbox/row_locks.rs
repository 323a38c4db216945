//! Locks for rows. Writers of one client that read a row to write it take turns, so that they do
//! not lose races to each other. The row's ETag alone keeps writers of other clients apart, and
//! writers that waited too long: the lock only saves requests.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

use crate::timers;

/// The longest wait for one row. A program can hold a lock for ever with a verb that it began and
/// does not poll, and may even wait for the verb that needs the lock.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The locks of the rows that writers hold or wait for, by a hash of the address. Rows with equal
/// hashes share a lock, which costs time only.
#[derive(Debug, Default)]
pub(crate) struct RowLocks {
    locks: Mutex<HashMap<u64, Arc<Lock<()>>>>,
    hasher: RandomState,
}

/// One writer's place in the queue for a lock, and the lock itself once it is held.
#[derive(Debug)]
struct LockTurn<'l> {
    locks: &'l RowLocks,
    hash: u64,
    lock: Arc<Lock<()>>,
    guard: Option<OwnedMutexGuard<()>>,
}

/// The locks of some rows; dropping this frees them.
#[derive(Debug)]
pub(crate) struct RowsLocked<'l>(
    #[expect(dead_code, reason = "held until it is dropped")] Vec<LockTurn<'l>>,
);

impl RowLocks {
    /// Waits for the locks of rows of a table, given by PartitionKey and RowKey. Writers of one row
    /// get it in the order in which they asked. After a minute a writer goes on without the lock.
    pub(crate) async fn lock_rows<'k>(
        &self,
        table: &str,
        keys: impl IntoIterator<Item = (&'k str, &'k str)>,
    ) -> RowsLocked<'_> {
        // In lower case for every store: two tables that share a lock lose only time.
        let table = table.to_ascii_lowercase();
        let mut hashes: Vec<u64> =
            keys.into_iter().map(|keys| self.hasher.hash_one((&*table, keys))).collect();
        // One order for all writers: two writers of several rows cannot wait for each other.
        hashes.sort_unstable();
        hashes.dedup();
        let mut held = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let lock = {
                let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
                locks.entry(hash).or_default().clone()
            };
            let mut turn = LockTurn { locks: self, hash, lock, guard: None };
            // A free lock needs no timer, which the runtime may lack.
            turn.guard = match turn.lock.clone().try_lock_owned() {
                Ok(guard) => Some(guard),
                Err(_) => turn.wait_for_lock().await,
            };
            held.push(turn);
        }
        RowsLocked(held)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl LockTurn<'_> {
    /// Waits for the lock; `None` after a minute.
    async fn wait_for_lock(&self) -> Option<OwnedMutexGuard<()>> {
        let lock = self.lock.clone().lock_owned();
        timers::timeout(LONGEST_WAIT, lock).await
    }
}

impl Drop for LockTurn<'_> {
    fn drop(&mut self) {
        // Freed first, so that the count below does not include the guard's own reference.
        self.guard = None;
        let mut locks = self.locks.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // The map and this turn: nobody else holds the lock or waits for it.
        if Arc::strong_count(&self.lock) == 2 {
            locks.remove(&self.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_lock_is_kept_while_somebody_wants_it_and_no_longer() {
        let locks = RowLocks::default();
        let first =
            locks.lock_rows("Staff", [("Sales", "1"), ("Sales", "2"), ("Sales", "1")]).await;
        assert_eq!(locks.len(), 2);
        let mut second = Box::pin(locks.lock_rows("STAFF", [("Sales", "2")]));
        assert!((&mut second).now_or_never().is_none());
        assert!(locks.lock_rows("Staff", [("Sales", "3")]).now_or_never().is_some());
        drop(first);
        assert_eq!(locks.len(), 1, "the second one waits for it");
        drop(second.await);
        assert_eq!(locks.len(), 0);
        let first = locks.lock_rows("Staff", [("Sales", "2")]).await;
        let mut gave_up = Box::pin(locks.lock_rows("Staff", [("Sales", "2")]));
        assert!((&mut gave_up).now_or_never().is_none());
        drop(first);
        drop(gave_up);
        assert_eq!(locks.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_goes_on_without_a_lock_that_is_held_for_ever() {
        let locks = RowLocks::default();
        let held = locks.lock_rows("Staff", [("Sales", "1")]).await;
        let began = tokio::time::Instant::now();
        drop(locks.lock_rows("Staff", [("Sales", "1")]).await);
        assert_eq!(began.elapsed(), LONGEST_WAIT);
        assert_eq!(locks.len(), 1, "the first one holds it");
        drop(held);
        assert_eq!(locks.len(), 0);
    }

    #[test]
    fn a_lock_is_waited_for_without_a_runtime() {
        let locks = RowLocks::default();
        let first = locks.lock_rows("Staff", [("Sales", "1")]).now_or_never().unwrap();
        let mut second = Box::pin(locks.lock_rows("Staff", [("Sales", "1")]));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        assert!(second.now_or_never().is_some());
    }
}
