//! Replaces placeholders in keys by blind tokens of secret values.

#[cfg(feature = "encrypt")]
use std::sync::Arc;

#[cfg(feature = "encrypt")]
use crate::seal::IndexKey;
use crate::{
    edm::ValueRef,
    entity::{Access, CopyRow, EntityRows, ListEntry, RemoteList, Schema},
    error::{Error, ErrorKind, Result, SealFault},
    key::{Family, TOKEN_PLACEHOLDER, Template},
    row::Row,
};

/// Makes the blind tokens of secret values in keys. It has no key where no entity needs blind
/// tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    #[cfg(feature = "encrypt")]
    key: Option<Arc<IndexKey>>,
}

/// Number of bits in one character of a blind token.
#[cfg(feature = "encrypt")]
pub(crate) const BITS: u32 = 5;

/// The blind tokens of one entity, by field.
type FieldTokens = Vec<(&'static str, String)>;

impl Tokens {
    /// Creates a maker for entities without blind tokens. It fails to make any.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Creates a maker with an index key.
    #[cfg(feature = "encrypt")]
    pub(crate) fn with(key: Arc<IndexKey>) -> Self {
        Self { key: Some(key) }
    }

    #[cfg(feature = "encrypt")]
    fn token(&self, table: &str, field: &str, value: ValueRef<'_>) -> Result<String> {
        let key = self.key.as_ref().ok_or_else(|| no_index_key(field))?;
        Ok(key.token(table, field, value))
    }

    #[cfg(not(feature = "encrypt"))]
    #[allow(clippy::unused_self, reason = "the other form has a key")]
    fn token(&self, _: &str, field: &str, _: ValueRef<'_>) -> Result<String> {
        Err(no_index_key(field))
    }

    /// Returns the blind token that is stored beside an encrypted property, `chars` characters
    /// long.
    #[cfg(feature = "encrypt")]
    pub(crate) fn short(
        &self,
        table: &str,
        property: &str,
        value: ValueRef<'_>,
        chars: u32,
    ) -> Result<String> {
        let key = self.key.as_ref().ok_or_else(|| no_index_key(property))?;
        Ok(key.short_token(table, property, value, chars.saturating_mul(BITS)))
    }

    #[cfg(not(feature = "encrypt"))]
    #[allow(clippy::unused_self, reason = "the other form has a key")]
    pub(crate) fn short(&self, _: &str, property: &str, _: ValueRef<'_>, _: u32) -> Result<String> {
        Err(no_index_key(property))
    }

    /// Puts the blind tokens into the keys of an entity's rows, of any version.
    ///
    /// # Errors
    ///
    /// `is_decode` if the primary lacks a field whose blind token a key needs.
    pub(crate) fn apply_to(&self, schema: &'static Schema, rows: EntityRows) -> Result<EntityRows> {
        if !schema.has_tokens() {
            return Ok(rows);
        }
        let tokens = self.tokens_of(schema, &rows.primary)?;
        let mut primary = rows.primary;
        for version in schema.versions() {
            primary = with_tokens(&primary, version.primary()?, &tokens)?;
        }
        check_complete(schema.primary()?, &primary)?;
        let keyed = |copy: CopyRow| {
            let row = with_tokens(&copy.row, copy.family, &tokens)?;
            check_complete(copy.family, &row)?;
            Ok(CopyRow { row, family: copy.family })
        };
        let remote_copies = rows.remote_copies.into_iter().map(keyed).collect::<Result<_>>()?;
        let local_copies = rows.local_copies.into_iter().map(keyed);
        let local_list_entries = rows.local_list_entries.into_iter().map(|entry| ListEntry {
            row_key: key_with_tokens(&entry.family.row, &entry.row_key, &tokens),
            id: primary.row_key().to_owned(),
            family: entry.family,
        });
        let remote_lists = rows.remote_lists.into_iter().map(|listed| RemoteList {
            partition_key: key_with_tokens(
                &listed.family.partition,
                &listed.partition_key,
                &tokens,
            ),
            row_key: key_with_tokens(&listed.family.row, &listed.row_key, &tokens),
            family: listed.family,
        });
        let remote_lists = remote_lists.collect();
        let (local_copies, local_list_entries) =
            (local_copies.collect::<Result<_>>()?, local_list_entries.collect());
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

    /// Returns the blind tokens of the fields that a row holds.
    fn tokens_of(&self, schema: &'static Schema, row: &Row) -> Result<FieldTokens> {
        let mut tokens = FieldTokens::new();
        for field in schema.token_fields() {
            if tokens.iter().any(|(known, _)| *known == field) {
                continue;
            }
            if let Some(value) = row.get(field)? {
                tokens.push((field, self.token(schema.table, field, value)?));
            }
        }
        Ok(tokens)
    }

    /// Puts blind tokens of the values in `copy` into the RowKey of the copy's primary.
    pub(crate) fn resolve_row_key(
        &self,
        schema: &'static Schema,
        row_key: &str,
        copy: &Row,
    ) -> Result<String> {
        if !schema.has_tokens() {
            return Ok(row_key.to_owned());
        }
        let tokens = self.tokens_of(schema, copy)?;
        let mut row_key = row_key.to_owned();
        for version in schema.versions() {
            row_key = key_with_tokens(&version.primary()?.row, &row_key, &tokens);
        }
        Ok(row_key)
    }

    /// Puts blind tokens of the values that a path was given into the path.
    pub(crate) fn resolve_tokens(
        &self,
        schema: &'static Schema,
        access: &Access,
    ) -> Result<Access> {
        if !access.is_open() {
            return Ok(access.clone());
        }
        access.with_tokens(|field, value| self.token(schema.table, field, value))
    }

    /// Checks that the blind tokens in a row's keys are those of the values in the row.
    ///
    /// # Errors
    ///
    /// `is_decode` if a blind token is that of another value.
    pub(crate) fn check(
        &self,
        schema: &'static Schema,
        family: &'static Family,
        row: &Row,
    ) -> Result<()> {
        let keys = [(&family.partition, row.partition_key()), (&family.row, row.row_key())];
        for (template, key) in keys {
            for (field, found) in template.find_tokens(key).unwrap_or_default() {
                let Some(value) = row.get(field)? else { continue };
                if self.token(schema.table, field, value)? != found {
                    return Err(wrong_token(field).at_keys(row.partition_key(), row.row_key()));
                }
            }
        }
        Ok(())
    }
}

/// Returns the row with blind tokens in its keys.
fn with_tokens(row: &Row, family: &Family, tokens: &FieldTokens) -> Result<Row> {
    let partition_key = key_with_tokens(&family.partition, row.partition_key(), tokens);
    row.with_keys(&partition_key, &key_with_tokens(&family.row, row.row_key(), tokens))
}

/// Returns the key with the blind tokens in place of their placeholders.
fn key_with_tokens(template: &Template, key: &str, tokens: &FieldTokens) -> String {
    let token = |field: &str| {
        tokens.iter().find(|(known, _)| *known == field).map(|(_, token)| token.as_str())
    };
    template.replace_placeholders(key, token).unwrap_or_else(|| key.to_owned())
}

/// Checks that no key holds a placeholder any more, because nothing is stored under such a key.
fn check_complete(family: &Family, row: &Row) -> Result<()> {
    for (template, key) in [(&family.partition, row.partition_key()), (&family.row, row.row_key())]
    {
        let tokens = template.find_tokens(key).unwrap_or_default();
        if let Some((field, _)) = tokens.iter().find(|(_, token)| *token == TOKEN_PLACEHOLDER) {
            let message = "the key has a token of this field, and the row does not hold the field";
            return Err(Error::new(ErrorKind::Decode, message).in_property(field));
        }
    }
    Ok(())
}

fn no_index_key(field: &str) -> Error {
    let message = "the key has a token of this field, and there is no key to make it with: give the client keys with `Client::builder().keys(..)`";
    let fault = SealFault::KeyUnavailable { retryable: false };
    Error::seal(fault, message).in_property(field)
}

fn wrong_token(field: &str) -> Error {
    let message = "the row's key has the token of another value than the row holds: another program changed it; `check()` and `repair()` mend a copy";
    Error::new(ErrorKind::Decode, message).in_property(field)
}
