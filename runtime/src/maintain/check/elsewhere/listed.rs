//! Entries of lists in other partitions and tables. Lists in blobs are not looked at: nothing tells
//! which there are.

use std::collections::HashMap;

use super::side::{Side, What};
use crate::{
    address::RowAt,
    edm::ValueRef,
    entity::{EntityRows, LIST_MARKER, Schema, TableEntity, head_row_key},
    error::Result,
    key::{Family, FamilyKind},
    maintain::check::FindingKind,
    plan::{
        IdForm,
        outbox::{CopyAddress, ListMembership, list_entry, list_entry_keys},
        read_ids,
    },
    row::Row,
    store::lists::find_list,
    table::Table,
};

/// The lists elsewhere of one version, those in blobs left out.
pub(crate) fn lists(schema: &'static Schema) -> impl Iterator<Item = &'static Family> {
    let families: &'static [Family] = schema.families;
    families
        .iter()
        .filter(|family| family.is_remote && family.kind == FamilyKind::List && !family.in_blob)
}

/// Every entry that a primary has in lists elsewhere.
pub(crate) fn derived<E: TableEntity>(
    table: &Table<E>,
    primary: &Row,
    rows: &EntityRows,
    each: &mut impl FnMut(Side<'_>) -> Result<()>,
) -> Result<()> {
    let (partition_key, row_key) = primary.keys();
    let owner = RowAt { table: &table.name, partition_key, row_key };
    for listed in rows.remote_lists.iter().filter(|listed| !listed.family.in_blob) {
        let ListMembership { address: name, entry, .. } =
            ListMembership::new(E::SCHEMA, owner, listed, true);
        let what = What::Entry { family: listed.family, entry: &entry, name: &name, times: 0 };
        each(Side { what, primary: Some(primary.keys()), found: false })?;
    }
    Ok(())
}

/// Every entry of this table's entities in a row of a list. `false`: it is no such row.
pub(crate) fn found<E: TableEntity>(
    table: &Table<E>,
    row: &Row,
    family: &'static Family,
    each: &mut impl FnMut(Side<'_>) -> Result<()>,
) -> Result<bool> {
    let head = head_row_key(row.row_key());
    let is_list = row.get("EntityType")? == Some(ValueRef::String(LIST_MARKER));
    if !is_list || !family.row.matches(head) || !family.partition.matches(row.partition_key()) {
        return Ok(false);
    }
    let keys = (row.partition_key(), head);
    let name = CopyAddress::for_list_at(E::SCHEMA, &table.name, family, keys);
    let mut seen: HashMap<String, u64> = HashMap::new();
    for entry in read_ids(row, IdForm::KeyArrays)? {
        let primary = list_entry_keys(&entry, &table.name, E::SCHEMA, family);
        let Some((partition_key, row_key)) = primary else { continue };
        let times = seen.entry(entry.clone()).or_default();
        let what = What::Entry { family, entry: &entry, name: &name, times: *times };
        each(Side { what, primary: Some((&partition_key, &row_key)), found: true })?;
        *times += 1;
    }
    Ok(true)
}

/// How often the list holds the entry of a primary.
pub(crate) async fn times<E: TableEntity>(
    table: &Table<E>,
    name: &CopyAddress,
    (partition_key, row_key): (&str, &str),
) -> Result<usize> {
    let list = match find_list(table.client.store(), &name.list_address()).await {
        // No lists are there.
        Err(error) if error.is_table_missing() => return Ok(0),
        list => list?,
    };
    let owner = RowAt { table: &table.name, partition_key, row_key };
    let entry = list_entry(owner, E::SCHEMA, name);
    Ok(list.ids().iter().filter(|id| **id == entry).count())
}

/// What is wrong with an entry, given what its primary derives.
pub(crate) fn mismatch<E: TableEntity>(
    table: &Table<E>,
    name: &CopyAddress,
    times: usize,
    rows: Option<EntityRows>,
) -> Option<FindingKind> {
    let wanted = rows.is_some_and(|rows| {
        rows.remote_lists.iter().any(|listed| name.is_for_list(&table.name, listed))
    });
    match (wanted, times) {
        (true, 0) => Some(FindingKind::Missing),
        (false, 1..) => Some(FindingKind::Orphan),
        (true, 2..) => Some(FindingKind::Stale),
        (true, 1) | (false, 0) => None,
    }
}
