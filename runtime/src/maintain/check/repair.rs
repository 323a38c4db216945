//! Mending one finding, under the versions of a fresh reading.
//!
//! A copy is brought to what the primary says now: replaced or deleted under its own version, or
//! created in one transaction that holds the primary to its version.

use super::{
    Finding, FindingKind,
    verify::{derived_if_known, read},
};
use crate::{
    batch::{Condition, Operation},
    entity::TableEntity,
    error::Result,
    plan::{ListDelta, StoredAs},
    row::Row,
    store::{lists::read_list, sealing::plan::Placed},
    table::Table,
};

/// `true`: mended; `false`: another writer was first.
pub(crate) async fn repair<E: TableEntity>(table: &Table<E>, finding: &Finding) -> Result<bool> {
    if finding.kind == FindingKind::Contested {
        return Ok(false);
    }
    let operations =
        if finding.is_entry { entry(table, finding).await? } else { copy(table, finding).await? };
    if operations.is_empty() {
        return Ok(false);
    }
    match table.client.store().write(&table.name, operations).await {
        Ok(_) => Ok(true),
        Err(error) if error.lost_race_or_table() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn copy<E: TableEntity>(table: &Table<E>, finding: &Finding) -> Result<Vec<Placed>> {
    let tokens = table.tokens().await?;
    let (partition_key, row_key) = (finding.partition_key.as_str(), finding.row_key.as_str());
    let found = read(table, partition_key, row_key).await?;
    let primary = match &finding.primary {
        Some(primary) => read(table, partition_key, primary).await?,
        None => None,
    };
    let Some(rows) = derived_if_known::<E>(primary.as_ref(), &tokens)? else {
        return Ok(Vec::new());
    };
    let wanted = rows
        .and_then(|rows| rows.local_copies.into_iter().find(|copy| copy.row.row_key() == row_key));
    let guard = |row: &Row| Condition::for_etag(row.etag());
    Ok(match (wanted, found, primary) {
        (Some(copy), None, Some(primary)) => {
            let insert = Operation::insert(copy.row);
            vec![
                touch::<E>(&primary)?,
                Placed::new(insert, StoredAs::Entity(E::SCHEMA, copy.family)),
            ]
        }
        (Some(copy), Some(found), _) if !copy.row.has_same_content(&found) => {
            let replace = Operation::replace(copy.row, guard(&found));
            vec![Placed::new(replace, StoredAs::Entity(E::SCHEMA, copy.family))]
        }
        (None, Some(found), _) if finding.kind == FindingKind::Orphan => {
            // Only the version that was found to be nobody's.
            match &finding.etag {
                Some(etag) if found.etag().as_ref() == Some(etag) => {
                    let delete = Operation::delete(partition_key, row_key, guard(&found))?;
                    vec![Placed::new(delete, StoredAs::Framework)]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    })
}

async fn entry<E: TableEntity>(table: &Table<E>, finding: &Finding) -> Result<Vec<Placed>> {
    let tokens = table.tokens().await?;
    let keys = (finding.partition_key.as_str(), finding.row_key.as_str());
    let Some(id) = &finding.primary else { return Ok(Vec::new()) };
    let list = read_list(table.client.store(), &table.name, keys.0, keys.1).await?;
    let primary = read(table, keys.0, id).await?;
    let Some(rows) = derived_if_known::<E>(primary.as_ref(), &tokens)? else {
        return Ok(Vec::new());
    };
    let wanted = rows
        .is_some_and(|rows| rows.local_list_entries.iter().any(|entry| entry.row_key == keys.1));
    let times = list.iter().flat_map(|list| &list.ids).filter(|other| *other == id).count();
    let mut delta = ListDelta::default();
    let mut operations = Vec::new();
    match (wanted, times, &primary) {
        (true, 0, Some(primary)) => {
            operations.push(touch::<E>(primary)?);
            delta.add.push(id.clone());
        }
        (false, 1.., _) => delta.remove.push(id.clone()),
        // Any change of a list leaves every id in it once.
        (true, 2.., _) => {}
        _ => return Ok(Vec::new()),
    }
    let changed = delta.operations(keys, list.as_ref())?;
    operations.extend(changed.into_iter().map(|list| Placed::new(list, StoredAs::Framework)));
    Ok(operations)
}

/// A write of the primary that changes nothing but its version: it fails where the primary is
/// another one by now. What is stored as it is read is written again, nothing that is sealed.
pub(crate) fn touch<E: TableEntity>(primary: &Row) -> Result<Placed> {
    let mut row = Row::build(primary.partition_key(), primary.row_key());
    let mut properties = primary.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name);
        let is_sealed = E::SCHEMA.sealed_column(&name).is_some()
            || primary.encrypted_names().iter().any(|known| **known == *name);
        if !is_sealed {
            row.put(&name, value);
            break;
        }
    }
    let guard = Condition::for_etag(primary.etag());
    Ok(Placed::new(Operation::merge(row.finish()?, guard), StoredAs::Framework))
}
