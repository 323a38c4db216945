//! Dirty rows: one row for each primary whose remote copies and list entries may be wrong, in the primary's partition.

use super::{
    copy_address::{ADDRESS_PROPERTY, CopyAddress, read_prefixed_texts},
    fence::required_text,
    hash::hash128,
    list_membership::{ListMembership, changed_memberships},
    reserved_keys::{DIRTY, FORMAT, FORMAT_NAME, TYPE_NAME},
};
use crate::{
    address::{Names, RowAt, TableName},
    batch::{self, Operation},
    edm::ValueRef,
    entity::{
        CopyAndPrimaryFamily, CopyRow, EntityRows, RemoteListKeys, Schema,
        blob::name::is_blob_name_of_row,
    },
    error::Result,
    limits,
    plan::Effect,
    row::Row,
};

/// The property with the primary's RowKey, if the dirty row's key contains a hash of it.
const PRIMARY_ROW_KEY: &str = "Row";
/// The letter before a hash in the RowKey of a dirty row.
const HASH_LETTER: char = 'h';
/// The number of hex digits in a hash.
const HASH_DIGITS: usize = 32;

/// The change of one remote copy that a change of its primary requires.
#[derive(Debug, Clone)]
pub(crate) struct CopyChange {
    pub(crate) address: CopyAddress,
    pub(crate) kinds: CopyAndPrimaryFamily,
    /// The content of the copy, or `None` if the copy is deleted.
    pub(crate) wanted: Option<Row>,
    /// Whether the primary had this copy before the change.
    pub(crate) was_there: bool,
}

impl CopyChange {
    /// Returns whether the copy's key must be claimed before the commit, because its index is unique and the
    /// primary did not have the key.
    pub(crate) fn needs_claim(&self) -> bool {
        self.kinds.copy.unique && self.wanted.is_some() && !self.was_there
    }
}

/// A dirty row to write: the remote copies and list memberships of one primary that change, and the blobs that the
/// primary no longer points to.
#[derive(Debug, Clone)]
pub(crate) struct PlannedDirtyRow {
    pub(crate) partition_key: String,
    /// The primary's RowKey.
    pub(crate) primary: String,
    pub(crate) copy_changes: Vec<CopyChange>,
    pub(crate) memberships: Vec<ListMembership>,
    /// The blobs that only the old primary pointed to.
    pub(crate) old_blobs: Vec<CopyAddress>,
}

/// Returns the dirty rows for effects in one table: one for each primary whose remote copies, memberships or blobs
/// change. Earlier work on an unchanged copy is already recorded in the primary's dirty row.
pub(crate) fn dirty_rows_of(
    effects: &[impl AsRef<Effect>],
    table: TableName<'_>,
) -> Vec<PlannedDirtyRow> {
    effects.iter().flat_map(|effect| dirty_rows_of_effect(effect.as_ref(), table)).collect()
}

fn dirty_rows_of_effect(effect: &Effect, table: TableName<'_>) -> Vec<PlannedDirtyRow> {
    let Some(schema) = effect.schema else { return Vec::new() };
    let (old, new) = (effect.old.as_ref(), effect.new.as_ref());
    // A changed RowKey makes two operations: the old primary loses its copies, and the new one gains
    // them.
    let keeps_key = effect.primary.len() == 1;
    let dirty = effect.primary.iter().filter_map(|operation| {
        let (partition_key, row_key) = operation.row().keys();
        let owner = RowAt { table, partition_key, row_key };
        let (old, new) = match operation.verb() {
            batch::Verb::Delete => (old, None),
            _ if keeps_key => (old, new),
            // The new primary of a rename had no copies before.
            _ => (None, new),
        };
        let copy_changes = changed_copies(schema, table, remote_copies(old), remote_copies(new));
        let memberships = changed_memberships(schema, owner, old, new);
        let old_blobs = old_blobs(schema, owner, old, new);
        let is_clean = copy_changes.is_empty() && memberships.is_empty() && old_blobs.is_empty();
        (!is_clean).then(|| PlannedDirtyRow {
            partition_key: partition_key.to_owned(),
            primary: row_key.to_owned(),
            copy_changes,
            memberships,
            old_blobs,
        })
    });
    dirty.collect()
}

/// Returns the blobs of `owner` that `old` points to and `new` does not. Omits blobs whose names belong to another row.
fn old_blobs(
    schema: &'static Schema,
    owner: RowAt<'_>,
    old: Option<&EntityRows>,
    new: Option<&EntityRows>,
) -> Vec<CopyAddress> {
    let values = |rows| Option::into_iter(rows).flat_map(|rows: &EntityRows| &rows.blobs);
    let removed = values(old).filter_map(|value| {
        let name = value.blob.name()?;
        let is_kept = values(new).any(|value| value.blob.name() == Some(name));
        let is_removed = !is_kept && is_blob_name_of_row(name, owner);
        is_removed.then(|| CopyAddress::for_blob(schema, owner, value.field, name))
    });
    removed.collect()
}

fn remote_copies(rows: Option<&EntityRows>) -> &[CopyRow] {
    rows.map(|rows| rows.remote_copies.as_slice()).unwrap_or_default()
}

/// Returns the copies that differ between `old` and `new`, with deleted ones first.
fn changed_copies(
    schema: &'static Schema,
    table: TableName<'_>,
    old: &[CopyRow],
    new: &[CopyRow],
) -> Vec<CopyChange> {
    let change = |copy: &CopyRow, wanted: Option<&Row>, was_there: bool| {
        let primary = schema.primary_family_of_copy(copy.family)?;
        let kinds = CopyAndPrimaryFamily { copy: copy.family, primary, schema };
        let address = CopyAddress::for_copy(table, copy);
        Some(CopyChange { address, kinds, wanted: wanted.cloned(), was_there })
    };
    let deleted = old.iter().filter(|old| !new.iter().any(|new| have_same_address(old, new)));
    let deleted = deleted.filter_map(|copy| change(copy, None, true));
    let written = new.iter().filter_map(|copy| {
        let before = old.iter().find(|old| have_same_address(old, copy));
        if before.is_some_and(|before| before.row.has_same_content(&copy.row)) {
            return None;
        }
        change(copy, Some(&copy.row), before.is_some())
    });
    deleted.chain(written).collect()
}

fn have_same_address(a: &CopyRow, b: &CopyRow) -> bool {
    a.family.name == b.family.name
        && a.family.table == b.family.table
        && a.row.key_bytes() == b.row.key_bytes()
}

impl PlannedDirtyRow {
    /// Creates a dirty row for one remote copy of a primary. Returns `None` if the type does not declare the copy.
    pub(crate) fn for_copy(
        schema: &'static Schema,
        table: TableName<'_>,
        primary: &Row,
        copy: &CopyRow,
    ) -> Option<Self> {
        let kinds = CopyAndPrimaryFamily {
            copy: copy.family,
            primary: schema.primary_family_of_copy(copy.family)?,
            schema,
        };
        let change = CopyChange {
            address: CopyAddress::for_copy(table, copy),
            kinds,
            wanted: Some(copy.row.clone()),
            was_there: false,
        };
        Some(Self {
            partition_key: primary.partition_key().to_owned(),
            primary: primary.row_key().to_owned(),
            copy_changes: vec![change],
            memberships: Vec::new(),
            old_blobs: Vec::new(),
        })
    }

    /// Creates a dirty row for one remote list, which may lack a primary's entry.
    pub(crate) fn for_list(
        schema: &'static Schema,
        table: TableName<'_>,
        primary: &Row,
        list: &RemoteListKeys,
    ) -> Self {
        let (partition_key, row_key) = primary.keys();
        let owner = RowAt { table, partition_key, row_key };
        Self {
            partition_key: partition_key.to_owned(),
            primary: row_key.to_owned(),
            copy_changes: Vec::new(),
            memberships: vec![ListMembership::new(schema, owner, list, true)],
            old_blobs: Vec::new(),
        }
    }

    /// Returns the RowKey of the dirty row.
    pub(crate) fn row_key(&self) -> String {
        dirty_row_key_of_primary(&self.primary)
    }

    /// Returns the operation that inserts the dirty row. With `merge_existing`, it adds to an existing dirty row of the
    /// primary. Otherwise, it fails in that case.
    pub(crate) fn insert_operation(&self, merge_existing: bool) -> Result<Operation> {
        let copies = self.copy_changes.iter().map(|change| &change.address);
        let lists = self.memberships.iter().map(|membership| &membership.address);
        let addresses = copies.chain(lists).chain(&self.old_blobs);
        let row = build_row(&self.partition_key, &self.primary, addresses)?;
        Ok(if merge_existing { Operation::insert_or_merge(row) } else { Operation::insert(row) })
    }
}

/// Returns the RowKey of a primary's dirty row. It contains the primary's RowKey, or a hash of it if that RowKey is too
/// long or looks like such a hash.
pub(crate) fn dirty_row_key_of_primary(primary: &str) -> String {
    // A RowKey that looks like a hash is hashed too. Otherwise, two primaries could share a dirty row.
    let is_like_hash = primary.strip_prefix(HASH_LETTER).is_some_and(|rest| {
        rest.len() == HASH_DIGITS && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if is_like_hash || limits::utf16_units(primary) + DIRTY.len() > limits::KEY_UNITS {
        format!("{DIRTY}{HASH_LETTER}{}", hash128(&[primary]))
    } else {
        [DIRTY, primary].concat()
    }
}

/// Returns the operation that inserts a primary's dirty row with these addresses, or adds them to an existing one.
pub(crate) fn insert_or_merge_dirty_row(
    partition_key: &str,
    primary: &str,
    addresses: &[CopyAddress],
) -> Result<Operation> {
    build_row(partition_key, primary, addresses.iter()).map(Operation::insert_or_merge)
}

fn build_row<'n>(
    partition_key: &str,
    primary: &str,
    addresses: impl Iterator<Item = &'n CopyAddress>,
) -> Result<Row> {
    let row_key = dirty_row_key_of_primary(primary);
    let mut row = Row::build(partition_key, &row_key);
    row.put(TYPE_NAME, ValueRef::String("entable.dirty"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    if row_key.strip_prefix(DIRTY) != Some(primary) {
        row.put(PRIMARY_ROW_KEY, ValueRef::String(primary));
    }
    for address in addresses {
        row.put(&address.property_name_in_dirty_row(), ValueRef::String(&address.to_json()));
    }
    row.finish()
}

/// A dirty row that was read. It contains the remote copies and lists that may be wrong.
#[derive(Debug, Clone)]
pub(crate) struct StoredDirtyRow {
    pub(crate) row: Row,
    /// The primary's RowKey.
    pub(crate) primary: String,
    /// The remote copies and lists that may be wrong, and the blobs that may have to be deleted, in order.
    pub(crate) addresses: Vec<CopyAddress>,
}

impl StoredDirtyRow {
    /// Reads a dirty row.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if a property that should contain an address does not.
    pub(crate) fn from_row(names: Names, row: Row) -> Result<Self> {
        let key = row.row_key().strip_prefix(DIRTY).unwrap_or_default();
        let primary = match row.get(PRIMARY_ROW_KEY)? {
            Some(_) => required_text(&row, PRIMARY_ROW_KEY)?.to_owned(),
            None => key.to_owned(),
        };
        let expected = "the address of a remote copy or list";
        let parse = |text: &str| CopyAddress::from_json(names, text);
        let mut addresses = read_prefixed_texts(&row, ADDRESS_PROPERTY, parse, expected)?;
        // Sorted, to request them in the same order in each pass.
        addresses.sort();
        Ok(Self { primary, addresses, row })
    }

    /// Returns the operation that writes the dirty row again after its deletion.
    pub(crate) fn restore_operation(&self) -> Result<Operation> {
        insert_or_merge_dirty_row(self.row.partition_key(), &self.primary, &self.addresses)
    }
}
