//! Remembers the tables that a client has opened or written.
//!
//! Rows of earlier versions name tables in lower case. On a store where case counts in names, such
//! a row means one of the tables that the client knows.

use std::{
    collections::BTreeSet,
    sync::{PoisonError, RwLock},
};

/// The names of the tables that a client has opened or written, as the program wrote them.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(RwLock<BTreeSet<String>>);

impl KnownTables {
    /// Adds a table's name.
    pub(crate) fn add_table(&self, name: &str) {
        // Most calls add a known name: a read lock is enough for them.
        if name.is_empty() || self.0.read().unwrap_or_else(PoisonError::into_inner).contains(name) {
            return;
        }
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// Returns the known names that differ from `name` in case alone.
    pub(crate) fn other_cases_of(&self, name: &str) -> Vec<String> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_other = |known: &&String| known.eq_ignore_ascii_case(name) && *known != name;
        names.iter().filter(is_other).cloned().collect()
    }
}
