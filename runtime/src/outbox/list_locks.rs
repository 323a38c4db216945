//! Locks for remote lists: writers of one client that lost a race at a list wait for each other.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

use crate::plan::outbox::ListAddress;

/// How many locks there are; lists whose hashes meet share one.
const LOCKS: usize = 64;

/// A fixed number of locks, one of which each remote list has.
#[derive(Debug)]
pub(crate) struct ListLocks([Mutex<()>; LOCKS]);

impl Default for ListLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl ListLocks {
    /// Waits for the lock of a list.
    pub(crate) async fn lock(&self, list: &ListAddress) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        list.hash(&mut hasher);
        let locks = u64::try_from(LOCKS).unwrap_or(1);
        let lock = usize::try_from(hasher.finish() % locks).unwrap_or_default();
        match self.0.get(lock) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }
}
