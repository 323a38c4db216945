//! Remote copies as they are stored: with the entity's properties, they say which primary they are
//! copies of, and which version of it.

use crate::{
    address::{RowAt, TableCase, is_old_form},
    edm::ValueRef,
    entity::{CopyFamily, can_derive_keys, derive_keys},
    error::Result,
    key::Family,
    row::{ETag, OPERATION_ID, Row},
};

/// The property with the ETag of the primary that the copy was derived from.
pub(crate) const VERSION: &str = "Src";
/// The property with the primary's PartitionKey, present if the copy's keys do not give it.
const PARTITION: &str = "SrcP";
/// The property with the primary's RowKey, present if the copy's keys do not give it.
const ROW: &str = "SrcR";
/// The property with the primary's table, present if the index has a table of its own.
pub(crate) const TABLE: &str = "SrcT";
/// The property with the id of the claim that reserves the row.
pub(crate) const CLAIM_PROPERTY: &str = "SrcC";
/// The property with the primary that a reserved row was taken over from.
pub(crate) const FROM: &str = "SrcF";

/// The properties by which a reader tells whose copy or reservation a row is.
pub(crate) const OWNER_PROPERTIES: [&str; 5] = [PARTITION, ROW, TABLE, CLAIM_PROPERTY, FROM];

/// Returns whether a property of a remote copy belongs to the framework, not to the entity.
pub(crate) fn is_owner_property(property: &str) -> bool {
    property == VERSION || OWNER_PROPERTIES.contains(&property)
}

/// Returns the copy with the properties that name its owner. `version` is the primary's ETag, or
/// `None` before the primary is committed.
pub(crate) fn copy_with_owner(
    copy: &Row,
    CopyFamily { copy: family, primary, .. }: CopyFamily,
    owner: RowAt<'_>,
    version: Option<&ETag>,
) -> Result<Row> {
    let mut row = Row::build(copy.partition_key(), copy.row_key());
    let mut properties = copy.properties();
    while let Some((name, value)) = properties.next()? {
        row.put(&String::from_utf8_lossy(name), value);
    }
    if let Some(version) = version {
        row.put(VERSION, ValueRef::String(&version.to_string()));
    }
    if !can_derive_keys(family, primary) {
        row.put(PARTITION, ValueRef::String(owner.partition_key));
        row.put(ROW, ValueRef::String(owner.row_key));
    }
    if family.table.is_some() {
        row.put(TABLE, ValueRef::String(owner.table));
    }
    Ok(row.finish()?.with_encrypted_names_of(copy))
}

/// Returns whether a property is the one with the ETag of a copy's primary.
pub(crate) fn is_version_property(property: &[u8]) -> bool {
    property == VERSION.as_bytes()
}

/// Returns whether a copy's primary can be in `table`. A copy that does not name its primary's
/// table is taken to be of any.
pub(crate) fn may_be_from_table(
    copy: &Row,
    family: &Family,
    table: &str,
    case: TableCase,
) -> Result<bool> {
    Ok(match copy.get(TABLE)? {
        Some(ValueRef::String(named)) if family.table.is_some() => {
            case.is_same_table(named, table) || case.is_ambiguous(named, table)
        }
        _ => true,
    })
}

/// Whose copy a remote row is, as far as the row alone tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyOwner {
    /// The copy of the primary in question.
    Ours,
    /// The copy of the primary in question, unless a table exists whose name is exactly the one in
    /// lower case that the row holds: then it is the copy of a primary of that table.
    OursInOldForm,
    /// The copy of another primary, or of none that it names.
    Another,
}

/// Returns PartitionKey and RowKey of the primary that a copy belongs to, or `None` if the copy
/// does not say.
pub(crate) fn owner_keys(
    copy: &Row,
    CopyFamily { copy: family, primary, .. }: CopyFamily,
) -> Result<Option<(String, String)>> {
    if can_derive_keys(family, primary) {
        return Ok(derive_keys(family, primary, (copy.partition_key(), copy.row_key())).ok());
    }
    Ok(match (copy.get(PARTITION)?, copy.get(ROW)?) {
        (Some(ValueRef::String(partition_key)), Some(ValueRef::String(row_key))) => {
            Some((partition_key.to_owned(), row_key.to_owned()))
        }
        _ => None,
    })
}

/// Returns whether a remote row is a copy of the primary `owner`.
pub(crate) fn copy_owner(
    found: &Row,
    kinds: CopyFamily,
    owner: RowAt<'_>,
    case: TableCase,
) -> Result<CopyOwner> {
    let keys = owner_keys(found, kinds)?;
    let keys = keys.as_ref().map(|(partition_key, row_key)| (&**partition_key, &**row_key));
    if keys != Some((owner.partition_key, owner.row_key)) {
        return Ok(CopyOwner::Another);
    }
    if kinds.copy.table.is_none() {
        return Ok(CopyOwner::Ours);
    }
    Ok(match found.get(TABLE)? {
        Some(ValueRef::String(named)) if case.is_same_table(named, owner.table) => CopyOwner::Ours,
        Some(ValueRef::String(named)) if case.is_ambiguous(named, owner.table) => {
            CopyOwner::OursInOldForm
        }
        _ => CopyOwner::Another,
    })
}

/// Returns whether two copies have equal properties, apart from the ETags of their primaries. Two
/// names of one table are equal, apart from the old form in lower case.
pub(crate) fn equal_except_version(found: &Row, copy: &Row, case: TableCase) -> Result<bool> {
    let is_one_table = is_current_table(found, text(copy, TABLE)?, case)?;
    let (mut found, mut copy) = (found.to_bag()?, copy.to_bag()?);
    for bag in [&mut found, &mut copy] {
        bag.remove(VERSION);
        bag.remove(OPERATION_ID);
        if is_one_table {
            bag.remove(TABLE);
        }
    }
    Ok(found == copy)
}

/// Returns whether a copy names the table of its primary as this version of the library does.
pub(crate) fn is_current_table(copy: &Row, table: Option<&str>, case: TableCase) -> Result<bool> {
    let (Some(named), Some(table)) = (text(copy, TABLE)?, table) else { return Ok(false) };
    Ok(case.is_same_table(named, table) && !is_old_form(named, table))
}

fn text<'r>(row: &'r Row, property: &str) -> Result<Option<&'r str>> {
    Ok(match row.get(property)? {
        Some(ValueRef::String(text)) => Some(text),
        _ => None,
    })
}

/// Returns whether the copy says that it was derived from the primary with this ETag.
// Equal content does not say so: a copy of an older version can hold it, too.
pub(crate) fn is_derived_from_version(copy: &Row, version: &ETag) -> Result<bool> {
    Ok(copy.get(VERSION)? == Some(ValueRef::String(&version.to_string())))
}
