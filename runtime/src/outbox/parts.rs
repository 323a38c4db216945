//! The stage of wide entities, which are stored in several rows.

use std::collections::HashMap;

use super::state::Outbox;
use crate::{
    entity::Schema,
    error::Result,
    plan::{
        OperationRole, TransactionPlan,
        wide::{maximum_parts_of_versions, row_key_of_part},
    },
    row::{ETag, Row},
};

/// Returns whether a transaction writes a row of the entity whose primary is `holder`.
pub(super) fn writes_entity(
    transaction: &TransactionPlan,
    schema: &'static Schema,
    holder: &Row,
) -> Result<bool> {
    let parts = if schema.is_wide() { maximum_parts_of_versions(schema) } else { 1 };
    let mut is_written = transaction.position_of_row_key(holder.row_key()).is_some();
    for part in 2..=parts {
        let key = row_key_of_part(holder.row_key(), part)?;
        is_written |= transaction.position_of_row_key(&key).is_some();
    }
    Ok(is_written)
}

/// Reads the ETags of the parts of a wide entity that a verb deletes, by RowKey. `None` for a missing part.
pub(super) async fn etags_of_parts(
    outbox: &Outbox,
    table: &str,
    transaction: &TransactionPlan,
    verb: usize,
) -> Result<HashMap<String, Option<ETag>>> {
    let mut found = HashMap::new();
    for planned in transaction.planned_operations() {
        if matches!(planned.role, OperationRole::DeletedPart(of) if of == verb) {
            let (partition_key, row_key) = planned.operation.row().keys();
            let row = outbox
                .store
                .read_row(outbox.store.names().row_at(table, partition_key, row_key))
                .await?;
            found.insert(row_key.to_owned(), row.and_then(|row| row.etag()));
        }
    }
    Ok(found)
}
