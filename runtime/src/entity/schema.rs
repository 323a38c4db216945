//! What is known of an entity's rows before there are any.

use super::EntityRows;
use crate::{
    edm::{EdmType, ValueRef},
    error::{Error, ErrorKind, Result},
    key::{Family, FamilyKind},
    row::Row,
};

/// How a row says what type it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discriminator {
    /// By a property, `EntityType` unless another was declared.
    Property(&'static str),
    /// By the form of its keys alone.
    RowKey,
}

/// A column of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSchema {
    /// The property's name, after the prefix of the struct that it is flattened into.
    pub name: &'static str,
    /// The stored type; `None` for a nested struct.
    pub edm: Option<EdmType>,
    /// Whether it may be absent.
    pub optional: bool,
    /// Whether rows hold it as a property; otherwise their keys give it back.
    pub stored: bool,
    /// The columns of a flattened struct, whose names follow this name.
    pub nested: &'static [ColumnSchema],
    /// How it is sealed, if it is.
    pub sealed: Option<Sealed>,
}

/// How the values of a column are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    /// Lengths are hidden up to a multiple of so many bytes; 0: not at all.
    pub pad: u32,
    /// Whether an absent value is stored as a sealed one.
    pub hide_none: bool,
    /// The property with the token of the value, for filters.
    pub blind: Option<Companion>,
}

/// The property that holds the token of a sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Companion {
    /// Its name, after the prefix of the struct that the column is flattened into.
    pub name: &'static str,
    /// Characters of the token.
    pub chars: u32,
}

impl ColumnSchema {
    const fn has_companion(&self) -> bool {
        matches!(self.sealed, Some(Sealed { blind: Some(_), .. }))
    }

    /// Properties that a row holds at most for these columns.
    pub const fn count(columns: &[Self]) -> usize {
        let mut rest = columns;
        let mut count = 0;
        while let [first, after @ ..] = rest {
            count += if first.nested.is_empty() {
                first.stored as usize + first.has_companion() as usize
            } else {
                Self::count(first.nested)
            };
            rest = after;
        }
        count
    }
}

/// What is known of an entity's rows: names, keys, columns.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The struct's name.
    pub entity: &'static str,
    /// The table, unless the caller names another.
    pub table: &'static str,
    /// The value of the discriminator, without a version.
    pub entity_type: &'static str,
    /// The version of the struct's shape, from 1.
    pub version: u32,
    /// The value of the discriminator as it is written: with the version, where it is not 1.
    pub marker: &'static str,
    /// How its rows say what type they are.
    pub discriminator: Discriminator,
    /// Its kinds of rows, the primary first.
    pub families: &'static [Family],
    /// Whether some copies depend on a condition, which may look at any field.
    pub conditional: bool,
    /// Its columns.
    pub columns: &'static [ColumnSchema],
    /// The version that it is upgraded from.
    pub older: Option<&'static Schema>,
    /// Whether each of its rows has a property that vouches for all others.
    pub sealed: bool,
    /// Every row that follows from a primary, by the version that wrote it; `None`: a row of
    /// another type.
    pub derived: fn(&Row) -> Result<Option<EntityRows>>,
}

/// What a row is to a reader of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognition {
    /// A row of the type, in the version of the struct.
    Ours,
    /// A row of the type, in another version.
    Version(u32),
    /// A row of another type.
    Foreign(String),
    /// A row that does not say its type.
    Unmarked,
}

/// A kind of copies, and the primaries that they follow from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kinds {
    pub(crate) copy: &'static Family,
    pub(crate) primary: &'static Family,
    /// The type, in the version of this program.
    pub(crate) schema: &'static Schema,
}

impl Schema {
    /// The family of the entity's own rows.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a schema without families, which no derive writes.
    pub fn primary(&self) -> Result<&'static Family> {
        let families: &'static [Family] = self.families;
        families.first().ok_or_else(|| Error::new(ErrorKind::Invalid, "the schema has no families"))
    }

    /// What a row is to a reader of that family of this type.
    ///
    /// # Errors
    ///
    /// `is_decode` where the discriminator is not text; `is_corrupt` for a damaged row.
    pub fn recognize(&self, row: &Row, family: &Family) -> Result<Recognition> {
        let Discriminator::Property(name) = self.discriminator else {
            let fits =
                family.row.matches(row.row_key()) && family.partition.matches(row.partition_key());
            return Ok(if fits { Recognition::Ours } else { Recognition::Unmarked });
        };
        let marker = match row.get(name)? {
            None => return Ok(Recognition::Unmarked),
            Some(ValueRef::String(marker)) => marker,
            Some(other) => {
                let message = format!("expected the type's name, found {}", other.edm_type());
                return Err(Error::new(ErrorKind::Decode, message).in_property(name));
            }
        };
        if marker == family.marker && family.kind != FamilyKind::List {
            return Ok(Recognition::Ours);
        }
        let (_, copy) =
            family.marker.split_at(family.marker.find('#').unwrap_or(family.marker.len()));
        let version = marker.strip_suffix(copy).and_then(|marker| self.version_of(marker));
        Ok(match version {
            Some(version) if version == self.version => Recognition::Ours,
            Some(version) => Recognition::Version(version),
            None => Recognition::Foreign(marker.to_owned()),
        })
    }

    /// The version that a discriminator's value names, if it is of this type: `Employee` is
    /// version 1, and so is `Employee.v1`.
    pub fn version_of(&self, marker: &str) -> Option<u32> {
        let version = marker.strip_prefix(self.entity_type)?;
        if version.is_empty() {
            return Some(1);
        }
        let digits = version.strip_prefix(".v")?;
        let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        if canonical { digits.parse().ok() } else { None }
    }

    /// The error for a row that is not of this type.
    pub fn unrecognized(&self, recognition: &Recognition) -> Error {
        let expected = self.marker;
        let message = match recognition {
            Recognition::Ours => format!("expected another row than `{expected}`"),
            Recognition::Version(version) => return self.newer(*version),
            Recognition::Foreign(found) => {
                format!(
                    "unrecognized entity: expected `{expected}`, found `{}`",
                    found.escape_debug()
                )
            }
            Recognition::Unmarked => {
                format!("unrecognized entity: expected `{expected}`, the row does not say its type")
            }
        };
        let error = Error::new(ErrorKind::UnrecognizedEntity, message);
        match recognition {
            Recognition::Foreign(found) => error.of_type(found),
            _ => error,
        }
    }

    /// The error for a row of a version that no `upgrade_from` leads from.
    pub(crate) fn newer(&self, version: u32) -> Error {
        let entity = self.entity_type;
        let known = match self.oldest_version() {
            oldest if oldest < self.version => format!("versions {oldest} to {}", self.version),
            _ => format!("version {}", self.version),
        };
        let message = format!(
            "unrecognized entity: version {version} of `{entity}`, this program knows {known}"
        );
        Error::new(ErrorKind::UnrecognizedEntity, message).of_type(&format!("{entity}.v{version}"))
    }

    fn oldest_version(&self) -> u32 {
        self.older.map_or(self.version, Self::oldest_version)
    }

    /// The schema and those of the versions that it is upgraded from, the newest first.
    pub(crate) fn versions(&'static self) -> impl Iterator<Item = &'static Schema> {
        std::iter::successors(Some(self), |schema| schema.older)
    }

    /// Whether it and its older versions are stored as one row, without copies and lists.
    pub(crate) fn is_alone(&'static self) -> bool {
        self.versions().all(|schema| schema.families.len() == 1)
    }

    /// The primaries of the version that has that kind of copies.
    pub(crate) fn primary_of(&'static self, copy: &'static Family) -> Option<&'static Family> {
        let has = |schema: &&'static Schema| {
            schema
                .families
                .iter()
                .any(|family| std::ptr::eq(family, copy) || family.marker == copy.marker)
        };
        self.versions().find(has)?.families.first()
    }

    /// The copies of that name in other partitions or tables, of it or of an older version, with
    /// the primaries of that version.
    pub(crate) fn elsewhere_named(&'static self, name: &str) -> Option<Kinds> {
        self.versions().find_map(|schema| {
            let families: &'static [Family] = schema.families;
            let copy = families.iter().find(|family| {
                family.elsewhere && family.kind == FamilyKind::Copy && family.name == name
            })?;
            Some(Kinds { copy, primary: families.first()?, schema: self })
        })
    }

    /// Whether it, or an older version, has that list in another partition or table, or in blobs.
    pub(crate) fn has_list(&'static self, name: &str, in_blob: bool) -> bool {
        let is_it = |family: &Family| {
            family.kind == FamilyKind::List
                && family.elsewhere
                && family.in_blob == in_blob
                && family.name == name
        };
        self.versions().any(|schema| schema.families.iter().any(is_it))
    }

    /// Whether a copy, a list or a condition may depend on that property.
    pub fn is_copied(&self, property: &str) -> bool {
        let depends = |family: &Family| {
            let held = family.kind == FamilyKind::Copy && !family.leaves_out(property);
            let mut parts = family.partition.parts().chain(family.row.parts());
            held || parts.any(|part| part.field == property)
        };
        self.conditional || self.families.iter().any(|family| family.index > 0 && depends(family))
    }

    /// The column of that property name, flattened structs included.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSchema> {
        find(self.columns, name)
    }
}

fn find(columns: &'static [ColumnSchema], name: &str) -> Option<&'static ColumnSchema> {
    columns.iter().find_map(|column| {
        if column.nested.is_empty() {
            (column.name == name).then_some(column)
        } else {
            find(column.nested, name.strip_prefix(column.name)?)
        }
    })
}
