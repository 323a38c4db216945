//! Finds the copies, list entries and blobs of an entity whose primary cannot be decoded. Derives each key from single
//! properties, because a field that is in no key may be damaged.

use super::{
    Blob, BlobFieldValue, CopyRow, EntityRows, ListEntry, RemoteListKeys, RowVersion, Schema,
    related::text_of_part,
};
use crate::{
    edm::{InvalidValue, ValueRef},
    error::Result,
    key::{FamilyKind, KeyWriter, RowFamily, Template, TemplatePart},
    row::Row,
};

impl Schema {
    /// Returns the rows of an entity whose primary cannot be decoded, for example because a property has the wrong
    /// type. The primary is returned as it is, blobs only have their names, and copies and list entries only have their
    /// keys. The keys may contain placeholders for blind tokens. Omits copies and entries whose keys need the damaged
    /// property; a check finds them. Returns `None` if the row is not a primary of a version that this program knows.
    ///
    /// A copy or entry of an index with a condition may not exist.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` if the row's bytes are damaged, and with `is_decode` if the discriminator is not a
    /// String.
    pub(crate) fn rows_of_unreadable(&'static self, primary: &Row) -> Result<Option<EntityRows>> {
        let Some(RowVersion::Known(writer)) = self.version_of_primary(primary)? else {
            return Ok(None);
        };
        let own = writer.primary()?;
        let mut rows = EntityRows::from_primary_only(primary.clone());
        rows.blobs = stored_blobs(writer, primary)?;
        let indexes: &'static [RowFamily] = writer.families;
        for family in indexes.iter().filter(|family| !family.is_primary()) {
            if let Ok(keys) = KeysInFamily::of_primary(own, family, primary) {
                add_row(&mut rows, family, keys)?;
            }
        }
        Ok(Some(rows))
    }
}

/// The keys of an entity's row in a row family.
struct KeysInFamily {
    partition_key: String,
    row_key: String,
}

impl KeysInFamily {
    /// Derives the keys in `family` from a primary of row family `own`.
    fn of_primary(
        own: &'static RowFamily,
        family: &'static RowFamily,
        primary: &Row,
    ) -> Result<Self> {
        Ok(Self {
            // A local row is in the primary's partition.
            partition_key: if family.is_remote {
                write_key(own, &family.partition, "PartitionKey", primary)?
            } else {
                primary.partition_key().to_owned()
            },
            row_key: write_key(own, &family.row, "RowKey", primary)?,
        })
    }
}

/// Adds the row with these keys to the rows of its kind.
fn add_row(rows: &mut EntityRows, family: &'static RowFamily, keys: KeysInFamily) -> Result<()> {
    let KeysInFamily { partition_key, row_key } = keys;
    match (family.kind, family.is_remote) {
        (FamilyKind::List, true) => {
            rows.remote_lists.push(RemoteListKeys { family, partition_key, row_key });
        }
        (FamilyKind::List, false) => {
            let id = rows.primary.row_key().to_owned();
            rows.local_list_entries.push(ListEntry { family, row_key, id });
        }
        (FamilyKind::Primary | FamilyKind::Copy, is_remote) => {
            let row = Row::build(&partition_key, &row_key).finish()?;
            let copies = if is_remote { &mut rows.remote_copies } else { &mut rows.local_copies };
            copies.push(CopyRow { family, row });
        }
    }
    Ok(())
}

/// Writes a key. Takes each part from the property of its field or from the primary's own keys.
fn write_key(
    own: &'static RowFamily,
    template: &'static Template,
    name: &'static str,
    primary: &Row,
) -> Result<String> {
    let mut key = KeyWriter::new(template, name);
    for part in template.parts() {
        key.write_part(|out| push_part(own, part, primary, out))?;
    }
    key.finish()
}

/// Appends the unescaped text of a part to a key.
fn push_part(
    own: &'static RowFamily,
    part: &TemplatePart,
    primary: &Row,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let (partition_key, row_key) = primary.keys();
    if let Ok(text) = text_of_part(own, part, partition_key, row_key) {
        out.push_str(&text);
        return Ok(());
    }
    let damaged = |error: crate::error::Error| InvalidValue::new(error.to_string());
    if let Some(stored) = primary.get(part.field).map_err(damaged)? {
        return (part.codec.encode)(part.form, stored, out);
    }
    // The primary's keys contain the field in a different form.
    let Some((held, text)) = own.part_restoring(part.field, partition_key, row_key)? else {
        return Err(InvalidValue::new("the row does not hold the field"));
    };
    let value = (held.codec.decode)(held.form, text)?;
    (part.codec.encode)(part.form, value.as_ref(), out)
}

/// Returns the blobs that a primary points to. Only their names are known.
fn stored_blobs(writer: &'static Schema, primary: &Row) -> Result<Vec<BlobFieldValue>> {
    let mut blobs = Vec::new();
    for names in writer.blobs {
        if let Some(ValueRef::String(name)) = primary.get(names.name)? {
            let blob = Blob::stored(name, 0, [0; 32], "");
            // The schema does not contain the field's name. The property name is an adequate substitute.
            blobs.push(BlobFieldValue { field: names.name, names, blob });
        }
    }
    Ok(blobs)
}
