//! Exports the rows of a table as JSON lines or CSV.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    fs::File,
    io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

use super::{
    csv::{escape_formula, push_field},
    digest::RowsDigest,
    file_error::file_error,
    lines::{Format, push_json_line, read_json_line},
    new_file::{NewFile, create_or_resume},
    pages::RowPages,
    row_reader::csv_text_of_value,
};
use crate::{
    backend::Snapshot,
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    filter::Filter,
    limits::saturating_u64,
    row::Row,
    store::{Store, task_or_future::TaskOrFuture},
    table::{Client, job::Listener},
};

/// An export of a table as text. [`Client::export`] creates it.
///
/// Rows are written as stored, in key order, without Timestamp and ETag. Exports of equal tables are therefore
/// equal byte for byte. Rows of the outbox are left out. At most two pages of rows are in memory. If the table
/// is written during the export, each page is consistent but the whole is not, unless you ask for a
/// [`snapshot`](Self::snapshot).
#[must_use = "does nothing until you call `to_file` or `write_to`"]
pub struct Export {
    client: Client,
    table: String,
    filter: Filter,
    format: Format,
    is_resumed: bool,
    /// The growth of the file, in bytes, that ends a snapshot. `None` without snapshots.
    max_growth_bytes: Option<u64>,
    on_progress: Listener<ExportProgress>,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("table", &self.table)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// The counts of an export so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExportProgress {
    /// Rows that were written.
    pub rows: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// The growth of the store's file since the export began, in bytes. While a snapshot is open, the space of
    /// replaced and deleted rows is not reused. 0 without [`Export::snapshot`].
    pub growth: u64,
}

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExportReport {
    /// The table.
    pub table: String,
    /// Number, size and hash of all exported rows. Includes the rows that an earlier attempt wrote and this
    /// export kept.
    pub digest: RowsDigest,
    /// The bytes of text.
    pub file_bytes: u64,
    /// The rows that an earlier attempt wrote and this export kept.
    pub resumed: u64,
    /// The rows of the outbox, which are left out.
    pub outbox_rows: u64,
    /// The requests that were sent.
    pub requests: u64,
    /// The number of snapshots that were taken: 0 without [`Export::snapshot`], 1 if all rows that this export read are
    /// of one moment, more if the store's file grew by more than the limit. The rows in [`resumed`](Self::resumed) are
    /// of an earlier moment.
    pub snapshots: u64,
}

impl Client {
    /// Returns an export of a table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let mut text = Vec::new();
    /// let report = client.export("Staff").write_to(&mut text).await?;
    /// let other = Client::memory();
    /// let imported = other.import("Staff").read_from(&text[..]).await?;
    /// assert_eq!(imported.digest, report.digest);
    /// # Ok(())
    /// # }
    /// ```
    pub fn export(&self, table: impl Into<String>) -> Export {
        Export {
            client: self.clone(),
            table: table.into(),
            filter: Filter::Constant(true),
            format: Format::default(),
            is_resumed: false,
            max_growth_bytes: None,
            on_progress: Listener::silent(),
        }
    }
}

impl Export {
    /// Exports the rows that match a filter. Conditions on PartitionKey and RowKey save requests.
    ///
    /// The filter is compared with the rows as they are stored. Give it no condition on an encrypted
    /// property, which is stored as a Binary: `eq` with the plain value selects no row, and `ne`, `lt` and
    /// `le` can select every row that has the property.
    pub fn filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// Sets the format; the default is [`Format::JsonLines`]. CSV reads the table twice, the first time to find
    /// its columns. The export fails with `is_contended` if the second read finds a new property or type.
    pub fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Continues an interrupted [`to_file`](Self::to_file) to the same path, after the last whole line that it
    /// wrote. Starts from the beginning if there was no earlier attempt. Use the same filter as the earlier
    /// attempt. Some exports cannot be continued: see [`can_resume`](Self::can_resume).
    pub fn resume(self) -> Self {
        Self { is_resumed: true, ..self }
    }

    /// Returns whether [`resume`](Self::resume) can continue an earlier attempt. An export as CSV cannot be
    /// continued, because new columns may have come, nor can one from a store that keeps no order of rows
    /// ([`Capabilities::ordered`](crate::backend::Capabilities::ordered)).
    ///
    /// ```
    /// use entable::{data::Format, prelude::*};
    ///
    /// let export = Client::memory().export("Staff");
    /// assert!(export.can_resume());
    /// assert!(!export.format(Format::Csv).can_resume());
    /// ```
    pub fn can_resume(&self) -> bool {
        self.resume_error().is_none()
    }

    /// Returns the error with which resuming this export fails, or `None` if it can be resumed.
    fn resume_error(&self) -> Option<Error> {
        let unsupported = |message| Error::new(ErrorKind::Unsupported, message);
        if self.format != Format::JsonLines {
            return Some(unsupported(
                "a CSV export cannot be resumed, because new columns may have appeared; start again without `resume`",
            ));
        }
        if !self.client.capabilities().ordered {
            let message = "the store does not keep rows in key order, so an export cannot be resumed; start again \
                           without `resume`";
            return Some(unsupported(message).in_table(&self.table));
        }
        None
    }

    /// Exports the rows of an embedded store as they are at one moment, from a snapshot, even if other tasks write
    /// meanwhile.
    ///
    /// A snapshot costs space: until it is closed, the file keeps the rows that others replace or delete, so it grows.
    /// `max_growth_bytes` limits that. When the file has grown by more, the export closes the snapshot, and from then
    /// on takes a new one for each page: each page is consistent, but the pages are of different moments. The file
    /// grows in steps, so it can exceed the limit by one step. With `u64::MAX` there is no limit, and all rows are of
    /// one moment.
    ///
    /// [`ExportProgress::growth`] shows how much the file has grown, and [`ExportReport::snapshots`] how many snapshots
    /// were taken: 1 if all rows that this export read are of one moment.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # let directory = std::env::temp_dir().join(format!("entable-snapshot-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::open(directory.join("staff.db"))?;
    /// client.create_table("Staff").await?;
    /// let mut text = Vec::new();
    /// let report = client.export("Staff").snapshot(1 << 30).write_to(&mut text).await?;
    /// assert_eq!(report.snapshots, 1);
    /// # Ok::<(), Error>(()) })?;
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(self, max_growth_bytes: u64) -> Self {
        Self { max_growth_bytes: Some(max_growth_bytes), ..self }
    }

    /// Calls `report` after every page.
    pub fn on_progress(self, report: impl Fn(ExportProgress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(move |progress| report(*progress)), ..self }
    }

    /// Writes the rows to a new file that only this user can read. Until the export is complete and on disk, the
    /// file's name is `path`, 32 random hex digits and `part`, separated by dots. It never replaces another file
    /// or follows a link.
    ///
    /// Deletes files of earlier attempts at the same path, unless [`resume`](Self::resume) continues one of them.
    /// Files of other users and of running exports stay.
    ///
    /// # Errors
    ///
    /// * `is_conflict` if the file exists, even if another program created it during the export;
    /// * `is_not_found` if the table or the directory does not exist;
    /// * `is_unsupported` for [`resume`](Self::resume) of CSV or from an unordered store, and for
    ///   [`snapshot`](Self::snapshot) of a store that is not a file;
    /// * `is_backend` if the file cannot be written;
    /// * the store's errors.
    pub async fn to_file(self, path: impl AsRef<Path>) -> Result<ExportReport> {
        let file = create_or_resume(path.as_ref(), self.is_resumed)?;
        let report = self.write_to_new_file(&file).await?;
        file.finish()?;
        Ok(report)
    }

    async fn write_to_new_file(&self, new_file: &NewFile) -> Result<ExportReport> {
        let (mut file, part) = (new_file.file(), new_file.path_while_written());
        let failed = |error| file_error(part, "writing", error);
        let before = if self.is_resumed {
            self.read_earlier_attempt(part, file)?
        } else {
            EarlierRows::default()
        };
        // Cuts off a line that a crash has broken.
        file.set_len(before.bytes).map_err(failed)?;
        file.seek(SeekFrom::Start(before.bytes)).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        self.write_rows(&mut out, before, part).await
    }

    /// Writes the rows to any writer, such as standard output.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the table does not exist, with `is_unsupported` for
    /// [`snapshot`](Self::snapshot) of a store that is not a file, with `is_backend` if the writer fails, and
    /// with the store's errors.
    pub async fn write_to(self, out: &mut (impl Write + Send)) -> Result<ExportReport> {
        self.write_rows(out, EarlierRows::default(), Path::new("the output")).await
    }

    async fn write_rows(
        &self,
        out: &mut (impl Write + Send),
        before: EarlierRows,
        name: &Path,
    ) -> Result<ExportReport> {
        let failed = |error| file_error(name, "writing", error);
        let mut source = Source::new(&self.client, self.max_growth_bytes).await?;
        let mut report = ExportReport {
            table: self.table.clone(),
            digest: before.digest,
            file_bytes: before.bytes,
            resumed: before.digest.rows(),
            ..ExportReport::default()
        };
        let columns = match self.format {
            Format::JsonLines => None,
            Format::Csv => Some(Arc::new(self.find_columns(&mut source).await?)),
        };
        let mut text = Vec::new();
        if let Some(columns) = &columns {
            columns.push_header(&mut text);
        }
        let mut pages = RowPages::new(&source.store, &self.table, self.filter.clone());
        if let Some((partition_key, row_key)) = &before.last {
            pages = pages.start_after(partition_key, row_key)?;
        }
        loop {
            let has_rows = pages.read_until_row().await?;
            // The last turn has no rows, but writes the header of CSV for a table without any.
            let rows = Arc::new(pages.take_all());
            let encoding =
                TaskOrFuture::begin_task(encode_rows(rows.clone(), columns.clone(), text));
            rows.iter().try_for_each(|row| report.digest.add(row))?;
            text = encoding.await?;
            report.file_bytes += saturating_u64(text.len());
            out.write_all(&text).map_err(failed)?;
            text.clear();
            report.requests = pages.request_count();
            self.on_progress.notify_callback(|| ExportProgress {
                rows: report.digest.rows(),
                requests: report.requests,
                growth: source.growth(),
            });
            if !has_rows {
                break;
            }
            source.renew_if_grown(&mut pages).await?;
        }
        out.flush().map_err(failed)?;
        report.outbox_rows = pages.outbox_row_count();
        report.snapshots = source.snapshots;
        Ok(report)
    }

    /// Reads the rows that an earlier attempt wrote to `file`, which is the file at the path `part`. Returns
    /// their digest, the length of their lines in bytes, and the last row's keys; the export continues after
    /// these keys. Ignores a last line that a crash cut off. Fails with `is_unsupported` if the file is not empty
    /// and the export is CSV or reads an unordered store. Fails with `is_invalid` if a line is not a row.
    fn read_earlier_attempt(&self, part: &Path, file: &File) -> Result<EarlierRows> {
        let mut earlier = EarlierRows::default();
        if file.metadata().map_err(|error| file_error(part, "reading", error))?.len() == 0 {
            return Ok(earlier);
        }
        // Before the earlier attempt is read, which can take long.
        if let Some(error) = self.resume_error() {
            return Err(error);
        }
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            let read = read.map_err(|error| file_error(part, "reading", error))?;
            // A crash cuts the last line, and some file systems leave zeros behind it.
            if read == 0 || !line.ends_with(b"\n") || line.first() == Some(&0) {
                return Ok(earlier);
            }
            let row = read_json_line(&line).map_err(|error| {
                let message = format!(
                    "`{}` is not an earlier attempt of this export: {}; delete the file",
                    part.display(),
                    error.message()
                );
                Error::new(ErrorKind::Invalid, message).with_source(error)
            })?;
            earlier.digest.add(&row)?;
            earlier.bytes += saturating_u64(read);
            let (partition_key, row_key) = row.keys();
            earlier.last = Some((partition_key.to_owned(), row_key.to_owned()));
        }
    }

    /// Reads the table once, for the names and types of its properties.
    async fn find_columns(&self, source: &mut Source) -> Result<Columns> {
        let mut columns = BTreeSet::new();
        let mut pages = RowPages::new(&source.store, &self.table, self.filter.clone());
        while pages.read_until_row().await? {
            while let Some(row) = pages.take_row() {
                add_columns(&row, &mut columns)?;
            }
            source.renew_if_grown(&mut pages).await?;
        }
        Ok(Columns(columns.into_iter().collect()))
    }
}

/// The store that an export reads: the client's own, or a snapshot of it.
struct Source {
    client: Client,
    store: Store,
    snapshot: Option<Snapshot>,
    max_growth_bytes: u64,
    /// The growth of the file while earlier snapshots were open, in bytes.
    grown_before: u64,
    snapshots: u64,
}

impl Source {
    async fn new(client: &Client, max_growth_bytes: Option<u64>) -> Result<Self> {
        let mut source = Self {
            client: client.clone(),
            store: client.store().clone(),
            snapshot: None,
            // Without snapshots no growth is counted, and this bound is never reached.
            max_growth_bytes: max_growth_bytes.unwrap_or(u64::MAX),
            grown_before: 0,
            snapshots: 0,
        };
        if max_growth_bytes.is_some() {
            source.take_snapshot().await?;
        }
        Ok(source)
    }

    async fn take_snapshot(&mut self) -> Result<()> {
        self.grown_before = self.growth();
        // Two at once would keep the space of both.
        self.snapshot = None;
        // The store holds the old snapshot as its backend, and with it the space.
        self.store.backend = self.client.backend().clone();
        let snapshot = self.client.backend().snapshot().await?;
        self.store.backend = snapshot.rows();
        self.snapshot = Some(snapshot);
        self.snapshots += 1;
        Ok(())
    }

    fn growth(&self) -> u64 {
        self.grown_before + self.snapshot.as_ref().map_or(0, Snapshot::growth)
    }

    /// Takes a new snapshot for the pages that follow, if the file has grown too much.
    async fn renew_if_grown(&mut self, pages: &mut RowPages<'_>) -> Result<()> {
        if self.growth() <= self.max_growth_bytes {
            return Ok(());
        }
        // The pages, too, hold the old snapshot and its space.
        pages.switch_store(self.client.store());
        self.take_snapshot().await?;
        pages.switch_store(&self.store);
        Ok(())
    }
}

/// Appends the rows to the text: as CSV if there are columns, and as JSON lines otherwise.
async fn encode_rows(
    rows: Arc<VecDeque<Row>>,
    columns: Option<Arc<Columns>>,
    mut text: Vec<u8>,
) -> Result<Vec<u8>> {
    for row in rows.iter() {
        match &columns {
            None => push_json_line(row, &mut text)?,
            Some(columns) => columns.push_row(row, &mut text)?,
        }
    }
    Ok(text)
}

/// Adds the name and type of each property of a row.
fn add_columns(row: &Row, columns: &mut BTreeSet<(String, &'static str)>) -> Result<()> {
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let edm = value.edm_type().name();
        let name = String::from_utf8_lossy(name);
        if !columns.contains(&(name.as_ref().to_owned(), edm)) {
            columns.insert((name.into_owned(), edm));
        }
    }
    Ok(())
}

/// Returns rows as CSV with a header, as an export in [`Format::Csv`] writes them, without Timestamp and ETag.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
///
/// ```
/// use entable::{Row, ValueRef, data::to_csv};
///
/// let row = Row::build("Sales", "1").with("Formula", ValueRef::String("=1+1"))?.finish()?;
/// assert_eq!(to_csv(&[row])?, "PartitionKey,RowKey,Formula:Edm.String\nSales,1,'=1+1\n");
/// # Ok::<(), entable::Error>(())
/// ```
pub fn to_csv(rows: &[Row]) -> Result<String> {
    let mut columns = BTreeSet::new();
    rows.iter().try_for_each(|row| add_columns(row, &mut columns))?;
    let columns = Columns(columns.into_iter().collect());
    let mut text = Vec::new();
    columns.push_header(&mut text);
    rows.iter().try_for_each(|row| columns.push_row(row, &mut text))?;
    // Names and texts of rows are UTF-8.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The rows that an earlier attempt has written.
#[derive(Default)]
struct EarlierRows {
    digest: RowsDigest,
    bytes: u64,
    last: Option<(String, String)>,
}

/// The columns of a CSV file after the keys: name and type, in order.
struct Columns(Vec<(String, &'static str)>);

impl Columns {
    fn push_header(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(b"PartitionKey,RowKey");
        for (name, edm) in &self.0 {
            text.push(b',');
            push_field(text, &format!("{name}:{edm}"));
        }
        text.push(b'\n');
    }

    fn push_row(&self, row: &Row, text: &mut Vec<u8>) -> Result<()> {
        let (partition_key, row_key) = row.keys();
        push_field(text, &escape_formula(partition_key));
        text.push(b',');
        push_field(text, &escape_formula(row_key));
        let mut left = row.property_count()?;
        for (name, edm) in &self.0 {
            text.push(b',');
            let Some(value) = row.get(name)?.filter(|value| value.edm_type().name() == *edm) else {
                continue;
            };
            // Never below zero: a row has each property once.
            left = left.saturating_sub(1);
            match value {
                ValueRef::String(value) => push_field(text, &escape_formula(value)),
                value => push_field(text, &csv_text_of_value(value)),
            }
        }
        text.push(b'\n');
        if left == 0 {
            return Ok(());
        }
        let message =
            "the row has a property that was added after the columns were read; export again";
        Err(Error::new(ErrorKind::Contended, message).at_keys(partition_key, row_key))
    }
}
