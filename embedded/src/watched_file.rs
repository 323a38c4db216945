//! The file beneath the engine. Passes reads and writes on, sees which commit each header makes the newest, and
//! keeps the old bytes for copies that are being made.

use std::{
    io,
    ops::Bound,
    sync::{
        Arc, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use entable_core::__runtime::limits::saturating_u64;
use redb::{BackendError, StorageBackend};

use crate::{engine_header::newest_commit, file_copy::FileCopy};

/// The file of an open engine. Clones share the file.
#[derive(Debug, Clone)]
pub(crate) struct WatchedFile(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    file: Box<dyn StorageBackend>,
    /// The number of the newest commit in the last header that was written; 0 before the first.
    written: AtomicU64,
    /// The number of the newest commit that is on disk; 0 before the first.
    synced: AtomicU64,
    /// The least number that a header may make the newest.
    least_commit: AtomicU64,
    /// The number that a refused header would have made the newest; `u64::MAX` if none was refused.
    refused: AtomicU64,
    /// Copies that are being made, until their makers drop them.
    copies: RwLock<Vec<Weak<FileCopy>>>,
}

impl WatchedFile {
    pub(crate) fn new(file: impl StorageBackend) -> Self {
        Self::with_least_commit(file, 0)
    }

    /// Wraps a file so that the engine cannot go back to a commit before number `least_commit`. A header that would do
    /// so is refused before it is written, and the file stays as it is.
    // If the newest commit does not verify, the engine goes back to the one before. It cannot know whether the newest
    // was torn by a crash and never acknowledged, or was damaged later.
    pub(crate) fn with_least_commit(file: impl StorageBackend, least_commit: u64) -> Self {
        Self(Arc::new(Watched {
            file: Box::new(file),
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            least_commit: AtomicU64::new(least_commit),
            refused: AtomicU64::new(u64::MAX),
            copies: RwLock::default(),
        }))
    }

    /// Returns the number of the newest commit that is on disk; 0 if no header was written yet.
    pub(crate) fn newest_synced_commit(&self) -> u64 {
        self.0.synced.load(SeqCst)
    }

    /// Refuses from now on to go back to a commit before number `least_commit`.
    pub(crate) fn raise_least_commit(&self, least_commit: u64) {
        self.0.least_commit.fetch_max(least_commit, SeqCst);
    }

    /// Returns the number of the commit that the engine wanted to go back to, if that was refused.
    pub(crate) fn refused_commit(&self) -> Option<u64> {
        Some(self.0.refused.load(SeqCst)).filter(|number| *number != u64::MAX)
    }

    /// Lets `copy` have the bytes that are there now, also if the engine changes them before they are copied.
    pub(crate) fn keep_bytes_for(&self, copy: &Arc<FileCopy>) {
        let mut copies = self.0.copies.write().unwrap_or_else(PoisonError::into_inner);
        copies.retain(|copy| copy.strong_count() > 0);
        copies.push(Arc::downgrade(copy));
    }

    /// Hands the bytes from `start` to `end`, which are about to change, to the copies that lack them.
    fn save_for_copies(&self, start: u64, end: u64) {
        let copies = self.0.copies.read().unwrap_or_else(PoisonError::into_inner);
        for copy in copies.iter().filter_map(Weak::upgrade) {
            copy.copy_range(self, start, end);
        }
    }

    fn check_newest_commit(&self, number: u64) -> io::Result<()> {
        let least = self.0.least_commit.load(SeqCst);
        if number >= least {
            return Ok(());
        }
        self.0.refused.store(number, SeqCst);
        let what = format!(
            "its newest commit has number {number}, but number {least} was already on disk"
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

impl StorageBackend for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.save_for_copies(len, u64::MAX);
        self.0.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let written = self.0.written.load(SeqCst);
        self.0.file.sync_data()?;
        self.0.synced.store(written, SeqCst);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let newest = if offset == 0 { newest_commit(data) } else { None };
        if let Some(number) = newest {
            self.check_newest_commit(number)?;
        }
        // A length always fits into 64 bits.
        let length = saturating_u64(data.len());
        self.save_for_copies(offset, offset.saturating_add(length));
        self.0.file.write(offset, data)?;
        if let Some(number) = newest {
            self.0.written.store(number, SeqCst);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        // What the next opening writes would be missed.
        let copies = self.0.copies.read().unwrap_or_else(PoisonError::into_inner);
        for copy in copies.iter().filter_map(Weak::upgrade) {
            copy.give_up(io::Error::other(
                "the store was closed, compacted or reopened while its file was copied",
            ));
        }
        self.0.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.query_lock_range(start, end)
    }
}
