//! Names the parts of a wide entity, and tells which part has which property.

use crate::{
    edm::ValueRef,
    entity::{ColumnSchema, Schema},
    error::{Error, ErrorKind, Result},
};

/// The property of each part with `{number of parts}_{24 hex digits}`; the digits are a random id
/// of the last write of all parts. In a joined row it holds `{name}:{part}` for each property that
/// the type does not declare and that is not in part 1.
pub(super) const PARTS: &str = "EntableParts";

/// The end of the RowKey of part 1. The end of another part's RowKey has its number instead.
const FIRST: &str = "_01";

/// Returns the RowKey of a part, counted from 1, of the entity whose part 1 has this RowKey.
///
/// # Errors
///
/// `is_invalid` for a RowKey that no part 1 has.
pub(crate) fn row_key_of_part(row_key: &str, part: usize) -> Result<String> {
    match row_key.strip_suffix(FIRST) {
        Some(entity) => Ok(format!("{entity}_{part:02}")),
        None => {
            let message = format!(
                "the RowKey `{}` does not end with `{FIRST}`, as that of a wide entity does",
                row_key.escape_debug()
            );
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

/// Returns whether the RowKey has the form of that of part 1.
pub(crate) fn is_first_key(row_key: &str) -> bool {
    row_key.ends_with(FIRST)
}

/// Returns the RowKey of part 1 and the number of the part for the RowKey of any part. Returns
/// `None` if the RowKey does not end with `_` and two digits from `01` on.
pub(super) fn first_key_and_part_number(row_key: &str) -> Option<(String, usize)> {
    let (entity, digits) = row_key.rsplit_once('_')?;
    let is_number = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
    let part = digits.parse().ok().filter(|part| is_number && *part > 0)?;
    Some(([entity, FIRST].concat(), part))
}

/// Finds the parts of properties. A search begins at the column that the last one found: rows have
/// their properties in the order of the columns, so that most searches compare one name or two.
pub(super) struct PartFinder {
    columns: &'static [ColumnSchema],
    at: usize,
}

impl PartFinder {
    pub(super) const fn new(schema: &'static Schema) -> Self {
        Self { columns: schema.columns, at: 0 }
    }

    /// Returns the column that holds the property, or `None` if the type does not declare it.
    pub(super) fn column_of(&mut self, name: &str) -> Option<&'static ColumnSchema> {
        let (before, after) = self.columns.split_at_checked(self.at)?;
        let found = after.iter().chain(before).position(|column| column.holds_property(name))?;
        self.at = (self.at + found) % self.columns.len();
        self.columns.get(self.at)
    }

    /// Returns the part that stores the property, or `None` if the type does not declare it.
    pub(super) fn part_of_property(&mut self, name: &str) -> Option<usize> {
        self.column_of(name).filter(|column| column.stored).map(ColumnSchema::part_number)
    }
}

/// Returns the version that writes this type marker into part `part`, or `None` for a row of another
/// type.
pub(super) fn version_of(
    schema: &'static Schema,
    part: usize,
    marker: Option<ValueRef<'_>>,
) -> Option<&'static Schema> {
    let Some(ValueRef::String(marker)) = marker else { return None };
    schema.versions().find(|version| version.parts.get(part - 1) == Some(&marker))
}

/// Returns the most parts that an entity has in any version of its type.
pub(crate) fn maximum_parts_of_versions(schema: &'static Schema) -> usize {
    schema.versions().map(|version| version.parts.len()).max().unwrap_or(0)
}

/// Returns whether stored rows of the type may have been written by an older version of the type
/// (`upgrade_from`), which may keep properties in other parts. Always `false` for a type without `wide`.
pub(crate) const fn may_have_older_layout(schema: &Schema) -> bool {
    schema.is_wide() && schema.older.is_some()
}

/// Returns the property with the type of a row, or an empty text if the type is told by its keys.
pub(super) fn discriminator_property(schema: &Schema) -> &'static str {
    schema.type_property().unwrap_or_default()
}
