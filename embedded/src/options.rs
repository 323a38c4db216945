//! Options of an embedded store: durability, memory, checks and clock.

#[cfg(feature = "simulation")]
use std::sync::atomic::AtomicUsize;
use std::{sync::Arc, time::Duration};

use entable_core::clock::{Clock, SystemClock};

use crate::journal::COMMITS_BEFORE_JOURNAL;

const MIB: usize = 1024 * 1024;

/// Whether a write is on disk before it is acknowledged, or some time later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// A write is acknowledged when it is on disk. Writes that wait together share one transaction and
    /// one sync. Neither a crash of the process nor a power failure loses an acknowledged write. While the
    /// program keeps writing, the newest writes are in a journal beside the file, which closing the store removes.
    #[default]
    Sync,
    /// A write is acknowledged when later reads see it, and is on disk at most `delay` later or after
    /// `Embedded::flush`. A crash can lose the writes of the last `delay`: a write is lost only with
    /// all later ones, and never in part. Dropping the store loses none. A failure of the disk can lose as
    /// much without a crash, which the next flush reports.
    Relaxed {
        /// The longest time between the acknowledgement of a write and the write to disk.
        delay: Duration,
    },
}

/// Options of an embedded store: durability, memory, checks and clock.
///
/// ```
/// use entable_embedded::{Durability, EmbeddedOptions};
/// # let directory = std::env::temp_dir().join(format!("entable-options-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
///
/// let store = EmbeddedOptions::new()
///     .durability(Durability::Relaxed { delay: std::time::Duration::from_millis(50) })
///     .cache_bytes(16 * 1024 * 1024)
///     .open(directory.join("staff.db"))?;
/// # drop(store);
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct EmbeddedOptions {
    pub(crate) durability: Durability,
    pub(crate) cache_bytes: usize,
    pub(crate) verify_files_up_to_bytes: u64,
    pub(crate) accepts_older: bool,
    pub(crate) deleting_takes: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Number of durable commits before the store gets a journal, or `None` if it gets none.
    pub(crate) commits_before_journal: Option<u32>,
    /// Time that each commit to disk waits in addition, as on a slower disk.
    #[cfg(feature = "simulation")]
    pub(crate) simulated_sync_delay: Duration,
    /// Counts the commits of rows to disk.
    #[cfg(feature = "simulation")]
    pub(crate) sync_count: Option<Arc<AtomicUsize>>,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cache_bytes: 64 * MIB,
            verify_files_up_to_bytes: 64 * MIB as u64,
            accepts_older: false,
            deleting_takes: Duration::ZERO,
            clock: Arc::new(SystemClock),
            commits_before_journal: Some(COMMITS_BEFORE_JOURNAL),
            #[cfg(feature = "simulation")]
            simulated_sync_delay: Duration::ZERO,
            #[cfg(feature = "simulation")]
            sync_count: None,
        }
    }
}

impl EmbeddedOptions {
    /// Returns the default options: every write is on disk before it is acknowledged, 64 MiB of cache,
    /// the clock of the system.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a write is on disk before it is acknowledged.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how many bytes of memory cached pages of the file may take; 64 MiB by default. A row that is
    /// read often takes the 4 KiB of its page. Reads in tables larger than the cache are several times
    /// slower. A scan fills the cache.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the file size, in bytes, up to which opening compares every page with its checksum. The default is 64 MiB,
    /// which takes about 50 ms. In a larger file, each row is checked when it is read. That misses damage outside rows,
    /// so check such a file with `Embedded::verify_copy` now and then.
    ///
    /// If your program is built with `panic = "abort"`, set this high enough for every file: the engine panics on some
    /// damaged pages that were not checked. In other programs the panic is caught and returned as an error.
    pub fn verify_files_up_to_bytes(mut self, bytes: u64) -> Self {
        self.verify_files_up_to_bytes = bytes;
        self
    }

    /// Sets whether to open a file that has gone back to an older state and lacks acknowledged writes. Without this,
    /// opening it fails with `is_rolled_back`. The mark next to the file, which reveals the loss, is reset to the
    /// file's state. A journal that does not belong to the file, or is damaged, gets another name.
    ///
    /// Use it once, after you restored an older copy of the file, or if the last commit or the journal is damaged and you
    /// have no backup.
    ///
    /// ```
    /// use entable_embedded::Embedded;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// # drop(Embedded::open(&path)?);
    /// let store = match Embedded::open(&path) {
    ///     Err(error) if error.is_rolled_back() => Embedded::options().accept_rolled_back(true).open(&path)?,
    ///     opened => opened?,
    /// };
    /// # drop(store);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accept_rolled_back(mut self, accepts: bool) -> Self {
        self.accepts_older = accepts;
        self
    }

    /// Sets how long the name of a deleted table stays taken: creating the table again fails with
    /// `TableBeingDeleted`, as on the service for about 40 s. Zero by default; closing the store frees
    /// all names.
    pub fn deleting_takes(mut self, time: Duration) -> Self {
        self.deleting_takes = time;
        self
    }

    /// Sets the clock that Timestamps come from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets after how many durable commits a store with [`Durability::Sync`] gets a journal. 16 by default; never with
    /// `None`.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    pub fn journal_after_commits(mut self, commits: impl Into<Option<u32>>) -> Self {
        self.commits_before_journal = commits.into();
        self
    }

    /// Makes each commit to disk take this much longer, to measure how a program behaves on a slower disk.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    pub fn simulated_sync_delay(mut self, time: Duration) -> Self {
        self.simulated_sync_delay = time;
        self
    }

    /// Adds 1 to `count` for each commit of rows that is on disk. Tests use it to find out how many writes share a
    /// commit.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    pub fn count_syncs_into(mut self, count: Arc<AtomicUsize>) -> Self {
        self.sync_count = Some(count);
        self
    }
}
