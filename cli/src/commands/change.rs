//! Commands that create tables, write rows, and settle work that was put aside.

use std::{
    io::{self, BufReader},
    path::PathBuf,
    sync::Arc,
};

use entable::{Poisoned, WorkAuthenticity, data::ImportMode};
use serde_json::{Value, json};

use super::look;
use crate::{
    args::Mode,
    failure::Failure,
    output::{self, Grid, Output, Progress, escaped},
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
        return Err(Failure::not_found(format!("table `{table}` does not exist")));
    }
    let progress = Arc::new(Progress::new(output));
    let shown = progress.clone();
    let import = client.import(table).mode(mode.into()).on_progress(move |now| {
        shown.show(|| format!("line {}: {}", now.line, output::rows(now.rows)))
    });
    let report = match file {
        Some(path) => import.from_file(path).await?,
        None => import.read_from(BufReader::new(io::stdin())).await?,
    };
    progress.end();
    let rows = report.digest.rows();
    client.close().await?;
    output
        .say(|| format!("{} written", output::rows(rows)), || json!({"table": table, "rows": rows}))
}

pub(crate) async fn create(
    output: &Output,
    store: &str,
    table: &str,
    if_not_exists: bool,
) -> Result<(), Failure> {
    let client = store::open(store, true)?;
    let is_new = if if_not_exists {
        client.create_table_if_not_exists(table).await?
    } else {
        client.create_table(table).await?;
        true
    };
    client.close().await?;
    let said = if is_new { "is created" } else { "already exists" };
    output.say(
        || format!("table {} {said}", escaped(table)),
        || json!({"table": table, "created": is_new}),
    )
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
        let message = format!(
            "this drops the work `{what}`, and nothing will ever do it; confirm with --yes"
        );
        return Err(Failure::usage(message));
    }
    worker.discard(one).await?;
    client.close().await?;
    let message = one.message();
    output.say(
        || "dropped; unless it was a message, run `check` and `repair` for its type".to_owned(),
        || json!({"dropped": 1, "message": message, "RowKey": one.row_key()}),
    )
}
