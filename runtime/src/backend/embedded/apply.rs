//! Batches inside a transaction: each is checked as a whole, then written as a whole.

use std::collections::HashMap;

use redb::{ReadableTable, Table, WriteTransaction};

use super::{
    catalog::Catalog,
    layout::{self, RowTable, SEAL, rows_name},
};
use crate::{
    backend::rules::{self, Outcome},
    batch::{Operation, Verb, Written},
    edm::Ticks,
    error::Error,
    key::encode_order,
};

/// Why a batch was not applied.
pub(super) enum Refusal {
    /// Its operation of that position may not be done; nothing was written.
    Operation(usize, Error),
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
    tables: HashMap<u64, Table<'t, &'static [u8], &'static [u8]>>,
    /// Whether anything was written.
    pub(super) wrote: bool,
    /// Whether a row was removed, whose Timestamp no row keeps any more.
    pub(super) deleted: bool,
    /// The last row that was written, to tell whether a commit that failed happened.
    pub(super) last: Option<Mark>,
}

/// A row by which a transaction is known: what it holds afterwards.
pub(super) struct Mark {
    pub(super) table: u64,
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl<'t> Group<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction, catalog: &'t Catalog) -> Self {
        let tables = HashMap::new();
        Self { transaction, catalog, tables, wrote: false, deleted: false, last: None }
    }

    /// Applies one batch, or none of it.
    pub(super) fn apply(
        &mut self,
        table: &str,
        operations: &[Operation],
        now: Ticks,
    ) -> Result<Vec<Written>, Refusal> {
        let (_, entry) = self.catalog.get(table).map_err(|error| Refusal::Operation(0, error))?;
        let rows = match self.tables.entry(entry.id) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(closed) => {
                let name = rows_name(entry.id);
                closed.insert(self.transaction.open_table(RowTable::new(&name))?)
            }
        };
        let mut outcomes = Vec::with_capacity(operations.len());
        for (index, operation) in operations.iter().enumerate() {
            outcomes.push(prepare(rows, index, operation, now)?);
        }
        let mut written = Vec::with_capacity(operations.len());
        for (operation, (key, outcome)) in operations.iter().zip(&outcomes) {
            put(rows, key, outcome)?;
            written.push(rules::written(operation, outcome));
            self.deleted |= operation.verb() == Verb::Delete;
        }
        self.wrote = true;
        self.last = outcomes.pop().map(|(key, outcome)| Mark {
            table: entry.id,
            key,
            value: outcome.map(|row| row.as_bytes().to_vec()),
        });
        Ok(written)
    }
}

fn prepare(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
    index: usize,
    operation: &Operation,
    now: Ticks,
) -> Result<(Vec<u8>, Outcome), Refusal> {
    let key = encode_order(operation.row().partition_key(), operation.row().row_key());
    let refused = |error| Refusal::Operation(index, error);
    let current = match rows.get(&*key)? {
        Some(value) => Some(layout::unseal(&key, value.value()).map_err(refused)?),
        None => None,
    };
    let outcome = rules::outcome(current.as_ref(), operation, now).map_err(refused)?;
    Ok((key, outcome))
}

fn put(
    rows: &mut Table<'_, &'static [u8], &'static [u8]>,
    key: &[u8],
    outcome: &Outcome,
) -> Result<(), redb::Error> {
    let Some(row) = outcome else {
        rows.remove(key)?;
        return Ok(());
    };
    let row = row.as_bytes();
    let mut space = rows.insert_reserve(key, row.len() + SEAL)?;
    let (bytes, seal) = space.as_mut().split_at_mut(row.len());
    bytes.copy_from_slice(row);
    seal.copy_from_slice(&layout::seal(key, row));
    Ok(())
}
