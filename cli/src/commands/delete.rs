//! Deletes a row, the rows that match, or a table.

use entable::{
    Batch, Client, Condition, ETag, Filter, Operation, Row,
    backend::{Backend, ReadRequest},
};
use serde_json::json;

use super::look::scan_keys;
use crate::{
    args::Delete,
    failure::{CONFLICT, Failure},
    output::{Output, Progress, escaped, rows},
    store,
};

pub(crate) async fn delete(output: &Output, delete: Delete) -> Result<(), Failure> {
    refuse_everything_by_mistake(&delete)?;
    let filter = delete.rows.condition()?;
    if !delete.yes && !delete.dry_run {
        return Err(Failure::usage(
            "this deletes data: repeat it with --yes, or with --dry-run to see how much",
        ));
    }
    let client = store::open(&delete.store, false)?;
    if delete.dry_run {
        return say_what_would_go(output, &client, &delete, &filter).await;
    }
    let table = &delete.table;
    let (deleted, changed) =
        if let (Some(partition_key), Some(row_key)) = (&delete.partition_key, &delete.row_key) {
            let etag = delete.if_match.as_deref();
            let condition = etag.map_or(Condition::Any, |etag| Condition::Match(ETag::from(etag)));
            let operation = Operation::delete(partition_key, row_key, condition)?;
            client.backend().apply(&Batch::single(table, operation)?).await?;
            (1, 0)
        } else if delete.whole_table {
            client.delete_table(table).await?;
            client.close().await?;
            let value = || json!({"table": table, "deleted": "table"});
            return output.say(|| format!("table {} is deleted", escaped(table)), value);
        } else {
            delete_matching(output, &client, table, &filter).await?
        };
    client.close().await?;
    output.say(
        || format!("{} deleted", rows(deleted)),
        || json!({"table": table, "deleted": deleted, "changed": changed}),
    )
}

/// Fails if the arguments would delete all rows, for example because a script's variable is not set.
fn refuse_everything_by_mistake(delete: &Delete) -> Result<(), Failure> {
    if delete.partition_key.is_none() && delete.rows.is_all() && !delete.whole_table {
        return Err(Failure::usage(
            "give both keys of a row, or select rows with --filter or --partition, or the table with --whole-table",
        ));
    }
    if delete.rows.filter.as_deref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::usage(
            "the --filter is empty, which means all rows; to delete all, write a condition such as \"PartitionKey ge \
             ''\"",
        ));
    }
    if delete.rows.prefix.as_deref() == Some("") {
        return Err(Failure::usage(
            "the --prefix is empty, which means all rows of the partition; to delete them all, omit it",
        ));
    }
    Ok(())
}

/// Says how many rows the command would delete.
async fn say_what_would_go(
    output: &Output,
    client: &Client,
    delete: &Delete,
    filter: &Filter,
) -> Result<(), Failure> {
    let table = &delete.table;
    let count = match (&delete.partition_key, &delete.row_key) {
        (Some(partition_key), Some(row_key)) => {
            check_row(client, delete, partition_key, row_key).await?;
            1
        }
        _ => count_matching(output, client, table, filter).await?,
    };
    let with_table = if delete.whole_table { "the table and " } else { "" };
    output.say(
        || format!("would delete {with_table}{}; nothing is deleted", rows(count)),
        || json!({"table": table, "dry_run": true, "would_delete": count}),
    )
}

/// Fails as the deletion of one row would.
async fn check_row(
    client: &Client,
    delete: &Delete,
    partition_key: &str,
    row_key: &str,
) -> Result<(), Failure> {
    let table = &delete.table;
    let read = ReadRequest { table, partition_key, row_key, select: None };
    let Some(row) = client.backend().read(read).await? else {
        return Err(Failure::not_found(format!("table `{table}` has no row with these keys")));
    };
    match (&delete.if_match, row.etag()) {
        (Some(expected), Some(found)) if found.to_string() != *expected => {
            let message = format!("the row has the ETag {found}, not {expected}");
            Err(Failure::new(CONFLICT, "PreconditionFailed", message))
        }
        _ => Ok(()),
    }
}

async fn count_matching(
    output: &Output,
    client: &Client,
    table: &str,
    filter: &Filter,
) -> Result<u64, Failure> {
    let progress = Progress::new(output);
    let mut count = 0;
    scan_keys(client, table, filter, async |page| {
        let found = page.iter().filter(|row| !is_of_outbox(row)).count();
        count += u64::try_from(found).unwrap_or(u64::MAX);
        progress.show(|| rows(count));
        Ok(())
    })
    .await?;
    progress.end();
    Ok(count)
}

/// Returns whether the row belongs to workers, which finish it or delete it themselves.
fn is_of_outbox(row: &Row) -> bool {
    row.row_key().starts_with("~e")
}

/// Deletes the matching rows in transactions of one partition each. Rows that changed in the meantime stay.
/// Returns the numbers of deleted and changed rows.
async fn delete_matching(
    output: &Output,
    client: &Client,
    table: &str,
    filter: &Filter,
) -> Result<(u64, u64), Failure> {
    let progress = Progress::new(output);
    let (mut deleted, mut changed) = (0, 0);
    scan_keys(client, table, filter, async |page| {
        let found: Vec<&Row> = page.iter().filter(|row| !is_of_outbox(row)).collect();
        for group in found.chunk_by(|a, b| a.partition_key() == b.partition_key()) {
            for group in group.chunks(100) {
                let (gone, kept) = delete_group(client, table, group).await?;
                (deleted, changed) = (deleted + gone, changed + kept);
                progress.show(|| format!("{} deleted", rows(deleted)));
            }
        }
        Ok(())
    })
    .await?;
    progress.end();
    if changed > 0 {
        output.remark(&format!(
            "{} changed after the command found them, and were not deleted",
            rows(changed)
        ));
    }
    Ok((deleted, changed))
}

/// Deletes rows of one partition. Returns how many it deleted, and how many had changed.
async fn delete_group(client: &Client, table: &str, rows: &[&Row]) -> Result<(u64, u64), Failure> {
    let operation = |row: &Row| {
        let condition = row.etag().map_or(Condition::Any, Condition::Match);
        Operation::delete(row.partition_key(), row.row_key(), condition)
    };
    let mut batch = Batch::new(table);
    for row in rows {
        batch.push(operation(row)?)?;
    }
    let is_raced = |error: &entable::Error| {
        error.is_precondition_failed() || error.code() == Some("ResourceNotFound")
    };
    match client.backend().apply(&batch).await {
        Ok(_) => return Ok((u64::try_from(rows.len()).unwrap_or(u64::MAX), 0)),
        Err(error) if is_raced(&error) => {}
        Err(error) => return Err(error.in_table(table).into()),
    }
    // One row has changed, and the group was refused with it: each row by itself.
    let (mut deleted, mut changed) = (0, 0);
    for row in rows {
        match client.backend().apply(&Batch::single(table, operation(row)?)?).await {
            Ok(_) => deleted += 1,
            Err(error) if is_raced(&error) => changed += 1,
            Err(error) => return Err(error.in_table(table).into()),
        }
    }
    Ok((deleted, changed))
}
