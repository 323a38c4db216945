//! Recognises scopes whose keys are all permanently deleted. Lookups by blind token find nothing there.

use std::collections::HashMap;

use super::{RowSealer, fetch::MAX_FAILURES};
use crate::{
    authentic::is_key_gone,
    entity::UntypedPath,
    error::{Error, SealFault},
    plan::TokenScope,
    seal::{KeyProvider, KeyScope},
};

/// Remembers whether the keys of scopes of one page's rows are deleted.
#[derive(Debug, Default)]
pub(crate) struct ShreddedScopes {
    known: HashMap<LookupScopes, bool>,
}

/// The scopes of the keys that a lookup by blind token needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LookupScopes {
    data: KeyScope,
    index: KeyScope,
}

impl RowSealer {
    /// Returns whether a lookup failed because the scope of its rows has neither a data key for writing nor an
    /// blind token key. The scope is taken from the row in the error, otherwise from the path's PartitionKey, otherwise
    /// from `named`. The decision depends on the scope and never on a key id: rows contain ids, and invented ids
    /// would hide rows.
    pub(crate) async fn is_lookup_of_shredded_scope(
        &self,
        error: &Error,
        access: &UntypedPath,
        named: &TokenScope,
    ) -> bool {
        let Some(keys) = self.keys_of_scopes(error) else { return false };
        // The failed row determines its scope best, because a path may leave it open.
        let scopes = match (error.keys(), access.family_of_path()) {
            (Some((partition_key, _)), _) => LookupScopes::scopes_of_partition(keys, partition_key),
            (None, Some(family)) if family.partition.has_tokens() => {
                LookupScopes::of_one_scope(KeyScope::default_scope())
            }
            (None, Some(_)) if access.keys.partition.is_some() => {
                let partition_key = access.keys.partition.as_deref().unwrap_or_default();
                LookupScopes::scopes_of_partition(keys, partition_key)
            }
            (None, _) => match named {
                Some(scope) => LookupScopes::of_one_scope(scope.clone()),
                None => return false,
            },
        };
        scopes.are_keys_gone(keys).await
    }

    /// Returns the key provider if scopes have their own blind token keys and `error` means that a key is missing,
    /// otherwise `None`.
    fn keys_of_scopes(&self, error: &Error) -> Option<&dyn KeyProvider> {
        let is_missing = matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_)));
        let keys = self.keys.as_deref().filter(|keys| keys.has_blind_token_key_per_scope())?;
        (is_missing || is_key_gone(error)).then_some(keys)
    }
}

impl ShreddedScopes {
    /// Returns whether a row cannot be decrypted because the scope of its partition has neither a data key for
    /// writing nor a blind token key.
    pub(crate) async fn is_row_scope_shredded(
        &mut self,
        sealer: &RowSealer,
        error: &Error,
    ) -> bool {
        let (Some(keys), Some((partition_key, _))) = (sealer.keys_of_scopes(error), error.keys())
        else {
            return false;
        };
        let scopes = LookupScopes::scopes_of_partition(keys, partition_key);
        if let Some(are_gone) = self.known.get(&scopes) {
            return *are_gone;
        }
        // Rows choose their PartitionKeys and thereby their scopes. Invented scopes must not cost further requests.
        if self.known.len() >= MAX_FAILURES {
            return false;
        }
        let are_gone = scopes.are_keys_gone(keys).await;
        self.known.insert(scopes, are_gone);
        are_gone
    }
}

impl LookupScopes {
    fn scopes_of_partition(keys: &dyn KeyProvider, partition_key: &str) -> Self {
        Self { data: keys.scope_of(partition_key), index: keys.blind_token_scope(partition_key) }
    }

    fn of_one_scope(scope: KeyScope) -> Self {
        Self { data: scope.clone(), index: scope }
    }

    async fn are_keys_gone(&self, keys: &dyn KeyProvider) -> bool {
        let is_gone = |error: Option<Error>| error.is_some_and(|error| is_key_gone(&error));
        is_gone(keys.primary(&self.data).await.err())
            && is_gone(keys.fetch_blind_token_key(&self.index, None).await.err())
    }
}
