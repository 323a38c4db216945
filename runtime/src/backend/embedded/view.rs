//! What readers see: one snapshot, renewed by the writer after each commit.
//!
//! Beginning a read and opening a table cost as much as finding a row, so all readers between two
//! commits share both. A page holds its snapshot no longer than it takes; then the space of what it
//! saw is free again.

use std::sync::{Arc, OnceLock};

use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase};
use tokio::sync::watch;

use super::{
    catalog::Catalog,
    faults::Place,
    layout::{self, RowTable, rows_name},
};
use crate::{
    error::{Error, ErrorKind, Result},
    key::encode_sort_key,
    row::Row,
};

/// The rows of one table, as readers see them.
pub(super) type RowsView = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// One snapshot.
pub(super) struct View {
    place: Place,
    transaction: ReadTransaction,
    catalog: Arc<Catalog>,
    /// By slot of the catalog, opened when first asked for.
    tables: Box<[OnceLock<RowsView>]>,
}

impl View {
    pub(super) fn new(place: &Place, database: &Database, catalog: &Arc<Catalog>) -> Result<Self> {
        let transaction = database.begin_read().map_err(|error| place.engine(error))?;
        Ok(Self {
            place: place.clone(),
            transaction,
            catalog: catalog.clone(),
            tables: (0..catalog.len()).map(|_| OnceLock::new()).collect(),
        })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The rows of a table.
    pub(super) fn rows(&self, table: &str) -> Result<&RowsView> {
        let (slot, entry) = self.catalog.get(table)?;
        let opened = self.tables.get(slot).ok_or_else(|| self.place.corrupt("no such slot"))?;
        if let Some(rows) = opened.get() {
            return Ok(rows);
        }
        let rows = self.transaction.open_table(RowTable::new(&rows_name(entry.id)));
        let rows = rows.map_err(|error| self.place.engine(error))?;
        Ok(opened.get_or_init(|| rows))
    }

    /// One row.
    pub(super) fn row(
        &self,
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Row>> {
        self.place.guarded(|| {
            let key = encode_sort_key(partition_key, row_key);
            let found = self.rows(table)?.get(&*key);
            let Some(value) = found.map_err(|error| self.place.engine(error))? else {
                return Ok(None);
            };
            let row = layout::unseal(&key, value.value());
            row.map(Some).ok_or_else(|| self.place.damaged(&key))
        })
    }
}

/// What the writer tells the readers.
#[derive(Clone)]
pub(super) enum Reading {
    /// This is the newest snapshot.
    Open(Arc<View>),
    /// Wait: the file is being worked on as a whole.
    Paused,
    /// The store does not work any more.
    Stopped(Arc<str>),
}

/// The newest snapshot; waits while there is none.
pub(super) async fn newest(
    place: &Place,
    readings: &watch::Receiver<Reading>,
) -> Result<Arc<View>> {
    if let Reading::Open(view) = &*readings.borrow() {
        return Ok(view.clone());
    }
    let mut readings = readings.clone();
    let settled = readings.wait_for(|reading| !matches!(reading, Reading::Paused)).await;
    match settled.as_deref() {
        Ok(Reading::Open(view)) => Ok(view.clone()),
        Ok(Reading::Stopped(why)) => Err(place.error(ErrorKind::Backend, why)),
        Ok(Reading::Paused) | Err(_) => Err(stopped(place)),
    }
}

/// The writer is gone.
pub(super) fn stopped(place: &Place) -> Error {
    place.error(ErrorKind::Backend, "it was stopped by a failure, open it again")
}
