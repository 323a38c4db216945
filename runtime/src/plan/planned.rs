//! Planned operations: what a transaction writes, on whose behalf, and in which stored form.

use crate::{batch::Operation, entity::Schema, error::Result, key::Family};

/// One operation of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) operation: Operation,
    pub(crate) role: Role,
    pub(crate) stored_as: StoredAs,
}

/// The reason why a transaction holds an operation. It tells whose mistake or lost race a failure
/// of the operation is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// Writes the primary of the verb with this index.
    Primary(usize),
    /// Deletes a part of a wide entity, of the verb with this index, whatever its ETag. Other parts are
    /// deleted with it.
    DeletedPart(usize),
    /// Inserts a copy under a key that is new to the entity of the verb.
    NewCopy(usize, &'static Family),
    /// Writes a copy under a key that the entity of the verb, or another entity of the transaction,
    /// has already.
    KeptCopy(usize),
    /// Deletes a copy under a key that its entity leaves.
    OldCopy,
    /// Writes a row of a local list.
    List,
    /// Deletes a claim, which makes its reservations valid.
    Claim,
    /// Writes the dirty row with this index.
    Dirty(usize),
    /// Inserts a message or a receipt.
    Note,
    /// Touches the fence of the partition.
    Fence,
}

/// The form in which an operation's row is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StoredAs {
    /// As a primary or copy of this type: its declared properties are encrypted.
    Entity(&'static Schema, &'static Family),
    /// As a row without a declared type: the client chooses which properties are encrypted.
    Untyped,
    /// Unchanged: a row of the framework, or a write that sets no property of an entity.
    Framework,
}

impl StoredAs {
    /// Returns the form of a primary of this type. Without a type, the row is untyped.
    pub(crate) fn primary_of(schema: Option<&'static Schema>) -> Result<Self> {
        match schema {
            Some(schema) => Ok(Self::Entity(schema, schema.primary()?)),
            None => Ok(Self::Untyped),
        }
    }

    /// Returns the form of a row of `family`. Rows of lists are the framework's.
    pub(crate) fn copy_of(schema: Option<&'static Schema>, family: &'static Family) -> Self {
        match schema {
            Some(schema) if family.holds_entity() => Self::Entity(schema, family),
            Some(_) => Self::Framework,
            None => Self::Untyped,
        }
    }

    /// Returns type and row family of an entity's row.
    pub(crate) fn entity(self) -> Option<(&'static Schema, &'static Family)> {
        match self {
            Self::Entity(schema, family) => Some((schema, family)),
            Self::Untyped | Self::Framework => None,
        }
    }
}
