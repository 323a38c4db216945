//! Imports the rows of a table from JSON lines or CSV.

use std::{
    fmt,
    fs::File,
    io::{BufRead, BufReader, Write},
    path::Path,
};

use super::{
    digest::RowsDigest,
    file_error::file_error,
    framework::refuse_framework_table,
    lines::Format,
    row_reader::{RowReader, error_at_line},
    row_writer::{CONCURRENCY, RowWrite, RowWriter},
};
use crate::{
    batch::Operation,
    error::{Error, ErrorKind, Result},
    row::Row,
    table::{Client, job::Listener},
};

/// How an import writes a row whose keys the table already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ImportMode {
    /// Replaces the row. You can repeat an interrupted import as a whole.
    #[default]
    InsertOrReplace,
    /// Sets the properties in the line and keeps the row's other properties.
    InsertOrMerge,
    /// Refuses the line with `is_conflict`.
    Insert,
}

/// An import of text into a table. [`Client::import`] creates it.
///
/// Each line becomes one row. Rows are grouped into transactions by partition. This is fastest if the lines
/// are in key order, like the lines of an export. Rows with equal keys are written in line order. Indexes and
/// lists are rows too, and come with the table that holds them. Import every table of a type, then run its
/// `check`.
#[must_use = "does nothing until you call `from_file` or `read_from`"]
pub struct Import<'w> {
    client: Client,
    table: String,
    format: Format,
    mode: ImportMode,
    first_line: u64,
    concurrency: usize,
    skip_bad: Option<&'w mut (dyn Write + Send)>,
    on_bad: Listener<Error>,
    on_progress: Listener<ImportProgress>,
}

impl fmt::Debug for Import<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import")
            .field("table", &self.table)
            .field("format", &self.format)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The counts of an import so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImportProgress {
    /// The last line that was read.
    pub line: u64,
    /// The bytes of the input read so far.
    pub bytes: u64,
    /// The rows written so far.
    pub rows: u64,
    /// The lines set aside so far.
    pub bad: u64,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// The table.
    pub table: String,
    /// The rows that were written. A row counts once for each line that holds it.
    pub digest: RowsDigest,
    /// The lines that were set aside.
    pub bad: u64,
    /// The lines of the input.
    pub lines: u64,
    /// The requests that were sent.
    pub requests: u64,
}

/// The number of lines between two progress reports.
const LINES_PER_REPORT: u64 = 10_000;

impl Client {
    /// Returns an import into a table. The import creates the table if it does not exist.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// let text = r#"{"PartitionKey":"Sales","RowKey":"1","Age":34}"#;
    /// client.import("Staff").read_from(text.as_bytes()).await?;
    /// let row = client.dynamic("Staff").get("Sales", "1").await?;
    /// assert_eq!(row.and_then(|row| row.get("Age").cloned()), Some(Value::Int32(34)));
    ///
    /// let error = client.import("Staff").read_from(&b"\nhello"[..]).await.unwrap_err();
    /// assert_eq!(error.message(), "line 2: column 1: expected a JSON object");
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn import<'w>(&self, table: impl Into<String>) -> Import<'w> {
        Import {
            client: self.clone(),
            table: table.into(),
            format: Format::default(),
            mode: ImportMode::default(),
            first_line: 1,
            concurrency: CONCURRENCY,
            skip_bad: None,
            on_bad: Listener::silent(),
            on_progress: Listener::silent(),
        }
    }
}

impl<'w> Import<'w> {
    /// Sets the format; the default is [`Format::JsonLines`].
    pub fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Sets what happens to rows whose keys are taken. By default they are replaced.
    pub fn mode(self, mode: ImportMode) -> Self {
        Self { mode, ..self }
    }

    /// Starts at this line and skips all lines before it. The first line has number 1. The error of a failed
    /// import names the line to continue with.
    pub fn from_line(self, line: u64) -> Self {
        Self { first_line: line, ..self }
    }

    /// Sets how many transactions are sent at once. The default is 16; fewer while the store throttles.
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { concurrency: transactions, ..self }
    }

    /// Writes invalid lines, and lines whose rows the store refuses, to `aside` and continues. By default the
    /// first such line ends the import. For CSV, the input's header is written before the first of these lines.
    /// The lines may be secret: [`NewFile`](super::NewFile) is a file that only this user can read.
    pub fn skip_bad(self, aside: &'w mut (dyn Write + Send)) -> Self {
        Self { skip_bad: Some(aside), ..self }
    }

    /// Calls `report` with the reason for each line that [`skip_bad`](Self::skip_bad) sets aside.
    pub fn on_bad(self, report: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self { on_bad: Listener::new(report), ..self }
    }

    /// Calls `report` every 10,000 lines and at the end.
    pub fn on_progress(self, report: impl Fn(ImportProgress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(move |progress| report(*progress)), ..self }
    }

    /// Reads the rows from a file.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read_from`](Self::read_from), with the path at the start of the message, and
    /// errors from reading the file.
    pub async fn from_file(self, path: impl AsRef<Path>) -> Result<ImportReport> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| file_error(path, "reading", error))?;
        self.read_from(BufReader::with_capacity(1 << 18, file))
            .await
            .map_err(|error| error.with_message_prefix(&format!("`{}`, ", path.display())))
    }

    /// Reads the rows from any reader, such as standard input. Memory holds at most 16 MiB of one line, and the
    /// groups of rows that are being sent.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid`, `is_decode`, `is_too_large` or `is_conflict` at the first line that holds no
    /// row or whose row the store refuses; the message begins with the number of the line.
    /// [`skip_bad`](Self::skip_bad) sets such lines aside instead. After a failure of the store, the message
    /// names the first line that was not written; all lines before it were written.
    pub async fn read_from(mut self, input: impl BufRead + Send) -> Result<ImportReport> {
        refuse_framework_table(&self.table)?;
        self.client.create_table_if_not_exists(&self.table).await?;
        let mut reader = RowReader::new(input, self.format);
        let header = reader.read_csv_header().map_err(|error| error.in_table(&self.table))?;
        let mut bad_lines = BadLines {
            out: self.skip_bad.take(),
            header,
            count: 0,
            on_bad: self.on_bad.clone(),
            table: self.table.clone(),
        };
        let mut writer = RowWriter::new(self.client.store(), &self.table, self.concurrency);
        let mut report = ImportReport { table: self.table.clone(), ..ImportReport::default() };
        while let Some(read) = reader.next_row()? {
            report.lines = read.line;
            if read.line < self.first_line {
                continue;
            }
            match read.row {
                Ok(row) => {
                    // Kept only where refused lines are set aside, since it takes as much memory as
                    // the row.
                    let text = bad_lines.out.is_some().then_some(read.text);
                    let write =
                        RowWrite { operation: self.operation_for_row(row), line: read.line, text };
                    if let Err(failure) = writer.add_write_to_group(write).await {
                        return Err(self.stopped_error(failure, &mut writer, &mut bad_lines));
                    }
                }
                Err(error) => {
                    // Write the lines before this one first: the import can then resume at this line.
                    if bad_lines.out.is_none() {
                        self.finish_writes(&mut writer, &mut bad_lines).await?;
                    }
                    bad_lines.set_line_aside(read.text, error)?;
                }
            }
            if !writer.refused.is_empty() {
                // Without an output the first refused line ends the import. Which line that is, and
                // that all before it are written, is known when all groups have ended.
                if bad_lines.out.is_none() {
                    self.finish_writes(&mut writer, &mut bad_lines).await?;
                }
                bad_lines.take_refused(&mut writer)?;
            }
            if read.line.is_multiple_of(LINES_PER_REPORT) {
                self.report_progress((read.line, reader.bytes()), &writer, &bad_lines);
            }
        }
        self.finish_writes(&mut writer, &mut bad_lines).await?;
        bad_lines.flush_lines()?;
        self.report_progress((report.lines, reader.bytes()), &writer, &bad_lines);
        (report.digest, report.bad, report.requests) =
            (writer.written, bad_lines.count, writer.requests);
        Ok(report)
    }

    fn operation_for_row(&self, row: Row) -> Operation {
        match self.mode {
            ImportMode::InsertOrReplace => Operation::insert_or_replace(row),
            ImportMode::InsertOrMerge => Operation::insert_or_merge(row),
            ImportMode::Insert => Operation::insert(row),
        }
    }

    /// Waits for all rows to be written, and sets the lines aside whose rows the store has refused.
    async fn finish_writes(
        &self,
        writer: &mut RowWriter,
        bad_lines: &mut BadLines<'_>,
    ) -> Result<()> {
        match writer.finish_groups().await {
            Ok(()) => bad_lines.take_refused(writer),
            Err(failure) => Err(self.stopped_error(failure, writer, bad_lines)),
        }
    }

    /// Returns the error that ends the import after a failure of the store. The error names `line`, the first
    /// line that was not written because of the failure. A later import continues there.
    ///
    /// That import does not read earlier lines again, including those whose rows the store refused. With
    /// [`skip_bad`](Self::skip_bad), refused lines are therefore written to its output first; if that fails,
    /// returns the output's error. Without `skip_bad`, returns the error of the first refused line, if there is
    /// one.
    fn stopped_error(
        &self,
        (line, error): (u64, Error),
        writer: &mut RowWriter,
        bad_lines: &mut BadLines<'_>,
    ) -> Error {
        // The import that continues reads the later lines again.
        writer.refused.retain(|(write, _)| write.line < line);
        if let Err(error) = bad_lines.take_refused(writer).and_then(|()| bad_lines.flush_lines()) {
            return error;
        }
        let at = error_at_line(&error, line).in_table(&self.table);
        at.with_message_suffix(&format!(
            "; all lines before it are written; continue from line {line}"
        ))
    }

    fn report_progress(
        &self,
        (line, bytes): (u64, u64),
        writer: &RowWriter,
        bad_lines: &BadLines<'_>,
    ) {
        self.on_progress.notify_callback(|| ImportProgress {
            line,
            bytes,
            rows: writer.written.rows(),
            bad: bad_lines.count,
        });
    }
}

/// Handles lines that are invalid or whose rows the store refuses. Writes them to `out`. If `out` is `None`,
/// fails with the error of the first one.
struct BadLines<'w> {
    out: Option<&'w mut (dyn Write + Send)>,
    header: Vec<u8>,
    count: u64,
    on_bad: Listener<Error>,
    table: String,
}

impl BadLines<'_> {
    fn set_line_aside(&mut self, text: Vec<u8>, error: Error) -> Result<()> {
        let error = error.in_table(&self.table);
        let Some(out) = &mut self.out else { return Err(error) };
        self.count += 1;
        // The last line of the input may lack its line end, and another line may follow it here.
        let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
        let header = std::mem::take(&mut self.header);
        [&header, &text[..], end]
            .into_iter()
            .try_for_each(|part| out.write_all(part))
            .map_err(aside_error)?;
        self.on_bad.notify_callback(|| error);
        Ok(())
    }

    /// Handles the lines whose rows the store has refused, and removes them from `writer`. Writes them to `out`.
    /// If `out` is `None`, fails with the error of the first line.
    fn take_refused(&mut self, writer: &mut RowWriter) -> Result<()> {
        let mut refused = std::mem::take(&mut writer.refused);
        // Groups end in any order.
        refused.sort_by_key(|(write, _)| write.line);
        for (write, error) in refused {
            let (partition_key, row_key) = write.operation.row().keys();
            let error = error_at_line(&error, write.line).at_keys(partition_key, row_key);
            // Without an output no text was kept, and the line's error ends the import.
            self.set_line_aside(write.text.unwrap_or_default(), error)?;
        }
        Ok(())
    }

    fn flush_lines(&mut self) -> Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.flush()).map_err(aside_error)
    }
}

fn aside_error(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Backend, "writing the lines that were set aside failed")
        .with_source(error)
}
