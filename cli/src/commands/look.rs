//! Commands that read.

use std::{io::Write, path::Path};

use entable::{
    Client, CostClass, Filter, Row, ValueRef,
    backend::{ReadRequest, ScanRequest},
    data::{to_csv, to_json_line},
    layout::Layout,
};
use serde_json::{Map, Value, json};

use crate::{
    args::Query,
    failure::Failure,
    no_match::remark_on_no_match,
    output::{self, Grid, Output, Progress, Shown, escaped},
    selection::Selection,
    store,
};

pub(crate) async fn tables(output: &Output, store: &str) -> Result<(), Failure> {
    let names = store::open(store, false)?.tables().await?;
    if output.is_json {
        return output.json(&json!(names));
    }
    names.iter().try_for_each(|name| output.line(&escaped(name)))
}

pub(crate) async fn get(
    output: &Output,
    store: &str,
    table: &str,
    partition_key: &str,
    row_key: &str,
) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let read = ReadRequest { table, partition_key, row_key, select: None };
    let Some(row) = client.backend().read(read).await? else {
        let message = format!("table `{table}` has no row with these keys");
        return Err(Failure::not_found(message));
    };
    if output.is_json {
        return output.json(&to_json(&row)?);
    }
    let mut grid = Grid::new(["Property", "Type", "Value"]);
    for (name, edm, value) in cells(&row)? {
        grid.push([name, edm, value]);
    }
    grid.lines().iter().try_for_each(|line| output.line(line))
}

/// Returns the row as JSON with its ETag and Timestamp, as the service sends it.
pub(super) fn to_json(row: &Row) -> Result<Value, Failure> {
    let line = to_json_line(row)?;
    let mut object: Map<String, Value> = serde_json::from_str(&line)
        .map_err(|error| Failure::bad_data(format!("the row has no JSON form: {error}")))?;
    if let Some(etag) = row.etag() {
        object.insert("odata.etag".to_owned(), json!(etag.to_string()));
    }
    if let Some(timestamp) = row.timestamp() {
        object.insert("Timestamp".to_owned(), json!(timestamp.to_string()));
    }
    Ok(Value::Object(object))
}

/// Returns name, type and text of each part of the row: keys, properties, Timestamp, ETag.
pub(super) fn cells(row: &Row) -> Result<Vec<(String, String, String)>, Failure> {
    let text =
        |name: &str, value: &str| (name.to_owned(), "Edm.String".to_owned(), value.to_owned());
    let mut cells = vec![text("PartitionKey", row.partition_key()), text("RowKey", row.row_key())];
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name).into_owned();
        cells.push((name, value.edm_type().name().to_owned(), shown(value)));
    }
    if let Some(timestamp) = row.timestamp() {
        cells.push(("Timestamp".to_owned(), "Edm.DateTime".to_owned(), timestamp.to_string()));
    }
    if let Some(etag) = row.etag() {
        cells.push(text("ETag", &etag.to_string()));
    }
    Ok(cells)
}

/// Returns the text of a value for people.
fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Boolean(value) => value.to_string(),
        ValueRef::Int32(value) => value.to_string(),
        ValueRef::Int64(value) => value.to_string(),
        ValueRef::Double(value) => format!("{value:?}"),
        ValueRef::String(value) => value.to_owned(),
        ValueRef::DateTime(value) => value.to_string(),
        ValueRef::Guid(value) => value.to_string(),
        ValueRef::Binary(value) => {
            let bytes: Vec<String> =
                value.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
            let more = if value.len() > 24 { ".." } else { "" };
            format!("{}{more} ({} bytes)", bytes.concat(), value.len())
        }
    }
}

pub(crate) async fn query(output: &Output, query: Query) -> Result<(), Failure> {
    let filter = query.rows.condition()?;
    if query.explain {
        return explain(output, &query, &filter);
    }
    let client = store::open(&query.store, false)?;
    let select = (!query.select.is_empty()).then_some(query.select.as_slice());
    let mut left = query.top;
    let mut from = None;
    let mut printed = 0;
    let mut of_csv = Vec::new();
    while left > 0 {
        let top = Some(u32::try_from(left.min(1000)).unwrap_or(1000));
        let scan =
            ScanRequest { table: &query.table, filter: &filter, select, top, from: from.as_ref() };
        let page = client.backend().scan(scan).await?;
        let next = page.next.clone();
        let rows = page.into_rows()?;
        left = left.saturating_sub(u64::try_from(rows.len()).unwrap_or(left));
        printed += rows.len();
        if output.is_json {
            rows.iter().try_for_each(|row| output.json(&to_json(row)?))?;
        } else if query.csv {
            // The header names the properties of all rows.
            of_csv.extend(rows);
        } else if !rows.is_empty() {
            print_rows(output, &rows, select)?;
        }
        from = next;
        if from.is_none() || output.is_unread() {
            break;
        }
    }
    if query.csv {
        output.written(Shown::stdout().write_all(to_csv(&of_csv)?.as_bytes()))?;
    }
    if from.is_some() && !output.is_json {
        let shown = output::rows(u64::try_from(printed).unwrap_or(u64::MAX));
        output.remark(&format!("{shown}; there may be more, see --top"));
    }
    if printed == 0
        && query.top > 0
        && !output.is_json
        && let Some(remark) = remark_on_filter(&client, &query, &filter).await
    {
        output.remark(&remark);
    }
    Ok(())
}

/// Looks at the first rows of the table, or of the chosen partition, and says why the filter may match none of them.
/// Returns `None` if these rows do not tell, or cannot be read: the query itself has succeeded.
async fn remark_on_filter(client: &Client, query: &Query, filter: &Filter) -> Option<String> {
    query.rows.filter.as_ref()?;
    let any = Selection { filter: None, ..query.rows.clone() }.condition().ok()?;
    let scan =
        ScanRequest { table: &query.table, filter: &any, select: None, top: Some(100), from: None };
    let page = client.backend().scan(scan).await.ok()?;
    let rows: Vec<Row> = page.rows.into_iter().flatten().collect();
    remark_on_no_match(filter, &rows)
}

/// Prints rows as a table with a column for each property, in order of appearance.
fn print_rows(output: &Output, rows: &[Row], select: Option<&[String]>) -> Result<(), Failure> {
    let mut names: Vec<String> = vec!["PartitionKey".to_owned(), "RowKey".to_owned()];
    let is_key = |name: &String| matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp");
    match select {
        Some(select) => names.extend(select.iter().filter(|name| !is_key(name)).cloned()),
        None => {
            for row in rows {
                let mut properties = row.properties();
                while let Some((name, _)) = properties.next()? {
                    let name = String::from_utf8_lossy(name).into_owned();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
    }
    let mut grid = Grid::new(&names);
    for row in rows {
        let mut cells = vec![row.partition_key().to_owned(), row.row_key().to_owned()];
        for name in names.iter().skip(2) {
            cells.push(row.get(name)?.map(shown).unwrap_or_default());
        }
        grid.push(cells);
    }
    grid.lines().iter().try_for_each(|line| output.line(line))
}

/// Prints what a query reads, without a request.
fn explain(output: &Output, query: &Query, filter: &Filter) -> Result<(), Failure> {
    let class = CostClass::of_filter(filter);
    let reads = match class {
        CostClass::Point => "one row",
        CostClass::Range => "the rows between two RowKeys of one partition",
        CostClass::PartitionScan => "every row of one partition",
        CostClass::TableScan => "every row of the table",
    };
    output.say(
        || format!("{class} of {}: the store reads {reads}\n  $filter={filter}", query.table),
        || json!({"class": class.to_string(), "table": query.table, "filter": filter.to_string(), "reads": reads}),
    )
}

pub(crate) async fn count(
    output: &Output,
    store: &str,
    table: &str,
    selection: &Selection,
) -> Result<(), Failure> {
    let filter = selection.condition()?;
    let client = store::open(store, false)?;
    let progress = Progress::new(output);
    let mut rows = 0_u64;
    scan_keys(&client, table, &filter, async |page| {
        rows += u64::try_from(page.len()).unwrap_or(u64::MAX);
        progress.show(|| output::rows(rows));
        Ok(())
    })
    .await?;
    progress.end();
    output.say(|| rows.to_string(), || json!({"table": table, "rows": rows}))
}

/// Calls `take` with each page of the rows that match. The rows hold their keys alone, which come with every row.
pub(super) async fn scan_keys(
    client: &Client,
    table: &str,
    filter: &Filter,
    mut take: impl AsyncFnMut(Vec<Row>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut from = None;
    loop {
        let scan = ScanRequest { table, filter, select: Some(&[]), top: None, from: from.as_ref() };
        let page = client.backend().scan(scan).await?;
        let next = page.next.clone();
        take(page.into_rows()?).await?;
        from = next;
        if from.is_none() {
            return Ok(());
        }
    }
}

pub(crate) async fn partitions(
    output: &Output,
    store: &str,
    table: &str,
    top: usize,
) -> Result<(), Failure> {
    let client = store::open(store, false)?;
    let progress = Progress::new(output);
    let report = client.partition_report(table).top(top);
    let report = progress.wait("reading", report.into_future()).await?;
    progress.end();
    if output.is_json {
        let listed = report.top.iter().map(|one| {
            json!({"PartitionKey": one.partition_key, "rows": one.rows, "bytes": one.bytes, "share": one.share})
        });
        let listed: Vec<Value> = listed.collect();
        let value = json!({"rows": report.rows, "bytes": report.bytes, "partitions": report.partitions, "top": listed});
        return output.json(&value);
    }
    let partitions = report.partitions;
    let of = if partitions == 1 { "partition" } else { "partitions" };
    let rows = output::rows(report.rows);
    output.line(&format!("{rows}, {} bytes in {partitions} {of}", report.bytes))?;
    let mut grid = Grid::new(["PartitionKey", "Rows", "Bytes", "Share"]);
    for one in &report.top {
        let share = format!("{:.1}%", one.share * 100.0);
        grid.push([&one.partition_key, &one.rows.to_string(), &one.bytes.to_string(), &share]);
    }
    grid.lines().iter().try_for_each(|line| output.line(line))
}

pub(crate) async fn lag(output: &Output, store: &str) -> Result<(), Failure> {
    let client: Client = store::open(store, false)?;
    let progress = Progress::new(output);
    let status = progress.wait("reading", client.outbox_status()).await?;
    progress.end();
    let oldest = status.oldest.map(|age| age.as_secs_f64());
    if output.is_json {
        let value = json!({
            "partitions": status.partitions,
            "dirty_rows": status.dirty_rows,
            "claims": status.claims,
            "messages": status.messages,
            "poisoned": status.poisoned,
            "unknown": status.unknown,
            "oldest_seconds": oldest,
        });
        return output.json(&value);
    }
    let mut grid = Grid::new(["Open work", "Count"]);
    for (name, count) in [
        ("dirty rows", status.dirty_rows),
        ("claims", status.claims),
        ("messages", status.messages),
        ("poisoned", status.poisoned),
        ("unknown", status.unknown),
    ] {
        grid.push([name, &count.to_string()]);
    }
    grid.lines().iter().try_for_each(|line| output.line(line))?;
    output.line(&match oldest {
        Some(seconds) => format!("the oldest is {seconds:.0} s old"),
        None => "nothing is open".to_owned(),
    })
}

/// Describes a layout. If a store is given, compares their tables.
pub(crate) async fn report(
    output: &Output,
    layout: &Path,
    store: Option<&str>,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(layout)
        .map_err(|error| Failure::io(&format!("reading `{}`", layout.display()), &error))?;
    let parsed: Layout = text.parse().map_err(|error: entable::Error| {
        Failure::bad_data(format!("`{}`: {}", layout.display(), error.message()))
    })?;
    let named = parsed.tables();
    let (mut missing, mut unknown) = (Vec::new(), Vec::new());
    if let Some(store) = store {
        let client = store::open(store, false)?;
        let found = client.tables().await?;
        let is_own = |name: &String| name.starts_with("Entable");
        let case = client.capabilities().table_case;
        let compared = |name: &str| case.canonical_table_name(name);
        // The name of dated tables ends with a template, such as `Logins{at:%Y%m%d}`.
        let fits = |named: &String, found: &String| match named.split_once('{') {
            Some((start, _)) => compared(found).starts_with(&compared(start)),
            None => compared(found) == compared(named),
        };
        missing = named.clone();
        missing.retain(|named| !found.iter().any(|found| fits(named, found)));
        unknown.clone_from(&found);
        unknown.retain(|found| !is_own(found) && !named.iter().any(|named| fits(named, found)));
    }
    if output.is_json {
        let value = json!({
            "tables": named, "missing": missing, "unknown": unknown, "markdown": parsed.markdown(),
        });
        return output.json(&value);
    }
    output.line(parsed.markdown().trim_end())?;
    if store.is_some() {
        let list = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => escaped(&names.join(", ")),
        };
        output.line(&format!("\nTables that the store lacks: {}", list(&missing)))?;
        output.line(&format!("Tables that the layout lacks: {}", list(&unknown)))?;
    }
    Ok(())
}
