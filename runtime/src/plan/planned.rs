//! Whose row an operation writes, as far as its stored form depends on it.

use crate::{
    entity::Schema,
    error::Result,
    key::{Family, FamilyKind},
};

/// Whose row it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Home {
    /// An entity's: its own row or a copy.
    Entity(&'static Schema, &'static Family),
    /// A row without a declared type.
    Untyped,
    /// The framework's own, or a write that sets nothing new: stored as it is.
    Framework,
}

impl Home {
    /// The entity's own row; without a schema, an untyped one.
    pub(crate) fn primary(schema: Option<&'static Schema>) -> Result<Self> {
        match schema {
            Some(schema) => Ok(Self::Entity(schema, schema.primary()?)),
            None => Ok(Self::Untyped),
        }
    }

    /// The copy of an index.
    pub(crate) fn copy(schema: Option<&'static Schema>, family: &'static Family) -> Self {
        match schema {
            Some(schema) if family.kind != FamilyKind::List => Self::Entity(schema, family),
            Some(_) => Self::Framework,
            None => Self::Untyped,
        }
    }

    /// What is declared of the row.
    pub(crate) fn schema(self) -> Option<(&'static Schema, &'static Family)> {
        match self {
            Self::Entity(schema, family) => Some((schema, family)),
            Self::Untyped | Self::Framework => None,
        }
    }
}
