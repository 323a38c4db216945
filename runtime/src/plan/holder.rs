//! Who holds a key of an index that another entity wants: asked of the type that wants it, since
//! whoever meets the row in the way knows rows only.

use std::fmt;

use crate::{
    entity::{EntityRows, TableEntity, derived_rows, find_owner_of_copy},
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
    /// What a primary derives, the tokens of its keys not made yet.
    pub(crate) derived: fn(&Row) -> Result<Option<EntityRows>>,
}

impl Holders {
    pub(crate) fn of<E: TableEntity>() -> Self {
        Self { owner: find_owner_of_copy::<E>, derived: derived_rows::<E> }
    }
}

impl fmt::Debug for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holders")
    }
}
