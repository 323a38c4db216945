//! Rebuilds a remote index or list: writes dirty rows with the primaries. Workers then write the copies.

use crate::{
    entity::{CopyRow, EntityRows, TableEntity},
    error::Result,
    key::RowFamily,
    maintain::{
        outbox_writer::{DirtyRowOperation, record_dirty_rows},
        rows::derive_rows_of_primary,
    },
    plan::outbox::PlannedDirtyRow,
    row::Row,
    table::Table,
};

/// Writes dirty rows for the copies or list entries that primaries derive for an index. Returns how many
/// copies and list entries the dirty rows contain.
pub(crate) async fn record_primaries<E: TableEntity>(
    table: &Table<E>,
    family: &'static RowFamily,
    primaries: &[&Row],
) -> Result<u64> {
    let tokens = table.key_token_maker().await?;
    let mut rows = Vec::new();
    for primary in primaries {
        let derive = || derive_rows_of_primary::<E>(primary, &tokens);
        let Some(derived) = table.run_with_blind_token_keys(&tokens, derive).await? else {
            continue;
        };
        let of_family = |copy: &&CopyRow| copy.family.index == family.index;
        for copy in derived.remote_copies.iter().filter(of_family) {
            let (sealing, owner) = (&table.client.store().sealing, primary.partition_key());
            sealing.refuse_untrusted_copy_scope(E::SCHEMA, copy.family, owner, &copy.row)?;
        }
        if let Some(dirty) = dirty_row(table, primary, &derived, family) {
            // `true` merges, because earlier work of the primary may be open.
            rows.push(DirtyRowOperation { operation: dirty.insert_operation(true)?, addresses: 1 });
        }
    }
    record_dirty_rows(table, rows).await
}

/// Returns the dirty row with what a primary derives for an index or list, or `None` if it derives nothing.
fn dirty_row<E: TableEntity>(
    table: &Table<E>,
    primary: &Row,
    rows: &EntityRows,
    family: &'static RowFamily,
) -> Option<PlannedDirtyRow> {
    if family.is_list() {
        let list = rows.remote_lists.iter().find(|list| list.family.index == family.index)?;
        return Some(PlannedDirtyRow::for_list(E::SCHEMA, table.table_name(), primary, list));
    }
    let copy = rows.remote_copies.iter().find(|copy| copy.family.index == family.index)?;
    PlannedDirtyRow::for_copy(E::SCHEMA, table.table_name(), primary, copy)
}
