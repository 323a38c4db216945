//! Repairs local findings under the ETags of a new reading. A copy is replaced or deleted under its own
//! ETag. A missing copy or list entry is written in one transaction with a touch of the primary, which
//! fails if the primary has changed.

use super::{
    confirm_local::RereadSuspect,
    finding::{Finding, FindingKind},
};
use crate::{
    batch::{Condition, Operation},
    entity::TableEntity,
    error::Result,
    maintain::rows::touch_primary,
    plan::{ListDelta, StoredAs},
    store::sealing::plan::OperationToSeal,
    table::Table,
};

/// Repairs a finding. Returns `true` if something was written, and `false` if another writer was first or
/// nothing is wrong any more.
pub(crate) async fn repair_local<E: TableEntity>(
    table: &Table<E>,
    finding: &Finding,
) -> Result<bool> {
    if finding.kind == FindingKind::Contested {
        return Ok(false);
    }
    let keys = (finding.partition_key.as_str(), finding.row_key.as_str());
    let primary = finding.primary.as_deref();
    let at = table.row_at(keys.0, keys.1);
    // Read the rows again, because the finding may be minutes old.
    let reread = RereadSuspect::read_copy_and_primary(table, at, finding.is_entry, primary).await?;
    let operations = if finding.is_entry {
        entry_operations(table, keys, finding, reread)?
    } else {
        copy_operations(table, finding, reread)?
    };
    if operations.is_empty() {
        return Ok(false);
    }
    match table.client.store().seal_and_write(&table.name, operations, None).await {
        Ok(_) => Ok(true),
        // Another writer was first. The next check shows what is left.
        Err(error) if error.lost_race_or_table() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the operations that make a copy equal to what its primary derives, or none if they are equal.
fn copy_operations<E: TableEntity>(
    table: &Table<E>,
    finding: &Finding,
    reread: RereadSuspect,
) -> Result<Vec<OperationToSeal>> {
    let RereadSuspect { kind, found, primary, wanted, .. } = reread;
    Ok(match (kind, wanted, found, primary) {
        (Some(FindingKind::Missing), Some(copy), _, Some(primary)) => {
            // Insert together with a touch of the primary, so a rename in between wins.
            let insert = Operation::insert(copy.row);
            let home = StoredAs::Entity(E::SCHEMA, copy.family);
            let mut operations = touch_primary(table, &primary)?;
            operations.push(OperationToSeal::new(insert, home));
            operations
        }
        (Some(FindingKind::Stale), Some(copy), Some(found), _) => {
            let replace = Operation::replace(copy.row, Condition::for_etag(found.etag()));
            vec![OperationToSeal::new(replace, StoredAs::Entity(E::SCHEMA, copy.family))]
        }
        // Delete only the version of the copy for which a whole scan found no owner.
        (Some(FindingKind::Orphan), _, Some(found), _)
            if finding.kind == FindingKind::Orphan
                && finding.copy_etag.is_some()
                && found.etag() == finding.copy_etag =>
        {
            let (partition_key, row_key) = found.keys();
            let guard = Condition::for_etag(found.etag());
            let delete = Operation::delete(partition_key, row_key, guard)?;
            vec![OperationToSeal::new(delete, StoredAs::Framework)]
        }
        _ => Vec::new(),
    })
}

/// Returns the operations that correct how often a list contains a primary's entry, or none if that is
/// correct.
fn entry_operations<E: TableEntity>(
    table: &Table<E>,
    keys: (&str, &str),
    finding: &Finding,
    reread: RereadSuspect,
) -> Result<Vec<OperationToSeal>> {
    let (Some(id), Some(kind)) = (&finding.primary, reread.kind) else { return Ok(Vec::new()) };
    let mut delta = ListDelta::default();
    let mut operations = Vec::new();
    match (kind, &reread.primary) {
        (FindingKind::Missing, Some(primary)) => {
            // The touch fails if the primary is no longer in the version that derives the entry.
            operations.extend(touch_primary(table, primary)?);
            delta.add.push(id.clone());
        }
        (FindingKind::Orphan, _) => delta.remove.push(id.clone()),
        // Any change of a list, even an empty one, removes repeated ids.
        (FindingKind::Stale, _) => {}
        _ => return Ok(Vec::new()),
    }
    let changed = delta.list_operations(keys, reread.list.as_ref())?;
    operations
        .extend(changed.into_iter().map(|list| OperationToSeal::new(list, StoredAs::Framework)));
    Ok(operations)
}
