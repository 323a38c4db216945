//! Guards the upgrade of rows of older versions: an encrypted field of the current version must not receive a plain
//! value from them.

use super::{PlaintextPolicy, RowSealer, unseal::refuse_blob_without_key};
use crate::{
    edm::{Value, ValueRef},
    entity::Schema,
    error::{Error, Result, SealFault},
    key::RowFamily,
    row::{Row, property_name_from_utf8},
};

impl RowSealer {
    /// Refuses a decrypted row of an older version as
    /// [`refuse_plain_upgrade_of_entity`](Self::refuse_plain_upgrade_of_entity) does. Accepts a part of a wide entity,
    /// which is only upgraded after the parts were joined.
    pub(super) fn refuse_plain_upgrade_of_row(
        &self,
        schema: &'static Schema,
        plain: &Row,
    ) -> Result<()> {
        match self.older_version_to_check(schema, plain)? {
            Some((older, family))
                if !(schema.is_wide() && older.is_wide() && family.is_primary()) =>
            {
                self.refuse_plain_upgrade(schema, (older, family), plain)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a decrypted entity of an older version if its upgrade fills an encrypted field of the current
    /// version with a plain value, unless the client allows plain values. The parts of a wide entity must be
    /// joined.
    ///
    /// # Errors
    ///
    /// Fails with `is_decrypt` and the name of the encrypted property.
    pub(crate) fn refuse_plain_upgrade_of_entity(
        &self,
        schema: &'static Schema,
        plain: &Row,
    ) -> Result<()> {
        match self.older_version_to_check(schema, plain)? {
            Some(older) => self.refuse_plain_upgrade(schema, older, plain),
            None => Ok(()),
        }
    }

    /// Returns the older version that wrote a row, and the row's family in that version. Returns `None` if the
    /// row's upgrade needs no check.
    fn older_version_to_check(
        &self,
        schema: &'static Schema,
        plain: &Row,
    ) -> Result<Option<(&'static Schema, &'static RowFamily)>> {
        let encrypts = schema.is_sealed() || self.encrypt_if.is_some();
        // A seal of the current version also covers plain values, and was verified.
        if self.plaintext == PlaintextPolicy::Allow || schema.sealed || !encrypts {
            return Ok(None);
        }
        schema.older_version_of_row(plain)
    }

    // The row itself chooses its version, and the upgrade is user code: only the upgraded entity shows where a
    // plain value ends up.
    fn refuse_plain_upgrade(
        &self,
        schema: &'static Schema,
        (older, family): (&'static Schema, &'static RowFamily),
        plain: &Row,
    ) -> Result<()> {
        let upgraded = match (schema.primary_in_current_form)(plain, family) {
            // No reader of the row gets an entity from it either.
            Err(error) if error.is_decode() => return Ok(()),
            upgraded => upgraded?,
        };
        let primary = schema.primary()?;
        let upgrade = Upgrade { schema, older, plain, upgraded };
        upgrade.refuse_plain_values(|name| {
            self.is_chosen_for_encryption(schema, primary, &upgrade.upgraded, name)
        })
    }
}

/// A decrypted row of an older version, and the primary row of the upgraded entity.
struct Upgrade<'r> {
    schema: &'static Schema,
    older: &'static Schema,
    plain: &'r Row,
    upgraded: Row,
}

impl Upgrade<'_> {
    /// Refuses encrypted values of the upgraded entity that are not encrypted in the older row. `is_chosen` returns
    /// whether the client's `encrypt_if` chooses a property.
    fn refuse_plain_values(&self, is_chosen: impl Fn(&str) -> bool) -> Result<()> {
        let mut renamed = self.values_without_successor()?;
        let mut unproven: Vec<&str> = Vec::new();
        let (columns, plain) = (self.schema.sealed_columns(), self.plain);
        let mut properties = self.upgraded.properties();
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            let is_declared = columns.iter().any(|column| column.name == name);
            if !(is_declared || is_chosen(name)) {
                continue;
            }
            let is_held = is_declared || plain.has_encrypted_name(name);
            if is_held && self.is_taken_from_same_name(name, value, is_declared)? {
                continue;
            }
            let value = value.to_value();
            match renamed.iter().position(|(_, renamed)| renamed.is_stored_like(&value)) {
                // Each value proves one property. Otherwise, a writer of the row could duplicate it.
                Some(at) => drop(renamed.swap_remove(at)),
                None if self.is_unneeded_piece(name, value.as_ref()) => {}
                None => unproven.push(name),
            }
        }
        match unproven.first() {
            Some(name) if !self.is_as_if_absent(&unproven)? => Err(self.plain_value_error(name)),
            _ => refuse_blob_without_key(self.schema, &self.upgraded, |_| true),
        }
    }

    /// Returns whether the encrypted value comes from the same property in the older row and is encrypted there
    /// too. It must be equal, or the older version must read that property as an encrypted one, and may have
    /// converted its value. If the version does not read the property, the value comes from elsewhere.
    /// `is_declared` is `true` if the current version declares the property encrypted or `encrypt_if` chose it.
    fn is_taken_from_same_name(
        &self,
        name: &str,
        value: ValueRef<'_>,
        is_declared: bool,
    ) -> Result<bool> {
        let Some(held) = self.plain.get(name)? else { return Ok(false) };
        let is_read = if is_declared {
            self.older.sealed_column(name).is_some()
        } else {
            self.older.column(name).is_some()
        };
        Ok(is_read || held.to_value().is_stored_like(&value.to_value()))
    }

    /// Returns the encrypted values of the older row that the upgraded entity does not have under their names. The
    /// new version may have renamed them.
    fn values_without_successor(&self) -> Result<Vec<(&str, Value)>> {
        let mut values = Vec::new();
        for name in self.plain.encrypted_names() {
            if let (Some(value), None) = (self.plain.get(name)?, self.upgraded.get(name)?) {
                values.push((&**name, value.to_value()));
            }
        }
        Ok(values)
    }

    /// Returns whether a property is an empty piece of a long value, other than the first. The older version may
    /// have split the value into fewer pieces.
    fn is_unneeded_piece(&self, name: &str, value: ValueRef<'_>) -> bool {
        let is_empty = matches!(value, ValueRef::String("") | ValueRef::Binary([]));
        let mut later = self.schema.split_fields().flat_map(|pieces| pieces.iter().skip(1));
        is_empty && later.any(|piece| piece.name == name)
    }

    /// Returns whether the upgraded entity would be the same without these properties, because an absent value
    /// reads the same. Forging such a value achieves no more than deleting it.
    fn is_as_if_absent(&self, names: &[&str]) -> Result<bool> {
        let mut without = Row::build(self.upgraded.partition_key(), self.upgraded.row_key());
        let mut properties = self.upgraded.properties();
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            if !names.contains(&name) {
                without.put(name, value);
            }
        }
        let primary = self.schema.primary()?;
        let Ok(read) = (self.schema.primary_in_current_form)(&without.finish()?, primary) else {
            return Ok(false);
        };
        for name in names {
            if read.get(name)? != self.upgraded.get(name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn plain_value_error(&self, name: &str) -> Error {
        let Schema { entity_type, version, .. } = self.schema;
        let message = format!(
            "the row has version {} of `{entity_type}` and no encrypted value of a property that version {version} \
             encrypts: an earlier program wrote the row, or someone changed it; during a migration, read it under \
             `PlaintextPolicy::Allow` and run `upgrade_all()`",
            self.older.version
        );
        Error::seal(SealFault::NotEncrypted, message).in_property(name)
    }
}
