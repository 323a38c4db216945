//! Opens stored rows: decides which rows concern the reader, and as which type to decrypt them.

use std::borrow::Cow;

use super::RowSealer;
use crate::{
    entity::{Discriminator, Needs, RowKind, Schema, SealedColumn, set::Members},
    error::Result,
    key::RowFamily,
    row::Row,
};

/// The types as which rows are read and decrypted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadAs {
    /// One entity type. Rows of other types are returned in their stored form.
    Typed(&'static Schema),
    /// The members of a set.
    Members(&'static Members),
    /// No declared type: every encrypted value is decrypted.
    Untyped,
}

/// The encryption that an entity type declares.
#[derive(Debug)]
pub(crate) struct TypeSealing {
    pub(crate) schema: &'static Schema,
    pub(crate) columns: Vec<SealedColumn>,
    /// The library's properties that programs do not see: blind tokens and the seal.
    pub(crate) unseen: Vec<Cow<'static, str>>,
}

impl TypeSealing {
    pub(crate) fn new(schema: &'static Schema) -> Self {
        Self {
            schema,
            columns: schema.sealed_columns(),
            unseen: schema.token_and_seal_properties(),
        }
    }
}

/// The type of a row, as far as its reader knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowTypeForReader {
    /// The row has a type that the reader did not ask for.
    Foreign,
    /// The row has the type at this position, and this row family if it is known.
    Declared(usize, Option<&'static RowFamily>),
    Untyped,
}

impl ReadAs {
    /// Returns whether any of the types declares encrypted properties or a seal.
    pub(crate) fn has_sealed(self) -> bool {
        match self {
            Self::Typed(schema) => schema.is_sealed(),
            Self::Members(members) => members.schemas().iter().any(|schema| schema.is_sealed()),
            Self::Untyped => false,
        }
    }

    /// Returns whether any of the types has blind tokens in its keys.
    pub(crate) fn has_key_tokens(self) -> bool {
        match self {
            Self::Typed(schema) => schema.has_key_tokens(),
            Self::Members(members) => {
                members.schemas().iter().any(|schema| schema.has_key_tokens())
            }
            Self::Untyped => false,
        }
    }

    /// Returns the declarations of each type, in the order of the set's members.
    pub(crate) fn sealing_of_each_type(self) -> Vec<TypeSealing> {
        let schemas: Cow<'static, [&'static Schema]> = match self {
            Self::Typed(schema) => Cow::Owned(vec![schema]),
            Self::Members(members) => Cow::Borrowed(members.schemas()),
            Self::Untyped => Cow::Borrowed(&[]),
        };
        schemas.iter().map(|schema| TypeSealing::new(schema)).collect()
    }

    /// Returns the type and row family of a row, as far as decryption needs them.
    pub(crate) fn row_type_and_family(self, row: &Row) -> Result<RowTypeForReader> {
        Ok(match self {
            Self::Typed(schema) => classify_typed(schema, row)?,
            Self::Members(members) => match members.match_row(row)? {
                Some(matched) => {
                    RowTypeForReader::Declared(matched.member_index(), Some(matched.family()))
                }
                None => match members.wide_member_of(row) {
                    Some((at, schema)) => RowTypeForReader::Declared(at, Some(schema.primary()?)),
                    None => RowTypeForReader::Untyped,
                },
            },
            Self::Untyped => RowTypeForReader::Untyped,
        })
    }
}

/// Returns the type of a row for a reader of one type. A row of an unknown version counts as having the type, so it is
/// never returned encrypted.
fn classify_typed(schema: &'static Schema, row: &Row) -> Result<RowTypeForReader> {
    let families: &'static [RowFamily] = schema.families;
    let kind = match schema.row_kind_of(row, None) {
        // A discriminator that is not a String does not contain the type.
        Err(error) if error.is_decode() => return Ok(RowTypeForReader::Foreign),
        kind => kind?,
    };
    let family = match kind {
        RowKind::Primary(_) | RowKind::Part(_) => families.first(),
        RowKind::Copy(found, _) => {
            families.iter().find(|family| family.is_copy() && family.name == found.name)
        }
        RowKind::UnknownCopy(_) => None,
        RowKind::List(_) | RowKind::Framework | RowKind::Foreign(_) | RowKind::Unmarked => {
            match schema.discriminator {
                Discriminator::Property(_) => return Ok(RowTypeForReader::Foreign),
                // Without a discriminator, a row cannot be recognised as having another type.
                Discriminator::RowKey => None,
            }
        }
    };
    Ok(RowTypeForReader::Declared(0, family))
}

impl RowSealer {
    /// Returns whether stored rows must be decrypted or verified before readers see them. `needs` are the needs of the
    /// rows' types.
    pub(crate) const fn unseals_rows(&self, needs: Needs) -> bool {
        self.keys.is_some() || needs.contain(Needs::TOKENS) || needs.contain(Needs::OPENING)
    }

    /// Decrypts one row.
    ///
    /// # Errors
    ///
    /// Fails with `is_decrypt` if a value cannot be decrypted, or is plain where an encrypted one belongs. Fails with
    /// `is_key_unavailable` if the key store does not answer or the client has no keys.
    pub(crate) async fn unseal_one_row(
        &self,
        table: &str,
        row: Row,
        read_as: ReadAs,
        select: Option<&[String]>,
    ) -> Result<Row> {
        let mut opened = self.unseal_rows(table, vec![Ok(row)], read_as, select).await;
        opened.pop().unwrap_or_else(|| Err(crate::row::corrupt_row_error("the row was lost")))
    }
}
