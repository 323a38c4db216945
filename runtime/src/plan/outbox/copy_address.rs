//! The addresses of remote copies and lists, and their form in dirty rows.

use super::hash::hash128;
use crate::{
    address::{Names, RowAddress, RowAt, TableName},
    edm::ValueRef,
    entity::{CopyRow, RemoteListKeys, Schema, blob::name::is_blob_name_of_row},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    row::Row,
};

/// The prefix of a dirty row's properties with the address of a copy or a list.
pub(super) const ADDRESS_PROPERTY: &str = "D_";

/// The end of `CopyAddress::index` for a list in rows. No index has such a name, and programs that do not know
/// remote lists ignore the address.
const LIST_SUFFIX: &str = "#list";
/// The end of `CopyAddress::index` for a list in a blob.
const BLOB_LIST_SUFFIX: &str = "#blob";
/// The end of `CopyAddress::index` for a blob of a field. The RowKey of the address is the blob's name.
const BLOB_SUFFIX: &str = "#content";

/// The address of a remote copy or remote list: entity type and index, table and keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CopyAddress {
    /// Names what is at the address. `Employee#ByEmail` is an index copy. A list ends with `#list` if it is in rows, with
    /// `#blob` if it is in a blob. The blob of a field is called by entity type and field and ends with `#content`.
    pub(crate) index: String,
    pub(crate) row: RowAddress,
}

/// Returns the values of all properties of a row whose names begin with `prefix`. `parse` parses each value's text.
///
/// # Errors
///
/// Fails with `is_decode` for a property that is not a String or that `parse` refuses. `expected` describes the correct
/// value in the message.
pub(super) fn read_prefixed_texts<T>(
    row: &Row,
    prefix: &str,
    parse: impl Fn(&str) -> Option<T>,
    expected: &str,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    let mut properties = row.properties();
    while let Some((property, value)) = properties.next()? {
        if !property.starts_with(prefix.as_bytes()) {
            continue;
        }
        let one = match value {
            ValueRef::String(value) => parse(value),
            _ => None,
        };
        found.push(one.ok_or_else(|| {
            Error::new(ErrorKind::Decode, format!("expected {expected}"))
                .in_property(&String::from_utf8_lossy(property))
                .at_keys(row.partition_key(), row.row_key())
        })?);
    }
    Ok(found)
}

/// The address of a remote list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListAddress {
    pub(crate) in_blob: bool,
    /// The address of the list's head row. A list in a blob also has such an address.
    pub(crate) row: RowAddress,
}

impl ListAddress {
    /// Returns table and keys of the list's head row.
    pub(crate) fn as_row_at(&self) -> RowAt<'_> {
        self.row.as_row_at()
    }
}

impl CopyAddress {
    /// Returns the address of `row`, a copy of `family` whose primary is in `primary_table`.
    pub(crate) fn for_copy_in_family(
        primary_table: TableName<'_>,
        family: &RowFamily,
        row: &Row,
    ) -> Self {
        let (partition_key, row_key) = row.keys();
        let table = &family.table_given_primary_table(primary_table.as_str());
        Self {
            index: [entity_type_of(family), "#", family.name].concat(),
            row: RowAt::new(primary_table.sibling(table), partition_key, row_key).to_owned(),
        }
    }

    /// Returns the address of a copy whose primary is in `primary_table`.
    pub(super) fn for_copy(primary_table: TableName<'_>, copy: &CopyRow) -> Self {
        Self::for_copy_in_family(primary_table, copy.family, &copy.row)
    }

    /// Returns the address of a remote list, for primaries in `primary_table`.
    pub(super) fn for_list(
        schema: &Schema,
        primary_table: TableName<'_>,
        list: &RemoteListKeys,
    ) -> Self {
        let keys = (list.partition_key.as_str(), list.row_key.as_str());
        Self::for_list_at(schema, primary_table, list.family, keys)
    }

    /// Returns the address of the list of `family` with these keys, for primaries in `primary_table`.
    pub(crate) fn for_list_at(
        schema: &Schema,
        primary_table: TableName<'_>,
        family: &RowFamily,
        (partition_key, row_key): (&str, &str),
    ) -> Self {
        let kind = if family.in_blob { BLOB_LIST_SUFFIX } else { LIST_SUFFIX };
        let table = &family.table_given_primary_table(primary_table.as_str());
        Self {
            index: [schema.entity_type, "#", family.name, kind].concat(),
            row: RowAt::new(primary_table.sibling(table), partition_key, row_key).to_owned(),
        }
    }

    /// Returns the address of a blob that a field of `owner` pointed to.
    pub(super) fn for_blob(schema: &Schema, owner: RowAt<'_>, field: &str, name: &str) -> Self {
        Self {
            index: [schema.entity_type, "#", field, BLOB_SUFFIX].concat(),
            row: owner.with_row_key(name).to_owned(),
        }
    }

    /// Returns the name of the blob that this address refers to, or `None` if it does not belong to the row at
    /// `owner`. A blob of another row is never removed, because only that row shows whether it points to the blob.
    pub(crate) fn owned_blob_name(&self, owner: RowAt<'_>) -> Option<&str> {
        let name = &*self.row.row_key;
        (self.index.ends_with(BLOB_SUFFIX) && is_blob_name_of_row(name, owner)).then_some(name)
    }

    /// Returns whether the address is the one of a blob, of a field or with a list.
    pub(crate) fn is_in_blob_store(&self) -> bool {
        self.index.ends_with(BLOB_LIST_SUFFIX) || self.index.ends_with(BLOB_SUFFIX)
    }

    /// Splits the index into entity type and index name. Returns `None` if it has another form.
    pub(crate) fn split_index(&self) -> Option<(&str, &str)> {
        self.index.split_once('#')
    }

    /// Splits the index of a list into entity type, list name and whether the list is in a blob. Returns `None` for
    /// the address of a copy.
    pub(crate) fn split_list(&self) -> Option<(&str, &str, bool)> {
        let in_rows = self.index.strip_suffix(LIST_SUFFIX).map(|index| (index, false));
        let (index, in_blob) = in_rows
            .or_else(|| self.index.strip_suffix(BLOB_LIST_SUFFIX).map(|index| (index, true)))?;
        let (entity_type, list) = index.split_once('#')?;
        Some((entity_type, list, in_blob))
    }

    /// Returns table, PartitionKey and RowKey.
    pub(crate) fn as_row_at(&self) -> RowAt<'_> {
        self.row.as_row_at()
    }

    /// Returns the address of the list that this address refers to. Does not check that it refers to a list.
    pub(crate) fn assume_list_address(&self) -> ListAddress {
        ListAddress { in_blob: self.index.ends_with(BLOB_LIST_SUFFIX), row: self.row.clone() }
    }

    /// Returns whether this is the address of `copy`, whose primary is in `primary_table`.
    pub(crate) fn is_same_address_as_copy(
        &self,
        primary_table: TableName<'_>,
        copy: &CopyRow,
    ) -> bool {
        *self == Self::for_copy(primary_table, copy)
    }

    /// Returns whether this is the address of `list`, which contains a primary of `primary_table`.
    pub(crate) fn is_same_address_as_list(
        &self,
        primary_table: TableName<'_>,
        list: &RemoteListKeys,
    ) -> bool {
        let table = &list.family.table_given_primary_table(primary_table.as_str());
        let at = RowAt::new(primary_table.sibling(table), &list.partition_key, &list.row_key);
        self.split_list().is_some_and(|(_, name, in_blob)| {
            name == list.family.name && in_blob == list.family.in_blob
        }) && self.as_row_at() == at
    }

    /// Returns the four strings that dirty rows and claims store.
    pub(super) fn stored_texts(&self) -> [&str; 4] {
        let [table, partition_key, row_key] = self.as_row_at().table_and_key_texts();
        [&self.index, table, partition_key, row_key]
    }

    /// Creates the address from the strings of [`stored_texts`](Self::stored_texts).
    pub(super) fn from_texts(
        names: Names,
        [index, table, partition_key, row_key]: [String; 4],
    ) -> Self {
        Self { index, row: names.address([table, partition_key, row_key]) }
    }

    /// Returns the name of the property that holds this address in a dirty row.
    pub(super) fn property_name_in_dirty_row(&self) -> String {
        [ADDRESS_PROPERTY, &hash128(&self.stored_texts())].concat()
    }

    /// Returns the address as a JSON array of its four texts.
    pub(super) fn to_json(&self) -> String {
        serde_json::Value::from(self.stored_texts().to_vec()).to_string()
    }

    /// Parses an address in the form of [`to_json`](Self::to_json). Returns `None` for a text of another form.
    pub(super) fn from_json(names: Names, value: &str) -> Option<Self> {
        serde_json::from_str(value).ok().map(|texts| Self::from_texts(names, texts))
    }
}

/// Returns the entity type in a family's type marker, without the version.
fn entity_type_of(family: &RowFamily) -> &str {
    let marker = family.marker.split_once('#').map_or(family.marker, |(marker, _)| marker);
    match marker.rsplit_once(".v") {
        // A type name may also contain `.v`: only digits after it are a version.
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => marker,
    }
}
