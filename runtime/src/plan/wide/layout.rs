//! Names the parts of a wide entity, and determines which part has which property.

use crate::{
    edm::ValueRef,
    entity::{ColumnSchema, Schema},
    error::{Error, ErrorKind, Result},
};

/// The property of each part with `{number of parts}_{24 hex digits}`. The digits are a random id of the last write
/// of all parts. In a joined row, it contains `{name}:{part}` for each undeclared property that is not in part 1.
pub(super) const PARTS: &str = "EntableParts";

/// The end of part 1's RowKey. Other parts have their number instead.
const FIRST: &str = "_01";

/// Returns the RowKey of a part, counted from 1, of the entity whose part 1 has this RowKey.
///
/// # Errors
///
/// Fails with `is_invalid` for a RowKey that cannot belong to a part 1.
pub(crate) fn row_key_of_part(row_key: &str, part: usize) -> Result<String> {
    match row_key.strip_suffix(FIRST) {
        Some(entity) => Ok(format!("{entity}_{part:02}")),
        None => {
            let message = format!(
                "the RowKey `{}` does not end with `{FIRST}`, as a wide entity's RowKey must",
                row_key.escape_debug()
            );
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

/// Returns whether the RowKey has the form of part 1's.
pub(crate) fn is_key_of_first_part(row_key: &str) -> bool {
    row_key.ends_with(FIRST)
}

/// Returns the RowKey of part 1 and the part's number, from the RowKey of any part. Returns `None` if the RowKey
/// does not end with `_` and two digits from `01` on.
pub(super) fn first_row_key_and_part_number(row_key: &str) -> Option<(String, usize)> {
    let (entity, digits) = row_key.rsplit_once('_')?;
    let is_number = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
    let part = digits.parse().ok().filter(|part| is_number && *part > 0)?;
    Some(([entity, FIRST].concat(), part))
}

/// Finds the parts of properties. A search starts at the last found column. Rows store their properties in column
/// order, so most searches compare one or two names.
pub(super) struct PartFinder {
    columns: &'static [ColumnSchema],
    at: usize,
}

impl PartFinder {
    pub(super) const fn new(schema: &'static Schema) -> Self {
        Self { columns: schema.columns, at: 0 }
    }

    /// Returns the column of the property, or `None` if the type does not declare it.
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

/// Returns the version that writes this type marker into part `part`, or `None` for a row of another type.
pub(super) fn version_of_part(
    schema: &'static Schema,
    part: usize,
    marker: Option<ValueRef<'_>>,
) -> Option<&'static Schema> {
    let Some(ValueRef::String(marker)) = marker else { return None };
    schema.versions().find(|version| version.parts.get(part - 1) == Some(&marker))
}

/// Returns the maximum number of parts of an entity in any version of its type.
pub(crate) fn maximum_parts_of_versions(schema: &'static Schema) -> usize {
    schema.versions().map(|version| version.parts.len()).max().unwrap_or(0)
}

/// Returns whether stored rows of the type may have been written by an older version (`upgrade_from`) that keeps
/// properties in other parts. Always `false` for a type without `wide`.
pub(crate) const fn may_have_older_layout(schema: &Schema) -> bool {
    schema.is_wide() && schema.older.is_some()
}

/// Returns the property with the type of a row, or an empty string if the keys determine the type.
pub(super) fn discriminator_property(schema: &Schema) -> &'static str {
    schema.type_property().unwrap_or_default()
}
