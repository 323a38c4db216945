//! How a store is opened.

use std::{path::Path, sync::Arc, time::Duration};

use super::Embedded;
use crate::{
    clock::{Clock, SystemClock},
    error::Result,
};

const MIB: usize = 1024 * 1024;

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// After it is on disk. Writes that wait together share one transaction and one sync. Neither
    /// a crash of the process nor a loss of power loses an acknowledged write.
    #[default]
    Sync,
    /// As soon as readers see it; it is on disk at most `delay` later, or after
    /// [`Embedded::flush`]. A crash loses the writes of the last `delay`, the latest first and
    /// never a part of one; a program that ends in order loses none.
    Relaxed {
        /// The longest time between an acknowledgement and the disk.
        delay: Duration,
    },
}

/// How a store is opened: durability, memory, clock.
///
/// ```
/// use entable::backend::{Durability, EmbeddedOptions};
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
    pub(super) durability: Durability,
    pub(super) cache_bytes: usize,
    pub(super) verify_up_to: u64,
    pub(super) deleting_takes: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cache_bytes: 64 * MIB,
            verify_up_to: 64 * MIB as u64,
            deleting_takes: Duration::ZERO,
            clock: Arc::new(SystemClock),
        }
    }
}

impl EmbeddedOptions {
    /// Every write on disk before it is acknowledged, 64 MiB of cache, the system's clock.
    pub fn new() -> Self {
        Self::default()
    }

    /// When a write is acknowledged.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How much memory pages of the file may take, 64 MiB by default. Each row that is asked for
    /// again and again takes the 4 KiB of its page; the rows of a table too large for the cache are
    /// found several times slower. A scan fills it.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Up to which size a file is looked at page by page when it is opened, as
    /// [`Embedded::verify`] does; 64 MiB by default, which takes some 50 ms. Larger files are
    /// checked row by row as they are read.
    pub fn verify_up_to(mut self, bytes: u64) -> Self {
        self.verify_up_to = bytes;
        self
    }

    /// How long a deleted table's name stays taken, as the service's does for some forty seconds:
    /// creating it again fails with `TableBeingDeleted`. No time by default, and never longer than
    /// the store is open.
    pub fn deleting_takes(mut self, time: Duration) -> Self {
        self.deleting_takes = time;
        self
    }

    /// Where Timestamps come from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the store in that file, or creates it.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Embedded> {
        Embedded::with_options(path.as_ref(), self)
    }
}
