//! The transaction of the engine that is open between writes at once, reads of single rows in it, and the gate that
//! other readers pass before they read.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Instant,
};

use entable_core::{error::Result, row::Row};
use redb::{ReadableTable, WriteTransaction};

use crate::{
    dictionary::Dictionary,
    file_format::{RowsDefinition, rows_table_name},
    job::QueuedBatch,
    snapshot::{Snapshot, copy_stored_row},
    stored_row::{RowDamage, TableSeed},
};

/// Number of reads of changed rows that look into the open transaction after each write. The next one commits it.
// Each takes 2 us more than in a snapshot, a commit some 30 us: they cost half of it, and few tasks read more per write.
// Readers on several threads share a snapshot again even sooner, since one that finds the store locked commits.
pub(crate) const MOST_READS: u32 = 8;

/// Open writes: they are acknowledged, in a transaction of the engine that is not committed yet.
pub(crate) struct OpenWrites {
    pub(crate) transaction: WriteTransaction,
    /// The addresses of the changed rows, by the ids of their tables.
    pub(crate) changed: HashMap<u64, HashSet<Vec<u8>>>,
    /// Number of reads of changed rows since the last write.
    pub(crate) reads: u32,
    /// The bytes of the changed rows and their addresses.
    pub(crate) bytes: usize,
    /// The layouts of the file before the transaction began.
    pub(crate) layouts_before: Arc<Dictionary>,
    /// The time of the first commit before the transaction that is not on disk.
    pub(crate) unsynced_before: Option<Instant>,
}

impl OpenWrites {
    /// Notes that a batch was applied to the table with this id, and has changed as many bytes of rows and addresses.
    pub(crate) fn with_batch(mut self, table: u64, batch: &QueuedBatch, bytes: usize) -> Self {
        self.bytes += bytes;
        self.reads = 0;
        let addresses = batch.operations.iter().map(|operation| operation.row().sort_key());
        self.changed.entry(table).or_default().extend(addresses);
        self
    }

    /// Returns whether an open write has changed the row at an address of a table.
    pub(crate) fn has_changed(&self, table: u64, address: &[u8]) -> bool {
        self.changed.get(&table).is_some_and(|addresses| addresses.contains(address))
    }

    /// Reads a changed row with the selected properties. Returns `None` if an open write has deleted it.
    ///
    /// # Errors
    ///
    /// A failure of the engine. The inner result says why the stored row cannot be read.
    pub(crate) fn read_changed_row(
        &self,
        table: u64,
        address: &[u8],
        layouts: &Dictionary,
        select: Option<&[String]>,
    ) -> Result<Result<Option<Row>, RowDamage>, redb::Error> {
        // The engine would create a missing table, but the transaction has changed a row of this one.
        let name = rows_table_name(table);
        let rows = self.transaction.open_table(RowsDefinition::new(&name))?;
        let found = rows.get(address)?;
        let seed = TableSeed::of_table(table);
        let copy = |value: &[u8]| copy_stored_row(seed, layouts, address, value, select);
        Ok(found.map(|value| copy(value.value())).transpose())
    }
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

/// Where a reader finds a row while there are open writes.
pub(crate) enum FoundRow {
    /// In the open transaction, which has changed it: this is the answer.
    InTransaction(Result<Option<Row>>),
    /// In the newest snapshot: no open write has changed it.
    InSnapshot(Arc<Snapshot>),
}
