//! Lists elsewhere: which of them a change concerns, and what stands in them for an entity.
//!
//! A list elsewhere is named in the primary's dirty row as a copy is; the entry in it is the
//! primary's, so that the name of the list is enough.

use super::{dirty_row::CopyAddress, remote_copy::Owner};
use crate::{
    entity::{EntityRows, RemoteList, Schema},
    key::Family,
};

/// What the index of a name ends with, where it is a list: no index has such a name, so that a
/// program that does not know of lists elsewhere leaves the name alone.
const IN_ROWS: &str = "#list";
/// The same for a list in a blob.
const IN_BLOB: &str = "#blob";

/// Where a list is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListPlace {
    pub(crate) in_blob: bool,
    /// The table of its rows; the primary's for a blob. In the case in which it was named: a table
    /// that is named in two ways is two places, which only costs a race.
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
}

/// A list elsewhere that a change concerns.
#[derive(Debug, Clone)]
pub(crate) struct ListMembership {
    pub(crate) name: CopyAddress,
    /// What stands in it for the primary.
    pub(crate) entry: String,
    /// Whether the primary shall be in it.
    pub(crate) wanted: bool,
}

impl ListMembership {
    pub(crate) fn of(schema: &Schema, owner: Owner<'_>, listed: &RemoteList, wanted: bool) -> Self {
        let name = CopyAddress::of_list(schema, owner.table, listed);
        Self { entry: entry(owner, schema, &name), name, wanted }
    }
}

impl CopyAddress {
    fn of_list(schema: &Schema, table: &str, listed: &RemoteList) -> Self {
        let keys = (listed.partition_key.as_str(), listed.row_key.as_str());
        Self::of_list_at(schema, table, listed.family, keys)
    }

    /// The list with these keys, of a type whose primaries are in that table.
    pub(crate) fn of_list_at(
        schema: &Schema,
        table: &str,
        family: &Family,
        (partition_key, row_key): (&str, &str),
    ) -> Self {
        let kind = if family.in_blob { IN_BLOB } else { IN_ROWS };
        Self {
            index: [schema.entity_type, "#", family.name, kind].concat(),
            table: family.table.unwrap_or(table).to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
        }
    }

    /// The type and the list, and whether it is in a blob.
    pub(crate) fn split_list(&self) -> Option<(&str, &str, bool)> {
        let in_rows = self.index.strip_suffix(IN_ROWS).map(|index| (index, false));
        let (index, in_blob) =
            in_rows.or_else(|| self.index.strip_suffix(IN_BLOB).map(|index| (index, true)))?;
        let (entity_type, list) = index.split_once('#')?;
        Some((entity_type, list, in_blob))
    }

    /// Where the list is.
    pub(crate) fn list_place(&self) -> ListPlace {
        ListPlace {
            in_blob: self.index.ends_with(IN_BLOB),
            table: self.table.clone(),
            partition_key: self.partition_key.clone(),
            row_key: self.row_key.clone(),
        }
    }

    /// Whether that is the list, of a primary in that table.
    pub(crate) fn is_of_list(&self, table: &str, listed: &RemoteList) -> bool {
        self.split_list().is_some_and(|(_, name, in_blob)| {
            name == listed.family.name && in_blob == listed.family.in_blob
        }) && self.table.eq_ignore_ascii_case(listed.family.table.unwrap_or(table))
            && self.partition_key == listed.partition_key
            && self.row_key == listed.row_key
    }
}

/// The lists elsewhere that entries leave, and those that they enter. Lists that an entity stays in
/// are left out.
pub(crate) fn memberships(
    schema: &'static Schema,
    owner: Owner<'_>,
    old: Option<&EntityRows>,
    new: Option<&EntityRows>,
) -> Vec<ListMembership> {
    let (old, new) = (lists(old), lists(new));
    let membership =
        |listed: &RemoteList, wanted| ListMembership::of(schema, owner, listed, wanted);
    let left =
        old.iter().filter(|listed| !new.contains(listed)).map(|listed| membership(listed, false));
    let entered =
        new.iter().filter(|listed| !old.contains(listed)).map(|listed| membership(listed, true));
    left.chain(entered).collect()
}

fn lists(rows: Option<&EntityRows>) -> &[RemoteList] {
    rows.map(|rows| rows.remote_lists.as_slice()).unwrap_or_default()
}

/// What stands in a list elsewhere for an entity, as JSON: its PartitionKey and its RowKey; its
/// table too, where the list has a table of its own and the entity is not in the table that its type
/// declares.
pub(crate) fn entry(owner: Owner<'_>, schema: &Schema, name: &CopyAddress) -> String {
    let mut texts = vec![owner.partition_key.to_owned(), owner.row_key.to_owned()];
    let has_own_table = !name.table.eq_ignore_ascii_case(owner.table);
    if has_own_table && !schema.table.eq_ignore_ascii_case(owner.table) {
        texts.push(owner.table.to_ascii_lowercase());
    }
    serde_json::Value::from(texts).to_string()
}

/// The keys that an entry leads to, where it is of an entity of that type in that table: several types
/// may share a list, as long as their keys tell them apart.
pub(crate) fn entry_keys(
    entry: &str,
    table: &str,
    schema: &'static Schema,
    family: &Family,
) -> Option<(String, String)> {
    let texts: Vec<String> = serde_json::from_str(entry).ok()?;
    let (partition_key, row_key, of) = match texts.as_slice() {
        [partition_key, row_key] => (partition_key, row_key, None),
        [partition_key, row_key, of] => (partition_key, row_key, Some(of.as_str())),
        _ => return None,
    };
    let is_here = match (family.table, of) {
        (None, None) => true,
        (_, of) => of.unwrap_or(schema.table).eq_ignore_ascii_case(table),
    };
    let is_key =
        |family: &Family| family.partition.matches(partition_key) && family.row.matches(row_key);
    let is_ours = schema.versions().any(|version| version.primary().is_ok_and(is_key));
    (is_here && is_ours).then(|| (partition_key.clone(), row_key.clone()))
}
