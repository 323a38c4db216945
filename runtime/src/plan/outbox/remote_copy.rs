//! A copy elsewhere as it is stored: beside what the entity says, whose copy it is, and of which
//! version of the primary.

use crate::{
    edm::ValueRef,
    entity::{CopyFamily, can_derive_keys, derive_keys},
    error::Result,
    key::Family,
    row::{ETag, Row},
};

/// The version of the primary that the copy was derived from.
pub(crate) const VERSION: &str = "Src";
/// The primary's keys, where the copy's do not give them.
const PARTITION: &str = "SrcP";
const ROW: &str = "SrcR";
/// The primary's table, where primaries of several tables may share the copies' table.
pub(crate) const TABLE: &str = "SrcT";
/// The claim that it is reserved by.
pub(crate) const CLAIM_PROPERTY: &str = "SrcC";
/// The primary that it was taken over from, while it is reserved.
pub(crate) const FROM: &str = "SrcF";

/// What a reader needs to tell whose a reservation is.
pub(crate) const OF_OWNER: [&str; 5] = [PARTITION, ROW, TABLE, CLAIM_PROPERTY, FROM];

/// Whether a property of a copy elsewhere is the framework's.
pub(crate) fn is_of_owner(property: &str) -> bool {
    property == VERSION || OF_OWNER.contains(&property)
}

/// A primary, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner<'a> {
    pub(crate) table: &'a str,
    pub(crate) partition_key: &'a str,
    pub(crate) row_key: &'a str,
}

/// The copy of that version of its primary; `None`: of none that was committed yet.
pub(crate) fn owned_copy(
    copy: &Row,
    CopyFamily { copy: family, primary, .. }: CopyFamily,
    owner: Owner<'_>,
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
        row.put(TABLE, ValueRef::String(&owner.table.to_ascii_lowercase()));
    }
    Ok(row.finish()?.with_encrypted_names_of(copy))
}

/// Whether a property says which version of its primary a copy is of.
pub(crate) fn is_version(property: &[u8]) -> bool {
    property == VERSION.as_bytes()
}

/// Whether the copy is of a primary in that table, as far as it says so.
pub(crate) fn is_from_table(found: &Row, family: &Family, table: &str) -> Result<bool> {
    Ok(match found.get(TABLE)? {
        Some(ValueRef::String(of)) if family.table.is_some() => of.eq_ignore_ascii_case(table),
        _ => true,
    })
}

/// PartitionKey and RowKey of the primary whose copy it is; `None`: it does not say.
pub(crate) fn keys_of_owner(
    found: &Row,
    CopyFamily { copy: family, primary, .. }: CopyFamily,
) -> Result<Option<(String, String)>> {
    if can_derive_keys(family, primary) {
        return Ok(derive_keys(family, primary, (found.partition_key(), found.row_key())).ok());
    }
    Ok(match (found.get(PARTITION)?, found.get(ROW)?) {
        (Some(ValueRef::String(partition_key)), Some(ValueRef::String(row_key))) => {
            Some((partition_key.to_owned(), row_key.to_owned()))
        }
        _ => None,
    })
}

/// Whether a row elsewhere is that primary's copy.
pub(crate) fn is_owned(
    found: &Row,
    CopyFamily { copy: family, primary, .. }: CopyFamily,
    owner: Owner<'_>,
) -> Result<bool> {
    if family.table.is_some() {
        match found.get(TABLE)? {
            Some(ValueRef::String(table)) if table.eq_ignore_ascii_case(owner.table) => {}
            _ => return Ok(false),
        }
    }
    if !can_derive_keys(family, primary) {
        let partition_key = found.get(PARTITION)? == Some(ValueRef::String(owner.partition_key));
        return Ok(partition_key && found.get(ROW)? == Some(ValueRef::String(owner.row_key)));
    }
    let keys = derive_keys(family, primary, (found.partition_key(), found.row_key()));
    let given = keys.as_ref().map(|(partition_key, row_key)| (&**partition_key, &**row_key));
    Ok(given == Ok((owner.partition_key, owner.row_key)))
}

/// Whether two copies hold the same, of whatever version they are.
pub(crate) fn holds_same(found: &Row, copy: &Row) -> Result<bool> {
    let (mut found, mut copy) = (found.to_bag()?, copy.to_bag()?);
    found.remove(VERSION);
    copy.remove(VERSION);
    Ok(found == copy)
}

/// Whether the copy says that it is of that version of its primary. What it holds does not say so: a
/// copy of an older version may hold the same.
pub(crate) fn is_of_version(found: &Row, version: &ETag) -> Result<bool> {
    Ok(found.get(VERSION)? == Some(ValueRef::String(&version.to_string())))
}
