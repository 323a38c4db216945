//! Verifies blind tokens in keys by making them again from the decrypted values. Blind token keys are fetched once per page.

use std::{collections::HashMap, sync::Arc};

use super::{RowSealer, fetch::MAX_FAILURES};
use crate::{
    entity::Schema,
    error::{Error, Result, SealFault},
    key::RowFamily,
    plan::TokenMaker,
    row::Row,
    seal::{BlindTokenKey, KeyScope, token_version},
};

/// The blind token keys that one page of rows needs, cached by scope and key version. Version `None` means the key in use.
pub(crate) struct PageTokenKeys<'v> {
    sealer: &'v RowSealer,
    known: HashMap<(KeyScope, Option<u32>), Result<Arc<BlindTokenKey>>>,
    failures: usize,
}

impl<'v> PageTokenKeys<'v> {
    pub(crate) fn new(sealer: &'v RowSealer) -> Self {
        Self { sealer, known: HashMap::new(), failures: 0 }
    }

    async fn blind_token_key_of_scope(
        &mut self,
        scope: &KeyScope,
        version: Option<u32>,
    ) -> Result<Arc<BlindTokenKey>> {
        let name = (scope.clone(), version);
        if let Some(key) = self.known.get(&name) {
            return key.clone();
        }
        // Rows choose their PartitionKeys and thereby their scopes. Invented scopes must not cost further requests.
        if self.failures >= MAX_FAILURES {
            return Err(too_many_scopes(scope));
        }
        let key = self.sealer.fetch_blind_token_key(scope, version).await;
        self.failures += usize::from(key.is_err());
        self.known.insert(name, key.clone());
        key
    }

    /// Makes the blind tokens of the row's values again, and fails if the tokens in its keys differ. The row was
    /// then moved, or its values were exchanged.
    pub(crate) async fn check_tokens_in_keys(
        &mut self,
        schema: &'static Schema,
        family: &'static RowFamily,
        row: &Row,
    ) -> Result<()> {
        let keys = [(&family.partition, row.partition_key()), (&family.row, row.row_key())];
        let first = keys.iter().find_map(|(template, key)| {
            template
                .find_blind_tokens(key)
                .unwrap_or_default()
                .first()
                .and_then(|(_, t)| token_version(t))
        });
        let Some(spare) = first else { return Ok(()) };
        let scope = self.sealer.blind_token_scope(family, row.partition_key());
        let current = self.blind_token_key_of_scope(&scope, None).await?;
        let mut refused = None;
        // The token only contains two bits of the version, which may mean an earlier or the next key.
        for version in key_versions(current.version(), spare) {
            let key = if version == current.version() {
                Ok(current.clone())
            } else {
                self.blind_token_key_of_scope(&scope, Some(version)).await
            };
            match key.and_then(|key| {
                TokenMaker::with_single_key(key).check_tokens_in_keys(schema, family, row)
            }) {
                Ok(()) => return Ok(()),
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        refused.map_or(Ok(()), Err)
    }
}

/// Returns the error for a blind token key that was not fetched because too many others of its page are not available.
fn too_many_scopes(scope: &KeyScope) -> Error {
    let message = format!(
        "{MAX_FAILURES} other blind token keys that the page needs cannot be had, so that the scope `{}` was not asked for its own: read the row alone",
        scope.name().escape_debug()
    );
    Error::seal(SealFault::KeyUnavailable { retryable: true }, message)
}

/// Returns the versions of the blind token key that the two bits in a blind token may mean: the latest up to `current`, then
/// the next, which another process may already use.
fn key_versions(current: u32, spare: u32) -> impl Iterator<Item = u32> {
    let behind = (current % 4 + 4 - spare) % 4;
    let earlier = current.checked_sub(behind).filter(|version| *version > 0);
    let later = (behind > 0).then(|| current.saturating_add(4 - behind));
    earlier.into_iter().chain(later)
}

#[cfg(test)]
mod tests {
    use super::key_versions;

    #[test]
    fn a_token_is_of_the_latest_key_or_the_next() {
        let of = |current, spare| key_versions(current, spare).collect::<Vec<_>>();
        assert_eq!(of(1, 1), [1]);
        assert_eq!(of(1, 2), [2]);
        assert_eq!(of(2, 1), [1, 5]);
        assert_eq!(of(4, 0), [4]);
        assert_eq!(of(5, 0), [4, 8]);
        assert_eq!(of(5, 2), [2, 6]);
    }
}
