//! A store of rows in a map: the code of the page "Write a store".

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use entable_core::{
    Batch, Clock, Continuation, Error, Result, Row, ServiceCode, SystemClock, Ticks, Written,
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        rules::{self, PageRoom, ScanRange},
    },
    key::encode_sort_key,
    limits,
};

/// A store that keeps rows in a map. They are lost when it is dropped.
#[derive(Debug, Default)]
pub struct MapStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The tables, by their names in lower case.
    tables: BTreeMap<String, Table>,
    /// The Timestamp of the last write.
    last_write: Ticks,
}

#[derive(Debug, Default)]
struct Table {
    name: String,
    /// The rows, by their sort keys.
    rows: BTreeMap<Vec<u8>, Row>,
}

impl State {
    fn table(&mut self, name: &str) -> Result<&mut Table> {
        let table = self.tables.get_mut(&name.to_ascii_lowercase());
        table.ok_or_else(|| rules::table_missing_error(name))
    }
}

impl State {
    fn read(&mut self, request: ReadRequest<'_>) -> Result<Option<Row>> {
        rules::check_read_keys(request.table, request.partition_key, request.row_key)?;
        let key = encode_sort_key(request.partition_key, request.row_key);
        let row = self.table(request.table)?.rows.get(&key);
        row.map(|row| rules::select_properties(row, request.select)).transpose()
    }
}

impl State {
    fn scan(&mut self, scan: ScanRequest<'_>) -> Result<Rows> {
        let mut room = PageRoom::for_scan(&scan)?;
        let date = SystemClock.now().max(self.last_write);
        let mut page = Rows { date: Some(date), ..Rows::default() };
        let range = ScanRange::for_scan(scan.filter, scan.from);
        let table = self.table(scan.table)?;
        // A page of no rows, which `top` may ask for, has no continuation.
        if room.is_full() {
            return Ok(page);
        }
        for row in table.rows.range::<[u8], _>(range).map(|(_, row)| row) {
            if room.is_full() {
                let (partition_key, row_key) = (row.partition_key().to_owned(), row.row_key());
                page.next = Some(Continuation { partition_key, row_key: Some(row_key.to_owned()) });
                break;
            }
            room.take_examined();
            if scan.filter.matches(row)? {
                let row = rules::select_properties(row, scan.select)?;
                room.take_returned(row.byte_len());
                page.rows.push(Ok(row));
            }
        }
        Ok(page)
    }
}

impl State {
    fn apply(&mut self, batch: &Batch) -> Result<Vec<Written>> {
        rules::check_not_empty(batch)?;
        let now = rules::next_write_time(&SystemClock, self.last_write);
        let named = |index| move |error| rules::name_operation_in_error(error, batch, index);
        let table = self.table(batch.table()).map_err(named(0))?;
        let mut changes = Vec::new();
        for (index, operation) in batch.operations().iter().enumerate() {
            let key = operation.row().sort_key();
            let row = rules::resulting_row(table.rows.get(&key), operation, now);
            let row = row.map_err(named(index))?;
            changes.push((key, rules::written_answer(operation, row.as_ref()), row));
        }
        batch.check_deadline()?;
        let mut written = Vec::new();
        for (key, answer, row) in changes {
            written.push(answer);
            match row {
                Some(row) => table.rows.insert(key, row),
                None => table.rows.remove(&key),
            };
        }
        self.last_write = now;
        Ok(written)
    }
}

impl State {
    fn tables(&mut self, request: TableRequest<'_>) -> Result<TableNames> {
        match request {
            TableRequest::Create(name) => self.create(name),
            TableRequest::Delete(name) => self.delete(name),
            TableRequest::List { from, .. } => return Ok(self.list(from)),
        }?;
        Ok(TableNames::default())
    }

    fn create(&mut self, name: &str) -> Result<()> {
        limits::check_table_name(name)?;
        let key = name.to_ascii_lowercase();
        if self.tables.contains_key(&key) {
            let why = "the table already exists";
            return Err(Error::service(ServiceCode::TableAlreadyExists, why).in_table(name));
        }
        self.tables.insert(key, Table { name: name.to_owned(), ..Table::default() });
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<()> {
        let deleted = self.tables.remove(&name.to_ascii_lowercase());
        deleted.map(drop).ok_or_else(|| {
            let why = "the table does not exist";
            Error::service(ServiceCode::ResourceNotFound, why).in_table(name)
        })
    }

    fn list(&self, from: Option<&str>) -> TableNames {
        let first = from.unwrap_or_default().to_ascii_lowercase();
        let mut tables = self.tables.range(first..);
        let names = tables.by_ref().take(1000).map(|(_, table)| table.name.clone()).collect();
        TableNames { names, next: tables.next().map(|(key, _)| key.clone()) }
    }
}

impl MapStore {
    // A lock that another thread poisoned is used on: the maps change only after everything that can fail.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for MapStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("map", false).exclusive()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move { self.state().read(request) })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move { self.state().scan(request) })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move { self.state().apply(batch) })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move { self.state().tables(request) })
    }
}

#[cfg(test)]
entable_conformance::conformance_suite!(map, MapStore::default());
