//! Facts that the store file has besides its tables.

use entable_core::edm::Ticks;
use redb::{Database, ReadableDatabase, ReadableTable};

use crate::{
    file_format::{META, StoreId, meta},
    journal::JournalFacts,
    timestamp_bound::decode_bound,
};

/// The id of a store, the bound of its Timestamps, and the facts of its journal.
pub(crate) struct StoredFacts {
    /// `None` if the store has no id.
    pub(crate) store: Option<StoreId>,
    /// `MIN` if no row was written so far.
    pub(crate) bound: Ticks,
    /// `None` if the store never had a journal.
    pub(crate) journal: Option<JournalFacts>,
}

impl StoredFacts {
    pub(crate) fn read(database: &Database) -> Result<Self, redb::Error> {
        let facts = database.begin_read()?.open_table(META)?;
        let store = store_id(&facts)?;
        let bound = match facts.get(meta::TICK)? {
            Some(bytes) => decode_bound(bytes.value())?,
            None => Ticks::MIN,
        };
        Ok(Self { store, bound, journal: JournalFacts::read(&facts)? })
    }
}

/// Returns the id of a store. `None` if it has none.
pub(crate) fn store_id(
    facts: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<StoreId>, redb::Error> {
    Ok(facts.get(meta::STORE)?.and_then(|bytes| bytes.value().try_into().ok()))
}
