//! Describes an entity's rows as the derives declare them: names, keys, columns and versions.

use std::any::TypeId;

use super::{
    BlobNames, EntityRows,
    dated::DatedTables,
    row_kind::{RowKind, RowVersion},
};
use crate::{
    access::CostClass,
    edm::EdmType,
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::RowFamily,
    row::Row,
};

/// How the type of a row is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discriminator {
    /// By the value of a property, `EntityType` by default.
    Property(&'static str),
    /// By the form of the row's keys alone.
    RowKey,
}

/// The description of one column of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSchema {
    /// The property's name without the prefix of the struct that it is flattened into.
    pub name: &'static str,
    /// The stored type of the field, also of a field that is only in keys. `None` for a flattened struct.
    pub edm: Option<EdmType>,
    /// Whether the property, or all properties of a flattened struct, may be absent.
    pub optional: bool,
    /// Whether rows store the field as a property. Otherwise the field is read from the row's keys.
    pub stored: bool,
    /// The columns of a flattened struct. Empty for any other column. The full name of such a column is `name`
    /// followed by its own name.
    pub nested: &'static [ColumnSchema],
    /// How the values are encrypted, if they are.
    pub sealed: Option<ColumnEncryption>,
    /// Whether rows without the property are read with a default value.
    pub has_default: bool,
    /// The part of a wide entity that stores the column, counted from 1. 0 means 1.
    pub part: u8,
    /// The values of the stored type that the field can read, as [`EdmValue::VALUES`](crate::EdmValue) describes
    /// them. Empty for all values, `json` for the JSON text of a field with `#[table(json)]`.
    pub values: &'static str,
}

/// The description of a field that is stored as several properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesSchema {
    /// The name of the field.
    pub field: &'static str,
    /// The first property of the field. A series has one property for each slot (element), a split field one for
    /// each piece. The others follow in the entity's list of columns.
    pub first: &'static str,
    /// Number of slots or pieces.
    pub slots: usize,
    /// Whether the properties are the pieces of one long value.
    pub is_split: bool,
    /// Whether a row may have none of the properties. `false` for a split field that is not an `Option`.
    pub is_optional: bool,
}

/// How the values of a column are encrypted (sealed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnEncryption {
    /// Values are padded to a multiple of this many bytes to hide their lengths. 0 means no padding.
    pub pad: u32,
    /// Whether an absent value is stored as an encrypted one, which hides the absence.
    pub hide_none: bool,
    /// The property with the blind token of the value, for filters.
    pub blind: Option<TokenProperty>,
}

/// The companion property of an encrypted column, with the blind token of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenProperty {
    /// The property's name without the prefix of the struct that the column is flattened into.
    pub name: &'static str,
    /// Number of characters of the blind token.
    pub chars: u32,
}

impl ColumnSchema {
    /// Creates the column of a field with one property.
    #[doc(hidden)]
    pub const fn plain(name: &'static str, edm: EdmType, optional: bool) -> Self {
        Self {
            name,
            edm: Some(edm),
            optional,
            stored: true,
            nested: &[],
            sealed: None,
            has_default: false,
            part: 1,
            values: "",
        }
    }

    /// Creates the column of a field that is stored as one property. The tuple is [`Property::COLUMN`](crate::Property)
    /// of the field's type: the stored type, whether the property may be absent, and the values that it can read.
    #[doc(hidden)]
    pub const fn of_property_type(
        name: &'static str,
        (edm, optional, values): (EdmType, bool, &'static str),
    ) -> Self {
        Self::plain(name, edm, optional).with_values(values)
    }

    /// Creates the column of a field that is read from the primary's keys and has no property.
    #[doc(hidden)]
    pub const fn of_key_field(
        name: &'static str,
        (edm, _, values): (EdmType, bool, &'static str),
    ) -> Self {
        let column = Self::plain(name, edm, false).with_values(values);
        Self { stored: false, ..column }
    }

    /// Returns the column with a field that reads only these values of the stored type.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_values(mut self, values: &'static str) -> Self {
        self.values = values;
        self
    }

    /// Creates the column that represents all columns of a flattened struct.
    #[doc(hidden)]
    pub const fn of_flattened_struct(
        prefix: &'static str,
        nested: &'static [Self],
        stored: bool,
        optional: bool,
    ) -> Self {
        Self {
            name: prefix,
            edm: None,
            optional,
            stored,
            nested,
            sealed: None,
            has_default: false,
            part: 1,
            values: "",
        }
    }

    /// Returns the column with its values encrypted according to `sealed`.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_encryption(mut self, sealed: ColumnEncryption) -> Self {
        self.sealed = Some(sealed);
        self
    }

    /// Returns the column with a default value for rows without the property.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_default(mut self) -> Self {
        self.has_default = true;
        self
    }

    /// Returns the column stored in part `part` of a wide entity.
    #[doc(hidden)]
    #[must_use]
    pub const fn stored_in_part(mut self, part: u8) -> Self {
        self.part = part;
        self
    }

    /// Returns the part of a wide entity that stores the column, counted from 1.
    pub(crate) const fn part_number(&self) -> usize {
        if self.part == 0 { 1 } else { self.part as usize }
    }

    /// Returns whether a property of this name belongs to the column or to one of its nested columns, or is a
    /// blind token of one of them.
    pub(crate) fn holds_property(&self, name: &str) -> bool {
        if !self.nested.is_empty() {
            let nested = name.strip_prefix(self.name);
            return nested
                .is_some_and(|name| self.nested.iter().any(|column| column.holds_property(name)));
        }
        let token = self.sealed.and_then(|sealed| sealed.blind).map(|token| token.name);
        self.name == name || token == Some(name)
    }

    /// Returns the maximum number of properties for the columns in part number `part` of a wide entity.
    pub const fn max_property_count_in_part(columns: &[Self], part: usize) -> usize {
        let mut rest = columns;
        let mut count = 0;
        while let [first, after @ ..] = rest {
            if first.part_number() == part {
                count += Self::max_property_count(std::slice::from_ref(first));
            }
            rest = after;
        }
        count
    }

    const fn has_companion(&self) -> bool {
        matches!(self.sealed, Some(ColumnEncryption { blind: Some(_), .. }))
    }

    /// Returns the maximum number of properties for the columns in a row.
    pub const fn max_property_count(columns: &[Self]) -> usize {
        let mut rest = columns;
        let mut count = 0;
        while let [first, after @ ..] = rest {
            count += if first.nested.is_empty() {
                first.stored as usize + first.has_companion() as usize
            } else {
                Self::max_property_count(first.nested)
            };
            rest = after;
        }
        count
    }
}

/// PartitionKey and RowKey of the primary entity that a copy belongs to.
pub(crate) type OwnerKeyTexts = (String, String);

/// The description of an entity type and its rows: names, keys, columns and versions.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The name of the struct.
    pub entity: &'static str,
    /// The table, unless the caller names another. For dated tables, the template of their names, such as
    /// `Logins{at:%Y%m%d}`.
    pub table: &'static str,
    /// The discriminator's value without a version, such as `Employee`.
    pub entity_type: &'static str,
    /// The version of the struct, counted from 1.
    pub version: u32,
    /// The discriminator's value as it is written, which includes a version other than 1, such as `Employee.v2`.
    pub marker: &'static str,
    /// How rows of the type are recognised.
    pub discriminator: Discriminator,
    /// The row families of an entity, with the primary first.
    pub families: &'static [RowFamily],
    /// Whether an index has a `when` condition. The condition decides whether the copy exists and may depend on
    /// any field.
    pub conditional: bool,
    /// The columns of the entity.
    pub columns: &'static [ColumnSchema],
    /// The fields that are stored as several of the columns.
    pub series: &'static [SeriesSchema],
    /// The previous version, which `upgrade_from` converts to this one.
    pub older: Option<&'static Schema>,
    /// Whether each row has a seal: a property that authenticates all others.
    pub sealed: bool,
    /// Whether a write of a stored entity drops the properties that no version declares.
    pub drops_unknown: bool,
    /// Whether rows of other types may have keys of the same form, from `allow(same_keys)`. Queries then filter by the
    /// type, and writes check the type of the stored row.
    pub shares_keys: bool,
    /// The notes of reports that `allow(..)` silences, such as `unread_index`.
    pub silenced_notes: &'static [&'static str],
    /// Whether the struct has a field for the properties that no version declares.
    pub holds_extra: bool,
    /// The fields without a column: skipped fields, and the field for properties that no version declares.
    pub fields_without_column: &'static [&'static str],
    /// The discriminator's values for the rows of a wide entity, such as `Year` and `Year#02`. Empty if the entity
    /// is not wide.
    pub parts: &'static [&'static str],
    /// A row family that matches the keys of all parts of a wide entity, used to check whether keys can collide.
    /// `None` if the entity is not wide.
    pub part_rows: Option<&'static RowFamily>,
    /// The properties of the fields with `#[table(blob)]`.
    pub blobs: &'static [BlobNames],
    /// The dated tables of the entity, if it has one table for each period of a field.
    pub dated: Option<DatedTables>,
    /// The property with the time at which an entity expires, from `expires = field`.
    pub expires: Option<&'static str>,
    /// Returns every row of an entity, from one of its rows, which is of the given row family. The rows have the
    /// form of the version that wrote that row.
    pub rows_through: fn(&Row, &'static RowFamily) -> Result<EntityRows>,
    /// Returns the primary row of an entity, from one of its rows, which is of the given row family. The result has
    /// the form of this version.
    pub primary_in_current_form: fn(&Row, &'static RowFamily) -> Result<Row>,
    /// Returns the keys of the primary that a copy of the given row family and version belongs to, or `None` if the
    /// copy does not contain them.
    pub owner: fn(&Row, &'static RowFamily, u32) -> Result<Option<OwnerKeyTexts>>,
    /// Returns the id of the struct's type.
    pub type_id: fn() -> TypeId,
}

/// Whether a row is of an entity type, and in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognition {
    /// The row is of the type and has the struct's version.
    Ours,
    /// The row is of the type and has this other version.
    Version(u32),
    /// The row is of another type, with this discriminator.
    Foreign(String),
    /// The row has no discriminator, or its keys do not match.
    Unmarked,
}

/// A row family of copies, with the row family of their primaries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyAndPrimaryFamily {
    pub(crate) copy: &'static RowFamily,
    pub(crate) primary: &'static RowFamily,
    /// The entity type, in this program's version.
    pub(crate) schema: &'static Schema,
}

const NO_FAMILIES: &str = "the schema has no families";

impl Schema {
    /// A schema without rows. It is used for entities whose declaration the derive refused, and provides defaults for
    /// other schemas.
    #[doc(hidden)]
    pub const NONE: Self = Self {
        entity: "",
        table: "",
        entity_type: "",
        version: 1,
        marker: "",
        discriminator: Discriminator::RowKey,
        families: &[],
        conditional: false,
        columns: &[],
        series: &[],
        older: None,
        sealed: false,
        drops_unknown: false,
        shares_keys: false,
        silenced_notes: &[],
        holds_extra: false,
        fields_without_column: &[],
        parts: &[],
        part_rows: None,
        blobs: &[],
        dated: None,
        expires: None,
        rows_through: |_, _| Err(Error::new(ErrorKind::Invalid, NO_FAMILIES)),
        primary_in_current_form: |_, _| Err(Error::new(ErrorKind::Invalid, NO_FAMILIES)),
        owner: |_, _, _| Ok(None),
        type_id: TypeId::of::<()>,
    };

    /// Returns the cost class of a query of `family` that sends the filter. A partition that only holds one period of
    /// the family's rows and no other rows of the entity counts as a range, because each row that is read belongs to
    /// the period.
    pub(crate) fn cost_class(&self, family: &RowFamily, filter: &Filter) -> CostClass {
        match CostClass::of_filter(filter) {
            CostClass::PartitionScan if self.has_partition_for_period(family) => CostClass::Range,
            class => class,
        }
    }

    /// Returns whether each partition of `family` holds the rows of one period and no rows of other families.
    fn has_partition_for_period(&self, family: &RowFamily) -> bool {
        let shares_partition = |other: &&RowFamily| {
            other.index != family.index
                && other.table == family.table
                && other.partition.text == family.partition.text
        };
        family.partition.parts().any(|part| part.is_period_of(part.field))
            && !self.families.iter().any(|other| shares_partition(&other))
    }

    /// Returns whether both schemas are of one struct. Does not compare addresses, because a schema is a constant
    /// that the compiler may place in memory several times.
    pub(crate) fn is_of_same_struct(&self, other: &Self) -> bool {
        (self.type_id)() == (other.type_id)()
    }

    /// Returns the name of the property with a row's type, or `None` if the row's keys determine the type.
    pub(crate) const fn type_property(&self) -> Option<&'static str> {
        match self.discriminator {
            Discriminator::Property(name) => Some(name),
            Discriminator::RowKey => None,
        }
    }

    /// Returns the row family of the entity's primary rows.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a schema without row families, which no derive generates.
    pub fn primary(&self) -> Result<&'static RowFamily> {
        let families: &'static [RowFamily] = self.families;
        families.first().ok_or_else(|| Error::new(ErrorKind::Invalid, NO_FAMILIES))
    }

    /// Returns the version in a discriminator's value, or `None` if the value is of another type. `Employee` and
    /// `Employee.v1` are version 1.
    pub fn version_of_marker(&self, marker: &str) -> Option<u32> {
        let version = marker.strip_prefix(self.entity_type)?;
        if version.is_empty() {
            return Some(1);
        }
        let digits = version.strip_prefix(".v")?;
        // Versions are written without leading zeros, so such a value is of another type.
        let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        if canonical { digits.parse().ok() } else { None }
    }

    /// Returns the error for a row that is not of this type.
    pub fn unrecognized_error(&self, recognition: &Recognition) -> Error {
        let expected = self.marker;
        let message = match recognition {
            Recognition::Ours => format!("expected another row than `{expected}`"),
            Recognition::Version(version) => return self.unknown_version_error(*version),
            Recognition::Foreign(found) => {
                format!(
                    "unrecognized entity: expected `{expected}`, found `{}`",
                    found.escape_debug()
                )
            }
            Recognition::Unmarked => {
                format!("unrecognized entity: expected `{expected}`, found a row without a type")
            }
        };
        let error = Error::new(ErrorKind::UnrecognizedEntity, message);
        match recognition {
            Recognition::Foreign(found) => error.of_type(found),
            _ => error,
        }
    }

    /// Returns the error for a row of a version that no `upgrade_from` converts to this one.
    pub(crate) fn unknown_version_error(&self, version: u32) -> Error {
        let entity = self.entity_type;
        let known = match self.oldest_version() {
            oldest if oldest < self.version => format!("versions {oldest} to {}", self.version),
            _ => format!("version {}", self.version),
        };
        let message = format!(
            "unrecognized entity: found version {version} of `{entity}`, but this program knows {known}"
        );
        Error::new(ErrorKind::UnrecognizedEntity, message).of_type(&format!("{entity}.v{version}"))
    }

    fn oldest_version(&self) -> u32 {
        self.older.map_or(self.version, Self::oldest_version)
    }

    /// Iterates over the schema and its older versions, newest first.
    pub(crate) fn versions(&'static self) -> impl Iterator<Item = &'static Schema> {
        std::iter::successors(Some(self), |schema| schema.older)
    }

    /// Returns whether the primary of an entity is stored as several rows.
    pub(crate) const fn is_wide(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns whether each entity, in every version, is stored only as its primary, without copies, lists and blobs.
    pub(crate) fn is_single_row(&'static self) -> bool {
        self.versions().all(|schema| schema.families.len() == 1 && schema.blobs.is_empty())
    }

    /// Returns whether a write of an entity may replace a torn one, which is a wide entity with missing or
    /// mismatched parts. Leftover copies of a torn entity would conflict with the new copies.
    pub(crate) fn can_replace_torn(&'static self) -> bool {
        self.is_single_row()
    }

    /// Returns the row family of primaries in the version that has this row family of copies.
    pub(crate) fn primary_family_of_copy(
        &'static self,
        copy: &'static RowFamily,
    ) -> Option<&'static RowFamily> {
        let has = |schema: &&'static Schema| {
            schema
                .families
                .iter()
                .any(|family| std::ptr::eq(family, copy) || family.marker == copy.marker)
        };
        self.versions().find(has)?.families.first()
    }

    /// Returns the keys of the primary that a copy of any index belongs to. Returns `None` if the row is not a copy of
    /// this type in a version that this program knows, or does not contain the keys.
    pub(crate) fn owner_of_copy(&'static self, copy: &Row) -> Result<Option<(String, String)>> {
        if let RowKind::Copy(family, RowVersion::Known(schema)) =
            self.row_kind_among_families(copy, |family| family.is_copy())?
        {
            return (self.owner)(copy, family, schema.version);
        }
        Ok(None)
    }

    /// Finds the row family of the remote copies of index `name`, in this version or an older one, and the row
    /// family of the same version's primaries. `is_own` receives the table that an index declares, or `None` for an
    /// index in the primaries' table. It returns whether that is the table to search for.
    pub(crate) fn find_remote_copy_family(
        &'static self,
        name: &str,
        is_own: impl Fn(Option<&str>) -> bool,
    ) -> Option<CopyAndPrimaryFamily> {
        self.versions().find_map(|schema| {
            let families: &'static [RowFamily] = schema.families;
            let copy = families.iter().find(|family| {
                family.is_remote && family.is_copy() && family.name == name && is_own(family.table)
            })?;
            Some(CopyAndPrimaryFamily { copy, primary: families.first()?, schema: self })
        })
    }

    /// Returns whether this version or an older one declares a remote list `name`, in blobs if `in_blob` is set,
    /// otherwise in rows. `is_own` receives the table that a list declares, or `None` for a list in the primaries'
    /// table. It returns whether that is the table to search for.
    pub(crate) fn has_remote_list_named(
        &'static self,
        name: &str,
        in_blob: bool,
        is_own: impl Fn(Option<&str>) -> bool,
    ) -> bool {
        let is_it = |family: &RowFamily| {
            family.is_list()
                && family.is_remote
                && family.in_blob == in_blob
                && family.name == name
                && is_own(family.table)
        };
        self.versions().any(|schema| schema.families.iter().any(is_it))
    }

    /// Returns whether a change of the property can change a copy or a list, including through the condition of a
    /// copy. Returns `true` for every property of a blob field.
    pub fn may_change_copies(&self, property: &str) -> bool {
        let depends = |family: &RowFamily| {
            let held = family.is_copy() && !family.leaves_out(property);
            let mut parts = family.partition.parts().chain(family.row.parts());
            held || parts.any(|part| part.field == property)
        };
        let is_of_blob =
            self.blobs.iter().flat_map(BlobNames::property_names).any(|name| name == property);
        // The condition of a copy is user code, which may depend on any field.
        is_of_blob
            || self.conditional
            || self.families.iter().any(|family| family.index > 0 && depends(family))
    }

    /// Iterates over the fields that are split into pieces. Returns the columns of the pieces in order.
    pub(crate) fn split_fields(&self) -> impl Iterator<Item = &'static [ColumnSchema]> {
        let columns: &'static [ColumnSchema] = self.columns;
        self.series.iter().filter(|series| series.is_split).filter_map(move |series| {
            let first = columns.iter().position(|column| column.name == series.first)?;
            columns.get(first..)?.get(..series.slots)
        })
    }

    /// Finds the column with this property name, including columns of flattened structs.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSchema> {
        find_column(self.columns, name)
    }
}

/// Returns whether any column, including those of flattened structs, stores a property of this name.
#[doc(hidden)]
pub fn has_property(columns: &'static [ColumnSchema], name: &str) -> bool {
    find_column(columns, name).is_some()
}

fn find_column(columns: &'static [ColumnSchema], name: &str) -> Option<&'static ColumnSchema> {
    columns.iter().find_map(|column| {
        if column.nested.is_empty() {
            (column.name == name).then_some(column)
        } else {
            find_column(column.nested, name.strip_prefix(column.name)?)
        }
    })
}
