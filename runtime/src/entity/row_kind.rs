//! Classifies rows: which of an entity's rows a row is, and which version wrote it.

use super::{Recognition, Schema, framework::framework_type_of};
use crate::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    key::{Family, FamilyKind},
    row::Row,
};

/// The EntityType of all rows of all lists.
pub(crate) const LIST_MARKER: &str = "entable.list";

/// The text between the RowKey of a list's head row and the number of a spill row.
pub(crate) const SPILL: &str = "~s";

/// Returns the RowKey of the head row of the list that a row belongs to.
// A text part of a key never contains `~s`.
pub(crate) fn head_row_key(row_key: &str) -> &str {
    row_key.split_once(SPILL).map_or(row_key, |(head, _)| head)
}

/// The version that wrote a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowVersion {
    /// The current version or one from which `upgrade_from` leads to it.
    Known(&'static Schema),
    /// A version that this program cannot read.
    Unknown(u32),
}

/// Says which kind of row of an entity type a row is: primary, copy, list entry.
// Moving, arrived and reserved are states of a primary or a copy, not kinds.
#[derive(Debug, Clone)]
pub(crate) enum RowKind {
    /// The entity's own row.
    Primary(RowVersion),
    /// A part of a wide entity other than the first, which is the primary.
    Part(&'static Schema),
    /// A secondary-index copy. The row family is that of the version that wrote it, or the newest
    /// one of this name if that version is unknown.
    Copy(&'static Family, RowVersion),
    /// A copy of an index that its version does not have.
    UnknownCopy(RowVersion),
    /// A head row or spill row of a list.
    List(&'static Family),
    /// A row of the framework, such as a fence or a list of another type.
    Framework,
    /// A row of another type, with this discriminator.
    Foreign(String),
    /// A row without a discriminator, whose keys are of no row family if the type has none either.
    Unmarked,
}

/// How a row is known to be a primary that an earlier storage client library may have written: as
/// this library knows its own rows, or by its keys although the discriminator property is missing.
/// The migration from that library adds that property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "legacy-encryption"), allow(dead_code, reason = "used by the migration"))]
pub(crate) enum PrimaryMarking {
    /// The row is marked as rows of this library are: by the discriminator property, or by its keys
    /// if the type has no such property.
    Marked,
    /// A row that only its keys show to be a primary. The migration adds this property, the discriminator.
    Unmarked(&'static str),
}

impl RowKind {
    /// Returns whether the row is of this row family, whichever version wrote the row.
    pub(crate) fn is_of_family(&self, family: &Family) -> bool {
        match self {
            Self::Primary(_) => family.kind == FamilyKind::Primary,
            Self::Copy(found, _) => family.kind == FamilyKind::Copy && found.name == family.name,
            Self::List(found) => family.kind == FamilyKind::List && found.name == family.name,
            Self::Part(_)
            | Self::UnknownCopy(_)
            | Self::Framework
            | Self::Foreign(_)
            | Self::Unmarked => false,
        }
    }
}

impl Schema {
    /// Classifies a row. Compares the row with the row family `expected` first, since a row that
    /// was read through a path is usually of that family. If the row does not match, compares it
    /// with all other row families.
    ///
    /// # Errors
    ///
    /// `is_decode` if the discriminator is not a String; `is_corrupt` for a damaged row.
    pub(crate) fn row_kind_of(
        &'static self,
        row: &Row,
        expected: Option<&'static Family>,
    ) -> Result<RowKind> {
        let Some(family) = expected else { return self.row_kind_among_families(row, |_| true) };
        let is_expected = match self.type_property() {
            Some(name) => self.discriminator_of(row, name)? == Some(family.marker),
            None => has_keys_of_family(family, row),
        };
        match family.kind {
            FamilyKind::Primary if is_expected => {
                Ok(RowKind::Primary(RowVersion::Known(self.version_with(family))))
            }
            FamilyKind::Copy if is_expected => {
                Ok(RowKind::Copy(family, RowVersion::Known(self.version_with(family))))
            }
            _ => self.row_kind_among_families(row, |_| true),
        }
    }

    /// Classifies a row as one of the row families that `accepts` takes. A primary, copy or part of a row
    /// family that `accepts` refuses counts as a row of another type: as `RowKind::Foreign` if the type has a
    /// discriminator property. Without one, its keys are compared with the accepted row families alone.
    ///
    /// With a discriminator property, a primary of an unknown version is classified as such whatever
    /// `accepts` says, and so is a copy of an index that its version does not have. A list that `accepts`
    /// refuses is `RowKind::Framework`. But if `accepts` takes lists alone, all rows of entities are
    /// `RowKind::Unmarked`.
    ///
    /// # Errors
    ///
    /// Fails like [`row_kind_of`](Self::row_kind_of).
    pub(crate) fn row_kind_among_families(
        &'static self,
        row: &Row,
        accepts: impl Fn(&'static Family) -> bool,
    ) -> Result<RowKind> {
        // Where only lists are wanted, a discriminator of another type is nobody's mistake.
        if !self.has_entity_family(&accepts) {
            return Ok(self.framework_kind(row, &accepts)?.unwrap_or(RowKind::Unmarked));
        }
        let Some(name) = self.type_property() else {
            return Ok(match self.kind_by_keys(row, &accepts) {
                Some(kind) => kind,
                None => self.framework_kind(row, &accepts)?.unwrap_or(RowKind::Unmarked),
            });
        };
        let Some(marker) = self.discriminator_of(row, name)? else {
            return Ok(self.framework_kind(row, &accepts)?.unwrap_or(RowKind::Unmarked));
        };
        let foreign = || RowKind::Foreign(marker.to_owned());
        let Some(kind) = self.kind_by_marker(marker) else {
            return Ok(self.framework_kind(row, &accepts)?.unwrap_or_else(foreign));
        };
        let is_accepted = match &kind {
            RowKind::Primary(RowVersion::Known(schema)) => accepts(schema.primary()?),
            RowKind::Copy(family, _) => accepts(family),
            RowKind::Part(schema) => accepts(schema.primary()?),
            _ => true,
        };
        Ok(if is_accepted { kind } else { foreign() })
    }

    /// Returns the version that wrote a row if the row is a primary of this type; `None` for any other
    /// row.
    ///
    /// # Errors
    ///
    /// Fails like [`row_kind_of`](Self::row_kind_of).
    pub(crate) fn version_of_primary(&'static self, row: &Row) -> Result<Option<RowVersion>> {
        Ok(match self.row_kind_of(row, Some(self.primary()?))? {
            RowKind::Primary(version) => Some(version),
            RowKind::Part(_)
            | RowKind::Copy(..)
            | RowKind::UnknownCopy(_)
            | RowKind::List(_)
            | RowKind::Framework
            | RowKind::Foreign(_)
            | RowKind::Unmarked => None,
        })
    }

    /// Returns the older version that wrote a row, and the row's family in that version. Returns `None` for
    /// a row of the current version, of an unknown one, and of another type.
    ///
    /// # Errors
    ///
    /// Fails like [`row_kind_of`](Self::row_kind_of).
    pub(crate) fn older_version_of_row(
        &'static self,
        row: &Row,
    ) -> Result<Option<(&'static Schema, &'static Family)>> {
        if self.older.is_none() {
            return Ok(None);
        }
        let (version, family) = match self.row_kind_of(row, None)? {
            RowKind::Primary(RowVersion::Known(version)) | RowKind::Part(version) => {
                (version, version.primary()?)
            }
            RowKind::Copy(family, RowVersion::Known(version)) => (version, family),
            _ => return Ok(None),
        };
        Ok((version.version != self.version).then_some((version, family)))
    }

    /// Returns whether a row is a primary that the current version of this type wrote.
    ///
    /// # Errors
    ///
    /// Fails like [`row_kind_of`](Self::row_kind_of).
    pub(crate) fn is_current_primary(&'static self, row: &Row) -> Result<bool> {
        let version = self.version_of_primary(row)?;
        Ok(matches!(version, Some(RowVersion::Known(writer)) if writer.version == self.version))
    }

    /// Returns how a row is a primary of this version for the migration from another library, which
    /// wrote no discriminator: then keys that fit say so, also with a RowKey that holds unescaped `~`.
    /// `None` if it is none.
    ///
    /// # Errors
    ///
    /// Fails like [`row_kind_of`](Self::row_kind_of).
    #[cfg_attr(
        not(feature = "legacy-encryption"),
        allow(dead_code, reason = "used by the migration")
    )]
    pub(crate) fn legacy_marking_of_row(
        &'static self,
        row: &Row,
    ) -> Result<Option<PrimaryMarking>> {
        let family = self.primary()?;
        Ok(match self.row_kind_of(row, Some(family))? {
            RowKind::Primary(RowVersion::Known(schema)) if schema.version == self.version => {
                Some(PrimaryMarking::Marked)
            }
            RowKind::Unmarked
                if family.row.spell_key_of_others(row.row_key()).is_some()
                    && family.partition.matches(row.partition_key()) =>
            {
                Some(self.type_property().map_or(PrimaryMarking::Marked, PrimaryMarking::Unmarked))
            }
            _ => None,
        })
    }

    /// Returns whether `accepts` takes at least one row family of primaries or copies, in some
    /// version.
    fn has_entity_family(&'static self, accepts: impl Fn(&'static Family) -> bool) -> bool {
        self.versions().any(|schema| {
            let families: &'static [Family] = schema.families;
            families.iter().any(|family| family.kind != FamilyKind::List && accepts(family))
        })
    }

    /// Returns the text in the discriminator property.
    fn discriminator_of<'r>(&self, row: &'r Row, name: &str) -> Result<Option<&'r str>> {
        match row.get(name)? {
            None => Ok(None),
            Some(ValueRef::String(marker)) => Ok(Some(marker)),
            Some(other) => {
                let message = format!("expected the type's name, found {}", other.edm_type());
                Err(Error::new(ErrorKind::Decode, message).in_property(name))
            }
        }
    }

    /// Returns the row kind that a discriminator's value names, or `None` if the value belongs to another
    /// entity type.
    fn kind_by_marker(&'static self, marker: &str) -> Option<RowKind> {
        let (entity, index) = match marker.split_once('#') {
            Some((entity, index)) => (entity, Some(index)),
            None => (marker, None),
        };
        let number = self.version_of_marker(entity)?;
        let version = match self.versions().find(|schema| schema.version == number) {
            Some(schema) => RowVersion::Known(schema),
            None => RowVersion::Unknown(number),
        };
        let Some(index) = index else { return Some(RowKind::Primary(version)) };
        // The value of a part, such as `Report#02`, has the form of a copy's value, and would be
        // taken for a copy of an index that the version does not have.
        if let RowVersion::Known(schema) = version
            && schema.parts.contains(&marker)
        {
            return Some(RowKind::Part(schema));
        }
        let copy_in = |schema: &'static Schema| {
            let families: &'static [Family] = schema.families;
            families.iter().find(|family| family.kind == FamilyKind::Copy && family.name == index)
        };
        let family = match version {
            RowVersion::Known(schema) => copy_in(schema),
            RowVersion::Unknown(_) => self.versions().find_map(copy_in),
        };
        Some(family.map_or(RowKind::UnknownCopy(version), |family| RowKind::Copy(family, version)))
    }

    /// Finds the primary or copy that a row is by its keys alone.
    fn kind_by_keys(
        &'static self,
        row: &Row,
        accepts: impl Fn(&'static Family) -> bool,
    ) -> Option<RowKind> {
        self.versions().find_map(|schema| {
            let families: &'static [Family] = schema.families;
            let version = RowVersion::Known(schema);
            families.iter().filter(|family| accepts(family)).find_map(|family| match family.kind {
                FamilyKind::Primary if has_keys_of_family(family, row) => {
                    Some(RowKind::Primary(version))
                }
                FamilyKind::Copy if has_keys_of_family(family, row) => {
                    Some(RowKind::Copy(family, version))
                }
                _ => None,
            })
        })
    }

    /// Classifies a row of the library: as the list that it belongs to, or else as
    /// `RowKind::Framework`. Returns `None` for a row of an entity.
    fn framework_kind(
        &'static self,
        row: &Row,
        accepts: impl Fn(&'static Family) -> bool,
    ) -> Result<Option<RowKind>> {
        let Some(marker) = framework_type_of(row)? else { return Ok(None) };
        if marker != LIST_MARKER {
            return Ok(Some(RowKind::Framework));
        }
        let head = head_row_key(row.row_key());
        let list = self.versions().find_map(|schema| {
            let families: &'static [Family] = schema.families;
            families.iter().find(|family| {
                family.kind == FamilyKind::List
                    && accepts(family)
                    && family.partition.matches(row.partition_key())
                    && family.row.matches(head)
            })
        });
        Ok(Some(list.map_or(RowKind::Framework, RowKind::List)))
    }

    /// Returns the version of the type that declares this row family: the newest, or an older one.
    fn version_with(&'static self, family: &'static Family) -> &'static Schema {
        if self.older.is_none() {
            return self;
        }
        let has = |schema: &&'static Schema| {
            schema.families.iter().any(|own| own.marker == family.marker)
        };
        self.versions().find(has).unwrap_or(self)
    }

    /// Tells whether a row is of this type and `family`, and in which version.
    ///
    /// # Errors
    ///
    /// `is_decode` if the discriminator is not a String; `is_corrupt` for a damaged row.
    pub fn recognize(&'static self, row: &Row, family: &'static Family) -> Result<Recognition> {
        let version = match self.row_kind_of(row, Some(family))? {
            RowKind::Primary(version) if family.kind == FamilyKind::Primary => version,
            RowKind::Copy(found, version)
                if family.kind == FamilyKind::Copy && found.name == family.name =>
            {
                version
            }
            RowKind::Unmarked => return Ok(Recognition::Unmarked),
            RowKind::Foreign(marker) => return Ok(Recognition::Foreign(marker)),
            RowKind::Primary(_)
            | RowKind::Part(_)
            | RowKind::Copy(..)
            | RowKind::UnknownCopy(_)
            | RowKind::List(_)
            | RowKind::Framework => return self.other_row(row),
        };
        Ok(match version {
            RowVersion::Known(schema) if schema.version == self.version => Recognition::Ours,
            RowVersion::Known(schema) => Recognition::Version(schema.version),
            RowVersion::Unknown(version) => Recognition::Version(version),
        })
    }

    /// Recognises a row that is not of the row family searched for, by its discriminator alone:
    /// `Foreign` with the discriminator's value, or `Unmarked` without one.
    fn other_row(&self, row: &Row) -> Result<Recognition> {
        let Some(name) = self.type_property() else { return Ok(Recognition::Unmarked) };
        let marker = self.discriminator_of(row, name)?;
        Ok(marker.map_or(Recognition::Unmarked, |marker| Recognition::Foreign(marker.to_owned())))
    }
}

fn has_keys_of_family(family: &Family, row: &Row) -> bool {
    // The RowKey is compared first, because local row families share a form of the PartitionKey.
    family.row.matches(row.row_key()) && family.partition.matches(row.partition_key())
}
