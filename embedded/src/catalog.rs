//! The catalog: all tables of the store, by name without regard to case.

use std::cmp::Ordering;

use entable_core::{
    backend::{NameRange, TableNames, rules},
    edm::Ticks,
    error::{Error, Result, ServiceCode},
};
use redb::{ReadableTable, WriteTransaction};

use crate::file_format::{
    CATALOG, CatalogEntry, META, RowsDefinition, TRASH, meta, rows_table_name,
};

/// Number of names in one page of a list of tables.
const PAGE_NAMES: usize = 1000;

/// All tables, sorted by name in lower case. The slot of a table is its position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog(Vec<CatalogEntry>);

/// Compares two names without regard to ASCII case.
fn compare_names(a: &str, b: &str) -> Ordering {
    a.bytes().map(|b| b.to_ascii_lowercase()).cmp(b.bytes().map(|b| b.to_ascii_lowercase()))
}

impl Catalog {
    /// Reads the catalog from the file.
    pub(crate) fn load_catalog(
        table: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self, redb::Error> {
        let mut entries = Vec::new();
        for item in table.iter()? {
            let (key, value) = item?;
            // An entry is always written under its own name: on a damaged page it can be under
            // another.
            let entry = CatalogEntry::decode(value.value())
                .filter(|entry| entry.name.to_ascii_lowercase() == key.value());
            entries.push(entry.ok_or_else(|| {
                redb::Error::Corrupted("a catalog entry cannot be decoded".to_owned())
            })?);
        }
        Ok(Self(entries))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the tables in the order of their names.
    pub(crate) fn entries(&self) -> &[CatalogEntry] {
        &self.0
    }

    fn find_table(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|entry| compare_names(&entry.name, name))
    }

    /// Returns the slot and the entry of a table, or the error `TableNotFound`.
    pub(crate) fn get(&self, name: &str) -> Result<(usize, &CatalogEntry)> {
        let slot = self.find_table(name).ok();
        let found = slot.and_then(|slot| Some((slot, self.0.get(slot)?)));
        found.ok_or_else(|| rules::table_missing_error(name))
    }

    /// Returns a page of the table names in a range from `from` on, and where the next page begins.
    pub(crate) fn list_tables(
        &self,
        from: Option<&str>,
        within: Option<NameRange<'_>>,
    ) -> TableNames {
        let from = from.or(within.map(|range| range.first));
        // If the table that the page should begin with was deleted meanwhile, the next name begins
        // it.
        let start = from.map_or(0, |from| self.find_table(from).unwrap_or_else(|slot| slot));
        let is_within = |entry: &&CatalogEntry| {
            within.is_none_or(|range| compare_names(&entry.name, range.last).is_le())
        };
        let mut rest = self.0.iter().skip(start).take_while(is_within);
        let names = rest.by_ref().take(PAGE_NAMES).map(|entry| entry.name.clone()).collect();
        TableNames { names, next: rest.next().map(|entry| entry.name.to_ascii_lowercase()) }
    }

    /// Fails with `TableAlreadyExists` if there is a table of that name.
    pub(crate) fn refuse_existing(&self, name: &str) -> Result<()> {
        match self.find_table(name) {
            Err(_) => Ok(()),
            Ok(_) => {
                let message = "the table already exists";
                Err(Error::service(ServiceCode::TableAlreadyExists, message).in_table(name))
            }
        }
    }

    /// Returns the entry of a table to delete, or the error `ResourceNotFound`.
    pub(crate) fn get_for_delete(&self, name: &str) -> Result<&CatalogEntry> {
        self.get(name).map(|(_, entry)| entry).map_err(|_| {
            let message = "the table does not exist";
            Error::service(ServiceCode::ResourceNotFound, message).in_table(name)
        })
    }

    /// Returns a copy of the catalog with one more table.
    pub(crate) fn with_table(&self, entry: CatalogEntry) -> Self {
        let mut entries = self.0.clone();
        // `refuse_existing` was called before: the slot is the one where the new name belongs.
        let slot = self.find_table(&entry.name).unwrap_or_else(|slot| slot);
        entries.insert(slot, entry);
        Self(entries)
    }

    /// Returns a copy of the catalog without the table with id `id`.
    pub(crate) fn without_table(&self, id: u64) -> Self {
        Self(self.0.iter().filter(|entry| entry.id != id).cloned().collect())
    }
}

/// Adds a table to the file and returns its catalog entry.
pub(crate) fn add_table(
    transaction: &WriteTransaction,
    name: &str,
    created: Ticks,
) -> Result<CatalogEntry, redb::Error> {
    let mut facts = transaction.open_table(META)?;
    let next = facts.get(meta::NEXT_TABLE)?.and_then(|bytes| bytes.value().try_into().ok());
    let id = next.map_or(1, u64::from_le_bytes);
    // An id is never used again: the rows of a deleted table keep it until maintenance removes
    // them.
    facts.insert(meta::NEXT_TABLE, &(id + 1).to_le_bytes()[..])?;
    let entry = CatalogEntry { id, name: name.to_owned(), created };
    let lower = name.to_ascii_lowercase();
    transaction.open_table(CATALOG)?.insert(&*lower, &*entry.encode())?;
    // Opening creates the engine's table, which a transaction that only reads cannot do.
    transaction.open_table(RowsDefinition::new(&rows_table_name(id)))?;
    Ok(entry)
}

/// Removes a table from the catalog in the file. Its rows stay until maintenance reclaims them.
pub(crate) fn remove_table(
    transaction: &WriteTransaction,
    entry: &CatalogEntry,
) -> Result<(), redb::Error> {
    let lower = entry.name.to_ascii_lowercase();
    transaction.open_table(CATALOG)?.remove(&*lower)?;
    transaction.open_table(TRASH)?.insert(entry.id, ())?;
    write_settings(transaction, Some(entry.id), "")
}

/// Writes the settings of the table with this id, or of the store. An empty text removes them.
pub(crate) fn write_settings(
    transaction: &WriteTransaction,
    table: Option<u64>,
    text: &str,
) -> Result<(), redb::Error> {
    let mut facts = transaction.open_table(META)?;
    let name = meta::settings_name(table);
    if text.is_empty() {
        facts.remove(&*name)?;
    } else {
        facts.insert(&*name, text.as_bytes())?;
    }
    Ok(())
}
