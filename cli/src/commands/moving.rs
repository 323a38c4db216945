//! Commands that move tables: export, import, copy.

use std::{
    fs,
    io::{self, BufReader, Write},
    path::Path,
    sync::{Arc, Mutex},
};

use entable::{
    Client, Error,
    data::{
        CopyBlobsReport, CopyProgress, CopyReport, ExportReport, Format, ImportReport, NewFile,
        RowsDigest, TableCopy, is_framework_table,
    },
};
use serde_json::{Value, json};

use crate::{
    args::{Copy, Export, Import, RowFormat},
    blobs,
    failure::Failure,
    output::{Output, Progress, Shown, escaped, rate, rows},
    store,
};

/// The file of a directory that says what the directory holds.
const MANIFEST: &str = "manifest.json";

impl From<RowFormat> for Format {
    fn from(format: RowFormat) -> Self {
        match format {
            RowFormat::Jsonl => Self::JsonLines,
            RowFormat::Csv => Self::Csv,
        }
    }
}

const fn extension(format: RowFormat) -> &'static str {
    match format {
        RowFormat::Jsonl => "jsonl",
        RowFormat::Csv => "csv",
    }
}

fn digest(digest: &RowsDigest) -> Value {
    json!({"rows": digest.rows(), "bytes": digest.bytes(), "hash": digest.hash()})
}

pub(crate) async fn export(output: &Output, export: Export) -> Result<(), Failure> {
    if export.table.is_none() && !export.rows.is_all() {
        return Err(Failure::usage("a selection of rows needs one table; name it with --table"));
    }
    let client = store::open(&export.store, false)?;
    let Some(table) = &export.table else { return export_all(output, &client, &export).await };
    let progress = Arc::new(Progress::new(output));
    let job = exporting(&client, table, &export, &progress)?;
    if export.to == Path::new("-") {
        let report = job.write_to(&mut Shown::stdout()).await?;
        let seconds = progress.end();
        // Standard output has the rows.
        output.note(|| export_line(&report, seconds), || export_json(&report, "-"));
        return Ok(());
    }
    let report = job.to_file(&export.to).await?;
    let seconds = progress.end();
    output.say(
        || export_line(&report, seconds),
        || export_json(&report, &export.to.to_string_lossy()),
    )
}

fn exporting(
    client: &Client,
    table: &str,
    export: &Export,
    progress: &Arc<Progress>,
) -> Result<entable::data::Export, Failure> {
    let (shown, name) = (progress.clone(), table.to_owned());
    let job = client
        .export(table)
        .filter(export.rows.condition()?)
        .format(RowFormat::of_file(export.format, &export.to).into())
        .on_progress(move |now| shown.show(|| format!("{name}: {}", rows(now.rows))));
    // Without `resume` the job starts from the beginning.
    Ok(if export.resume && job.can_resume() { job.resume() } else { job })
}

fn export_line(report: &ExportReport, seconds: f64) -> String {
    let mut line = format!(
        "{}: {}, {}",
        escaped(&report.table),
        rate(report.digest.rows(), seconds),
        report.digest
    );
    if report.outbox_rows > 0 {
        line.push_str(&format!(", without {} of the outbox", rows(report.outbox_rows)));
    }
    line
}

fn export_json(report: &ExportReport, file: &str) -> Value {
    json!({
        "table": report.table,
        "file": file,
        "digest": digest(&report.digest),
        "file_bytes": report.file_bytes,
        "resumed": report.resumed,
        "outbox_rows": report.outbox_rows,
    })
}

/// Exports every table to a file of a directory, and then says in another file what the directory holds.
async fn export_all(output: &Output, client: &Client, export: &Export) -> Result<(), Failure> {
    let directory = &export.to;
    let manifest = directory.join(MANIFEST);
    if manifest.exists() {
        let message = format!("`{}` already contains a complete export", directory.display());
        return Err(Failure::new(crate::failure::CONFLICT, "Conflict", message));
    }
    fs::create_dir_all(directory).map_err(|error| Failure::io("creating the directory", &error))?;
    let format = RowFormat::of_file(export.format, directory);
    let mut tables = Vec::new();
    for table in client.tables().await? {
        if is_framework_table(&table) {
            continue;
        }
        let file = format!("{table}.{}", extension(format));
        let path = directory.join(&file);
        // A table that is finished is exported again, because only its summary says what it holds.
        if export.resume && path.exists() {
            fs::remove_file(&path)
                .map_err(|error| Failure::io("deleting an earlier file", &error))?;
        }
        let progress = Arc::new(Progress::new(output));
        let report = exporting(client, &table, export, &progress)?.to_file(&path).await?;
        let seconds = progress.end();
        if !output.is_json {
            output.line(&export_line(&report, seconds))?;
        }
        tables.push(export_json(&report, &file));
    }
    let content = json!({"format": extension(format), "tables": tables});
    // The manifest comes last: a directory without one is not complete.
    write_new_file(&manifest, &format!("{content:#}\n"))?;
    if output.is_json { output.json(&content) } else { Ok(()) }
}

/// Writes a text to a new file, which gets its name when it is complete and on disk.
fn write_new_file(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = NewFile::create(path)?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|error| Failure::io(&format!("writing `{}`", path.display()), &error))?;
    Ok(file.finish()?)
}

pub(crate) async fn import(output: &Output, import: Import) -> Result<(), Failure> {
    let Some(table) = import.table.clone() else { return import_all(output, &import).await };
    let client = store::open(&import.store, true)?;
    let mut aside = import.skip_bad.as_ref().map(NewFile::create).transpose()?;
    let progress = Arc::new(Progress::new(output));
    let imported = import_table(output, &client, &table, &import, aside.as_mut(), &progress).await;
    // Lines that were set aside are kept if the import fails, too.
    let finished = aside.map_or(Ok(()), NewFile::finish);
    let report = imported?;
    finished?;
    let seconds = progress.end();
    client.close().await?;
    output.say(|| import_line(&report, seconds), || import_json(&report))?;
    match report.bad {
        0 => Ok(()),
        1 => Err(Failure::bad_data("1 line was set aside")),
        bad => Err(Failure::bad_data(format!("{bad} lines were set aside"))),
    }
}

async fn import_table(
    output: &Output,
    client: &Client,
    table: &str,
    import: &Import,
    aside: Option<&mut NewFile>,
    progress: &Arc<Progress>,
) -> Result<ImportReport, Failure> {
    let shown = progress.clone();
    let is_json = output.is_json;
    let is_piped = import.from == Path::new("-");
    let size = fs::metadata(&import.from).ok().filter(|file| file.is_file() && !is_piped);
    let size = size.map(|file| file.len());
    let mut job = client
        .import(table)
        .format(RowFormat::of_file(import.format, &import.from).into())
        .mode(import.mode.into())
        .from_line(import.from_line)
        .on_progress(move |now| {
            shown.show(|| {
                let (rows, size) = (rows(now.rows), size.map(|size| size >> 20));
                format!("line {}, {rows}: {}", now.line, shown.share(now.bytes >> 20, size, "MiB"))
            });
        })
        .on_bad(move |error: &Error| Output::new(is_json).remark(&error.to_string()));
    if let Some(aside) = aside {
        job = job.skip_bad(aside as &mut (dyn Write + Send));
    }
    Ok(if is_piped {
        job.read_from(BufReader::new(io::stdin())).await?
    } else {
        job.from_file(&import.from).await?
    })
}

fn import_line(report: &ImportReport, seconds: f64) -> String {
    let table = escaped(&report.table);
    format!("{table}: {}, {}", rate(report.digest.rows(), seconds), report.digest)
}

fn import_json(report: &ImportReport) -> Value {
    json!({"table": report.table, "digest": digest(&report.digest), "bad": report.bad, "lines": report.lines})
}

/// Imports the tables of a directory, and compares each with what the manifest says.
async fn import_all(output: &Output, import: &Import) -> Result<(), Failure> {
    let path = import.from.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(|error| {
        let doing = format!("reading `{}` (name a --table to import one file)", path.display());
        Failure::io(&doing, &error)
    })?;
    let broken =
        || Failure::bad_data(format!("`{}` is not the manifest of an export", path.display()));
    let manifest: Value = serde_json::from_str(&text).map_err(|_| broken())?;
    let format = match manifest.get("format").and_then(Value::as_str) {
        Some("jsonl") => RowFormat::Jsonl,
        Some("csv") => RowFormat::Csv,
        _ => return Err(broken()),
    };
    let client = store::open(&import.store, true)?;
    let mut imported = Vec::new();
    for one in manifest.get("tables").and_then(Value::as_array).ok_or_else(broken)? {
        let text = |name: &str| one.get(name).and_then(Value::as_str);
        let (Some(table), Some(file)) = (text("table"), text("file")) else { return Err(broken()) };
        // The name is one of this directory, whatever the manifest says.
        let file = Path::new(file).file_name().ok_or_else(broken)?;
        let from = import.from.join(file);
        let single = Import {
            store: import.store.clone(),
            from,
            table: Some(table.to_owned()),
            format: Some(format),
            mode: import.mode,
            from_line: 1,
            skip_bad: None,
        };
        let progress = Arc::new(Progress::new(output));
        let report = import_table(output, &client, table, &single, None, &progress).await?;
        let seconds = progress.end();
        if Some(&digest(&report.digest)) != one.get("digest") {
            let message =
                format!("table `{table}`: the file does not match the manifest; export it again");
            return Err(Failure::bad_data(message));
        }
        if !output.is_json {
            output.line(&import_line(&report, seconds))?;
        }
        imported.push(import_json(&report));
    }
    client.close().await?;
    if output.is_json { output.json(&json!({"tables": imported})) } else { Ok(()) }
}

pub(crate) async fn copy(output: &Output, copy: Copy) -> Result<(), Failure> {
    if copy.delete_extra && !copy.yes && !copy.dry_run {
        return Err(Failure::usage("this deletes rows of the target: repeat it with --yes"));
    }
    // The comparison of a store with itself proves nothing.
    if copy.from == copy.to {
        return Err(Failure::usage(format!("`{}` is both the source and the target", copy.from)));
    }
    let filter = copy.rows.condition()?;
    let is_compared = copy.compare || copy.dry_run;
    let (from, to) = open_both(&copy, !is_compared)?;
    let progress = Arc::new(Progress::new(output));
    // Rows point to blobs, so copy blobs first: readers of the target then find every blob.
    let copied = match &copy.blobs {
        Some(_) => Some(copy_blobs(&from, &to, is_compared, &progress).await?),
        None => None,
    };
    let mut job = from
        .copy_to(&to)
        .tables(copy.tables.clone())
        .filter(filter)
        .concurrency(copy.concurrency)
        .on_progress(show_copy(&progress));
    if is_compared {
        job = job.compare_only();
    }
    if copy.delete_extra && !copy.dry_run {
        job = job.delete_extra();
    }
    if copy.leave_open_work {
        job = job.leave_open_work();
    }
    let report = job.await?;
    let seconds = progress.end();
    to.close().await?;
    let is_equal = report.is_equal() && copied.is_none_or(|copied| copied.is_equal());
    if output.is_json {
        let tables: Vec<Value> = report.tables.iter().map(copy_json).collect();
        let blobs = copied.as_ref().map(blobs_json);
        let dry_run = copy.dry_run;
        output.json(
            &json!({"equal": is_equal, "dry_run": dry_run, "tables": tables, "blobs": blobs}),
        )?;
    } else {
        if let Some(copied) = &copied {
            output.line(&blobs_line(copied))?;
        }
        if copy.dry_run {
            return report.tables.iter().try_for_each(|table| say_plan(output, &copy, table));
        }
        report.tables.iter().try_for_each(|table| say_copy(output, &copy, table))?;
        let written = report.tables.iter().map(|table| table.written.rows()).sum();
        output.line(&format!("written: {}", rate(written, seconds)))?;
    }
    if is_equal || copy.dry_run {
        Ok(())
    } else {
        Err(Failure::bad_data(explained(&copy, &report)))
    }
}

/// Shows how far a copy is. The comparison reads as many rows as the copy has read before.
fn show_copy(progress: &Arc<Progress>) -> impl Fn(&CopyProgress) + Send + Sync + 'static {
    let (shown, read) = (progress.clone(), Mutex::new((String::new(), 0)));
    move |now| {
        let Ok(mut read) = read.lock() else { return };
        if !now.is_verifying {
            *read = (now.table.clone(), now.rows);
        }
        let total = (now.is_verifying && read.0 == now.table).then_some(read.1);
        shown.show(|| match total {
            Some(total) => {
                format!("{}: {} compared", now.table, shown.share(now.rows, Some(total), "rows"))
            }
            None if now.is_verifying => format!("{}: {} compared", now.table, rows(now.rows)),
            None => format!("{}: {} read, {} written", now.table, rows(now.rows), now.written),
        });
    }
}

/// Returns what differs between the stores, and what to do about it.
fn explained(copy: &Copy, report: &CopyReport) -> String {
    let Copy { from, to, .. } = copy;
    let sum = |count: fn(&TableCopy) -> u64| report.tables.iter().map(count).sum::<u64>();
    let lacks = sum(|table| table.missing);
    let differs = sum(|table| table.changed);
    let extra = sum(|table| table.extra);
    let mut parts = Vec::new();
    if lacks + differs > 0 {
        let again = if copy.compare {
            "a copy without --compare writes them"
        } else {
            "stop the writers and run the copy again"
        };
        parts.push(format!("`{to}` lacks {}, and {} differ: {again}", rows(lacks), rows(differs)));
    }
    if extra > 0 {
        parts.push(format!(
            "`{to}` has {} that `{from}` lacks: a copy with --delete-extra --yes deletes them",
            rows(extra)
        ));
    }
    if parts.is_empty() {
        "the stores differ; stop all writers and run the copy again".to_owned()
    } else {
        format!("the stores differ: {}", parts.join("; "))
    }
}

/// Opens the stores of a copy, with their blobs if the arguments name them.
fn open_both(copy: &Copy, creates: bool) -> Result<(Client, Client), Failure> {
    let Some([from, to]) = copy.blobs.as_deref() else {
        return Ok((store::open(&copy.from, false)?, store::open(&copy.to, creates)?));
    };
    // The source is opened first: a missing one is refused before anything is created.
    let from = store::open_with_blobs(&copy.from, false, blobs::open(from, false)?)?;
    Ok((from, store::open_with_blobs(&copy.to, creates, blobs::open(to, creates)?)?))
}

async fn copy_blobs(
    from: &Client,
    to: &Client,
    is_compared: bool,
    progress: &Arc<Progress>,
) -> Result<CopyBlobsReport, Failure> {
    let shown = progress.clone();
    let job = from.copy_blobs_to(to).on_progress(move |now| {
        shown.show(|| {
            let seen = now.copied + now.equal + now.different + now.gone;
            format!("{seen} blobs compared, {} copied", now.copied)
        });
    });
    Ok(if is_compared { job.compare_only().await? } else { job.await? })
}

fn blobs_line(report: &CopyBlobsReport) -> String {
    let CopyBlobsReport { copied, bytes, equal, different, gone, .. } = report;
    format!(
        "blobs: {copied} copied ({bytes} bytes), {equal} already there, {different} different, {gone} deleted in the \
         meantime"
    )
}

fn blobs_json(report: &CopyBlobsReport) -> Value {
    json!({
        "copied": report.copied,
        "bytes": report.bytes,
        "there": report.equal,
        "different": report.different,
        "gone": report.gone,
    })
}

/// Says what a copy of the table would do.
fn say_plan(output: &Output, copy: &Copy, table: &TableCopy) -> Result<(), Failure> {
    let extra = if copy.delete_extra {
        format!("{} would be deleted", rows(table.extra))
    } else {
        format!("{} of the target would stay", rows(table.extra))
    };
    output.line(&format!(
        "{}: {} would be written ({} new, {} changed), {extra}",
        escaped(&table.table),
        rows(table.missing + table.changed),
        table.missing,
        table.changed,
    ))
}

fn say_copy(output: &Output, copy: &Copy, table: &TableCopy) -> Result<(), Failure> {
    let equal = if table.is_equal() { "equal" } else { "DIFFERENT" };
    output.line(&format!(
        "{}: {}, {} written, {} deleted, {} refused, {equal}",
        escaped(&table.table),
        rows(table.source.map_or(0, |source| source.rows())),
        table.written.rows(),
        table.deleted,
        table.refused
    ))?;
    for error in &table.errors {
        output.remark(&error.to_string());
    }
    for one in &table.differences {
        output.line(&format!(
            "  partition {}: {} in `{}`, {} in `{}`",
            escaped(&one.partition_key),
            rows(one.source.rows()),
            copy.from,
            rows(one.target.rows()),
            copy.to
        ))?;
    }
    Ok(())
}

fn copy_json(table: &TableCopy) -> Value {
    let differences = table.differences.iter().map(|one| {
        json!({"PartitionKey": one.partition_key, "source": digest(&one.source), "target": digest(&one.target)})
    });
    json!({
        "table": table.table,
        "equal": table.is_equal(),
        "written": digest(&table.written),
        "deleted": table.deleted,
        "missing": table.missing,
        "extra": table.extra,
        "changed": table.changed,
        "refused": table.refused,
        "errors": table.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "outbox_rows": table.outbox_rows,
        "source": table.source.as_ref().map(digest),
        "target": table.target.as_ref().map(digest),
        "different_partitions": table.different_partitions,
        "differences": differences.collect::<Vec<_>>(),
    })
}
