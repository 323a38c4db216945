//! Replaces placeholders in keys by blind tokens. A blind token is a keyed hash of a secret value: equal values have equal
//! tokens, so a row can be found by the value without showing it. Only verbs can make tokens, because the key for it is
//! fetched asynchronously. Paths and rows are built earlier, with placeholders.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    edm::ValueRef,
    entity::{CopyRow, EntityRows, ListEntry, RemoteListKeys, Schema, UntypedPath},
    error::{Error, ErrorKind, Result, SealFault},
    key::{RowFamily, TOKEN_PLACEHOLDER, Template},
    row::Row,
    seal::{BlindTokenKey, KeyProvider, KeyScope},
};

/// Makes the blind tokens of secret values in keys. Has no blind token key if no type needs blind tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenMaker {
    keys: TokenKeys,
}

/// The blind token keys for making blind tokens.
#[derive(Debug, Clone, Default)]
enum TokenKeys {
    #[default]
    None,
    /// One blind token key for all partitions.
    One(Arc<BlindTokenKey>),
    /// A blind token key for each scope.
    ByScope(Arc<ScopedKeys>),
}

/// The blind token keys of scopes that have been fetched so far. A scope whose key is missing is recorded. The caller
/// then fetches the key and makes the blind tokens again.
struct ScopedKeys {
    provider: Arc<dyn KeyProvider>,
    known: Mutex<HashMap<KeyScope, Result<Arc<BlindTokenKey>>>>,
    missing: Mutex<BTreeSet<KeyScope>>,
}

/// The scope whose blind token key makes a blind token, or `None` if all partitions share one key.
pub(crate) type TokenScope = Option<KeyScope>;

/// The number of bits in one character of a blind token.
pub(crate) const TOKEN_CHARACTER_BITS: u32 = 5;

/// The blind tokens of one entity under one blind token key, by field name.
type FieldTokens = Vec<(&'static str, String)>;

/// Makes the blind tokens of one entity, once for each scope of its rows.
struct EntityTokens<'t> {
    tokens: &'t TokenMaker,
    schema: &'static Schema,
    /// The row with the secret values.
    values: &'t Row,
    made: Vec<(TokenScope, FieldTokens)>,
}

/// Returns the scope whose blind token key makes the blind tokens of a row. This is the scope of its PartitionKey. It is
/// the default scope if the PartitionKey itself contains a blind token, or if the provider uses one blind token key
/// for all scopes.
pub(crate) fn blind_token_scope(
    keys: &dyn KeyProvider,
    family: &RowFamily,
    partition_key: &str,
) -> KeyScope {
    if keys.has_blind_token_key_per_scope() && !family.partition.has_tokens() {
        keys.blind_token_scope(partition_key)
    } else {
        KeyScope::default_scope()
    }
}

impl ScopedKeys {
    fn blind_token_key_of_scope(&self, scope: &KeyScope) -> Result<Arc<BlindTokenKey>> {
        if let Some(key) = lock_shared(&self.known).get(scope) {
            // Record it for the caller to fetch, because this code cannot wait for a request.
            return key.clone();
        }
        lock_shared(&self.missing).insert(scope.clone());
        Err(unfetched_key(scope))
    }
}

fn lock_shared<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is a single insertion or removal, so a poisoned lock is still consistent.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ScopedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedKeys").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl TokenMaker {
    /// Creates a token maker for entities without blind tokens. Making a token with it fails.
    pub(crate) fn for_types_without_tokens() -> Self {
        Self::default()
    }

    /// Creates a token maker with one blind token key for all partitions.
    pub(crate) fn with_single_key(key: Arc<BlindTokenKey>) -> Self {
        Self { keys: TokenKeys::One(key) }
    }

    /// Creates a token maker with one blind token key for each scope. No key is known yet.
    pub(crate) fn with_key_per_scope(provider: Arc<dyn KeyProvider>) -> Self {
        let (known, missing) = (Mutex::default(), Mutex::default());
        Self { keys: TokenKeys::ByScope(Arc::new(ScopedKeys { provider, known, missing })) }
    }

    /// Returns whether each encryption scope has its own key for blind tokens, instead of one key for all.
    pub(crate) const fn has_key_per_scope(&self) -> bool {
        matches!(self.keys, TokenKeys::ByScope(_))
    }

    /// Returns the scopes whose blind token keys this maker has needed since the last call but not fetched, and the
    /// provider of these keys. Returns `None` if there are none.
    pub(crate) fn take_missing_scopes(&self) -> Option<(Arc<dyn KeyProvider>, BTreeSet<KeyScope>)> {
        let TokenKeys::ByScope(keys) = &self.keys else { return None };
        let missing = std::mem::take(&mut *lock_shared(&keys.missing));
        (!missing.is_empty()).then(|| (keys.provider.clone(), missing))
    }

    /// Stores the blind token key of a scope, or the error of fetching it.
    pub(crate) fn store_blind_token_key(&self, scope: KeyScope, key: Result<Arc<BlindTokenKey>>) {
        if let TokenKeys::ByScope(keys) = &self.keys {
            lock_shared(&keys.known).insert(scope, key);
        }
    }

    fn blind_token_scope(&self, family: &RowFamily, partition_key: &str) -> TokenScope {
        let TokenKeys::ByScope(keys) = &self.keys else { return None };
        Some(blind_token_scope(&*keys.provider, family, partition_key))
    }

    fn blind_token_key_of_scope(
        &self,
        scope: &TokenScope,
        field: &str,
    ) -> Result<Arc<BlindTokenKey>> {
        match (&self.keys, scope) {
            (TokenKeys::One(key), _) => Ok(key.clone()),
            (TokenKeys::ByScope(keys), Some(scope)) => keys.blind_token_key_of_scope(scope),
            (TokenKeys::None, _) | (TokenKeys::ByScope(_), None) => Err(no_blind_token_key(field)),
        }
    }

    fn make_token(
        &self,
        scope: &TokenScope,
        table: &str,
        field: &str,
        value: ValueRef<'_>,
    ) -> Result<String> {
        Ok(self.blind_token_key_of_scope(scope, field)?.token(table, field, value))
    }

    /// Fails if tokens are made by scope and the key of this scope cannot be used now. Without keys, or without a
    /// scope, there is nothing to check: making a token then fails with its own error.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the key has not been fetched, otherwise the error of the key provider.
    pub(crate) fn check_blind_token_key_of_scope(&self, scope: &TokenScope) -> Result<()> {
        match (&self.keys, scope) {
            (TokenKeys::ByScope(keys), Some(scope)) => {
                keys.blind_token_key_of_scope(scope).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Returns the blind token of `chars` characters that is stored with an encrypted property in rows of a scope.
    pub(crate) fn property_token(
        &self,
        scope: &TokenScope,
        table: &str,
        property: &str,
        value: ValueRef<'_>,
        chars: u32,
    ) -> Result<String> {
        let key = self.blind_token_key_of_scope(scope, property)?;
        Ok(key.short_token(table, property, value, chars.saturating_mul(TOKEN_CHARACTER_BITS)))
    }

    /// Adds blind tokens to the keys of all rows of an entity of any version.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the primary lacks a field whose blind token a key needs.
    pub(crate) fn fill_key_tokens_of_rows(
        &self,
        schema: &'static Schema,
        rows: EntityRows,
    ) -> Result<EntityRows> {
        if !schema.has_key_tokens() {
            return Ok(rows);
        }
        let values = rows.primary.clone();
        let mut tokens = self.of_entity(schema, &values);
        let mut primary = rows.primary;
        // An older version may have other fields in its keys.
        for version in schema.versions() {
            primary = tokens.put_into_row(&primary, version.primary()?)?;
        }
        check_complete(schema.primary()?, &primary)?;
        let mut keyed = |copy: CopyRow| {
            let row = tokens.put_into_row(&copy.row, copy.family)?;
            check_complete(copy.family, &row)?;
            Ok(CopyRow { row, family: copy.family })
        };
        let remote_copies = rows.remote_copies.into_iter().map(&mut keyed);
        let remote_copies = remote_copies.collect::<Result<_>>()?;
        let local_copies = rows.local_copies.into_iter().map(&mut keyed);
        let local_copies = local_copies.collect::<Result<_>>()?;
        let local_list_entries = rows.local_list_entries.into_iter().map(|entry| {
            let keys = [primary.partition_key(), &entry.row_key];
            let [_, row_key] = tokens.put_into_keys(keys, entry.family)?;
            Ok(ListEntry { row_key, id: primary.row_key().to_owned(), family: entry.family })
        });
        let local_list_entries = local_list_entries.collect::<Result<_>>()?;
        let remote_lists = rows.remote_lists.into_iter().map(|listed| {
            let keys = [&*listed.partition_key, &listed.row_key];
            let [partition_key, row_key] = tokens.put_into_keys(keys, listed.family)?;
            Ok(RemoteListKeys { partition_key, row_key, family: listed.family })
        });
        let remote_lists = remote_lists.collect::<Result<_>>()?;
        let blobs = rows.blobs;
        Ok(EntityRows {
            primary,
            local_copies,
            remote_copies,
            local_list_entries,
            remote_lists,
            blobs,
        })
    }

    fn of_entity<'t>(&'t self, schema: &'static Schema, values: &'t Row) -> EntityTokens<'t> {
        EntityTokens { tokens: self, schema, values, made: Vec::new() }
    }

    /// Returns the RowKey of a copy's primary. Replaces the placeholders in `row_key` by blind tokens of the values
    /// in `copy`. The primary is in the partition `partition_key`.
    pub(crate) fn primary_row_key_with_tokens(
        &self,
        schema: &'static Schema,
        [partition_key, row_key]: [&str; 2],
        copy: &Row,
    ) -> Result<String> {
        let mut row_key = row_key.to_owned();
        if !schema.has_key_tokens() {
            return Ok(row_key);
        }
        // A copy contains the fields for the tokens in its primary's keys.
        let mut tokens = self.of_entity(schema, copy);
        for version in schema.versions() {
            let keys = [partition_key, &row_key];
            [_, row_key] = tokens.put_into_keys(keys, version.primary()?)?;
        }
        Ok(row_key)
    }

    /// Adds blind tokens of the caller's values to an access path.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a path without PartitionKey if scopes have their own blind token keys, because the
    /// scope follows from the PartitionKey.
    pub(crate) fn fill_tokens_of_path(
        &self,
        schema: &'static Schema,
        access: &UntypedPath,
    ) -> Result<UntypedPath> {
        if !access.needs_key_tokens() {
            return Ok(access.clone());
        }
        let scope = self.scope_of_path(access)?;
        access.with_tokens(|field, value| self.make_token(&scope, schema.table, field, value))
    }

    /// Returns the scope of the rows that an access path reads.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the scope does not follow from the path.
    pub(crate) fn scope_of_path(&self, access: &UntypedPath) -> Result<TokenScope> {
        let Some(family) = access.family_of_path() else { return Err(no_scope_error()) };
        match access.keys.partition.as_deref() {
            // Neither the shared key nor the default scope's key depends on the PartitionKey.
            _ if !self.has_key_per_scope() || family.partition.has_tokens() => {
                Ok(self.blind_token_scope(family, ""))
            }
            Some(partition_key) => Ok(self.blind_token_scope(family, partition_key)),
            None => Err(no_scope_error()),
        }
    }

    /// Returns the scopes whose blind token keys make the blind tokens that a filter compares with `blind` properties:
    /// the scope of the path's PartitionKey, or the scopes that the query names with `in_scopes` if the path has no
    /// PartitionKey.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if neither determines a scope.
    pub(crate) fn scope_of_path_or_query_scopes(
        &self,
        access: &UntypedPath,
        query_scopes: &[TokenScope],
    ) -> Result<Vec<TokenScope>> {
        match self.scope_of_path(access) {
            Err(_) if !query_scopes.is_empty() => Ok(query_scopes.to_vec()),
            scope => Ok(vec![scope?]),
        }
    }

    /// Checks that the blind tokens in a row's keys match the row's values.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` for a blind token of another value.
    pub(crate) fn check_tokens_in_keys(
        &self,
        schema: &'static Schema,
        family: &'static RowFamily,
        row: &Row,
    ) -> Result<()> {
        let scope = self.blind_token_scope(family, row.partition_key());
        let keys = [(&family.partition, row.partition_key()), (&family.row, row.row_key())];
        for (template, key) in keys {
            for (field, found) in template.find_blind_tokens(key).unwrap_or_default() {
                let Some(value) = row.get(field)? else { continue };
                if self.make_token(&scope, schema.table, field, value)? != found {
                    return Err(
                        wrong_token_error(field).at_keys(row.partition_key(), row.row_key())
                    );
                }
            }
        }
        Ok(())
    }
}

impl EntityTokens<'_> {
    /// Returns the row with blind tokens added to its keys.
    fn put_into_row(&mut self, row: &Row, family: &RowFamily) -> Result<Row> {
        let [partition_key, row_key] = self.put_into_keys(row.keys().into(), family)?;
        row.with_keys(&partition_key, &row_key)
    }

    /// Returns the PartitionKey and RowKey of a row of `family`, with placeholders replaced by blind tokens.
    fn put_into_keys(&mut self, keys: [&str; 2], family: &RowFamily) -> Result<[String; 2]> {
        if !family.partition.has_tokens() && !family.row.has_tokens() {
            return Ok(keys.map(str::to_owned));
        }
        let [partition_key, row_key] = keys;
        let tokens =
            self.field_tokens_in_scope(self.tokens.blind_token_scope(family, partition_key))?;
        Ok([
            key_with_tokens(&family.partition, partition_key, tokens),
            key_with_tokens(&family.row, row_key, tokens),
        ])
    }

    /// Returns the blind tokens of the row's fields, made with a scope's key.
    fn field_tokens_in_scope(&mut self, scope: TokenScope) -> Result<&FieldTokens> {
        let at = match self.made.iter().position(|(known, _)| *known == scope) {
            Some(at) => at,
            None => {
                let mut tokens = FieldTokens::new();
                for field in self.schema.token_fields() {
                    if tokens.iter().any(|(known, _)| *known == field) {
                        continue;
                    }
                    if let Some(value) = self.values.get(field)? {
                        let token =
                            self.tokens.make_token(&scope, self.schema.table, field, value)?;
                        tokens.push((field, token));
                    }
                }
                self.made.push((scope, tokens));
                self.made.len() - 1
            }
        };
        // Never fails: the position was found or has just been filled.
        self.made.get(at).map(|(_, tokens)| tokens).ok_or_else(no_scope_error)
    }
}

/// Returns the key with placeholders replaced by blind tokens.
fn key_with_tokens(template: &Template, key: &str, tokens: &FieldTokens) -> String {
    let token = |field: &str| {
        tokens.iter().find(|(known, _)| *known == field).map(|(_, token)| token.as_str())
    };
    // A key that does not match the template contains none of its placeholders.
    template.replace_placeholders(key, token).unwrap_or_else(|| key.to_owned())
}

/// Fails with `is_decode` if the row's key still contains the placeholder of a blind token, because the row lacks
/// the field for the token. Nothing is stored under such a key.
fn check_complete(family: &RowFamily, row: &Row) -> Result<()> {
    for (template, key) in [(&family.partition, row.partition_key()), (&family.row, row.row_key())]
    {
        let tokens = template.find_blind_tokens(key).unwrap_or_default();
        if let Some((field, _)) = tokens.iter().find(|(_, token)| *token == TOKEN_PLACEHOLDER) {
            let message =
                "the key contains a blind token of this field, but the row lacks the field";
            return Err(Error::new(ErrorKind::Decode, message).in_property(field));
        }
    }
    Ok(())
}

fn no_blind_token_key(field: &str) -> Error {
    let message = "the key contains a blind token of this field, but the client has no keys; set them with \
                   `Client::builder().keys(..)`";
    let fault = SealFault::KeyUnavailable { retryable: false };
    Error::seal(fault, message).in_property(field)
}

/// Returns the error for a blind token whose key has not been fetched. `Store::run_with_blind_token_keys`
/// fetches the key and tries again, so its callers never see this error.
fn unfetched_key(scope: &KeyScope) -> Error {
    let message = format!(
        "the blind token key of the scope `{}` was not fetched",
        scope.name().escape_debug()
    );
    Error::seal(SealFault::KeyUnavailable { retryable: true }, message)
}

fn no_scope_error() -> Error {
    let message = "each scope makes blind tokens with a blind token key of its own, and only a whole PartitionKey tells the scope: give the path its PartitionKey, or name the scopes of a filter with `in_scopes(..)`";
    Error::new(ErrorKind::Invalid, message)
}

fn wrong_token_error(field: &str) -> Error {
    let message = "the blind token in the row's key does not match the row's value: another program changed the row; \
                   mend a copy with `check()` and `repair()`";
    Error::new(ErrorKind::Decode, message).in_property(field)
}
