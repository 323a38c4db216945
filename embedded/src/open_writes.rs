//! The transaction of the engine that is open between writes at once, and the gate that readers pass before they read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Instant,
};

use redb::WriteTransaction;

use crate::dictionary::Dictionary;

/// Open writes: they are acknowledged, in a transaction of the engine that is not committed yet.
pub(crate) struct OpenWrites {
    pub(crate) transaction: WriteTransaction,
    /// The bytes of the changed rows and their addresses.
    pub(crate) bytes: usize,
    /// The layouts of the file before the transaction began.
    pub(crate) layouts_before: Arc<Dictionary>,
    /// The time of the first commit before the transaction that is not on disk.
    pub(crate) unsynced_before: Option<Instant>,
}

/// The gate that readers pass before they take a snapshot. It is closed while the newest snapshot lacks acknowledged
/// writes.
#[derive(Debug, Default)]
pub(crate) struct ReaderGate {
    is_closed: AtomicBool,
    waiting: AtomicUsize,
}

/// A reader that waits at the gate, counted until it is dropped.
pub(crate) struct WaitingReader<'g>(&'g AtomicUsize);

impl Drop for WaitingReader<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl ReaderGate {
    /// Returns whether readers have to wait.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(SeqCst)
    }

    /// Closes the gate. Comes before the acknowledgement of a write that is not in the newest snapshot.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, SeqCst);
    }

    /// Opens the gate, after a snapshot with all acknowledged writes was published.
    pub(crate) fn open(&self) {
        self.is_closed.store(false, SeqCst);
    }

    /// Counts a reader that is about to wait.
    pub(crate) fn enter(&self) -> WaitingReader<'_> {
        self.waiting.fetch_add(1, SeqCst);
        WaitingReader(&self.waiting)
    }

    /// Returns whether readers wait.
    pub(crate) fn has_readers(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }
}
