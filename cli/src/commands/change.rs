//! Commands that change rows.

use std::{
    io::{self, BufReader},
    path::PathBuf,
    sync::Arc,
};

use entable::{
    Batch, Client, Condition, ETag, Filter, Operation, Poisoned, Row, WorkAuthenticity,
    backend::{Backend, ScanRequest},
    data::ImportMode,
};
use serde_json::{Value, json};

use super::look::{self, parse_filter};
use crate::{
    args::{Delete, Mode},
    failure::Failure,
    output::{Grid, Output, Progress, escaped},
    store,
};

impl From<Mode> for ImportMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Replace => Self::InsertOrReplace,
            Mode::Merge => Self::InsertOrMerge,
            Mode::Insert => Self::Insert,
        }
    }
}

pub(crate) async fn put(
    output: &Output,
    store: &str,
    table: &str,
    file: Option<PathBuf>,
    mode: Mode,
) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let case = client.capabilities().table_case;
    let wanted = case.canonical_table_name(table);
    if !client.tables().await?.iter().any(|name| case.canonical_table_name(name) == wanted) {
        return Err(Failure::not_found(format!("there is no table `{table}`")));
    }
    let progress = Arc::new(Progress::new(output));
    let shown = progress.clone();
    let import = client
        .import(table)
        .mode(mode.into())
        .on_progress(move |now| shown.show(|| format!("line {}: {} rows", now.line, now.rows)));
    let report = match file {
        Some(path) => import.from_file(path).await?,
        None => import.read_from(BufReader::new(io::stdin())).await?,
    };
    progress.end();
    let rows = report.digest.rows();
    client.close().await?;
    output.say(|| format!("{rows} rows written"), || json!({"table": table, "rows": rows}))
}

pub(crate) async fn delete(output: &Output, delete: Delete) -> Result<(), Failure> {
    let Delete { store, table, partition_key, row_key, if_match, filter, whole_table, yes } =
        delete;
    if partition_key.is_none() && filter.is_none() && !whole_table {
        return Err(Failure::usage(
            "name a row by both keys, or rows by --filter, or --whole-table",
        ));
    }
    // A variable of a script that is not set would delete all rows.
    if filter.as_deref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::usage(
            "the --filter is empty, which means all rows: name them with a condition such as \"PartitionKey ge ''\"",
        ));
    }
    let filter = filter.as_deref().map(|text| parse_filter(Some(text))).transpose()?;
    if !yes {
        return Err(Failure::usage("this deletes data: repeat it with --yes"));
    }
    let client = store::open(&store, false)?;
    let (deleted, changed) =
        if let (Some(partition_key), Some(row_key)) = (&partition_key, &row_key) {
            let condition =
                if_match.map_or(Condition::Any, |etag| Condition::Match(ETag::from(&*etag)));
            let operation = Operation::delete(partition_key, row_key, condition)?;
            client.backend().apply(&Batch::single(&*table, operation)?).await?;
            (1, 0)
        } else if let Some(filter) = filter {
            delete_matching(output, &client, &table, &filter).await?
        } else {
            client.delete_table(&table).await?;
            client.close().await?;
            let value = || json!({"table": table, "deleted": "table"});
            return output.say(|| format!("table {table} is deleted"), value);
        };
    client.close().await?;
    output.say(
        || format!("{deleted} rows deleted"),
        || json!({"table": table, "deleted": deleted, "changed": changed}),
    )
}

/// Deletes the rows that match, those of one partition together. A row that has changed since it was found
/// stays. Returns how many it deleted, and how many had changed.
async fn delete_matching(
    output: &Output,
    client: &Client,
    table: &str,
    filter: &Filter,
) -> Result<(u64, u64), Failure> {
    let progress = Progress::new(output);
    let (mut deleted, mut changed) = (0, 0);
    let mut from = None;
    loop {
        let scan = ScanRequest { table, filter, select: Some(&[]), top: None, from: from.as_ref() };
        let page = client.backend().scan(scan).await?;
        let next = page.next.clone();
        let rows = page.into_rows()?;
        // Rows of the outbox belong to workers.
        let rows: Vec<&Row> = rows.iter().filter(|row| !row.row_key().starts_with("~e")).collect();
        for group in rows.chunk_by(|a, b| a.partition_key() == b.partition_key()) {
            for group in group.chunks(100) {
                let (gone, kept) = delete_group(client, table, group).await?;
                (deleted, changed) = (deleted + gone, changed + kept);
                progress.show(|| format!("{deleted} rows deleted"));
            }
        }
        from = next;
        if from.is_none() {
            break;
        }
    }
    progress.end();
    if changed > 0 {
        output.remark(&format!("{changed} rows have changed since they were found, and stay"));
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

pub(crate) async fn poisoned(output: &Output, store: &str) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let poisoned = client.worker().poisoned().await?;
    if output.is_json {
        let listed = poisoned.iter().map(|one| {
            json!({
                "table": one.table,
                "PartitionKey": one.partition_key,
                "RowKey": one.row_key(),
                "message": one.message(),
                "authenticity": authenticity(one),
                "error": one.error,
            })
        });
        return output.json(&Value::Array(listed.collect()));
    }
    let mut grid = Grid::new(["", "Table", "PartitionKey", "RowKey", "Message", "Error"]);
    for (at, one) in poisoned.iter().enumerate() {
        let message = one.message().unwrap_or_default();
        let position = (at + 1).to_string();
        grid.push([&position, &one.table, &one.partition_key, one.row_key(), message, &one.error]);
    }
    grid.lines().iter().try_for_each(|line| output.line(line))
}

pub(crate) async fn requeue(
    output: &Output,
    store: &str,
    position: Option<usize>,
) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let worker = client.worker();
    let poisoned = worker.poisoned().await?;
    let chosen = match position {
        None => poisoned.as_slice(),
        Some(position) => std::slice::from_ref(at_position(&poisoned, position)?),
    };
    for one in chosen {
        worker.requeue(one).await?;
    }
    client.close().await?;
    let count = chosen.len();
    output.say(|| format!("{count} given back to the workers"), || json!({"requeued": count}))
}

/// Returns what is known of who asked for the work.
fn authenticity(one: &Poisoned) -> &'static str {
    match one.authenticity {
        WorkAuthenticity::Unsigned => "unsigned",
        WorkAuthenticity::Authentic => "authentic",
        WorkAuthenticity::NotAuthentic => "not authentic",
        _ => "unverified",
    }
}

/// Returns the work at a position of the list, from 1.
fn at_position(poisoned: &[Poisoned], position: usize) -> Result<&Poisoned, Failure> {
    let found = position.checked_sub(1).and_then(|at| poisoned.get(at));
    found.ok_or_else(|| Failure::not_found(format!("the list has no position {position}")))
}

pub(crate) async fn show_poisoned(
    output: &Output,
    store: &str,
    position: usize,
) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let poisoned = client.worker().poisoned().await?;
    let one = at_position(&poisoned, position)?;
    let row = one.outbox_row();
    if output.is_json {
        let value = json!({
            "table": one.table,
            "PartitionKey": one.partition_key,
            "RowKey": one.row_key(),
            "message": one.message(),
            "authenticity": authenticity(one),
            "error": one.error,
            "row": look::to_json(row)?,
        });
        return output.json(&value);
    }
    let mut lines = vec![
        ("Table", one.table.clone()),
        ("PartitionKey", one.partition_key.clone()),
        ("RowKey", one.row_key().to_owned()),
        ("Message", one.message().unwrap_or_default().to_owned()),
        ("Authenticity", authenticity(one).to_owned()),
        ("Error", one.error.clone()),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    for (name, text) in lines {
        output.line(&format!("{name}: {}", escaped(&text)))?;
    }
    // Whole values, not the cells of a table: an error or a message may be long.
    for (name, edm, value) in look::cells(row)? {
        if name != "PartitionKey" && name != "RowKey" {
            output.line(&format!("{}: {} ({edm})", escaped(&name), escaped(&value)))?;
        }
    }
    Ok(())
}

pub(crate) async fn drop_poisoned(
    output: &Output,
    store: &str,
    position: usize,
    yes: bool,
) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let worker = client.worker();
    let poisoned = worker.poisoned().await?;
    let one = at_position(&poisoned, position)?;
    if !yes {
        let what = one.message().unwrap_or_else(|| one.row_key());
        let message = format!("nobody will ever do this work: `{what}`; confirm it with --yes");
        return Err(Failure::usage(message));
    }
    worker.discard(one).await?;
    client.close().await?;
    let message = one.message();
    output.say(
        || "dropped; if it was no message, run `check` with `repair` of its type".to_owned(),
        || json!({"dropped": 1, "message": message, "RowKey": one.row_key()}),
    )
}
