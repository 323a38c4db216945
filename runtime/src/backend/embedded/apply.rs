//! Batches inside a transaction: each is checked as a whole, then written as a whole.

use std::{collections::HashMap, collections::hash_map::Entry as Slot};

use redb::{ReadableTable, WriteTransaction};

use super::{
    catalog::Catalog,
    layout::{self, RowTable, RowsTable, rows_name},
    put::{Change, put_all},
};
use crate::{
    backend::rules,
    batch::{Operation, Verb, Written},
    edm::Ticks,
    error::Error,
    row::Row,
};

/// Why a batch was not applied.
pub(super) enum Refusal {
    /// Its operation of that position may not be done; nothing was written.
    Operation(usize, Error),
    /// The row of its operation of that position is damaged; nothing was written.
    Damaged(usize, Vec<u8>),
    /// The engine failed: the transaction is lost.
    Engine(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Engine(error.into())
    }
}

/// The transaction in which waiting batches are applied.
pub(super) struct Group<'t> {
    transaction: &'t WriteTransaction,
    catalog: &'t Catalog,
    tables: HashMap<u64, RowsTable<'t>>,
    wrote: Wrote,
}

/// What a group left behind.
#[derive(Default)]
pub(super) struct Wrote {
    /// Whether a row was removed, whose Timestamp no row keeps any more.
    pub(super) deleted: bool,
    /// The last change, which tells whether a commit that failed happened; `None`: no change.
    pub(super) last: Option<Mark>,
}

/// A row by which a transaction is known: what it holds afterwards.
pub(super) struct Mark {
    pub(super) table: u64,
    pub(super) change: Change,
}

impl<'t> Group<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction, catalog: &'t Catalog) -> Self {
        Self { transaction, catalog, tables: HashMap::new(), wrote: Wrote::default() }
    }

    /// Applies one batch, or none of it.
    pub(super) fn apply(
        &mut self,
        table: &str,
        operations: &[Operation],
        now: Ticks,
    ) -> Result<Vec<Written>, Refusal> {
        let found = self.catalog.get(table);
        let (_, entry) = found.map_err(|error| Refusal::Operation(0, error))?;
        let rows = match self.tables.entry(entry.id) {
            Slot::Occupied(open) => open.into_mut(),
            Slot::Vacant(closed) => {
                let name = rows_name(entry.id);
                closed.insert(self.transaction.open_table(RowTable::new(&name))?)
            }
        };
        let mut changes = prepare(rows, operations, now)?;
        put_all(rows, &changes)?;
        let both = operations.iter().zip(&changes);
        let written = both.map(|(operation, change)| rules::written(operation, &change.row));
        let written = written.collect();
        self.wrote.deleted |= operations.iter().any(|operation| operation.verb() == Verb::Delete);
        if let Some(change) = changes.pop() {
            self.wrote.last = Some(Mark { table: entry.id, change });
        }
        Ok(written)
    }

    /// What was written, for the commit.
    pub(super) fn finish(self) -> Wrote {
        self.wrote
    }
}

/// What the operations come to; nothing is written yet.
fn prepare(
    rows: &RowsTable<'_>,
    operations: &[Operation],
    now: Ticks,
) -> Result<Vec<Change>, Refusal> {
    let mut gap = Gap::default();
    let mut changes = Vec::with_capacity(operations.len());
    for (index, operation) in operations.iter().enumerate() {
        let refused = |error| Refusal::Operation(index, error);
        let key = operation.row().sort_key();
        let follows = gap.holds(&key);
        let found = match operations.len() {
            _ if follows => None,
            1 => rows.get(&*key)?.map(|value| layout::unseal(&key, value.value())),
            _ => gap.find(rows, &key)?,
        };
        let current = match found {
            Some(None) => return Err(Refusal::Damaged(index, key)),
            current => current.flatten(),
        };
        let row = rules::outcome(current.as_ref(), operation, now).map_err(refused)?;
        gap.narrow(&key);
        changes.push(Change { key, row, follows });
    }
    Ok(changes)
}

/// Addresses known to hold no row: what lies between one that was looked for and the next row.
///
/// New rows mostly come in the order of their keys; then one look answers for all of them.
#[derive(Default)]
struct Gap {
    known: bool,
    after: Vec<u8>,
    /// `None`: the table ends here.
    before: Option<Vec<u8>>,
}

impl Gap {
    fn holds(&self, key: &[u8]) -> bool {
        self.known && *key > *self.after && self.before.as_ref().is_none_or(|end| *key < **end)
    }

    /// What [`layout::unseal`] says of the row with that address; where there is none, the gap is
    /// where it would be.
    fn find(
        &mut self,
        rows: &RowsTable<'_>,
        key: &[u8],
    ) -> Result<Option<Option<Row>>, redb::Error> {
        let Some(next) = rows.range::<&[u8]>(key..)?.next() else {
            *self = Self { known: true, after: key.to_vec(), before: None };
            return Ok(None);
        };
        let (found, value) = next?;
        self.known = found.value() != key;
        if !self.known {
            return Ok(Some(layout::unseal(key, value.value())));
        }
        *self = Self { known: true, after: key.to_vec(), before: Some(found.value().to_vec()) };
        Ok(None)
    }

    /// The gap goes on after a row that is put into it.
    fn narrow(&mut self, key: &[u8]) {
        if self.known {
            self.after.clear();
            self.after.extend_from_slice(key);
        }
    }
}
