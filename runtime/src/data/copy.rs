//! Copies between stores: reads both sides in key order and writes the differences.

use std::{cmp::Ordering, fmt};

use super::{
    digest::RowsDigest,
    framework::{is_framework_table, refuse_framework_table},
    pages::RowPages,
    row_writer::{CONCURRENCY, RowWrite, RowWriter},
};
use crate::{
    batch::{Condition, Operation},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    row::Row,
    table::{
        Client,
        job::{Listener, run_when_awaited},
    },
};

/// The most differences and refused rows that a report describes for each table.
const DESCRIBED: usize = 100;

/// A copy of tables into another store. [`Client::copy_to`] creates it, and it runs when awaited.
///
/// It reads both stores in key order and writes the rows that differ, so it needs no record of its progress.
/// After a failure or a kill, the next run compares again and writes the rest. Once no writer changes the
/// source, a run makes each copied row equal in the target. [`Self::delete_extra`] also deletes rows that
/// only the target has.
///
/// Rows are copied as stored: sealed rows stay sealed, and indexes and lists are copied as rows. Rows of the
/// outbox are not copied, so by default a copy fails while work is open: run a worker first. Values, lists and
/// rows in blobs are not copied either: copy them first, with `Client::copy_blobs_to`.
#[must_use = "does nothing unless awaited"]
pub struct Copy {
    from: Client,
    to: Client,
    tables: Vec<String>,
    filter: Filter,
    concurrency: usize,
    is_writing: bool,
    is_verified: bool,
    deletes_extra: bool,
    leaves_open_work: bool,
    on_progress: Listener<CopyProgress>,
}

impl fmt::Debug for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copy").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// The progress of [`Client::copy_to`] in the table that it currently copies or verifies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CopyProgress {
    /// The table that is copied or verified.
    pub table: String,
    /// Whether the table is being compared. `false` while its rows are copied.
    pub is_verifying: bool,
    /// The rows read since the copy or the verification of this table began. A row in both stores counts once.
    pub rows: u64,
    /// Rows that were written.
    pub written: u64,
}

/// The result of a copy.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CopyReport {
    /// The tables, in the order of copying.
    pub tables: Vec<TableCopy>,
}

impl CopyReport {
    /// Returns whether every table was verified and is equal in both stores.
    pub fn is_equal(&self) -> bool {
        self.tables.iter().all(TableCopy::is_equal)
    }
}

/// The result of copying one table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TableCopy {
    /// The table.
    pub table: String,
    /// The rows that were written because they were missing or different in the target.
    pub written: RowsDigest,
    /// The rows that were deleted in the target because the source does not have them.
    pub deleted: u64,
    /// The library's own rows in the source (fences, dirty rows, markers), which are not copied.
    pub outbox_rows: u64,
    /// The number of rows that the target refused. `errors` describes the first 100.
    pub refused: u64,
    /// The errors of the refused rows.
    pub errors: Vec<Error>,
    /// The source's rows at verification, or `None` if the table was not verified.
    pub source: Option<RowsDigest>,
    /// The target's rows at verification, or `None` if the table was not verified.
    pub target: Option<RowsDigest>,
    /// The number of rows that were missing in the target at verification.
    pub missing: u64,
    /// The number of rows that only the target had at verification.
    pub extra: u64,
    /// The number of rows that differed at verification.
    pub changed: u64,
    /// The number of partitions that differ; 0 if the table was not verified.
    pub different_partitions: u64,
    /// The first 100 partitions that differ.
    pub differences: Vec<PartitionDifference>,
    /// The number of requests to both stores.
    pub requests: u64,
}

impl TableCopy {
    /// Returns whether the table was verified and is equal in both stores.
    pub fn is_equal(&self) -> bool {
        self.source.is_some() && self.source == self.target && self.different_partitions == 0
    }
}

/// A partition that differs between the stores. A writer may have changed a row after it was copied, or the target
/// may have rows that the source lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionDifference {
    /// The PartitionKey.
    pub partition_key: String,
    /// The rows of the source.
    pub source: RowsDigest,
    /// The rows of the target.
    pub target: RowsDigest,
}

impl Client {
    /// Returns a copy of this store's tables into another store.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// client.worker().drain().await?;
    /// let other = Client::memory();
    /// let report = client.copy_to(&other).await?;
    /// assert!(report.is_equal());
    /// let again = client.copy_to(&other).await?;
    /// assert_eq!(again.tables[0].written.rows(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_to(&self, other: &Client) -> Copy {
        Copy {
            from: self.clone(),
            to: other.clone(),
            tables: Vec::new(),
            filter: Filter::Constant(true),
            concurrency: CONCURRENCY,
            is_writing: true,
            is_verified: true,
            deletes_extra: false,
            leaves_open_work: false,
            on_progress: Listener::silent(),
        }
    }
}

impl Copy {
    /// Copies only the tables `names`. By default all tables are copied except the outbox's.
    pub fn tables<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        Self { tables: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Copies and compares only the rows that match a filter, in both stores. A copy with a filter and
    /// [`delete_extra`](Self::delete_extra) fails with `is_invalid`.
    ///
    /// The filter is compared with the rows as they are stored. Give it no condition on an encrypted
    /// property, which is stored as a Binary: `eq` with the plain value selects no row, and `ne`, `lt` and
    /// `le` can select every row that has the property.
    pub fn filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// Sets how many transactions are sent at once; 16 by default, fewer while the target throttles.
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { concurrency: transactions, ..self }
    }

    /// Writes nothing: reads both stores and reports what differs.
    pub fn compare_only(self) -> Self {
        Self { is_writing: false, ..self }
    }

    /// Sets whether both stores are read once more after the copy, to compare them; they are by default.
    pub fn verify(self, is_verified: bool) -> Self {
        Self { is_verified, ..self }
    }

    /// Deletes the rows in the target's copied tables that the source does not have: rows that were deleted in the
    /// source after an earlier copy, and rows that the target had before. Keeps outbox rows, and rows that another
    /// writer changes during the copy.
    pub fn delete_extra(self) -> Self {
        Self { deletes_extra: true, ..self }
    }

    /// Copies although work is open in the source. Copies and lists in other partitions that wait for that work
    /// are wrong in the target until `check` and `repair` there; messages are not delivered there.
    pub fn leave_open_work(self) -> Self {
        Self { leaves_open_work: true, ..self }
    }

    /// Calls `report` about every 1,000 rows.
    pub fn on_progress(self, report: impl Fn(&CopyProgress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(report), ..self }
    }

    async fn run(self) -> Result<CopyReport> {
        self.check_options().await?;
        let mut names = self.tables.clone();
        if names.is_empty() {
            names = self.from.tables().await?;
            names.retain(|name| !is_framework_table(name));
        }
        let mut report = CopyReport::default();
        for table in names {
            let mut copied = TableCopy { table, ..TableCopy::default() };
            if self.is_writing {
                self.write_differences(&mut copied).await?;
            }
            if self.is_verified || !self.is_writing {
                self.compare_table(&mut copied).await?;
            }
            report.tables.push(copied);
        }
        Ok(report)
    }

    /// Refuses what cannot be copied, before anything is written.
    async fn check_options(&self) -> Result<()> {
        self.tables.iter().try_for_each(|table| refuse_framework_table(table))?;
        if self.deletes_extra && self.filter != Filter::Constant(true) {
            let message = "with a filter, the target's rows that no longer match it would be deleted; copy whole \
                           tables, or delete nothing";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        for client in [&self.from, &self.to] {
            let capabilities = client.capabilities();
            if !capabilities.ordered {
                let message =
                    format!("the store `{}` does not keep rows in key order", capabilities.name);
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        if self.leaves_open_work || !self.is_writing {
            return Ok(());
        }
        let status = self.from.outbox_status().await?;
        let open = status.dirty_rows + status.claims + status.messages + status.poisoned;
        if open == 0 {
            return Ok(());
        }
        let message = format!(
            "the source has {} open dirty rows, {} claims, {} messages and {} poisoned messages, which are not \
             copied; run a worker until it is idle (a dirty row may wait for the write deadline), or leave them \
             behind",
            status.dirty_rows, status.claims, status.messages, status.poisoned
        );
        Err(Error::new(ErrorKind::Rejected, message))
    }

    /// Creates the table in the target, reads it on both sides and writes what differs.
    async fn write_differences(&self, copied: &mut TableCopy) -> Result<()> {
        let name = copied.table.clone();
        let mut source = RowPages::new(self.from.store(), &name, self.filter.clone());
        let mut target = RowPages::new(self.to.store(), &name, self.filter.clone());
        let mut writer = RowWriter::new(self.to.store(), &name, self.concurrency);
        let failed = |(_, error): (u64, Error)| error.in_table(&name);
        // The source comes first: a misspelt name fails here, and creates no table in the target.
        source.read_until_row().await?;
        self.to.create_table_if_not_exists(&name).await?;
        let mut rows = 0;
        while let Some(pair) = next_pair(&mut source, &mut target).await? {
            let operation = match pair {
                (Some(row), None) => {
                    Some(Operation::insert_or_replace(row.without_timestamp_and_etag()))
                }
                (Some(row), Some(found)) if !row.has_same_content(&found) => {
                    Some(Operation::insert_or_replace(row.without_timestamp_and_etag()))
                }
                (None, Some(found)) if self.deletes_extra => {
                    // Under its ETag: if somebody has changed the row in the target since it was read, it stays.
                    let condition = Condition::for_etag(found.etag());
                    Some(Operation::delete(found.partition_key(), found.row_key(), condition)?)
                }
                _ => None,
            };
            if let Some(operation) = operation {
                writer
                    .add_write_to_group(RowWrite { operation, line: 0, text: None })
                    .await
                    .map_err(failed)?;
                take_refused(&mut writer, copied);
            }
            rows += 1;
            self.report_progress(copied, false, rows, writer.written.rows());
        }
        writer.finish_groups().await.map_err(failed)?;
        take_refused(&mut writer, copied);
        copied.written = writer.written;
        copied.deleted = writer.deleted;
        copied.outbox_rows = source.outbox_row_count();
        copied.requests += source.request_count() + target.request_count() + writer.requests;
        Ok(())
    }

    /// Reads the table on both sides and compares it partition by partition.
    async fn compare_table(&self, copied: &mut TableCopy) -> Result<()> {
        let name = copied.table.clone();
        let mut source = RowPages::new(self.from.store(), &name, self.filter.clone());
        let mut target = RowPages::new(self.to.store(), &name, self.filter.clone());
        let mut digests = (RowsDigest::default(), RowsDigest::default());
        let mut partition: Option<PartitionDifference> = None;
        let mut rows = 0;
        while let Some((row, found)) = next_pair(&mut source, &mut target).await? {
            let either = row.as_ref().or(found.as_ref());
            // A pair has at least one row.
            let partition_key = either.map(Row::partition_key).unwrap_or_default();
            if partition.as_ref().is_none_or(|known| known.partition_key != partition_key) {
                end_partition(partition.take(), copied, &mut digests);
            }
            let known = partition.get_or_insert_with(|| PartitionDifference {
                partition_key: partition_key.to_owned(),
                source: RowsDigest::default(),
                target: RowsDigest::default(),
            });
            match (&row, &found) {
                // The hash of a row costs more than its comparison.
                (Some(row), Some(found)) if row.has_same_content(found) => {
                    let mut both = RowsDigest::default();
                    both.add(row)?;
                    known.source.add_all(&both);
                    known.target.add_all(&both);
                }
                (row, found) => {
                    match (row, found) {
                        (Some(_), None) => copied.missing += 1,
                        (None, Some(_)) => copied.extra += 1,
                        _ => copied.changed += 1,
                    }
                    row.as_ref().map_or(Ok(()), |row| known.source.add(row))?;
                    found.as_ref().map_or(Ok(()), |found| known.target.add(found))?;
                }
            }
            rows += 1;
            self.report_progress(copied, true, rows, copied.written.rows());
        }
        end_partition(partition, copied, &mut digests);
        (copied.source, copied.target) = (Some(digests.0), Some(digests.1));
        copied.outbox_rows = source.outbox_row_count();
        copied.requests += source.request_count() + target.request_count();
        Ok(())
    }

    fn report_progress(&self, copied: &TableCopy, is_verifying: bool, rows: u64, written: u64) {
        if rows.is_multiple_of(1_000) {
            self.on_progress.notify_callback(|| CopyProgress {
                table: copied.table.clone(),
                is_verifying,
                rows,
                written,
            });
        }
    }
}

run_when_awaited!([] Copy => CopyReport);

/// Returns the next row of the source, of the target, or of both if they have one key. Returns `None` at the
/// end of both.
async fn next_pair(
    source: &mut RowPages<'_>,
    target: &mut RowPages<'_>,
) -> Result<Option<(Option<Row>, Option<Row>)>> {
    source.read_until_row().await?;
    match target.read_until_row().await {
        // A comparison with a table that is not there names all rows.
        Err(error) if error.is_table_missing() => target.end_reading(),
        filled => drop(filled?),
    }
    let order = match (source.peek_row(), target.peek_row()) {
        (None, None) => return Ok(None),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        // Equal keys are found without sort keys, which would have to be built.
        (Some(row), Some(found)) if row.keys() == found.keys() => Ordering::Equal,
        // Stores order keys by UTF-16 code units, as sort keys do and texts of Rust do not.
        (Some(row), Some(found)) => row.sort_key().cmp(&found.sort_key()),
    };
    Ok(Some(match order {
        Ordering::Less => (source.take_row(), None),
        Ordering::Equal => (source.take_row(), target.take_row()),
        Ordering::Greater => (None, target.take_row()),
    }))
}

fn take_refused(writer: &mut RowWriter, copied: &mut TableCopy) {
    for (write, error) in std::mem::take(&mut writer.refused) {
        copied.refused += 1;
        if copied.errors.len() < DESCRIBED {
            let (partition_key, row_key) = write.operation.row().keys();
            copied.errors.push(error.in_table(&copied.table).at_keys(partition_key, row_key));
        }
    }
}

/// Adds the digests of a partition that was read to the digests of its table. If the partition differs between
/// the stores, counts it in `copied` and describes it there, up to 100 partitions.
fn end_partition(
    partition: Option<PartitionDifference>,
    copied: &mut TableCopy,
    (source, target): &mut (RowsDigest, RowsDigest),
) {
    let Some(partition) = partition else { return };
    source.add_all(&partition.source);
    target.add_all(&partition.target);
    if partition.source == partition.target {
        return;
    }
    copied.different_partitions += 1;
    if copied.differences.len() < DESCRIBED {
        copied.differences.push(partition);
    }
}
