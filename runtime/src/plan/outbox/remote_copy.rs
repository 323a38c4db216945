//! The stored form of remote copies: the entity's properties, and properties with the primary's keys and ETag.

use crate::{
    address::{Names, RowAt, TableName},
    edm::ValueRef,
    entity::{CopyAndPrimaryFamily, can_derive_keys, derive_keys},
    error::Result,
    key::RowFamily,
    row::{ETag, Row},
};

/// The property with the ETag of the primary that the copy was derived from.
pub(crate) const DERIVED_FROM: &str = "Src";
/// The property with the primary's PartitionKey, if it does not follow from the copy's keys.
const OWNER_PARTITION_KEY: &str = "SrcP";
/// The property with the primary's RowKey, if it does not follow from the copy's keys.
const OWNER_ROW_KEY: &str = "SrcR";
/// The property with the primary's table, if the index has its own table.
pub(crate) const OWNER_TABLE: &str = "SrcT";
/// The property with the id of the claim that reserves the row.
pub(crate) const CLAIM_PROPERTY: &str = "SrcC";
/// The property with the primary that a reserved row was taken over from.
pub(crate) const PREVIOUS_OWNER: &str = "SrcF";

/// The properties that show which primary a copy or reservation belongs to.
pub(crate) const OWNER_PROPERTIES: [&str; 5] =
    [OWNER_PARTITION_KEY, OWNER_ROW_KEY, OWNER_TABLE, CLAIM_PROPERTY, PREVIOUS_OWNER];

/// Returns whether a property of a remote copy belongs to the library instead of the entity.
pub(crate) fn is_owner_or_version(property: &str) -> bool {
    property == DERIVED_FROM || OWNER_PROPERTIES.contains(&property)
}

/// Returns the copy with the properties for its primary. `version` is the primary's ETag, or `None` before the commit.
pub(crate) fn copy_with_owner(
    copy: &Row,
    CopyAndPrimaryFamily { copy: family, primary, .. }: CopyAndPrimaryFamily,
    owner: RowAt<'_>,
    version: Option<&ETag>,
) -> Result<Row> {
    let mut row = Row::build(copy.partition_key(), copy.row_key());
    let mut properties = copy.properties();
    while let Some((name, value)) = properties.next()? {
        row.put(&String::from_utf8_lossy(name), value);
    }
    if let Some(version) = version {
        row.put(DERIVED_FROM, ValueRef::String(&version.to_string()));
    }
    // Stored only if readers cannot compute the primary's keys from the copy's keys.
    if !can_derive_keys(family, primary) {
        row.put(OWNER_PARTITION_KEY, ValueRef::String(owner.partition_key));
        row.put(OWNER_ROW_KEY, ValueRef::String(owner.row_key));
    }
    // An index with its own table may contain copies of primaries from several tables.
    if family.table.is_some() {
        row.put(OWNER_TABLE, ValueRef::String(owner.table.as_str()));
    }
    Ok(row.finish()?.inherit_encrypted_names_of(copy))
}

/// Returns whether a property holds the ETag of a copy's primary.
pub(crate) fn is_version_property(property: &[u8]) -> bool {
    property == DERIVED_FROM.as_bytes()
}

/// Returns whether the primary of a copy can be in `table`. A copy without a table name can belong to any table.
pub(crate) fn may_be_from_table(
    copy: &Row,
    family: &RowFamily,
    table: TableName<'_>,
) -> Result<bool> {
    Ok(match copy.get(OWNER_TABLE)? {
        Some(ValueRef::String(named)) if family.table.is_some() => table.sibling(named) == table,
        _ => true,
    })
}

/// Which primary a remote row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyOwnership {
    /// The copy of this primary.
    Ours,
    /// The copy of another primary, or of a primary that its properties do not contain.
    Another,
}

/// Returns the PartitionKey and RowKey of a copy's primary, or `None` if the copy does not contain them.
pub(crate) fn owner_keys(
    copy: &Row,
    CopyAndPrimaryFamily { copy: family, primary, .. }: CopyAndPrimaryFamily,
) -> Result<Option<(String, String)>> {
    if can_derive_keys(family, primary) {
        return Ok(derive_keys(family, primary, (copy.partition_key(), copy.row_key())).ok());
    }
    Ok(match (copy.get(OWNER_PARTITION_KEY)?, copy.get(OWNER_ROW_KEY)?) {
        (Some(ValueRef::String(partition_key)), Some(ValueRef::String(row_key))) => {
            Some((partition_key.to_owned(), row_key.to_owned()))
        }
        _ => None,
    })
}

/// Returns whether a remote row is the copy of the primary `owner` or of another one.
pub(crate) fn compare_owner_in_copy(
    found: &Row,
    kinds: CopyAndPrimaryFamily,
    owner: RowAt<'_>,
) -> Result<CopyOwnership> {
    let keys = owner_keys(found, kinds)?;
    let keys = keys.as_ref().map(|(partition_key, row_key)| (&**partition_key, &**row_key));
    if keys != Some((owner.partition_key, owner.row_key)) {
        return Ok(CopyOwnership::Another);
    }
    if kinds.copy.table.is_none() {
        return Ok(CopyOwnership::Ours);
    }
    Ok(match found.get(OWNER_TABLE)? {
        Some(ValueRef::String(named)) if owner.table.sibling(named) == owner.table => {
            CopyOwnership::Ours
        }
        _ => CopyOwnership::Another,
    })
}

/// Returns whether two copies have equal properties in any order. Ignores the ETags of their primaries. Compares numbers by their bits: a NaN equals itself, and -0.0 differs from 0.0.
/// Different spellings of one table are equal by the rule `names`.
pub(crate) fn equal_except_version(found: &Row, copy: &Row, names: Names) -> Result<bool> {
    let of_copy = text_property(copy, OWNER_TABLE)?.map(|table| names.name(table));
    let is_one_table = names_table(found, of_copy)?;
    // The comparison itself stops at a damaged property without an error.
    found.property_count()?;
    copy.property_count()?;
    let is_left_out =
        |name: &[u8]| is_version_property(name) || is_one_table && name == OWNER_TABLE.as_bytes();
    let of_found = found.sorted_properties().into_iter().filter(|(name, ..)| !is_left_out(name));
    let of_copy = copy.sorted_properties().into_iter().filter(|(name, ..)| !is_left_out(name));
    Ok(of_found.eq(of_copy))
}

/// Returns whether a copy contains `table` as its primary's table. A copy without a table name does not.
pub(crate) fn names_table(copy: &Row, table: Option<TableName<'_>>) -> Result<bool> {
    let named = text_property(copy, OWNER_TABLE)?.zip(table);
    Ok(named.is_some_and(|(named, table)| table.sibling(named) == table))
}

fn text_property<'r>(row: &'r Row, property: &str) -> Result<Option<&'r str>> {
    Ok(match row.get(property)? {
        Some(ValueRef::String(text)) => Some(text),
        _ => None,
    })
}

/// Returns whether the copy was derived from the primary with this ETag. Equal content is no proof, because a copy
/// of an older version may have it too.
pub(crate) fn is_derived_from_version(copy: &Row, version: &ETag) -> Result<bool> {
    Ok(copy.get(DERIVED_FROM)? == Some(ValueRef::String(&version.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(version: &str, properties: &[(&str, ValueRef<'_>)]) -> Row {
        let mut row = Row::build("p", "r");
        row.put(DERIVED_FROM, ValueRef::String(version));
        properties.iter().for_each(|(name, value)| row.put(name, *value));
        row.finish().unwrap()
    }

    fn is_equal(found: &[(&str, ValueRef<'_>)], wanted: &[(&str, ValueRef<'_>)]) -> bool {
        equal_except_version(&copy("1", found), &copy("2", wanted), Names::ANY_CASE).unwrap()
    }

    #[test]
    fn copies_are_compared_by_the_bits_of_their_values_and_not_by_their_order() {
        let double = ValueRef::Double;
        let (age, weight) = (("Age", ValueRef::Int32(34)), ("Weight", double(f64::NAN)));
        assert!(is_equal(&[age, weight], &[weight, age]));
        assert!(!is_equal(&[age], &[age, weight]));
        assert!(!is_equal(&[("Age", ValueRef::Int32(35)), weight], &[weight, age]));
        assert!(!is_equal(&[("Weight", double(-0.0))], &[("Weight", double(0.0))]));
    }
}
