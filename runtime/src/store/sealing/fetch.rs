//! Fetching the data keys that a page of rows needs, each key once.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::join_all;

use super::{RowSealer, keyless};
use crate::{
    edm::ValueRef,
    entity::SEAL,
    error::Result,
    row::Row,
    seal::{DataKey, KeyId, KeyScope, key_id_of, seal_key_id_of},
};

/// The data keys of one page, by scope and key id. A key that cannot be had is an error of the rows
/// that need it, not of the page.
#[derive(Debug, Default)]
pub(crate) struct PageKeys {
    scopes: Vec<KeyScope>,
    /// For each PartitionKey, the index of its scope in `scopes`.
    partitions: HashMap<String, usize>,
    wanted: Vec<(usize, KeyId)>,
    found: Vec<Result<Arc<DataKey>>>,
}

impl PageKeys {
    /// Returns the index of a partition's scope, and adds the scope if it is new.
    fn scope(&mut self, sealer: &RowSealer, partition_key: &str) -> Option<usize> {
        let keys = sealer.keys.as_ref()?;
        if let Some(at) = self.partitions.get(partition_key) {
            return Some(*at);
        }
        let scope = keys.scope_of(partition_key);
        let at = self.scopes.iter().position(|known| *known == scope).unwrap_or_else(|| {
            self.scopes.push(scope);
            self.scopes.len() - 1
        });
        self.partitions.insert(partition_key.to_owned(), at);
        Some(at)
    }

    /// Adds the keys that a row needs to the keys to fetch.
    pub(crate) fn add_row(&mut self, sealer: &RowSealer, row: &Row) -> Result<()> {
        let mut scope = None;
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let Some(id) = id_of(name, value) else { continue };
            if scope.is_none() {
                scope = self.scope(sealer, row.partition_key());
            }
            if let Some(scope) = scope
                && !self.wanted.contains(&(scope, id))
            {
                self.wanted.push((scope, id));
            }
        }
        Ok(())
    }

    /// Fetches all keys concurrently.
    pub(crate) async fn fetch(&mut self, sealer: &RowSealer) {
        let Some(keys) = &sealer.keys else { return };
        let asked = self
            .wanted
            .iter()
            .filter_map(|(scope, id)| Some(keys.get(self.scopes.get(*scope)?, *id)));
        self.found = join_all(asked).await;
    }

    /// Returns the fetched key of that id for rows of a partition.
    pub(crate) fn key(&self, partition_key: &str, id: KeyId) -> Result<&DataKey> {
        let scope = self.partitions.get(partition_key);
        let at =
            self.wanted.iter().position(|(known, wanted)| Some(known) == scope && *wanted == id);
        match at.and_then(|at| self.found.get(at)) {
            Some(Ok(key)) => Ok(key),
            Some(Err(error)) => Err(error.clone()),
            None => Err(keyless("the value is encrypted")),
        }
    }
}

/// Returns the id of the key that sealed a value. A damaged value has none here: decrypting it
/// fails later, with its own error.
fn id_of(name: &[u8], value: ValueRef<'_>) -> Option<KeyId> {
    let ValueRef::Binary(bytes) = value else { return None };
    if name == SEAL.as_bytes() {
        return seal_key_id_of(bytes).ok().flatten();
    }
    key_id_of(bytes).ok().flatten()
}
