//! What a bulk write takes, and how it is gathered into transactions.

use std::collections::HashMap;

use crate::{
    batch::{Batch, Condition, Operation},
    entity::{Point, Stored, TableEntity},
    error::Result,
    plan,
    row::Row,
};

/// What can be written in bulk: an entity, or a reference to one.
pub trait Writable {
    /// The table that it belongs to, unless the caller names another.
    fn table(&self) -> &str;

    /// Its row.
    ///
    /// # Errors
    ///
    /// As for a single insert.
    fn row(&self) -> Result<Row>;
}

impl<E: TableEntity> Writable for E {
    fn table(&self) -> &str {
        E::SCHEMA.table
    }

    fn row(&self) -> Result<Row> {
        plan::prepared(self)
    }
}

/// What can be deleted in bulk: a stored entity, in the version that was read, or a point.
pub trait Deletable {
    /// The table that it belongs to, unless the caller names another.
    fn table(&self) -> &str;

    /// Its removal.
    ///
    /// # Errors
    ///
    /// Keys that cannot be.
    fn delete(&self) -> Result<Operation>;

    /// Whether a missing row is what was wanted.
    fn is_done_when_missing(&self) -> bool;
}

impl<E: TableEntity> Deletable for Stored<E> {
    fn table(&self) -> &str {
        E::SCHEMA.table
    }

    fn delete(&self) -> Result<Operation> {
        let guard = Condition::Match(self.etag());
        Operation::delete(self.partition_key(), self.row_key(), guard)
    }

    fn is_done_when_missing(&self) -> bool {
        false
    }
}

impl<E: TableEntity> Deletable for Point<E> {
    fn table(&self) -> &str {
        E::SCHEMA.table
    }

    fn delete(&self) -> Result<Operation> {
        let (partition_key, row_key) = self.as_access().point()?;
        Operation::delete(partition_key, row_key, Condition::Any)
    }

    fn is_done_when_missing(&self) -> bool {
        true
    }
}

/// One entity's place in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) index: u64,
    pub(super) done_when_missing: bool,
}

/// A transaction in the making: operations and whose they are.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) batch: Batch,
    pub(super) items: Vec<Item>,
}

impl Group {
    pub(super) fn new(table: &str) -> Self {
        Self { batch: Batch::new(table), items: Vec::new() }
    }

    /// Whether the operation fits beside the others: by count, by bytes, and by its row.
    pub(super) fn takes(&self, operation: &Operation) -> bool {
        let bytes = operation.request_bytes().unwrap_or(usize::MAX / 2);
        self.batch.has_room_for(1, bytes) && !self.writes(operation.row().row_key())
    }

    pub(super) fn writes(&self, row_key: &str) -> bool {
        self.batch.writes(row_key)
    }

    /// The same group without one operation, for trying the others again.
    pub(super) fn without(self, failed: usize) -> (Option<Item>, Self) {
        let mut rest = Self::new(self.batch.table());
        let mut dropped = None;
        let operations = self.batch.operations().iter().zip(&self.items).enumerate();
        for (at, (operation, item)) in operations {
            if at == failed {
                dropped = Some(*item);
            } else if rest.batch.push(operation.clone()).is_ok() {
                rest.items.push(*item);
            }
        }
        (dropped, rest)
    }
}

/// The groups that are being filled: one for each partition.
#[derive(Debug, Default)]
pub(super) struct Groups {
    open: HashMap<(String, String), Group>,
    rows: usize,
}

/// Rows that wait for their groups to fill; past it, groups are sent as they are.
const WAITING: usize = 20_000;

impl Groups {
    /// Puts an operation into its partition's group, and gives back the groups that have to go
    /// first.
    pub(super) fn put(
        &mut self,
        table: String,
        operation: Operation,
        item: Item,
    ) -> Result<Vec<Group>> {
        let key = (table, operation.row().partition_key().to_owned());
        let mut ready = Vec::new();
        if self.open.get(&key).is_some_and(|group| !group.takes(&operation)) {
            ready.extend(self.open.remove(&key));
        }
        let group = self.open.entry(key).or_insert_with_key(|(table, _)| Group::new(table));
        group.batch.push(operation)?;
        group.items.push(item);
        self.rows += 1;
        self.rows -= ready.iter().map(|group| group.items.len()).sum::<usize>();
        if self.rows >= WAITING {
            ready.extend(self.drain());
        }
        Ok(ready)
    }

    /// All groups, as they are.
    pub(super) fn drain(&mut self) -> Vec<Group> {
        self.rows = 0;
        self.open.drain().map(|(_, group)| group).filter(|group| !group.items.is_empty()).collect()
    }
}
