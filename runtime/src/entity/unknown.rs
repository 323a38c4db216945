//! Properties of stored rows that no version of the struct declares, such as a field that a newer program added.
//! Writes of an entity that was read keep them, unless the struct drops them.

use super::{
    ColumnSchema, EntityRows, RowVersion, Schema,
    framework::{OWNER, SEAL, is_framework_property, is_move_property},
};
use crate::{
    edm::{Value, ValueRef},
    error::{Error, ErrorKind, Result},
    row::{Row, is_operation_id},
};

/// The first bytes of an encrypted value: two for the format, one for the suite (`docs/envelope.md`).
const ENVELOPE: [u8; 3] = [0xae, 0x7e, 0x01];
/// The number of bytes in the shortest encrypted value: header, nonce, tag and one byte of text.
const SHORTEST_ENVELOPE: usize = 11 + 24 + 16 + 1;

/// The properties of a primary that no version of the struct declares.
#[derive(Debug, Default)]
pub(crate) struct UnknownProperties(Vec<(String, Value)>);

impl UnknownProperties {
    /// Returns whether the row has no undeclared property.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name of the first value that is still encrypted because this program has no encryption keys. Such a
    /// value cannot be written to another row, because it is bound to the PartitionKey and RowKey of its own.
    pub(crate) fn first_undecrypted_name(&self) -> Option<&str> {
        self.0.iter().find(|(_, value)| is_encrypted(value)).map(|(name, _)| name.as_str())
    }

    /// Returns the row with the undeclared properties added. If `is_copy` is set, omits encrypted properties, which
    /// can only be decrypted in the primary row.
    fn add_to_row(&self, row: &Row, is_copy: bool) -> Result<Row> {
        let mut out = Row::build(row.partition_key(), row.row_key());
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            out.put(&String::from_utf8_lossy(name), value);
        }
        for (name, value) in &self.0 {
            if !(is_copy && is_encrypted(value)) {
                out.put(name, value.as_ref());
            }
        }
        Ok(out.finish()?.inherit_encrypted_names_of(row))
    }

    /// Returns the primary row with the undeclared properties added.
    pub(crate) fn add_to_primary(&self, row: Row) -> Result<Row> {
        if self.is_empty() { Ok(row) } else { self.add_to_row(&row, false) }
    }

    /// Adds the undeclared properties to every full copy among an entity's rows and returns the rows. Does not add
    /// them to copies with only some properties.
    pub(crate) fn add_to_copies(&self, mut rows: EntityRows) -> Result<EntityRows> {
        if self.is_empty() {
            return Ok(rows);
        }
        for copy in rows.local_copies.iter_mut().chain(&mut rows.remote_copies) {
            if copy.family.left_out.is_empty() {
                copy.row = self.add_to_row(&copy.row, true)?;
            }
        }
        Ok(rows)
    }
}

/// Returns the error for a write that would lose an encrypted value.
pub(crate) fn lossy_write_error(property: &str) -> Error {
    let message = "the property is encrypted and this program does not declare it, so it cannot be written under \
                   other keys or into a copy; give the client the keys, or write with a program that declares the \
                   property";
    Error::new(ErrorKind::Lossy, message).in_property(property)
}

fn is_encrypted(value: &Value) -> bool {
    matches!(value.as_ref(), ValueRef::Binary(bytes)
        if bytes.len() >= SHORTEST_ENVELOPE && bytes.starts_with(&ENVELOPE))
}

impl Schema {
    /// Returns the properties of a primary that no version declares, or none if the struct drops them. If the struct,
    /// or the version that wrote the row, has a field for them, returns only the properties that the library itself
    /// writes.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` for a damaged row.
    pub(crate) fn unknown_properties_of(&'static self, primary: &Row) -> Result<UnknownProperties> {
        let mut unknown = Vec::new();
        if self.drops_unknown {
            return Ok(UnknownProperties(unknown));
        }
        let mut properties = primary.properties();
        while let Some((name, value)) = properties.next()? {
            if is_operation_id(name, value) {
                continue;
            }
            let Ok(name) = std::str::from_utf8(name) else { continue };
            if !self.is_declared(name) && (!self.holds_extra || is_framework_property(name)) {
                unknown.push((name.to_owned(), value.to_value()));
            }
        }
        if !unknown.is_empty() && self.older.is_some() {
            // An older version's struct with a field for them has passed them on to this version.
            if let Some(RowVersion::Known(writer)) = self.version_of_primary(primary)?
                && writer.holds_extra
            {
                unknown.retain(|(name, _)| is_framework_property(name));
            }
        }
        Ok(UnknownProperties(unknown))
    }

    /// Returns whether writes of a stored entity omit undeclared properties, because the struct drops them or has a
    /// field for them.
    const fn loses_unknown(&self) -> bool {
        self.drops_unknown || self.holds_extra
    }

    /// Returns whether a property is undeclared in every version and kept by writes of the entity.
    pub(crate) fn keeps_unknown_property(&'static self, property: &str) -> bool {
        !self.loses_unknown() && !self.is_declared(property)
    }

    /// Returns whether any version has remote copies or lists, in other partitions, tables or blobs.
    fn has_remote_family(&'static self) -> bool {
        self.versions().any(|schema| schema.families.iter().any(|family| family.is_remote))
    }

    /// Returns whether any version declares the property, or the library writes it.
    fn is_declared(&'static self, name: &str) -> bool {
        is_move_property(name)
            // Only remote copies have these properties. Otherwise an entity may have fields of these names.
            || OWNER.contains(&name) && self.has_remote_family()
            || self.versions().any(|schema| {
                is_among(schema.columns, name)
                    || schema.type_property() == Some(name)
                    || schema.sealed && name == SEAL
            })
    }
}

/// Returns whether one of the columns, or the blind token of one, has this name.
fn is_among(columns: &[ColumnSchema], name: &str) -> bool {
    columns.iter().any(|column| column.holds_property(name))
}
