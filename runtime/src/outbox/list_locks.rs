//! Locks for remote lists: writers of one client that lost a race at a list take turns. The list's
//! ETag alone keeps writers of other clients apart, and writers that waited too long.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use tokio::sync::{Mutex, MutexGuard};

use crate::{plan::outbox::ListAddress, timers};

/// Number of locks. Lists with equal hashes share one, which costs time only.
const LOCKS: usize = 64;

/// The longest wait for a list. A program can hold a lock for ever with a verb that it began and does
/// not poll, and may even wait for the verb that needs the lock.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A fixed number of locks; the hash of a remote list's address picks its lock.
#[derive(Debug)]
pub(crate) struct ListLocks([Mutex<()>; LOCKS]);

impl Default for ListLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl ListLocks {
    /// Waits for the lock of a list; dropping the guard frees it. Returns `None` after a minute: the
    /// writer goes on without the lock.
    pub(crate) async fn lock_list(&self, list: &ListAddress) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        list.hash(&mut hasher);
        let locks = u64::try_from(LOCKS).unwrap_or(1);
        let lock = usize::try_from(hasher.finish() % locks).unwrap_or_default();
        let lock = self.0.get(lock)?;
        match lock.try_lock() {
            // A free lock needs no timer, which the runtime may lack.
            Ok(guard) => Some(guard),
            Err(_) => timers::timeout(LONGEST_WAIT, lock.lock()).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::address::RowAddress;

    #[tokio::test(start_paused = true)]
    async fn a_writer_goes_on_without_a_lock_that_is_held_for_ever() {
        let locks = ListLocks::default();
        let row = RowAddress {
            table: "Staff".into(),
            partition_key: "Sales".into(),
            row_key: "names".into(),
        };
        let list = ListAddress { in_blob: false, row };
        let held = locks.lock_list(&list).await;
        assert!(held.is_some());
        let began = Instant::now();
        let second = timeout(Duration::from_secs(3600), locks.lock_list(&list)).await;
        assert!(second.is_ok_and(|lock| lock.is_none()));
        assert_eq!(began.elapsed(), LONGEST_WAIT);
        drop(held);
        assert!(locks.lock_list(&list).await.is_some());
    }
}
