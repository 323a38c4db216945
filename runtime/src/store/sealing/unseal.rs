//! Decrypts rows.

use super::{
    PlaintextPolicy, RowSealer,
    fetch::PageDataKeys,
    index::PageTokenKeys,
    no_keys_error,
    open::{ReadAs, RowTypeForReader, TypeSealing},
    plain_pieces::with_hashes_of_plain_pieces,
};
use crate::{
    edm::{Value, ValueRef},
    entity::{SEAL, Schema, SealedColumn},
    error::{Error, Result, SealFault},
    key::RowFamily,
    row::{Row, property_name_from_utf8},
    seal::{ValueBinding, is_envelope, key_id_of, properties_to_seal, seal_key_id_of},
};

impl RowSealer {
    /// Decrypts rows. A row that cannot be decrypted becomes an error in its place. An error in `rows` stays in its
    /// place.
    ///
    /// Fetches every key once, before the first row is decrypted.
    pub(crate) async fn unseal_rows(
        &self,
        table: &str,
        rows: Vec<Result<Row>>,
        read_as: ReadAs,
        select: Option<&[String]>,
    ) -> Vec<Result<Row>> {
        let has_key_tokens = read_as.has_key_tokens();
        if self.keys.is_none() && !read_as.has_sealed() && !has_key_tokens {
            return rows;
        }
        let types = read_as.sealing_of_each_type();
        let mut keys = PageDataKeys::default();
        let mut known = Vec::with_capacity(rows.len());
        for row in &rows {
            let what = row.as_ref().map_err(Error::clone).and_then(|row| {
                let what = read_as.row_type_and_family(row)?;
                if !matches!(what, RowTypeForReader::Foreign) {
                    // Collected over the page: rows with the same key share a request.
                    keys.add_keys_of_row(self, row)?;
                }
                Ok(what)
            });
            known.push(what);
        }
        keys.fetch_keys(self).await;
        let page = PageOpener { sealer: self, table, types: &types, keys: &keys, select };
        let mut index = PageTokenKeys::new(self);
        let mut opened = Vec::with_capacity(rows.len());
        for (row, known) in rows.into_iter().zip(known) {
            let row = match row {
                Ok(row) => row,
                Err(error) => {
                    opened.push(Err(error));
                    continue;
                }
            };
            // Copied because errors contain the keys after the row is consumed.
            let (partition_key, row_key) =
                (row.partition_key().to_owned(), row.row_key().to_owned());
            let mut plain = known
                .and_then(|known| page.unseal_row_for_reader(row, known).map(|row| (row, known)));
            if let (Ok((row, RowTypeForReader::Declared(at, Some(family)))), true) =
                (&plain, has_key_tokens)
                && let Some(declared) = types.get(*at)
                && let Err(error) = index.check_tokens_in_keys(declared.schema, family, row).await
            {
                plain = Err(error);
            }
            opened.push(plain.map(|(row, _)| row).map_err(|e| e.at_keys(&partition_key, &row_key)));
        }
        opened
    }
}

/// The type and row family of a row, as far as they are known.
#[derive(Clone, Copy)]
struct DeclaredRow<'p> {
    declared: Option<&'p TypeSealing>,
    family: Option<&'static RowFamily>,
}

/// The state for decrypting all rows of one page.
struct PageOpener<'p> {
    sealer: &'p RowSealer,
    table: &'p str,
    types: &'p [TypeSealing],
    keys: &'p PageDataKeys,
    select: Option<&'p [String]>,
}

impl PageOpener<'_> {
    fn unseal_row_for_reader(&self, row: Row, known: RowTypeForReader) -> Result<Row> {
        let (declared, family) = match known {
            RowTypeForReader::Foreign => return Ok(row),
            RowTypeForReader::Untyped => (None, None),
            RowTypeForReader::Declared(at, family) => (self.types.get(at), family),
        };
        // A client without keys reads rows of unknown types in their stored form.
        if self.sealer.keys.is_none()
            && !declared.is_some_and(|declared| declared.schema.is_sealed())
        {
            return Ok(row);
        }
        // Before any value is decrypted: nothing in a forged row is used.
        if let Some(declared) = declared {
            self.verify_seal(declared, family, &row)?;
            self.refuse_plain_value(declared, family, &row)?;
        }
        let stored = (self.sealer.plaintext == PlaintextPolicy::Allow).then(|| row.clone());
        let plain = self.unseal_row(row, DeclaredRow { declared, family })?;
        let Some(declared) = declared else { return Ok(plain) };
        self.sealer.refuse_plain_upgrade_of_row(declared.schema, &plain)?;
        match stored {
            Some(stored) => with_hashes_of_plain_pieces(declared.schema, &stored, plain),
            None => Ok(plain),
        }
    }

    fn place<'r>(
        &'r self,
        of: DeclaredRow<'_>,
        row: &'r Row,
        property: &'r str,
    ) -> ValueBinding<'r> {
        ValueBinding {
            table: of
                .declared
                .map_or(self.table, |declared| declared.schema.table_for_encryption(of.family)),
            partition_key: row.partition_key(),
            row_key: row.row_key(),
            property,
        }
    }

    /// Verifies the seal over the whole row before any value is decrypted. Does nothing if the type declares no
    /// seal. Fails for a row without a seal, unless the client allows plain values.
    fn verify_seal(
        &self,
        declared: &TypeSealing,
        family: Option<&'static RowFamily>,
        row: &Row,
    ) -> Result<()> {
        if !declared.schema.sealed {
            return Ok(());
        }
        let seal = match row.get(SEAL)? {
            Some(ValueRef::Binary(seal)) => seal,
            _ if self.sealer.plaintext == PlaintextPolicy::Allow => return Ok(()),
            _ => {
                let message = "the entity is declared `seal`, but the row has no seal: another program wrote the row, \
                               or someone removed the seal";
                return Err(Error::seal(SealFault::NotEncrypted, message).in_property(SEAL));
            }
        };
        let Some(id) = seal_key_id_of(seal)? else {
            return Err(
                Error::seal(SealFault::Malformed, "the row's seal is malformed").in_property(SEAL)
            );
        };
        let key = self.keys.fetched_key(row.partition_key(), id)?;
        let of = DeclaredRow { declared: Some(declared), family };
        key.verify_seal(&self.place(of, row, SEAL), &properties_to_seal(row)?, seal)
    }

    /// Refuses a plain value of a property that is declared encrypted, and a row that lacks a hidden absence,
    /// unless the client allows plain values.
    fn refuse_plain_value(
        &self,
        declared: &TypeSealing,
        family: Option<&'static RowFamily>,
        row: &Row,
    ) -> Result<()> {
        if self.sealer.plaintext == PlaintextPolicy::Allow {
            return Ok(());
        }
        self.refuse_plain_value_of_version(declared.schema, &declared.columns, family, row)?;
        for column in declared.columns.iter().filter(|column| column.sealed.hide_none) {
            let name: &str = &column.name;
            if row.get(name)?.is_none() && self.must_contain(family, name) {
                let message = "the property is declared `encrypt(hide_none)`, which stores an absent value too, but \
                               the row lacks the property: another program wrote the row, or someone removed the \
                               value";
                return Err(Error::seal(SealFault::NotEncrypted, message).in_property(name));
            }
        }
        // The row chooses its version, and the upgrade takes values from that version's properties. Its hidden
        // absences are not required, because a program of this version writes the row without them.
        if let Some((older, family)) = declared.schema.older_version_of_row(row)? {
            let columns = older.sealed_columns();
            self.refuse_plain_value_of_version(older, &columns, Some(family), row)?;
        }
        self.check_chosen(declared, family, row)
    }

    /// Refuses a plain value of a property that one version declares encrypted, and a blob without its key.
    fn refuse_plain_value_of_version(
        &self,
        version: &'static Schema,
        columns: &[SealedColumn],
        family: Option<&'static RowFamily>,
        row: &Row,
    ) -> Result<()> {
        for column in columns {
            let name: &str = &column.name;
            match row.get(name)? {
                None => {}
                Some(ValueRef::Binary(bytes)) if is_envelope(bytes) => {}
                Some(_) => {
                    let message = "the property is declared `encrypt`, but the stored value is plain: another program \
                                   wrote it, or someone replaced it; during a migration, read plain values with \
                                   `PlaintextPolicy::Allow`";
                    return Err(Error::seal(SealFault::NotEncrypted, message).in_property(name));
                }
            }
        }
        refuse_blob_without_key(version, row, |key| self.must_contain(family, key))
    }

    /// Refuses a plain value of a property that the client's `encrypt_if` chooses.
    fn check_chosen(
        &self,
        declared: &TypeSealing,
        family: Option<&'static RowFamily>,
        row: &Row,
    ) -> Result<()> {
        let Some(family) = family.filter(|family| family.is_primary_or_copy()) else {
            return Ok(());
        };
        if self.sealer.encrypt_if.is_none() {
            return Ok(());
        }
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            let is_sealed = matches!(value, ValueRef::Binary(bytes) if is_envelope(bytes));
            if !is_sealed
                && !is_token_or_seal(name, Some(declared))
                && self.sealer.is_chosen_for_encryption(declared.schema, family, row, name)
            {
                let message = "the client's `encrypt_if` selects the property, but the stored value is plain: a \
                               client without `encrypt_if` wrote it, or someone replaced it; during a migration, read \
                               plain values with `PlaintextPolicy::Allow`";
                return Err(Error::seal(SealFault::NotEncrypted, message).in_property(name));
            }
        }
        Ok(())
    }

    /// Returns whether the row must contain the property because it was selected and the row's family stores it.
    fn must_contain(&self, family: Option<&'static RowFamily>, name: &str) -> bool {
        let is_selected = self.select.is_none_or(|names| names.iter().any(|known| known == name));
        is_selected && !family.is_some_and(|family| family.leaves_out(name))
    }

    fn unseal_row(&self, row: Row, of: DeclaredRow<'_>) -> Result<Row> {
        let declared = of.declared;
        if !needs_unsealing(&row, declared)? {
            return Ok(row);
        }
        let mut out = Row::build(row.partition_key(), row.row_key());
        let mut chosen: Vec<Box<str>> = Vec::new();
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            match value {
                // Programs do not see tokens and the seal.
                _ if is_token_or_seal(name, declared) => {}
                ValueRef::Binary(bytes) if is_envelope(bytes) => {
                    if !declared.is_some_and(|s| s.columns.iter().any(|column| column.name == name))
                    {
                        // Remembered: the next write of the row encrypts the property again.
                        chosen.push(name.into());
                    }
                    if let Some(value) = self.decrypt_property(&row, of, name, bytes)? {
                        out.put(name, value.as_ref());
                    }
                }
                value => out.put(name, value),
            }
        }
        let plain = match row.timestamp() {
            Some(timestamp) => out.finish_at(timestamp)?,
            None => out.finish()?,
        };
        let plain = match row.etag() {
            Some(etag) => plain.with_etag(etag),
            None => plain,
        };
        Ok(plain.with_encrypted_names(chosen))
    }

    fn decrypt_property(
        &self,
        row: &Row,
        of: DeclaredRow<'_>,
        name: &str,
        envelope: &[u8],
    ) -> Result<Option<Value>> {
        if self.sealer.keys.is_none() {
            return Err(no_keys_error("the property is encrypted").in_property(name));
        }
        let key = match key_id_of(envelope).map_err(|error| error.in_property(name))? {
            Some(id) => self.keys.fetched_key(row.partition_key(), id),
            None => Err(no_keys_error("the value is encrypted")),
        };
        let key = key.map_err(|error| error.in_property(name))?;
        key.decrypt(&self.place(of, row, name), envelope)
    }
}

/// Refuses a row with a blob of a field that is declared encrypted but without the blob's key. `must_contain` returns
/// whether the row must contain the property with the key.
pub(super) fn refuse_blob_without_key(
    version: &'static Schema,
    row: &Row,
    must_contain: impl Fn(&str) -> bool,
) -> Result<()> {
    for names in version.blobs {
        let Some(key) = names.key.filter(|key| must_contain(key)) else { continue };
        if row.get(names.name)?.is_some() && row.get(key)?.is_none() {
            let message = "the blob is declared `encrypt`, but the row lacks the blob's key: another program wrote \
                           the row, or someone removed the key; during a migration, read plain blobs with \
                           `PlaintextPolicy::Allow`";
            return Err(Error::seal(SealFault::NotEncrypted, message).in_property(key));
        }
    }
    Ok(())
}

/// Returns whether the row contains an encrypted value, or a blind token or seal that its type declares.
fn needs_unsealing(row: &Row, declared: Option<&TypeSealing>) -> Result<bool> {
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let is_sealed = matches!(value, ValueRef::Binary(bytes) if is_envelope(bytes));
        if is_sealed || is_token_or_seal(property_name_from_utf8(name)?, declared) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a property is a blind token or the seal, which belong to the library.
pub(crate) fn is_token_or_seal(name: &str, declared: Option<&TypeSealing>) -> bool {
    declared.is_some_and(|declared| declared.unseen.iter().any(|unseen| unseen == name))
}
