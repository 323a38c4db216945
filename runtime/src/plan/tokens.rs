//! Tokens of secret values, put where an entity's keys hold their places.

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

/// What makes tokens; nothing, where an entity has none in its keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    #[cfg(feature = "encrypt")]
    key: Option<Arc<IndexKey>>,
}

/// Bits of a character.
#[cfg(feature = "encrypt")]
pub(crate) const BITS: u32 = 5;

/// A token for each field that has one.
type Made = Vec<(&'static str, String)>;

impl Tokens {
    /// For entities without tokens.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Made with that key.
    #[cfg(feature = "encrypt")]
    pub(crate) fn with(key: Arc<IndexKey>) -> Self {
        Self { key: Some(key) }
    }

    #[cfg(feature = "encrypt")]
    fn token(&self, table: &str, field: &str, value: ValueRef<'_>) -> Result<String> {
        let key = self.key.as_ref().ok_or_else(|| missing(field))?;
        Ok(key.token(table, field, value))
    }

    #[cfg(not(feature = "encrypt"))]
    #[allow(clippy::unused_self, reason = "the other form has a key")]
    fn token(&self, _: &str, field: &str, _: ValueRef<'_>) -> Result<String> {
        Err(missing(field))
    }

    /// The token that stands beside a property: of so many characters.
    #[cfg(feature = "encrypt")]
    pub(crate) fn short(
        &self,
        table: &str,
        property: &str,
        value: ValueRef<'_>,
        chars: u32,
    ) -> Result<String> {
        let key = self.key.as_ref().ok_or_else(|| missing(property))?;
        Ok(key.short_token(table, property, value, chars.saturating_mul(BITS)))
    }

    #[cfg(not(feature = "encrypt"))]
    #[allow(clippy::unused_self, reason = "the other form has a key")]
    pub(crate) fn short(&self, _: &str, property: &str, _: ValueRef<'_>, _: u32) -> Result<String> {
        Err(missing(property))
    }

    /// The rows of an entity, of whichever version, with the tokens in their keys.
    pub(crate) fn fill(&self, schema: &'static Schema, rows: EntityRows) -> Result<EntityRows> {
        if !schema.has_tokens() {
            return Ok(rows);
        }
        let made = self.of_row(schema, &rows.primary)?;
        let mut primary = rows.primary;
        for version in schema.versions() {
            primary = rekeyed(&primary, version.primary()?, &made)?;
        }
        check_made(schema.primary()?, &primary)?;
        let keyed = |copy: CopyRow| {
            let row = rekeyed(&copy.row, copy.family, &made)?;
            check_made(copy.family, &row)?;
            Ok(CopyRow { row, family: copy.family })
        };
        let remote_copies = rows.remote_copies.into_iter().map(keyed).collect::<Result<_>>()?;
        let local_copies = rows.local_copies.into_iter().map(keyed);
        let local_list_entries = rows.local_list_entries.into_iter().map(|entry| ListEntry {
            row_key: filled(&entry.family.row, &entry.row_key, &made),
            id: primary.row_key().to_owned(),
            family: entry.family,
        });
        let remote_lists = rows.remote_lists.into_iter().map(|listed| RemoteList {
            partition_key: filled(&listed.family.partition, &listed.partition_key, &made),
            row_key: filled(&listed.family.row, &listed.row_key, &made),
            family: listed.family,
        });
        let remote_lists = remote_lists.collect();
        let (local_copies, local_list_entries) =
            (local_copies.collect::<Result<_>>()?, local_list_entries.collect());
        Ok(EntityRows { primary, local_copies, remote_copies, local_list_entries, remote_lists })
    }

    /// The tokens of the fields that a row holds.
    fn of_row(&self, schema: &'static Schema, row: &Row) -> Result<Made> {
        let mut made = Made::new();
        for field in schema.token_fields() {
            if made.iter().any(|(known, _)| *known == field) {
                continue;
            }
            if let Some(value) = row.get(field)? {
                made.push((field, self.token(schema.table, field, value)?));
            }
        }
        Ok(made)
    }

    /// The RowKey of the primary that a copy is one of, with the tokens of what the copy holds.
    pub(crate) fn row_key(
        &self,
        schema: &'static Schema,
        row_key: &str,
        copy: &Row,
    ) -> Result<String> {
        if !schema.has_tokens() {
            return Ok(row_key.to_owned());
        }
        let made = self.of_row(schema, copy)?;
        let mut row_key = row_key.to_owned();
        for version in schema.versions() {
            row_key = filled(&version.primary()?.row, &row_key, &made);
        }
        Ok(row_key)
    }

    /// The path with the tokens of the values that it was given.
    pub(crate) fn path(&self, schema: &'static Schema, access: &Access) -> Result<Access> {
        if !access.is_open() {
            return Ok(access.clone());
        }
        access.with_tokens(|field, value| self.token(schema.table, field, value))
    }

    /// Refuses a row whose keys have tokens of other values than the row holds.
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
                    return Err(moved(field).at_keys(row.partition_key(), row.row_key()));
                }
            }
        }
        Ok(())
    }
}

fn rekeyed(row: &Row, family: &Family, made: &Made) -> Result<Row> {
    let partition_key = filled(&family.partition, row.partition_key(), made);
    row.with_keys(&partition_key, &filled(&family.row, row.row_key(), made))
}

/// The key with tokens where their places are held.
fn filled(template: &Template, key: &str, made: &Made) -> String {
    let token = |field: &str| {
        made.iter().find(|(known, _)| *known == field).map(|(_, token)| token.as_str())
    };
    template.replace_placeholders(key, token).unwrap_or_else(|| key.to_owned())
}

/// Refuses a key in which the place of a token is still held: nothing is stored under it.
fn check_made(family: &Family, row: &Row) -> Result<()> {
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

fn missing(field: &str) -> Error {
    let message = "the key has a token of this field, and there is no key to make it with: give the client keys with `Client::builder().keys(..)`";
    let fault = SealFault::KeyUnavailable { retryable: false };
    Error::seal(fault, message).in_property(field)
}

fn moved(field: &str) -> Error {
    let message = "the row's key has the token of another value than the row holds: another program changed it; `check()` and `repair()` mend a copy";
    Error::new(ErrorKind::Decode, message).in_property(field)
}
