//! Fetches the data keys that a page of rows needs, each key once.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use futures_util::future::join_all;

use super::{RowSealer, no_keys_error};
use crate::{
    edm::ValueRef,
    entity::SEAL,
    error::{Error, Result, SealFault},
    row::Row,
    seal::{DataKey, KeyId, KeyScope, key_id_of, seal_key_id_of},
};

/// The data keys of one page, by scope and key id. If a key is not available, the rows that need it fail, not the page.
#[derive(Debug, Default)]
pub(crate) struct PageDataKeys {
    scopes: Vec<KeyScope>,
    /// The position of each scope in `scopes`.
    scope_positions: HashMap<KeyScope, usize>,
    /// The position in `scopes` of each partition's scope, by PartitionKey.
    partitions: HashMap<String, usize>,
    wanted: Vec<(usize, KeyId)>,
    /// The position of each scope and key id in `wanted`.
    positions: HashMap<(usize, KeyId), usize>,
    found: Vec<Result<Arc<DataKey>>>,
}

/// The number of keys that are fetched concurrently.
const FETCHES_AT_ONCE: usize = 16;

/// The number of failed fetches after which no more keys are fetched for a page. Rows contain key ids and scopes, and
/// whoever writes rows can invent them. Without a limit, a page of invented ids would cause a thousand requests to a
/// key store.
pub(super) const MAX_FAILURES: usize = 32;

impl PageDataKeys {
    /// Returns the position in `scopes` of the scope whose keys a partition uses. Adds the scope if it is new. Returns
    /// `None` for a client without keys.
    fn scope_position(&mut self, sealer: &RowSealer, partition_key: &str) -> Option<usize> {
        let keys = sealer.keys.as_ref()?;
        if let Some(at) = self.partitions.get(partition_key) {
            return Some(*at);
        }
        let scope = keys.scope_of(partition_key);
        let scopes = &mut self.scopes;
        let at = *self.scope_positions.entry(scope).or_insert_with_key(|scope| {
            scopes.push(scope.clone());
            scopes.len() - 1
        });
        self.partitions.insert(partition_key.to_owned(), at);
        Some(at)
    }

    /// Adds the keys that a row needs to the keys to fetch.
    pub(crate) fn add_keys_of_row(&mut self, sealer: &RowSealer, row: &Row) -> Result<()> {
        let mut scope = None;
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let Some(id) = key_id_of_property(name, value) else { continue };
            if scope.is_none() {
                scope = self.scope_position(sealer, row.partition_key());
            }
            // A client without keys fetches none. Decrypting the value then fails.
            let Some(scope) = scope else { continue };
            if let Entry::Vacant(entry) = self.positions.entry((scope, id)) {
                entry.insert(self.wanted.len());
                self.wanted.push((scope, id));
            }
        }
        Ok(())
    }

    /// Fetches the keys, several concurrently. Stops after too many failures.
    pub(crate) async fn fetch_keys(&mut self, sealer: &RowSealer) {
        let Some(keys) = &sealer.keys else { return };
        let mut failures = 0;
        for wanted in self.wanted.chunks(FETCHES_AT_ONCE) {
            if failures >= MAX_FAILURES {
                self.found.extend(wanted.iter().map(|(_, id)| Err(too_many_keys(*id))));
                continue;
            }
            let asked = wanted
                .iter()
                .filter_map(|(scope, id)| Some(keys.get(self.scopes.get(*scope)?, *id)));
            let found = join_all(asked).await;
            // Counted over the page: invented key ids must not cost a request each.
            failures += found.iter().filter(|found| found.is_err()).count();
            self.found.extend(found);
        }
    }

    /// Returns the fetched data key `id` for rows of a partition, or the error of fetching it.
    pub(crate) fn fetched_key(&self, partition_key: &str, id: KeyId) -> Result<&DataKey> {
        let scope = self.partitions.get(partition_key);
        let at = scope.and_then(|scope| self.positions.get(&(*scope, id)).copied());
        match at.and_then(|at| self.found.get(at)) {
            Some(Ok(key)) => Ok(key),
            Some(Err(error)) => Err(error.clone()),
            None => Err(no_keys_error("the value is encrypted")),
        }
    }
}

/// Returns the error for a key that was not fetched because too many other keys of its page do not exist.
fn too_many_keys(id: KeyId) -> Error {
    let message = format!(
        "{MAX_FAILURES} other keys of the page cannot be fetched, so the key {id} was not requested; read the row \
         alone"
    );
    Error::seal(SealFault::KeyNotFound(*id.as_bytes()), message)
}

/// Returns the id of the key that encrypted a value. Returns `None` also for a damaged value, whose decryption fails
/// later with its own error.
fn key_id_of_property(name: &[u8], value: ValueRef<'_>) -> Option<KeyId> {
    let ValueRef::Binary(bytes) = value else { return None };
    if name == SEAL.as_bytes() {
        return seal_key_id_of(bytes).ok().flatten();
    }
    key_id_of(bytes).ok().flatten()
}
