//! Commands for the file of an embedded store.

use std::{path::Path, sync::Arc};

use entable::{
    Filter,
    backend::{Backend, BackupReport, ScanRequest},
};
use serde_json::json;

use crate::{
    failure::Failure,
    output::{self, Output, Progress, rate},
    store,
};

pub(crate) async fn backup(output: &Output, name: &str, file: &Path) -> Result<(), Failure> {
    let progress = Progress::new(output);
    let store = store::open_file(name, false)?;
    let report = progress.wait("writing", store.backup(file)).await?;
    said(output, &report, progress.end())
}

pub(crate) async fn restore(output: &Output, name: &str, file: &Path) -> Result<(), Failure> {
    let progress = Progress::new(output);
    let backup = store::open_file(name, false)?;
    progress.wait("reading every page", backup.verify()).await?;
    // Each row is checked as it is read.
    let report = progress.wait("writing", backup.backup(file)).await?;
    said(output, &report, progress.end())
}

fn said(output: &Output, report: &BackupReport, seconds: f64) -> Result<(), Failure> {
    output.say(
        || format!("{} tables, {}, {} bytes of file", report.tables, rate(report.rows, seconds), report.file_bytes),
        || json!({"tables": report.tables, "rows": report.rows, "row_bytes": report.row_bytes, "file_bytes": report.file_bytes}),
    )
}

pub(crate) async fn verify(output: &Output, name: &str) -> Result<(), Failure> {
    let progress = Progress::new(output);
    let client = if !store::is_service(name) {
        let file = store::open_file(name, false)?;
        progress.wait("reading every page", file.verify()).await?;
        entable::Client::builder().backend(file).build()?
    } else {
        store::open(name, false)?
    };
    let (mut rows, mut damaged, mut tables) = (0_u64, 0_u64, 0_u64);
    for table in client.tables().await? {
        tables += 1;
        let mut from = None;
        loop {
            let filter = &Filter::Constant(true);
            let scan =
                ScanRequest { table: &table, filter, select: None, top: None, from: from.as_ref() };
            let page = client.backend().scan(scan).await?;
            for row in page.rows {
                rows += 1;
                // Decoding every value finds what a checksum cannot: a row that was written wrong.
                if let Err(error) = row.and_then(|row| row.check()) {
                    damaged += 1;
                    output.remark(&error.in_table(&table).to_string());
                }
            }
            progress.show(|| format!("{table}: {}", output::rows(rows)));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    let seconds = progress.end();
    output.say(
        || format!("{tables} tables, {}, {damaged} damaged", rate(rows, seconds)),
        || json!({"tables": tables, "rows": rows, "damaged": damaged}),
    )?;
    match damaged {
        0 => Ok(()),
        damaged => Err(Failure::bad_data(format!("{} damaged", output::rows(damaged)))),
    }
}

pub(crate) async fn verify_copy(
    output: &Output,
    name: &str,
    keep: Option<&Path>,
) -> Result<(), Failure> {
    let progress = Arc::new(Progress::new(output));
    let file = store::open_unverified_file(name)?;
    let shown = progress.clone();
    let mut verification = file.verify_copy().on_progress(move |at| {
        shown.show(|| match at.rows {
            0 => {
                let share = shown.share(at.copied_bytes, Some(at.file_bytes), "bytes");
                format!("copying: {share}")
            }
            rows => output::rows(rows),
        });
    });
    if let Some(path) = keep {
        verification = verification.keep_as(path);
    }
    let report = verification.await;
    let seconds = progress.end();
    let report = report?;
    output.say(
        || {
            let rows = rate(report.rows, seconds);
            format!("{} tables, {rows}, {} bytes of file, 0 damaged", report.tables, report.file_bytes)
        },
        || json!({"tables": report.tables, "rows": report.rows, "file_bytes": report.file_bytes, "damaged": 0}),
    )
}

pub(crate) async fn compact(output: &Output, name: &str) -> Result<(), Failure> {
    let size = || std::fs::metadata(name).map(|file| file.len()).unwrap_or_default();
    let file = store::open_file(name, false)?;
    let before = size();
    let progress = Progress::new(output);
    progress.wait("compacting", file.compact()).await?;
    let seconds = progress.end();
    file.close().await?;
    let after = size();
    output.say(
        || format!("{before} bytes before, {after} bytes after, {seconds:.1} s"),
        || json!({"bytes_before": before, "bytes_after": after}),
    )
}
