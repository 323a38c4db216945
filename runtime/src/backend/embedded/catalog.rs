//! The tables by name, in any case.

use std::cmp::Ordering;

use redb::{ReadableTable, WriteTransaction};

use super::layout::{CATALOG, Entry, META, RowTable, TRASH, meta, rows_name};
use crate::{
    backend::{TableNames, rules},
    edm::Ticks,
    error::{Error, Result, ServiceCode},
};

/// Names of one answer to a list.
const PAGE: usize = 1000;

/// The tables, sorted by name in lower case; a table's slot is its position.
#[derive(Debug, Clone, Default)]
pub(super) struct Catalog(Vec<Entry>);

fn order(a: &str, b: &str) -> Ordering {
    a.bytes().map(|b| b.to_ascii_lowercase()).cmp(b.bytes().map(|b| b.to_ascii_lowercase()))
}

impl Catalog {
    /// The catalog as it is in the file.
    pub(super) fn load(
        table: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self, redb::Error> {
        let mut entries = Vec::new();
        for item in table.iter()? {
            let (key, value) = item?;
            let entry = Entry::decode(value.value())
                .filter(|entry| entry.name.to_ascii_lowercase() == key.value());
            entries.push(entry.ok_or_else(|| {
                redb::Error::Corrupted("an entry of the catalog does not decode".to_owned())
            })?);
        }
        Ok(Self(entries))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|entry| order(&entry.name, name))
    }

    /// The table of that name and its slot.
    pub(super) fn get(&self, name: &str) -> Result<(usize, &Entry)> {
        let slot = self.find(name).ok();
        let found = slot.and_then(|slot| Some((slot, self.0.get(slot)?)));
        found.ok_or_else(|| rules::table_missing(name))
    }

    /// The names from `from` on.
    pub(super) fn list(&self, from: Option<&str>) -> TableNames {
        let start = from.map_or(0, |from| self.find(from).unwrap_or_else(|slot| slot));
        let mut rest = self.0.iter().skip(start);
        let names = rest.by_ref().take(PAGE).map(|entry| entry.name.clone()).collect();
        TableNames { names, next: rest.next().map(|entry| entry.name.to_ascii_lowercase()) }
    }

    /// Refuses a name that is taken.
    pub(super) fn refuse_existing(&self, name: &str) -> Result<()> {
        match self.find(name) {
            Err(_) => Ok(()),
            Ok(_) => {
                let message = "the table exists already";
                Err(Error::service(ServiceCode::TableAlreadyExists, message).in_table(name))
            }
        }
    }

    /// The table to delete.
    pub(super) fn doomed(&self, name: &str) -> Result<&Entry> {
        self.get(name).map(|(_, entry)| entry).map_err(|_| {
            let message = "there is no table of this name";
            Error::service(ServiceCode::ResourceNotFound, message).in_table(name)
        })
    }

    /// The catalog with one more table.
    pub(super) fn with(&self, entry: Entry) -> Self {
        let mut entries = self.0.clone();
        let slot = self.find(&entry.name).unwrap_or_else(|slot| slot);
        entries.insert(slot, entry);
        Self(entries)
    }

    /// The catalog without one table.
    pub(super) fn without(&self, id: u64) -> Self {
        Self(self.0.iter().filter(|entry| entry.id != id).cloned().collect())
    }
}

/// Writes a new table into the file.
pub(super) fn create(
    transaction: &WriteTransaction,
    name: &str,
    created: Ticks,
) -> Result<Entry, redb::Error> {
    let mut facts = transaction.open_table(META)?;
    let next = facts.get(meta::NEXT_TABLE)?.and_then(|bytes| bytes.value().try_into().ok());
    let id = next.map_or(1, u64::from_le_bytes);
    facts.insert(meta::NEXT_TABLE, &(id + 1).to_le_bytes()[..])?;
    let entry = Entry { id, name: name.to_owned(), created };
    let lower = name.to_ascii_lowercase();
    transaction.open_table(CATALOG)?.insert(&*lower, &*entry.encode())?;
    transaction.open_table(RowTable::new(&rows_name(id)))?;
    Ok(entry)
}

/// Takes a table out of the file; its rows are reclaimed later.
pub(super) fn delete(transaction: &WriteTransaction, entry: &Entry) -> Result<(), redb::Error> {
    let lower = entry.name.to_ascii_lowercase();
    transaction.open_table(CATALOG)?.remove(&*lower)?;
    transaction.open_table(TRASH)?.insert(entry.id, ())?;
    Ok(())
}
