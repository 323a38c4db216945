//! Locks for remote lists: writers of one client that lost a race at a list take turns. The list's
//! ETag alone keeps writers of other clients apart.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

use crate::plan::outbox::ListAddress;

/// Number of locks. Lists with equal hashes share one, which costs time only.
const LOCKS: usize = 64;

/// A fixed number of locks; the hash of a remote list's address picks its lock.
#[derive(Debug)]
pub(crate) struct ListLocks([Mutex<()>; LOCKS]);

impl Default for ListLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl ListLocks {
    /// Waits for the lock of a list; dropping the guard frees it. Never returns `None` in practice,
    /// since each hash picks one of the locks.
    pub(crate) async fn lock_list(&self, list: &ListAddress) -> Option<MutexGuard<'_, ()>> {
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
