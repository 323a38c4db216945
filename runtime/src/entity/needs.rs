//! What reads of an entity type have to do, as a constant of the type.

use super::{Schema, set::Members};

/// What reads of a type have to do apart from reading one row and decoding it: any of the constants
/// of this type. A plain entity needs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs(u8);

impl Needs {
    /// One row, read and decoded as it is stored.
    pub(crate) const NONE: Self = Self(0);
    /// Keys of the type's rows contain blind tokens, in some version.
    pub(crate) const TOKENS: Self = Self(1);
    /// Properties are stored encrypted, or a seal covers the row.
    pub(crate) const OPENING: Self = Self(1 << 1);
    /// The primary of an entity is stored as several rows.
    pub(crate) const PARTS: Self = Self(1 << 2);
    /// Entities say when they are over, in some version.
    pub(crate) const EXPIRY: Self = Self(1 << 3);

    /// Returns whether all of `needs` are among these.
    pub(crate) const fn contain(self, needs: Self) -> bool {
        self.0 & needs.0 == needs.0
    }

    /// Returns these needs and `others`.
    const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns these needs, and `need` if the condition holds.
    const fn and_if(self, condition: bool, need: Self) -> Self {
        if condition { self.and(need) } else { self }
    }
}

impl Schema {
    /// Returns what reads of the type have to do.
    pub(crate) const fn needs(&self) -> Needs {
        let mut needs = Needs::NONE
            .and_if(self.is_sealed(), Needs::OPENING)
            .and_if(self.is_wide(), Needs::PARTS);
        let mut version = Some(self);
        while let Some(schema) = version {
            needs = needs
                .and_if(schema.expires.is_some(), Needs::EXPIRY)
                .and_if(schema.has_tokens_in_own_keys(), Needs::TOKENS);
            version = schema.older;
        }
        needs
    }

    /// Returns whether keys that this version writes contain blind tokens.
    const fn has_tokens_in_own_keys(&self) -> bool {
        let mut families = self.families;
        while let [family, rest @ ..] = families {
            if family.partition.has_tokens() || family.row.has_tokens() {
                return true;
            }
            families = rest;
        }
        false
    }
}

impl Members {
    /// Returns what reads of the set have to do: the needs of all its members.
    pub(crate) const fn needs(&self) -> Needs {
        let (mut needs, mut schemas) = (Needs::NONE, self.schemas());
        while let [schema, rest @ ..] = schemas {
            needs = needs.and(schema.needs());
            schemas = rest;
        }
        needs
    }
}
