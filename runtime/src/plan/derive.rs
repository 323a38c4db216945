//! Derives rows from a primary.

use super::tokens::TokenMaker;
use crate::{
    entity::{EntityRows, RowVersion, Schema},
    error::Result,
    row::Row,
};

/// The result of deriving an entity's rows.
#[derive(Debug)]
pub(crate) enum Derived {
    /// The entity's rows, as declared by the version that wrote its primary.
    Rows(Box<EntityRows>),
    /// The row is not a primary of this type.
    NotOurs,
    /// The row is a primary of this version, which this program does not know.
    UnknownVersion(u32),
}

impl Derived {
    /// Returns the derived rows, or `None` if the row is not a primary of `schema`.
    ///
    /// # Errors
    ///
    /// Fails with `is_unrecognized_entity` for an unknown version.
    pub(crate) fn into_known_rows(self, schema: &Schema) -> Result<Option<EntityRows>> {
        match self {
            Self::Rows(rows) => Ok(Some(*rows)),
            Self::NotOurs => Ok(None),
            Self::UnknownVersion(version) => Err(schema.unknown_version_error(version)),
        }
    }
}

impl Schema {
    /// Derives every row of an entity from its decrypted primary, with blind tokens in the keys. Properties that
    /// the primary stores encrypted are marked as encrypted in all rows.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row does not fit its version.
    pub(crate) fn derive_rows(&'static self, opened: &Row, tokens: &TokenMaker) -> Result<Derived> {
        let family = self.primary()?;
        match self.version_of_primary(opened)? {
            Some(RowVersion::Known(_)) => {}
            Some(RowVersion::Unknown(version)) => return Ok(Derived::UnknownVersion(version)),
            None => return Ok(Derived::NotOurs),
        }
        // Use the version that wrote the row, because the copies have that version's keys.
        let rows = (self.rows_through)(opened, family)?;
        let rows = tokens.fill_key_tokens_of_rows(self, rows)?;
        Ok(Derived::Rows(Box::new(rows.inherit_encrypted_names_of(opened))))
    }
}
