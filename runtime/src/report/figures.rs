//! Reads the figures of a report from a store: rows, bytes and partitions of each table, and the open work of
//! the outbox. The number of requests per table and of visited partitions is bounded.

use super::{
    model::{OutboxFigures, TableFigures, TableModel},
    numbers::with_thousands_commas,
};
use crate::{
    address::Names,
    entity::dated::{DatedTables, Period},
    error::Result,
    maintain::PartitionReport,
    table::Client,
};

/// The maximum number of requests for the rows of one table, which read 100,000 rows.
const MOST_REQUESTS: u64 = 100;

/// The maximum number of partitions whose open work is read.
const MOST_PARTITIONS: u64 = 100;

/// The number of newest dated tables that are searched for one with rows.
const NEWEST_TABLES: usize = 8;

/// The number of partitions that are shown for each table.
const SHOWN: usize = 5;

/// Measures each table of the layout in the store. Adds the figures to the tables, and returns the outbox's
/// figures.
pub(super) async fn measure_store(
    client: &Client,
    tables: &mut [TableModel],
) -> Result<OutboxFigures> {
    let names = if tables.iter().any(|table| table.dated.is_some()) {
        client.tables().await?
    } else {
        Vec::new()
    };
    let rule = client.store().names();
    for table in tables {
        table.figures = Some(match table.dated {
            None => figures_of(client, &table.name).await?,
            Some(dated) => figures_of_dated(client, dated, &names, rule).await?,
        });
    }
    let (status, is_whole) = client.read_open_work(MOST_PARTITIONS).await?;
    Ok(OutboxFigures { is_whole, status })
}

async fn figures_of(client: &Client, name: &str) -> Result<TableFigures> {
    let scan = client.partition_report(name).top(SHOWN).max_requests(MOST_REQUESTS);
    match scan.await {
        Ok(partitions) => {
            let note = (!partitions.is_whole).then(|| {
                format!(
                    "The table is larger: the figures cover its first {} rows, read with {} requests.",
                    with_thousands_commas(partitions.rows),
                    partitions.requests
                )
            });
            Ok(TableFigures { notes: note.into_iter().collect(), partitions })
        }
        Err(error) if error.is_table_missing() => Ok(TableFigures {
            notes: vec!["The table does not exist yet.".to_owned()],
            partitions: PartitionReport::default(),
        }),
        Err(error) => Err(error),
    }
}

/// Returns the figures of the newest dated table with rows, among the newest eight. A note contains the number of dated
/// tables.
async fn figures_of_dated(
    client: &Client,
    dated: &DatedTables,
    names: &[String],
    rule: Names,
) -> Result<TableFigures> {
    let mut found: Vec<(Period, &String)> =
        names.iter().filter_map(|name| Some((dated.period_of(rule.name(name))?, name))).collect();
    found.sort();
    let (Some((_, oldest)), Some((_, newest))) = (found.first(), found.last()) else {
        return Ok(TableFigures {
            notes: vec!["No table of any period exists yet.".to_owned()],
            partitions: PartitionReport::default(),
        });
    };
    // Tables are made before their period begins, and are empty until then.
    let (mut shown, mut figures) = (newest, figures_of(client, newest).await?);
    for (_, name) in found.iter().rev().take(NEWEST_TABLES).skip(1) {
        if figures.partitions.rows > 0 {
            break;
        }
        (shown, figures) = (name, figures_of(client, name).await?);
    }
    let note = match found.len() {
        1 => format!("There is one table, `{newest}`."),
        tables => format!(
            "There are {tables} tables, `{oldest}` to `{newest}`. The figures are for `{shown}`."
        ),
    };
    figures.notes.insert(0, note);
    Ok(figures)
}
