//! The format of the file: the engine's tables and the bytes in them, as `docs/embedded-format.md`
//! specifies them.

use std::str::from_utf8;

use entable_core::edm::Ticks;
use redb::{Table, TableDefinition};

/// The version of the file format.
pub(crate) const FORMAT: u32 = 1;

/// The table of the database engine (redb) that holds facts about the whole file, by the names in
/// [`meta`]: the version of the format, the bound of Timestamps, and the id of the
/// next entity table.
pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entable.meta");
/// The engine's table of all entity tables: the name in lower case, and a [`CatalogEntry`].
pub(crate) const CATALOG: TableDefinition<'_, &str, &[u8]> =
    TableDefinition::new("entable.catalog");
/// The engine's table of deleted entity tables whose rows still take space, by id.
pub(crate) const TRASH: TableDefinition<'_, u64, ()> = TableDefinition::new("entable.trash");

/// The engine's table of the layouts of rows, by id.
pub(crate) const LAYOUTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("entable.layouts");

/// The definition of the engine's table with the rows of one entity table. Its keys are
/// [`encode_sort_key`](entable_core::key::encode_sort_key) of the row's keys, its values those of [`RowEncoder`](crate::row_encoder::RowEncoder).
pub(crate) type RowsDefinition<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;
/// The rows of one entity table, open for the writer.
pub(crate) type RowsForWrite<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// A random number that a store gets when its file is created. A backup is another store.
pub(crate) type StoreId = [u8; 16];

/// A random number that each [journal](crate::journal) gets.
pub(crate) type JournalId = [u8; 16];

/// The names of the facts in [`META`].
pub(crate) mod meta {
    /// Name of the entry with the version of the file format, a `u32`:
    /// [`FORMAT`].
    pub(crate) const FORMAT: &str = "format";
    /// Name of the entry with the [bound of Timestamps](crate::timestamp_bound), as `i64` ticks.
    pub(crate) const TICK: &str = "tick";
    /// Name of the entry with the [`StoreId`]. A store without it has no [mark](crate::mark).
    pub(crate) const STORE: &str = "store";
    /// Name of the entry with the [`JournalFacts`](crate::journal::JournalFacts). A store without it never had a journal.
    pub(crate) const JOURNAL: &str = "journal";
    /// Name of the entry with the id of the next table to be created, a `u64`.
    pub(crate) const NEXT_TABLE: &str = "next table";
    /// Name of the entry with the settings of the store, a text.
    pub(crate) const SETTINGS: &str = "settings";

    /// Returns the name of the entry with the settings of the table with this id, or of the store.
    pub(crate) fn settings_name(table: Option<u64>) -> String {
        table.map_or_else(|| SETTINGS.to_owned(), |id| format!("{SETTINGS}.{id:016x}"))
    }
}

/// Returns the name of the engine's table with the rows of an entity table.
pub(crate) fn rows_table_name(id: u64) -> String {
    format!("rows.{id:016x}")
}

/// The catalog's entry for one entity table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogEntry {
    pub(crate) id: u64,
    /// The name in the case that the table was created with.
    pub(crate) name: String,
    pub(crate) created: Ticks,
}

/// The first byte of every catalog entry: the table is in use. No other state exists so far.
const LIVE: u8 = 1;

impl CatalogEntry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![LIVE];
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.created.get().to_le_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (state, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (created, name) = rest.split_first_chunk()?;
        (*state == LIVE).then_some(())?;
        Some(Self {
            id: u64::from_le_bytes(*id),
            created: Ticks::new(i64::from_le_bytes(*created))?,
            name: from_utf8(name).ok()?.to_owned(),
        })
    }
}
