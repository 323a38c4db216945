//! Mending one finding, under the versions of a fresh reading.
//!
//! A copy is brought to what the primary says now: replaced or deleted under its own version, or
//! created in one transaction that holds the primary to its version.

use super::{
    Finding, FindingKind,
    verify::{derived_if_known, read},
};
use crate::{
    batch::{Batch, Condition, Operation},
    entity::TableEntity,
    error::{Error, Result},
    plan::ListDelta,
    row::Row,
    table::{Table, commit::read_list},
};

/// `true`: mended; `false`: another writer was first.
pub(super) async fn repair<E: TableEntity>(table: &Table<E>, finding: &Finding) -> Result<bool> {
    if finding.kind == FindingKind::Contested {
        return Ok(false);
    }
    let operations =
        if finding.is_entry { entry(table, finding).await? } else { copy(table, finding).await? };
    if operations.is_empty() {
        return Ok(false);
    }
    let mut batch = Batch::new(&table.name);
    for operation in operations {
        batch.push(operation)?;
    }
    match table.client.apply(&batch).await {
        Ok(_) => Ok(true),
        Err(error) if was_raced(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn was_raced(error: &Error) -> bool {
    error.is_precondition_failed() || error.is_conflict() || error.is_not_found()
}

async fn copy<E: TableEntity>(table: &Table<E>, finding: &Finding) -> Result<Vec<Operation>> {
    let (partition_key, row_key) = (finding.partition_key.as_str(), finding.row_key.as_str());
    let found = read(table, partition_key, row_key).await?;
    let primary = match &finding.primary {
        Some(primary) => read(table, partition_key, primary).await?,
        None => None,
    };
    let Some(rows) = derived_if_known::<E>(primary.as_ref())? else { return Ok(Vec::new()) };
    let wanted =
        rows.and_then(|rows| rows.copies.into_iter().find(|copy| copy.row.row_key() == row_key));
    let guard = |row: &Row| row.etag().map_or(Condition::Any, Condition::Match);
    Ok(match (wanted, found, primary) {
        (Some(copy), None, Some(primary)) => {
            vec![touch(&primary)?, Operation::insert(copy.row)]
        }
        (Some(copy), Some(found), _) if !copy.row.holds_same(&found) => {
            vec![Operation::replace(copy.row, guard(&found))]
        }
        (None, Some(found), _) if finding.kind == FindingKind::Orphan => {
            // Only the version that was found to be nobody's.
            match &finding.etag {
                Some(etag) if found.etag().as_ref() == Some(etag) => {
                    vec![Operation::delete(partition_key, row_key, guard(&found))?]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    })
}

async fn entry<E: TableEntity>(table: &Table<E>, finding: &Finding) -> Result<Vec<Operation>> {
    let keys = (finding.partition_key.as_str(), finding.row_key.as_str());
    let Some(id) = &finding.primary else { return Ok(Vec::new()) };
    let list = read_list(&table.client, &table.name, keys.0, keys.1).await?;
    let primary = read(table, keys.0, id).await?;
    let Some(rows) = derived_if_known::<E>(primary.as_ref())? else { return Ok(Vec::new()) };
    let wanted = rows.is_some_and(|rows| rows.entries.iter().any(|entry| entry.row_key == keys.1));
    let times = list.iter().flat_map(|list| &list.ids).filter(|other| *other == id).count();
    let mut delta = ListDelta::default();
    let mut operations = Vec::new();
    match (wanted, times, &primary) {
        (true, 0, Some(primary)) => {
            operations.push(touch(primary)?);
            delta.add.push(id.clone());
        }
        (false, 1.., _) => delta.remove.push(id.clone()),
        // Any change of a list leaves every id in it once.
        (true, 2.., _) => {}
        _ => return Ok(Vec::new()),
    }
    operations.extend(delta.operations(keys, list.as_ref())?);
    Ok(operations)
}

/// A write of the primary that changes nothing but its version: it fails where the primary is
/// another one by now.
pub(in crate::table) fn touch(primary: &Row) -> Result<Operation> {
    let mut row = Row::build(primary.partition_key(), primary.row_key());
    let mut properties = primary.properties();
    if let Some((name, value)) = properties.next()? {
        row.put(&String::from_utf8_lossy(name), value);
    }
    let guard = primary.etag().map_or(Condition::Any, Condition::Match);
    Ok(Operation::merge(row.finish()?, guard))
}
