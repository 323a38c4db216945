//! Defines the planned operations of a transaction. Each has the verb that it belongs to and the form in which its row
//! is stored.

use crate::{batch::Operation, entity::Schema, error::Result, key::RowFamily};

/// One operation of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct PlannedOperation {
    pub(crate) operation: Operation,
    pub(crate) role: OperationRole,
    pub(crate) stored_as: StoredAs,
}

/// Why a transaction contains an operation. If the operation fails, the role shows whether the cause is a caller's
/// mistake, a taken key or a lost race.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OperationRole {
    /// Writes the primary of the verb at this position.
    Primary(usize),
    /// Deletes a part of a wide entity for the verb at this position, whatever its ETag. The other parts are
    /// deleted in the same transaction.
    DeletedPart(usize),
    /// Inserts a copy under a key that the entity of the verb did not have.
    NewCopy(usize, &'static RowFamily),
    /// Writes a copy under a key that this entity, or another entity of the transaction, already has.
    KeptCopy(usize),
    /// Deletes a copy under a key that its entity releases.
    OldCopy,
    /// Writes a row of a local list.
    List,
    /// Deletes a claim, which makes its reservations valid.
    Claim,
    /// Writes the dirty row at this position.
    Dirty(usize),
    /// Inserts a message or a receipt.
    MessageOrReceipt,
    /// Changes the partition's fence, which fails if a worker has deleted it.
    Fence,
}

/// The form in which an operation's row is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StoredAs {
    /// A primary or copy of this type, whose declared properties are encrypted.
    Entity(&'static Schema, &'static RowFamily),
    /// A row without a declared type, for which the client chooses the properties to encrypt.
    Untyped,
    /// A row of the library, or a write that sets no property of an entity. Stored unchanged.
    Framework,
}

impl StoredAs {
    /// Returns the stored form of a primary of this type, or `Untyped` without a type.
    pub(crate) fn storage_kind_of_primary(schema: Option<&'static Schema>) -> Result<Self> {
        match schema {
            Some(schema) => Ok(Self::Entity(schema, schema.primary()?)),
            None => Ok(Self::Untyped),
        }
    }

    /// Returns how a row of a copy or list family is stored: a copy as an entity of its type, whose declared properties
    /// are encrypted, and a list row unchanged, as a row of the library. Returns `Untyped` if `schema` is `None`.
    pub(crate) fn storage_kind_of_copy(
        schema: Option<&'static Schema>,
        family: &'static RowFamily,
    ) -> Self {
        match schema {
            Some(schema) if family.is_primary_or_copy() => Self::Entity(schema, family),
            Some(_) => Self::Framework,
            None => Self::Untyped,
        }
    }

    /// Returns the type and row family of an entity's row, or `None` for other rows.
    pub(crate) fn type_and_family(self) -> Option<(&'static Schema, &'static RowFamily)> {
        match self {
            Self::Entity(schema, family) => Some((schema, family)),
            Self::Untyped | Self::Framework => None,
        }
    }
}
