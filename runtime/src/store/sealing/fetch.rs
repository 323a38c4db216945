//! The keys that a page of rows needs, each asked for once.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::join_all;

use super::{Vault, keyless};
use crate::{
    edm::ValueRef,
    entity::SEAL,
    error::Result,
    row::Row,
    seal::{DataKey, KeyId, KeyScope, key_id_of, seal_key_id_of},
};

/// Keys by scope and id; those that cannot be had are errors of the rows that need them.
#[derive(Debug, Default)]
pub(crate) struct Keyring {
    scopes: Vec<KeyScope>,
    /// The place of each partition's scope.
    partitions: HashMap<String, usize>,
    wanted: Vec<(usize, KeyId)>,
    found: Vec<Result<Arc<DataKey>>>,
}

impl Keyring {
    /// The place of a partition's scope.
    fn scope(&mut self, vault: &Vault, partition_key: &str) -> Option<usize> {
        let keys = vault.keys.as_ref()?;
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

    /// Notes the keys that a row needs.
    pub(crate) fn note(&mut self, vault: &Vault, row: &Row) -> Result<()> {
        let mut scope = None;
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let Some(id) = id_of(name, value) else { continue };
            if scope.is_none() {
                scope = self.scope(vault, row.partition_key());
            }
            if let Some(scope) = scope
                && !self.wanted.contains(&(scope, id))
            {
                self.wanted.push((scope, id));
            }
        }
        Ok(())
    }

    /// Asks for all of them at once.
    pub(crate) async fn fetch(&mut self, vault: &Vault) {
        let Some(keys) = &vault.keys else { return };
        let asked = self
            .wanted
            .iter()
            .filter_map(|(scope, id)| Some(keys.get(self.scopes.get(*scope)?, *id)));
        self.found = join_all(asked).await;
    }

    /// The key of that id for the rows of a partition.
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

/// The key of a sealed value; what is damaged is found when it is opened.
fn id_of(name: &[u8], value: ValueRef<'_>) -> Option<KeyId> {
    let ValueRef::Binary(bytes) = value else { return None };
    if name == SEAL.as_bytes() {
        return seal_key_id_of(bytes).ok().flatten();
    }
    key_id_of(bytes).ok().flatten()
}
