//! The open file, shared by the writer thread and the callers that write at once or read such writes: one of them has it at
//! a time.

use std::{
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use entable_core::{backend::ReadRequest, error::Result, row::Row};

use crate::{
    open_writes::FoundRow,
    snapshot::{ReaderState, STOPPED_BY_FAILURE},
    writer_store::WriterStore,
};

/// How long the writer thread may wait.
pub(crate) struct Pause {
    /// The time until the next step of maintenance is due, or `None` if none is pending.
    pub(crate) maintenance_after: Option<Duration>,
    /// The time that a group may wait for further batches.
    pub(crate) for_more_batches: Duration,
}

/// The open file behind a lock.
pub(crate) struct SharedStore {
    store: Mutex<WriterStore>,
    /// Number of jobs that were sent to the writer thread and are not done.
    waiting: AtomicUsize,
}

impl SharedStore {
    pub(crate) fn new(store: WriterStore) -> Self {
        Self { store: Mutex::new(store), waiting: AtomicUsize::new(0) }
    }

    /// Runs work of the writer thread, once no caller holds the store. Also returns how long the thread may pause
    /// afterwards. Returns `None` if a thread has panicked while it held the store, whose state is then unknown.
    // Once for each job: a second lock could be in the way of a caller that finds no job waiting.
    pub(crate) fn run<T>(&self, work: impl FnOnce(&mut WriterStore) -> T) -> Option<(T, Pause)> {
        let mut store = self.store.lock().ok()?;
        // First, so that readers need not wait for the work.
        store.commit_open_writes();
        let done = work(&mut store);
        // Half a sync costs less than the second sync that the wait can save.
        let for_more_batches = store.last_sync_duration().map_or(Duration::ZERO, |time| time / 2);
        let maintenance_after = store.time_to_maintenance();
        Some((done, Pause { maintenance_after, for_more_batches }))
    }

    /// Returns whether no job waits for the writer thread.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.load(SeqCst) == 0
    }

    /// Locks the store for a caller, if nobody writes and no job waits. Never waits.
    // The caller must not overtake jobs that were sent before, so it looks at them once it has the store.
    pub(crate) fn lock_if_idle(&self) -> Option<MutexGuard<'_, WriterStore>> {
        let store = self.store.try_lock().ok()?;
        self.is_idle().then_some(store)
    }

    /// Reads one row in the open writes, if there are some. Returns `None`, without waiting, if the reader has to pass the
    /// gate: somebody else holds the store, a job waits, whose first step is the commit, or the look has failed.
    pub(crate) fn try_read_open_writes(
        &self,
        request: ReadRequest<'_>,
    ) -> Option<Result<Option<Row>>> {
        // In a statement of its own, so that the store is free while the snapshot is read.
        let found = self.lock_if_idle()?.look_into_open_writes(request)?;
        Some(match found {
            FoundRow::InTransaction(answer) => answer,
            FoundRow::InSnapshot(snapshot) => snapshot.read_row(request),
        })
    }

    /// Commits the open writes for a reader. Returns `false`, and does nothing, while somebody else holds the store.
    pub(crate) fn try_commit_open_writes(&self) -> bool {
        match self.store.try_lock() {
            Ok(mut store) => {
                store.commit_open_writes();
                true
            }
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Poisoned(store)) => {
                // A thread has panicked while it held the store. Its last snapshot lacks writes.
                let stopped = ReaderState::Stopped(STOPPED_BY_FAILURE.into());
                store.into_inner().reader_state.send_replace(stopped);
                true
            }
        }
    }

    /// Notes that a job is about to be sent.
    pub(crate) fn note_sent(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }

    /// Notes that the writer thread has done jobs.
    pub(crate) fn note_done(&self, jobs: usize) {
        self.waiting.fetch_sub(jobs, SeqCst);
    }
}
