//! Applies several waiting batches in one transaction of the engine, each as a whole or not at all.

use std::{collections::HashMap, collections::hash_map::Entry, sync::Arc};

use entable_core::{
    backend::rules,
    batch::{Operation, Written},
    edm::Ticks,
    error::Error,
    row::Row,
};
use redb::{ReadableTable, WriteTransaction};

use crate::{
    catalog::Catalog,
    dictionary::{Dictionary, store_layouts},
    file_format::{RowsDefinition, RowsForWrite, rows_table_name},
    journal_frame::FrameWriter,
    row_changes::{ChangeRecord, RowChange, write_changes},
    row_encoder::RowEncoder,
    store_file::catch_panic,
    stored_row::{RowDamage, StoredRow, TableSeed},
};

/// The reason why a batch was not applied.
pub(crate) enum ApplyError {
    /// The operation at this position is refused; nothing of the batch was written.
    Operation(usize, Error),
    /// The stored row of the operation at this position, with this address, is damaged; nothing of the batch was written.
    DamagedRow(usize, Vec<u8>, RowDamage),
    /// The engine failed.
    Engine(EngineFailure),
}

/// A failure of the engine while it applied a batch.
pub(crate) struct EngineFailure {
    pub(crate) error: redb::Error,
    /// Whether the transaction may have a part of the batch, so that it must not be committed.
    pub(crate) is_torn: bool,
}

impl<E: Into<redb::Error>> From<E> for ApplyError {
    fn from(error: E) -> Self {
        Self::Engine(EngineFailure { error: error.into(), is_torn: false })
    }
}

impl ApplyError {
    /// Builds the error for a failure of the engine after it has begun to write the batch.
    fn torn(error: redb::Error) -> Self {
        Self::Engine(EngineFailure { error, is_torn: true })
    }
}

/// A transaction of the engine that takes several batches, one after another.
pub(crate) struct GroupTransaction<'t> {
    transaction: &'t WriteTransaction,
    catalog: &'t Catalog,
    tables: HashMap<u64, RowsForWrite<'t>>,
    /// The layouts of the file, with those that this transaction has added.
    layouts: Arc<Dictionary>,
    /// Takes the changes down for the journal, if there is one.
    frame: Option<FrameWriter>,
    /// The last change. `None` if nothing was written.
    last_change: Option<LastChangedRow>,
    /// The bytes of the changed rows and their addresses.
    bytes: usize,
}

/// The state that a commit publishes after rows were written.
pub(crate) struct WrittenGroup {
    pub(crate) last_change: LastChangedRow,
    /// The bytes of the changed rows and their addresses.
    pub(crate) bytes: usize,
    /// All layouts of the file.
    pub(crate) layouts: Arc<Dictionary>,
    /// The changes, if they were taken down for the journal.
    pub(crate) frame: Option<FrameWriter>,
}

/// The last changed row of a transaction. After a failed commit, the file is reopened: if it contains the change, the
/// commit happened after all.
pub(crate) struct LastChangedRow {
    pub(crate) table: u64,
    pub(crate) change: RowChange,
}

impl<'t> GroupTransaction<'t> {
    pub(crate) fn new(
        transaction: &'t WriteTransaction,
        catalog: &'t Catalog,
        layouts: Arc<Dictionary>,
        frame: Option<FrameWriter>,
    ) -> Self {
        let tables = HashMap::new();
        Self { transaction, catalog, tables, layouts, frame, last_change: None, bytes: 0 }
    }

    /// Applies one batch to the transaction, as a whole or not at all. Also returns a time that is not
    /// before `now` or any Timestamp that the batch has written or deleted.
    pub(crate) fn apply_batch(
        &mut self,
        table: &str,
        operations: &[Operation],
        now: Ticks,
    ) -> Result<(Vec<Written>, Ticks), ApplyError> {
        let found = self.catalog.get(table);
        let (_, entry) = found.map_err(|error| ApplyError::Operation(0, error))?;
        // Several batches may name one table, which the engine opens only once in a transaction.
        let rows = match self.tables.entry(entry.id) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => {
                let name = rows_table_name(entry.id);
                closed.insert(self.transaction.open_table(RowsDefinition::new(&name))?)
            }
        };
        let seed = TableSeed::of_table(entry.id);
        let current = CurrentRows { rows, seed, layouts: &self.layouts };
        // The engine only reads here. Whatever it does on a damaged page, even a panic, the transaction is unchanged.
        let planned = catch_panic(|| Ok(plan_changes(&current, operations, now)));
        let (mut changes, last) = planned??;
        self.bytes += changes.iter().map(RowChange::byte_len).sum::<usize>();
        let known = self.layouts.len();
        let mut encoder = RowEncoder::new(seed, &entry.name, &mut self.layouts);
        let mut record = ChangeRecord { table: entry.id, frame: self.frame.as_mut() };
        write_changes(rows, &changes, &mut encoder, &mut record).map_err(ApplyError::torn)?;
        // A row and its layout are in one transaction, so no crash leaves one without the other.
        let added = self.layouts.added_after(known);
        store_layouts(self.transaction, added).map_err(ApplyError::torn)?;
        if let Some(frame) = &mut self.frame {
            added.iter().for_each(|layout| frame.put_layout(layout.id, &layout.bytes));
        }
        let both = operations.iter().zip(&changes);
        let written =
            both.map(|(operation, change)| rules::written_answer(operation, change.row.as_ref()));
        let written = written.collect();
        // One change proves that the whole transaction was committed. It must come from the last batch, since a later
        // batch may overwrite earlier changes.
        if let Some(change) = changes.pop() {
            self.last_change = Some(LastChangedRow { table: entry.id, change });
        }
        Ok((written, last))
    }

    /// Returns what was written, or `None` if nothing was. Closes the engine's tables, which a commit requires.
    pub(crate) fn into_written(self) -> Option<WrittenGroup> {
        let Self { layouts, last_change, bytes, frame, .. } = self;
        last_change.map(|last_change| WrittenGroup { last_change, bytes, layouts, frame })
    }
}

/// The rows of a table before a batch changes them.
struct CurrentRows<'c> {
    rows: &'c RowsForWrite<'c>,
    seed: TableSeed,
    layouts: &'c Dictionary,
}

impl CurrentRows<'_> {
    /// Reads the row of a stored value.
    fn read_value(&self, key: &[u8], value: &[u8]) -> Result<Row, RowDamage> {
        StoredRow::open(self.seed, self.layouts, key, value)?.to_row()
    }
}

/// Computes the changes that the operations make, in order, and the latest of `now` and all Timestamps
/// that they write or delete. Nothing is written yet: if an operation is refused, the batch leaves no
/// trace.
fn plan_changes(
    current_rows: &CurrentRows<'_>,
    operations: &[Operation],
    now: Ticks,
) -> Result<(Vec<RowChange>, Ticks), ApplyError> {
    let mut empty = EmptyRange::default();
    let mut last = now;
    let mut changes = Vec::with_capacity(operations.len());
    for (index, operation) in operations.iter().enumerate() {
        let refused = |error| ApplyError::Operation(index, error);
        let key = operation.row().sort_key();
        let follows = empty.contains_key(&key);
        // Only further operations profit from a search of the next row: a single one is a point
        // lookup.
        let found = match operations.len() {
            _ if follows => None,
            1 => {
                let found = current_rows.rows.get(&*key)?;
                found.map(|value| current_rows.read_value(&key, value.value()))
            }
            _ => empty.find_row(current_rows, &key)?,
        };
        let current = match found.transpose() {
            Ok(current) => current,
            Err(damage) => return Err(ApplyError::DamagedRow(index, key, damage)),
        };
        let row = rules::resulting_row(current.as_ref(), operation, now).map_err(refused)?;
        // A row that was written before the clock was set back has a Timestamp after `now`, and its
        // next Timestamp is later still. A deleted row counts with the Timestamp that it had.
        let timestamp = row.as_ref().or(current.as_ref()).and_then(Row::timestamp);
        last = timestamp.map_or(last, |timestamp| last.max(timestamp));
        empty.begin_after(&key);
        changes.push(RowChange { key, row, follows });
    }
    Ok((changes, last))
}

/// A range of addresses known to contain no row: from an address that was looked up to the next stored row.
///
/// New rows mostly arrive in key order, so one search covers many of them.
#[derive(Default)]
struct EmptyRange {
    is_known: bool,
    /// The address before the range.
    after: Vec<u8>,
    /// The address of the next row, or `None` if no row follows.
    before: Option<Vec<u8>>,
}

impl EmptyRange {
    fn contains_key(&self, key: &[u8]) -> bool {
        self.is_known && *key > *self.after && self.before.as_ref().is_none_or(|end| *key < **end)
    }

    /// Looks up the row at an address. Returns `None` if there is no row: `self` then becomes the range from `key` to the
    /// next stored row.
    fn find_row(
        &mut self,
        current_rows: &CurrentRows<'_>,
        key: &[u8],
    ) -> Result<Option<Result<Row, RowDamage>>, redb::Error> {
        let Some(next) = current_rows.rows.range::<&[u8]>(key..)?.next() else {
            *self = Self { is_known: true, after: key.to_vec(), before: None };
            return Ok(None);
        };
        let (found, value) = next?;
        self.is_known = found.value() != key;
        if !self.is_known {
            return Ok(Some(current_rows.read_value(key, value.value())));
        }
        *self = Self { is_known: true, after: key.to_vec(), before: Some(found.value().to_vec()) };
        Ok(None)
    }

    /// Moves the start of the empty range behind `key`, since a planned row takes the address
    /// `key`.
    fn begin_after(&mut self, key: &[u8]) {
        if self.is_known {
            self.after.clear();
            self.after.extend_from_slice(key);
        }
    }
}
