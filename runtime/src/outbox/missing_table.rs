//! Creates the table of a period when the first entity of that period is written.

use super::state::Outbox;
use crate::{
    entity::Schema, error::Result, guard::Guard, plan::Change, store::dated::create_dated_table,
};

/// Creates the missing table of changes that insert into a dated table. Returns `false` without an insert or a dated
/// table: an entity to change or delete cannot be in a missing table.
pub(super) async fn make_dated_table(
    outbox: &Outbox,
    table: &str,
    changes: &[Change],
) -> Result<bool> {
    let schemas =
        changes.iter().filter(|change| change.may_insert_entity()).filter_map(Change::schema);
    match schemas.into_iter().find(|schema| schema.dated.is_some()) {
        Some(schema) => create_table_of_period(outbox, schema, table).await,
        None => Ok(false),
    }
}

/// Creates a table if `table` is one of the entity's dated tables. Returns `false` otherwise.
///
/// # Errors
///
/// Fails with `is_not_found` and the floor for a table below the floor.
pub(crate) async fn create_table_of_period(
    outbox: &Outbox,
    schema: &'static Schema,
    table: &str,
) -> Result<bool> {
    let Some(dated) = schema.dated.as_ref() else { return Ok(false) };
    let name = outbox.store.names().name(table);
    let Some(period) = dated.period_of(name) else { return Ok(false) };
    let reads_floor = outbox.guards.is_guard_enabled(Guard::FloorRead);
    create_dated_table(&outbox.store, schema, dated, period, (table, reads_floor)).await?;
    // A table that another writer created in the meantime is fine.
    Ok(true)
}
