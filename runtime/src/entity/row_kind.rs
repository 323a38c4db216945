//! Classifies rows: the kind of an entity's row, and the version that wrote it.

use super::{Recognition, Schema, framework::framework_type_of};
use crate::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    key::{FamilyKind, RowFamily},
    row::Row,
};

/// The EntityType of all list rows.
pub(crate) const LIST_MARKER: &str = "entable.list";

/// The text between the RowKey of a list's head row and the number of a spill row.
pub(crate) const SPILL: &str = "~s";

/// Returns the RowKey of the head row of a list, from the RowKey of any of its rows. Text parts of keys never
/// contain `~s`.
pub(crate) fn head_row_key(row_key: &str) -> &str {
    row_key.split_once(SPILL).map_or(row_key, |(head, _)| head)
}

/// The version that wrote a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowVersion {
    /// The current version, or an older one that `upgrade_from` can convert.
    Known(&'static Schema),
    /// A version that this program cannot read.
    Unknown(u32),
}

/// The kind of an entity type's row: primary, copy, list entry. Moving, arrived and reserved are states of a
/// primary or a copy, not kinds.
#[derive(Debug, Clone)]
pub(crate) enum RowKind {
    /// The entity's own row.
    Primary(RowVersion),
    /// A part of a wide entity other than the first. The first part is the primary.
    Part(&'static Schema),
    /// A secondary-index copy. The row family is the one in the version that wrote the row, or the newest with this
    /// name if that version is unknown.
    Copy(&'static RowFamily, RowVersion),
    /// A copy of an index that does not exist in its version.
    UnknownCopy(RowVersion),
    /// A head row or spill row of a list.
    List(&'static RowFamily),
    /// A row of the framework, such as a fence or a list of another type.
    Framework,
    /// A row of another type, with this discriminator.
    Foreign(String),
    /// A row without a discriminator. If the type has no discriminator either, the keys match no row family.
    Unmarked,
}

/// How a row is known to be a primary that an earlier storage client library may have written. It is recognised
/// like this library's own rows, or only by its keys if the discriminator property is missing. The migration
/// from that library adds the property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "legacy-encryption"), allow(dead_code, reason = "used by the migration"))]
pub(crate) enum PrimaryMarking {
    /// The row is marked like this library's rows: by the discriminator property, or by its keys if the type has
    /// no such property.
    Marked,
    /// The keys fit, but the discriminator property is missing. The migration adds the property with this name.
    Unmarked(&'static str),
}

impl RowKind {
    /// Returns whether the row is of a row family, whichever version wrote the row.
    pub(crate) fn is_of_family(&self, family: &RowFamily) -> bool {
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
    /// Classifies a row. Tries row family `expected` first, because a row that was read through a path usually
    /// belongs to the path's family, then all other row families.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the discriminator is not a String, and with `is_corrupt` for a damaged row.
    pub(crate) fn row_kind_of(
        &'static self,
        row: &Row,
        expected: Option<&'static RowFamily>,
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

    /// Classifies a row, considering only row families that `accepts` takes. A primary, copy or part of any other
    /// row family counts as a row of another type: as `RowKind::Foreign` if the type has a discriminator property.
    /// Without one, only the keys of accepted row families are compared.
    ///
    /// With a discriminator property, two rows are classified regardless of `accepts`: a primary of an unknown
    /// version, and a copy of an index that does not exist in its version. A list that `accepts` refuses is
    /// `RowKind::Framework`. If `accepts` only takes lists, all rows of entities are `RowKind::Unmarked`.
    ///
    /// # Errors
    ///
    /// Fails as [`row_kind_of`](Self::row_kind_of) does.
    pub(crate) fn row_kind_among_families(
        &'static self,
        row: &Row,
        accepts: impl Fn(&'static RowFamily) -> bool,
    ) -> Result<RowKind> {
        // If only lists are wanted, a discriminator with another type is not an error.
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

    /// Returns the version that wrote a row if it is a primary of this type, or `None` for any other row.
    ///
    /// # Errors
    ///
    /// Fails as [`row_kind_of`](Self::row_kind_of) does.
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

    /// Returns the older version that wrote a row, and the row's family in that version. Returns `None` for rows
    /// of the current version, of an unknown version, and of another type.
    ///
    /// # Errors
    ///
    /// Fails as [`row_kind_of`](Self::row_kind_of) does.
    pub(crate) fn older_version_of_row(
        &'static self,
        row: &Row,
    ) -> Result<Option<(&'static Schema, &'static RowFamily)>> {
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

    /// Returns whether a row is a primary written by the current version of this type.
    ///
    /// # Errors
    ///
    /// Fails as [`row_kind_of`](Self::row_kind_of) does.
    pub(crate) fn is_current_primary(&'static self, row: &Row) -> Result<bool> {
        let version = self.version_of_primary(row)?;
        Ok(matches!(version, Some(RowVersion::Known(writer)) if writer.version == self.version))
    }

    /// Returns how a row is a primary of this version for the migration from another library, or `None` if it is not
    /// a primary. That library wrote no discriminator, so matching keys are enough, even if the RowKey contains an
    /// unescaped `~`.
    ///
    /// # Errors
    ///
    /// Fails as [`row_kind_of`](Self::row_kind_of) does.
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
                if family.row.template_spelling_of_key(row.row_key()).is_some()
                    && family.partition.matches(row.partition_key()) =>
            {
                Some(self.type_property().map_or(PrimaryMarking::Marked, PrimaryMarking::Unmarked))
            }
            _ => None,
        })
    }

    /// Returns whether `accepts` takes at least one row family of primaries or copies in some version.
    fn has_entity_family(&'static self, accepts: impl Fn(&'static RowFamily) -> bool) -> bool {
        self.versions().any(|schema| {
            let families: &'static [RowFamily] = schema.families;
            families.iter().any(|family| family.kind != FamilyKind::List && accepts(family))
        })
    }

    /// Returns the value of the discriminator property.
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

    /// Returns the row kind for a discriminator's value, or `None` if the value belongs to another entity type.
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
        // The value for a part, such as `Report#02`, looks like a copy's value, and would be
        // taken for a copy of an index that the version does not have.
        if let RowVersion::Known(schema) = version
            && schema.parts.contains(&marker)
        {
            return Some(RowKind::Part(schema));
        }
        let copy_in = |schema: &'static Schema| {
            let families: &'static [RowFamily] = schema.families;
            families.iter().find(|family| family.kind == FamilyKind::Copy && family.name == index)
        };
        let family = match version {
            RowVersion::Known(schema) => copy_in(schema),
            RowVersion::Unknown(_) => self.versions().find_map(copy_in),
        };
        Some(family.map_or(RowKind::UnknownCopy(version), |family| RowKind::Copy(family, version)))
    }

    /// Classifies a row as a primary or copy by its keys alone.
    fn kind_by_keys(
        &'static self,
        row: &Row,
        accepts: impl Fn(&'static RowFamily) -> bool,
    ) -> Option<RowKind> {
        self.versions().find_map(|schema| {
            let families: &'static [RowFamily] = schema.families;
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

    /// Classifies one of the library's own rows as the list that it belongs to, or else as `RowKind::Framework`.
    /// Returns `None` for a row of an entity.
    fn framework_kind(
        &'static self,
        row: &Row,
        accepts: impl Fn(&'static RowFamily) -> bool,
    ) -> Result<Option<RowKind>> {
        let Some(marker) = framework_type_of(row)? else { return Ok(None) };
        if marker != LIST_MARKER {
            return Ok(Some(RowKind::Framework));
        }
        let head = head_row_key(row.row_key());
        let list = self.versions().find_map(|schema| {
            let families: &'static [RowFamily] = schema.families;
            families.iter().find(|family| {
                family.kind == FamilyKind::List
                    && accepts(family)
                    && family.partition.matches(row.partition_key())
                    && family.row.matches(head)
            })
        });
        Ok(Some(list.map_or(RowKind::Framework, RowKind::List)))
    }

    /// Returns the version of the type that declares this row family, which may be an older one.
    fn version_with(&'static self, family: &'static RowFamily) -> &'static Schema {
        if self.older.is_none() {
            return self;
        }
        let has = |schema: &&'static Schema| {
            schema.families.iter().any(|own| own.marker == family.marker)
        };
        self.versions().find(has).unwrap_or(self)
    }

    /// Returns whether a row is of this type and `family`, and its version.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the discriminator is not a String, and with `is_corrupt` for a damaged row.
    pub fn recognize_as(
        &'static self,
        row: &Row,
        family: &'static RowFamily,
    ) -> Result<Recognition> {
        // Nearly all rows of a path are of its family and have the type's only version.
        if self.older.is_none()
            && family.is_primary_or_copy()
            && let Some(name) = self.type_property()
            && self.discriminator_of(row, name)? == Some(family.marker)
        {
            return Ok(Recognition::Ours);
        }
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

    /// Recognises a row of a different row family by its discriminator alone: as `Foreign` with the discriminator's
    /// value, or as `Unmarked` without one.
    fn other_row(&self, row: &Row) -> Result<Recognition> {
        let Some(name) = self.type_property() else { return Ok(Recognition::Unmarked) };
        let marker = self.discriminator_of(row, name)?;
        Ok(marker.map_or(Recognition::Unmarked, |marker| Recognition::Foreign(marker.to_owned())))
    }
}

fn has_keys_of_family(family: &RowFamily, row: &Row) -> bool {
    // Compare the RowKey first, because local row families share a form of the PartitionKey.
    family.row.matches(row.row_key()) && family.partition.matches(row.partition_key())
}
