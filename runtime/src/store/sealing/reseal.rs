//! Encrypts rows again: finds values under an older key or rule, and writes them with the keys in use.

use super::{
    RowSealer, no_keys_error,
    open::{ReadAs, RowTypeForReader, TypeSealing},
    plan::{KeptVersion, OperationToSeal},
    unseal::is_token_or_seal,
};
use crate::{
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::{SEAL, Schema, SealedColumn},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    plan::StoredAs,
    row::Row,
    seal::{BlindTokenKey, DataKey, is_envelope, key_id_of, seal_key_id_of, sealed_len},
};

/// The current keys and rules for encrypting values.
struct SealingInUse<'k> {
    key: &'k DataKey,
    index: Option<&'k BlindTokenKey>,
    /// Returns whether the client's `encrypt_if` chooses a property that no type declares as encrypted.
    chosen: &'k (dyn Fn(&str) -> bool + Sync),
    /// Whether the row is sealed as a whole.
    has_seal: bool,
    /// The older version that wrote the row, or `None` for the current one.
    kept_version: Option<KeptVersion>,
}

impl RowSealer {
    /// Returns the write that encrypts a row with the keys in use, under the ETag that was read. Returns `None` if
    /// the row is up to date or is not a row of the entity.
    ///
    /// # Errors
    ///
    /// Fails with `is_decrypt` if the row cannot be decrypted, and with `is_key_unavailable` if the client has no keys.
    pub(crate) async fn sealing_update(
        &self,
        table: &str,
        schema: &'static Schema,
        stored: &Row,
    ) -> Result<Option<OperationToSeal>> {
        let read_as = ReadAs::Typed(schema);
        let RowTypeForReader::Declared(_, family) = read_as.row_type_and_family(stored)? else {
            return Ok(None);
        };
        let older = schema.older_version_of_row(stored)?;
        let family = match older {
            Some((_, family)) => family,
            None => family.map_or(schema.primary(), Ok)?,
        };
        // A row without a seal gets none for its older version, because nothing proves its content.
        let has_stored_seal = stored.get(SEAL)?.is_some();
        let kept_version = older.map(|(version, _)| KeptVersion {
            schema: version,
            has_seal: version.sealed && has_stored_seal,
        });
        let has_seal = schema.sealed || kept_version.is_some_and(|kept| kept.has_seal);
        let keys =
            self.keys.as_ref().ok_or_else(|| no_keys_error("rows must be encrypted again"))?;
        let key = keys.primary(&keys.scope_of(stored.partition_key())).await?;
        let declared = sealing_of_row(schema, kept_version);
        let has_tokens = declared.columns.iter().any(|column| column.companion.is_some());
        let scope = self.blind_token_scope(family, stored.partition_key());
        let index =
            if has_tokens { Some(self.fetch_blind_token_key(&scope, None).await?) } else { None };
        let chosen = |name: &str| {
            !is_token_or_seal(name, Some(&declared))
                && self.is_chosen_for_encryption(schema, family, stored, name)
        };
        let now = SealingInUse {
            key: &key,
            index: index.as_deref(),
            chosen: &chosen,
            has_seal,
            kept_version,
        };
        // Blind tokens and padding can only be compared with the decrypted value.
        let is_opened = index.is_some() || declared.columns.iter().any(is_padded);
        if !is_opened && !is_sealed_otherwise(stored, &declared, &now)? {
            return Ok(None);
        }
        let plain = self.unseal_one_row(table, stored.clone(), read_as, None).await?;
        // The current version does not verify a seal that only the older one declares. A new seal over a forged row
        // would make it appear genuine.
        if let Some(kept) = kept_version.filter(|kept| kept.has_seal && !schema.sealed) {
            let read_as = ReadAs::Typed(kept.schema);
            self.unseal_one_row(table, stored.clone(), read_as, None).await?;
        }
        refuse_absence_of_older_version(stored, &plain, &declared, &now)?;
        update_to_seal(stored, &plain, &declared, family, &now)
    }
}

#[cfg(feature = "legacy-encryption")]
impl RowSealer {
    /// Decrypts the encrypted value of a property in a row of the entity's own table. Returns `None` if this
    /// client's keys cannot decrypt the value, or if it was encrypted for another row or property.
    pub(crate) async fn try_decrypt_value<E: crate::entity::TableEntity>(
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

/// Returns the encryption of a row, as declared by the type and by the older version that wrote the row.
fn sealing_of_row(schema: &'static Schema, kept: Option<KeptVersion>) -> TypeSealing {
    let mut sealing = TypeSealing::new(schema);
    let Some(older) = kept.map(|kept| kept.schema) else { return sealing };
    sealing.columns = schema.sealed_columns_with(Some(older));
    // A field of the current version may have the name of the older version's blind token.
    sealing.unseen.extend(older.token_and_seal_properties());
    sealing
}

/// Returns whether a value or the row's seal was made with another key than the one in use, a value that must be
/// encrypted is plain, or the declared seal is missing.
fn is_sealed_otherwise(
    stored: &Row,
    declared: &TypeSealing,
    now: &SealingInUse<'_>,
) -> Result<bool> {
    let mut properties = stored.properties();
    while let Some((name, value)) = properties.next()? {
        let name = crate::row::property_name_from_utf8(name)?;
        let is_other = match value {
            ValueRef::Binary(seal) if name == SEAL && now.has_seal => {
                seal_key_id_of(seal)? != Some(now.key.id())
            }
            ValueRef::Binary(bytes) if is_envelope(bytes) => {
                key_id_of(bytes)? != Some(now.key.id())
            }
            _ => declared.columns.iter().any(|column| column.name == name) || (now.chosen)(name),
        };
        if is_other {
            return Ok(true);
        }
    }
    Ok(now.has_seal && stored.get(SEAL)?.is_none())
}

/// Refuses a row with an outdated hidden absence that only an older version declares. A merge cannot write it, and a
/// replacement would omit it: the row would either lose it or need the old key forever.
fn refuse_absence_of_older_version(
    stored: &Row,
    plain: &Row,
    declared: &TypeSealing,
    now: &SealingInUse<'_>,
) -> Result<()> {
    for column in declared.schema.versions().skip(1).flat_map(Schema::sealed_columns) {
        let name: &str = &column.name;
        if !declared.columns.iter().any(|own| own.name == name)
            && plain.get(name)?.is_none()
            && let Some(ValueRef::Binary(bytes)) = stored.get(name)?
            && is_envelope(bytes)
            && key_id_of(bytes)? != Some(now.key.id())
        {
            let message = "the row has an older version and an encrypted absence that the current version does not \
                           declare; run `upgrade_all()` to write the current version";
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_property(name));
        }
    }
    Ok(())
}

/// Returns the write that encrypts the outdated properties with the keys in use. This is a merge of the properties,
/// or a replacement of the row if the type is sealed or a hidden absence is outdated. Returns `None` if nothing is
/// outdated.
fn update_to_seal(
    stored: &Row,
    plain: &Row,
    declared: &TypeSealing,
    family: &'static RowFamily,
    now: &SealingInUse<'_>,
) -> Result<Option<OperationToSeal>> {
    let stored_as = StoredAs::Entity(declared.schema, family);
    let guard = Condition::for_etag(stored.etag());
    let mut part = Row::build(plain.partition_key(), plain.row_key());
    let mut whole = Row::build(plain.partition_key(), plain.row_key());
    let mut count = 0;
    let mut properties = plain.properties();
    while let Some((name, value)) = properties.next()? {
        let name = crate::row::property_name_from_utf8(name)?;
        if is_token_or_seal(name, Some(declared)) {
            continue;
        }
        whole.put(name, value);
        if is_property_outdated(stored, declared, name, value, now)? {
            part.put(name, value);
            count += 1;
        }
    }
    let hidden = has_stale_hidden_absence(stored, plain, declared, now)?;
    if !hidden && count == 0 && !(now.has_seal && is_sealed_otherwise(stored, declared, now)?) {
        return Ok(None);
    }
    // A merge can neither hide an absence nor keep a seal valid.
    let operation = if hidden || now.has_seal {
        Operation::replace(whole.finish()?.inherit_encrypted_names_of(plain), guard)
    } else {
        Operation::merge(part.finish()?.inherit_encrypted_names_of(plain), guard)
    };
    let to_seal = OperationToSeal::new(operation, stored_as);
    Ok(Some(OperationToSeal { kept_version: now.kept_version, ..to_seal }))
}

/// Returns whether a property is outdated: plain, under another key, or with a blind token of another key.
fn is_property_outdated(
    stored: &Row,
    declared: &TypeSealing,
    name: &str,
    value: ValueRef<'_>,
    now: &SealingInUse<'_>,
) -> Result<bool> {
    let column = declared.columns.iter().find(|column| column.name == name);
    let envelope = match stored.get(name)? {
        Some(ValueRef::Binary(bytes)) if is_envelope(bytes) => Some(bytes),
        _ => None,
    };
    let sealed = envelope.map(key_id_of).transpose()?;
    // Not declared: `encrypt_if` or an earlier write chose it.
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
    let token = index.short_token(
        declared.schema.table,
        name,
        value,
        chars.saturating_mul(crate::plan::TOKEN_CHARACTER_BITS),
    );
    Ok(stored.get(companion)? != Some(ValueRef::String(&token)))
}

fn is_padded(column: &SealedColumn) -> bool {
    column.sealed.pad > 1
}

/// Returns whether the length of a padded value is outdated, because a writer without the padding wrote it or the
/// declaration changed.
fn is_of_other_length(column: &SealedColumn, value: Option<ValueRef<'_>>, envelope: &[u8]) -> bool {
    is_padded(column) && envelope.len() != sealed_len(value, column.sealed.pad as usize)
}

/// Returns whether a hidden absence is outdated. A merge cannot rewrite it, because there is no value to set.
fn has_stale_hidden_absence(
    stored: &Row,
    plain: &Row,
    declared: &TypeSealing,
    now: &SealingInUse<'_>,
) -> Result<bool> {
    for column in &declared.columns {
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
