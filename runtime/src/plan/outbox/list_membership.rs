//! Whether an entity belongs in a remote list, and the entity's entry in the list.
//!
//! A dirty row of a primary contains the remote rows that may be wrong, both copies and lists. It only contains a
//! list's address, because the entry follows from the primary's keys.

use super::copy_address::CopyAddress;
use crate::{
    address::{RowAt, TableName},
    entity::{EntityRows, RemoteListKeys, Schema},
    key::RowFamily,
};

/// Whether a primary belongs in a remote list, and the primary's entry.
#[derive(Debug, Clone)]
pub(crate) struct ListMembership {
    pub(crate) address: CopyAddress,
    /// The primary's entry in the list.
    pub(crate) entry: String,
    /// Whether the list should contain the entry.
    pub(crate) is_wanted: bool,
}

impl ListMembership {
    /// Creates the membership of `owner` in `list`.
    pub(crate) fn new(
        schema: &Schema,
        owner: RowAt<'_>,
        list: &RemoteListKeys,
        is_wanted: bool,
    ) -> Self {
        let address = CopyAddress::for_list(schema, owner.table, list);
        Self { entry: list_entry(owner, schema, &address), address, is_wanted }
    }
}

/// Returns the memberships that differ between `old` and `new`: first lists to leave, then lists to enter.
pub(crate) fn changed_memberships(
    schema: &'static Schema,
    owner: RowAt<'_>,
    old: Option<&EntityRows>,
    new: Option<&EntityRows>,
) -> Vec<ListMembership> {
    let (old, new) = (remote_lists(old), remote_lists(new));
    let membership =
        |list: &RemoteListKeys, wanted| ListMembership::new(schema, owner, list, wanted);
    let left = old.iter().filter(|list| !new.contains(list)).map(|list| membership(list, false));
    let entered = new.iter().filter(|list| !old.contains(list)).map(|list| membership(list, true));
    left.chain(entered).collect()
}

fn remote_lists(rows: Option<&EntityRows>) -> &[RemoteListKeys] {
    rows.map(|rows| rows.remote_lists.as_slice()).unwrap_or_default()
}

/// Returns an entity's entry in a remote list: a JSON array of its PartitionKey and RowKey.
///
/// The entity's table is a third element if it is neither the table of the list nor the table that the type
/// declares. It is in its canonical form, which gives an entity a single entry.
pub(crate) fn list_entry(owner: RowAt<'_>, schema: &Schema, address: &CopyAddress) -> String {
    let mut texts = vec![owner.partition_key.to_owned(), owner.row_key.to_owned()];
    let is_known = |table| owner.table.sibling(table) == owner.table;
    if !is_known(&*address.row.table) && !is_known(schema.table) {
        texts.push(owner.table.form().into_owned());
    }
    serde_json::Value::from(texts).to_string()
}

/// Returns the entity's keys in an entry of a list of `family`, or `None` if the entry belongs to another type or
/// table. Several types may share a list if their keys are distinguishable.
pub(crate) fn list_entry_keys(
    entry: &str,
    table: TableName<'_>,
    schema: &'static Schema,
    family: &RowFamily,
) -> Option<(String, String)> {
    let texts: Vec<String> = serde_json::from_str(entry).ok()?;
    let (partition_key, row_key, entry_table) = match texts.as_slice() {
        [partition_key, row_key] => (partition_key, row_key, None),
        [partition_key, row_key, table] => (partition_key, row_key, Some(table.as_str())),
        _ => return None,
    };
    let is_in_table = match (family.table, entry_table) {
        (None, None) => true,
        (_, None) => table.sibling(schema.table) == table,
        (_, Some(named)) => table.sibling(named) == table,
    };
    let is_key =
        |family: &RowFamily| family.partition.matches(partition_key) && family.row.matches(row_key);
    let is_of_type = schema.versions().any(|version| version.primary().is_ok_and(is_key));
    (is_in_table && is_of_type).then(|| (partition_key.clone(), row_key.clone()))
}
