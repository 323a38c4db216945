//! An index or a list in another partition: the rows that it needs are recorded beside their
//! primaries, and workers write them.

use crate::{
    entity::{EntityRows, Schema, TableEntity},
    error::Result,
    key::{Family, FamilyKind},
    limits::BATCH_OPERATIONS,
    outbox::registration,
    plan::outbox::DirtyRow,
    query::decode::at,
    row::Row,
    table::Table,
};

/// Records the copies that some primaries derive for an index, a transaction for each run of them
/// in one partition. How many there are.
pub(crate) async fn record<E: TableEntity>(
    table: &Table<E>,
    family: &'static Family,
    primaries: &[&Row],
) -> Result<u64> {
    let mut recorded = 0;
    let runs = primaries.chunk_by(|a, b| a.partition_key() == b.partition_key());
    // One operation is for the fence.
    for run in runs.flat_map(|run| run.chunks(BATCH_OPERATIONS - 1)) {
        let mut operations = Vec::new();
        let tokens = table.tokens().await?;
        for primary in run {
            let derived = E::SCHEMA.derive(primary, &tokens);
            let rows = derived.and_then(|derived| derived.into_known_rows(E::SCHEMA));
            let rows = rows.map_err(|error| at(primary, error))?;
            let dirty =
                rows.and_then(|rows| naming(E::SCHEMA, &table.name, primary, &rows, family));
            operations.extend(dirty.map(|dirty| dirty.insert(true)).transpose()?);
        }
        recorded += u64::try_from(operations.len()).unwrap_or(u64::MAX);
        registration::record(table.client.outbox(), &table.name, operations).await?;
    }
    Ok(recorded)
}

/// The record of what a primary has in an index or a list elsewhere, if it has anything in it.
fn naming(
    schema: &'static Schema,
    table: &str,
    primary: &Row,
    rows: &EntityRows,
    family: &'static Family,
) -> Option<DirtyRow> {
    if family.kind == FamilyKind::List {
        let listed = rows.remote_lists.iter().find(|listed| listed.family.index == family.index)?;
        return Some(DirtyRow::for_list(schema, table, primary, listed));
    }
    let copy = rows.remote_copies.iter().find(|copy| copy.family.index == family.index)?;
    DirtyRow::for_copy(schema, table, primary, copy)
}
