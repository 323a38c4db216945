//! Which of a row's values are sealed with another key than they would be now.

use super::{
    Vault, keyless,
    open::{Known, Reading, Sheet},
    plan::Placed,
    unseal::is_ours,
};
use crate::{
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::{SEAL, Schema, SealedColumn},
    error::Result,
    key::Family,
    plan::Home,
    row::Row,
    seal::{DataKey, IndexKey, is_envelope, key_id_of, seal_key_id_of, sealed_len},
};

/// What is sealed with now.
struct Now<'k> {
    key: &'k DataKey,
    index: Option<&'k IndexKey>,
    /// Whether the client chooses a property that nothing declares.
    chosen: &'k (dyn Fn(&str) -> bool + Sync),
}

impl Vault {
    /// The write that seals a row with the keys in use, in the version that was read; `None`: it is
    /// sealed with them, or is no row of the entity.
    ///
    /// # Errors
    ///
    /// `is_decrypt` for a row that does not open, `is_key_unavailable` without keys.
    pub(crate) async fn resealed(
        &self,
        table: &str,
        schema: &'static Schema,
        stored: &Row,
    ) -> Result<Option<Placed>> {
        let reading = Reading::Typed(schema);
        let Known::Declared(_, family) = reading.know(stored)? else { return Ok(None) };
        let family = family.map_or(schema.primary(), Ok)?;
        let keys = self.keys.as_ref().ok_or_else(|| keyless("rows are to be encrypted again"))?;
        let key = keys.primary(&keys.scope_of(stored.partition_key())).await?;
        let sheet = Sheet::of(schema);
        let has_tokens = sheet.columns.iter().any(|column| column.companion.is_some());
        let index = if has_tokens { Some(self.index_key(None).await?) } else { None };
        let chosen = |name: &str| {
            !is_ours(name, Some(&sheet)) && self.chooses_of(schema, family, stored, name)
        };
        let now = Now { key: &key, index: index.as_deref(), chosen: &chosen };
        let is_opened = index.is_some() || sheet.columns.iter().any(is_padded);
        if !is_opened && !is_sealed_otherwise(stored, &sheet, &now)? {
            return Ok(None);
        }
        let plain = self.open_one(table, stored.clone(), reading, None).await?;
        resealing(stored, &plain, &sheet, family, &now)
    }
}

#[cfg(feature = "legacy-encryption")]
impl Vault {
    /// A value that is sealed for its place in a row of the entity; `None`: it is not, as far as
    /// this client's keys can tell.
    pub(crate) async fn opened_value<E: crate::entity::TableEntity>(
        &self,
        row: &Row,
        property: &str,
        value: ValueRef<'_>,
    ) -> Option<crate::edm::Value> {
        let ValueRef::Binary(bytes) = value else { return None };
        let id = key_id_of(bytes).ok().flatten()?;
        let keys = self.keys.as_ref()?;
        let key = keys.get(&keys.scope_of(row.partition_key()), id).await.ok()?;
        let place = crate::seal::ValueBinding {
            table: E::SCHEMA.table,
            partition_key: row.partition_key(),
            row_key: row.row_key(),
            property,
        };
        key.decrypt(&place, bytes).ok().flatten()
    }
}

/// Whether a value, or what vouches for the row, is sealed with another key or not at all.
fn is_sealed_otherwise(stored: &Row, sheet: &Sheet, now: &Now<'_>) -> Result<bool> {
    let mut properties = stored.properties();
    while let Some((name, value)) = properties.next()? {
        let name = crate::store::sealing::plan::text_of(name)?;
        let is_other = match value {
            ValueRef::Binary(seal) if name == SEAL && sheet.schema.sealed => {
                seal_key_id_of(seal)? != Some(now.key.id())
            }
            ValueRef::Binary(bytes) if is_envelope(bytes) => {
                key_id_of(bytes)? != Some(now.key.id())
            }
            _ => sheet.columns.iter().any(|column| column.name == name) || (now.chosen)(name),
        };
        if is_other {
            return Ok(true);
        }
    }
    Ok(sheet.schema.sealed && stored.get(SEAL)?.is_none())
}

/// The write that seals what is not as it would be now: of these properties alone, or of the whole
/// row where one has no value to be set to.
fn resealing(
    stored: &Row,
    plain: &Row,
    sheet: &Sheet,
    family: &'static Family,
    now: &Now<'_>,
) -> Result<Option<Placed>> {
    let home = Home::Entity(sheet.schema, family);
    let guard = Condition::for_etag(stored.etag());
    let mut part = Row::build(plain.partition_key(), plain.row_key());
    let mut count = 0;
    let mut properties = plain.properties();
    while let Some((name, value)) = properties.next()? {
        let name = crate::store::sealing::plan::text_of(name)?;
        if is_stale(stored, sheet, name, value, now)? {
            part.put(name, value);
            count += 1;
        }
    }
    let hidden = hides_stale(stored, plain, sheet, now)?;
    if !hidden && count == 0 && !(sheet.schema.sealed && is_sealed_otherwise(stored, sheet, now)?) {
        return Ok(None);
    }
    let operation = if hidden || sheet.schema.sealed {
        Operation::replace(plain.clone(), guard)
    } else {
        Operation::merge(part.finish()?.with_encrypted_names_of(plain), guard)
    };
    Ok(Some(Placed::new(operation, home)))
}

/// Whether one property is not as it would be now: plain, under another key, or beside a token of
/// another key.
fn is_stale(
    stored: &Row,
    sheet: &Sheet,
    name: &str,
    value: ValueRef<'_>,
    now: &Now<'_>,
) -> Result<bool> {
    let column = sheet.columns.iter().find(|column| column.name == name);
    let envelope = match stored.get(name)? {
        Some(ValueRef::Binary(bytes)) if is_envelope(bytes) => Some(bytes),
        _ => None,
    };
    let sealed = envelope.map(key_id_of).transpose()?;
    let Some(column) = column else {
        return Ok(sealed.map_or_else(|| (now.chosen)(name), |id| id != Some(now.key.id())));
    };
    if sealed != Some(Some(now.key.id()))
        || envelope.is_some_and(|bytes| is_of_other_length(column, Some(value), bytes))
    {
        return Ok(true);
    }
    let (Some((companion, chars)), Some(index)) = (&column.companion, now.index) else {
        return Ok(false);
    };
    let token =
        index.short_token(sheet.schema.table, name, value, chars.saturating_mul(crate::plan::BITS));
    Ok(stored.get(companion)? != Some(ValueRef::String(&token)))
}

fn is_padded(column: &SealedColumn) -> bool {
    column.sealed.pad > 1
}

/// Whether a padded value has not the length that it would have now: a writer that knows no padding
/// wrote it, or it was declared otherwise.
fn is_of_other_length(column: &SealedColumn, value: Option<ValueRef<'_>>, envelope: &[u8]) -> bool {
    is_padded(column) && envelope.len() != sealed_len(value, column.sealed.pad as usize)
}

/// Whether an absent value is not sealed as it would be now: there is nothing to merge.
fn hides_stale(stored: &Row, plain: &Row, sheet: &Sheet, now: &Now<'_>) -> Result<bool> {
    for column in &sheet.columns {
        let name: &str = &column.name;
        if plain.get(name)?.is_none()
            && let Some(ValueRef::Binary(bytes)) = stored.get(name)?
            && (key_id_of(bytes)? != Some(now.key.id()) || is_of_other_length(column, None, bytes))
        {
            return Ok(true);
        }
    }
    Ok(false)
}
