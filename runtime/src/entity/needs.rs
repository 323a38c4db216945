//! Defines [`Needs`]: the extra steps that reads and writes of an entity type take, such as decrypting rows or reading
//! the stored entity first. They follow from the type's declaration, so the compiler computes them.

use super::{Schema, set::Members};
use crate::key::FamilyKind;

/// A set of flags: each constant of this type is one reason why a read or write of an entity takes more than a single
/// request for a single row. An entity without copies, encryption, parts or expiry has [`NONE`](Self::NONE) for reads.
/// A read or write skips every step whose flag is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs(u16);

impl Needs {
    /// One row, read and decoded as it is stored.
    pub(crate) const NONE: Self = Self(0);
    /// Keys of the type's rows contain blind tokens, in the current version of the type or in an older one.
    pub(crate) const TOKENS: Self = Self(1);
    /// Properties are stored encrypted, or a seal covers the row.
    pub(crate) const OPENING: Self = Self(1 << 1);
    /// The primary of an entity is stored as several rows.
    pub(crate) const PARTS: Self = Self(1 << 2);
    /// Entities can expire, in the current version of the type or in an older one.
    pub(crate) const EXPIRY: Self = Self(1 << 3);
    /// The stored primary is read before a write. A verb that writes without a read removes this need.
    pub(crate) const CURRENT: Self = Self(1 << 4);
    /// Entities have copies in their own partition.
    pub(crate) const COPIES: Self = Self(1 << 5);
    /// Entities are in lists of their own partition.
    pub(crate) const LISTS: Self = Self(1 << 6);
    /// Entities have copies or list entries in other partitions, or fields in blobs. Work that follows a write is
    /// recorded in the outbox.
    pub(crate) const REMOTE: Self = Self(1 << 7);
    /// Keys of indexes in other partitions are unique and are claimed before a write.
    pub(crate) const UNIQUE: Self = Self(1 << 8);
    /// Fields are kept in blobs.
    pub(crate) const BLOBS: Self = Self(1 << 9);
    /// The rows and blobs of an entity besides its primary.
    pub(crate) const OTHER_ROWS: Self =
        Self::COPIES.and(Self::LISTS).and(Self::REMOTE).and(Self::UNIQUE).and(Self::BLOBS);

    /// Returns whether all of `needs` are included.
    pub(crate) const fn contain(self, needs: Self) -> bool {
        self.0 & needs.0 == needs.0
    }

    /// Returns whether any of `needs` is included.
    pub(crate) const fn contain_any(self, needs: Self) -> bool {
        self.0 & needs.0 != 0
    }

    /// Returns these needs without `others`.
    pub(crate) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns these needs and `others`.
    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns these needs, and also `need` if `condition` is `true`.
    const fn and_if(self, condition: bool, need: Self) -> Self {
        if condition { self.and(need) } else { self }
    }
}

impl Schema {
    /// Returns the flags of this entity type: the flags of the current version and of all older versions together,
    /// because any of them may have written a stored row.
    pub(crate) const fn needs(&self) -> Needs {
        let mut needs = Needs::CURRENT
            .and_if(self.is_sealed(), Needs::OPENING)
            .and_if(self.is_wide(), Needs::PARTS);
        let mut version = Some(self);
        while let Some(schema) = version {
            needs = needs
                .and(schema.needs_of_own_families())
                .and_if(schema.expires.is_some(), Needs::EXPIRY)
                .and_if(!schema.blobs.is_empty(), Needs::BLOBS.and(Needs::REMOTE));
            version = schema.older;
        }
        needs
    }

    /// Returns the flags that follow from the row families (primary, copies, lists) of this version alone.
    const fn needs_of_own_families(&self) -> Needs {
        let (mut needs, mut families) = (Needs::NONE, self.families);
        while let [family, rest @ ..] = families {
            let is_token = family.partition.has_tokens() || family.row.has_tokens();
            needs =
                needs.and_if(is_token, Needs::TOKENS).and(match (family.kind, family.is_remote) {
                    (FamilyKind::Primary, _) => Needs::NONE,
                    (_, true) => Needs::REMOTE.and_if(family.unique, Needs::UNIQUE),
                    (FamilyKind::List, false) => Needs::LISTS,
                    (_, false) => Needs::COPIES,
                });
            families = rest;
        }
        needs
    }
}

impl Members {
    /// Returns the flags of a set: the flags of all its entity types together.
    pub(crate) const fn needs(&self) -> Needs {
        let (mut needs, mut schemas) = (Needs::NONE, self.schemas());
        while let [schema, rest @ ..] = schemas {
            needs = needs.and(schema.needs());
            schemas = rest;
        }
        needs
    }
}
