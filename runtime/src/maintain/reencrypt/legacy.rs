//! Rows of the storage client libraries' own encryption, made rows of this one.
//!
//! A merge cannot take the two properties of that protocol away, so that a row is replaced, in the
//! version that was read. When no row is left, the feature belongs switched off: the old format has
//! no authentication.

use std::sync::Arc;

use super::{Reencrypt, What};
use crate::{
    batch::{Condition, Operation},
    edm::{EdmType, Value, ValueRef},
    entity::{Discriminator, RowKind, RowVersion, TableEntity},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    plan::StoredAs,
    row::{Row, RowBuilder},
    seal::legacy::{LegacyKeys, decrypt_row, is_legacy},
    store::sealing::plan::Placed,
    table::Table,
};

impl<E: TableEntity> Table<E> {
    /// Decrypts every row of the entity that an earlier storage client library encrypted ("client-side
    /// encryption", protocol 1.0), and stores it in this crate's format, under `If-Match`.
    ///
    /// Rows are the entity's where they say so, or where they say no type and have the keys of its
    /// primary; these are given the type. What was encrypted stays encrypted, declared or not. Then
    /// [`rebuild`](Table::rebuild) writes the copies of each index.
    ///
    /// A row that does not decrypt, or does not fit the entity, is in the report and stays as it is.
    pub fn migrate_legacy(&self, keys: LegacyKeys) -> Reencrypt<E> {
        Reencrypt { what: What::Legacy(Arc::new(keys)), ..self.reencrypt() }
    }
}

/// Rows that describe their encryption.
pub(crate) fn filter() -> Filter {
    Filter::ne(crate::seal::legacy::METADATA, "any")
}

impl<E: TableEntity> Reencrypt<E> {
    /// The write that stores a row in this crate's format; `None`: it is none of the entity's.
    pub(crate) async fn migrated(&self, keys: &LegacyKeys, row: &Row) -> Result<Option<Placed>> {
        if !is_legacy(row)? {
            return Ok(None);
        }
        let family = E::SCHEMA.primary()?;
        let marker = match E::SCHEMA.kind_of(row, Some(family))? {
            RowKind::Primary(RowVersion::Known(schema)) if schema.version == E::SCHEMA.version => {
                None
            }
            // The old library wrote no discriminator: keys that fit say that it is a primary.
            RowKind::Unmarked
                if family.row.matches(row.row_key())
                    && family.partition.matches(row.partition_key()) =>
            {
                match E::SCHEMA.discriminator {
                    Discriminator::Property(name) => Some(name),
                    Discriminator::RowKey => None,
                }
            }
            _ => return Ok(None),
        };
        let (old, modern) = self.apart(row).await?;
        let plain = decrypt_row(keys, &old)?;
        let mut out = Row::build(row.partition_key(), row.row_key());
        if let Some(name) = marker {
            out.put(name, ValueRef::String(family.marker));
        }
        let mut names = copy(&old, &plain, &mut out)?;
        for (name, value) in &modern {
            out.put(name, value.as_ref());
            names.push(name.as_str().into());
        }
        let migrated = out.finish()?.with_encrypted_names(names);
        // What cannot be read as the entity is not written as one.
        E::from_row(&migrated)
            .map_err(|error| error.at_keys(row.partition_key(), row.row_key()))?;
        let guard = Condition::for_etag(row.etag());
        let replace = Operation::replace(migrated, guard);
        Ok(Some(Placed::new(replace, StoredAs::Entity(E::SCHEMA, family))))
    }

    /// The row as the old library knew it, and the values that were merged onto it since in this
    /// crate's format.
    async fn apart(&self, row: &Row) -> Result<(Row, Vec<(String, Value)>)> {
        let vault = &self.table.client.store().sealing;
        let mut old = Row::build(row.partition_key(), row.row_key());
        let mut modern = Vec::new();
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let name = text_of(name)?;
            match vault.opened_value::<E>(row, name, value).await {
                Some(value) => modern.push((name.to_owned(), value)),
                None => old.put(name, value),
            }
        }
        Ok((finished(old, row)?, modern))
    }
}

fn finished(out: RowBuilder, like: &Row) -> Result<Row> {
    let row = out.finish()?;
    Ok(match like.etag() {
        Some(etag) => row.with_etag(etag),
        None => row,
    })
}

/// Copies the plain row, and tells what was encrypted: what was bytes and is text.
fn copy(old: &Row, plain: &Row, out: &mut RowBuilder) -> Result<Vec<Box<str>>> {
    let mut names = Vec::new();
    let mut properties = plain.properties();
    while let Some((name, value)) = properties.next()? {
        let name = text_of(name)?;
        let before = old.get(name)?.map(|value| value.edm_type());
        if before == Some(EdmType::Binary) && value.edm_type() == EdmType::String {
            names.push(name.into());
        }
        out.put(name, value);
    }
    Ok(names)
}

fn text_of(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name)
        .map_err(|_| Error::new(ErrorKind::Corrupt, "a property's name is not UTF-8"))
}
