//! Who holds a key of an index that another entity wants: asked of the type that wants it, since
//! whoever meets the row in the way knows rows only.

use std::fmt;

use crate::{
    entity::{TableEntity, derived_rows, owner_of},
    error::Result,
    row::Row,
};

/// PartitionKey and RowKey of an entity.
pub(crate) type Keys = (String, String);

/// What a type knows of the holders of its keys.
#[derive(Clone, Copy)]
pub(crate) struct Holders {
    /// The entity that a copy is one of; `None`: it is no copy of the type, or does not say.
    pub(crate) owner: fn(&Row) -> Result<Option<Keys>>,
    /// Whether a primary derives the copy with that RowKey.
    pub(crate) derives: fn(&Row, &str) -> Result<bool>,
}

impl Holders {
    pub(crate) fn of<E: TableEntity>() -> Self {
        Self {
            owner: owner_of::<E>,
            derives: |primary, row_key| {
                let rows = derived_rows::<E>(primary)?;
                let mut copies = rows.into_iter().flat_map(|rows| rows.copies);
                Ok(copies.any(|copy| copy.row.row_key() == row_key))
            },
        }
    }
}

impl fmt::Debug for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holders")
    }
}
