//! Reports the rows and bytes in each of a table's partitions.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    fmt,
};

use crate::{
    error::Result,
    filter::Filter,
    limits::saturating_u64,
    row::Row,
    table::{
        Client,
        job::{Listener, run_when_awaited},
    },
};

/// The default number of partitions in a report.
const DEFAULT_TOP: usize = 10;

/// Scans a table for its largest partitions. [`Client::partition_report`] returns it, and it runs when it is
/// awaited.
#[must_use = "does nothing unless awaited"]
pub struct PartitionScan {
    client: Client,
    table: String,
    top: usize,
    max_requests: u64,
    on_progress: Listener<PartitionProgress>,
}

impl fmt::Debug for PartitionScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionScan")
            .field("table", &self.table)
            .field("top", &self.top)
            .finish_non_exhaustive()
    }
}

/// The counts of a scan of partitions so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PartitionProgress {
    /// Rows that were read.
    pub rows: u64,
    /// Bytes of these rows, as the service counts them.
    pub bytes: u64,
    /// Requests that were sent.
    pub requests: u64,
}

/// The rows and bytes of one partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PartitionSize {
    /// The PartitionKey.
    pub partition_key: String,
    /// Rows of every kind: entities, copies, lists and rows of the outbox.
    pub rows: u64,
    /// Bytes of the rows, as the service counts them.
    pub bytes: u64,
    /// The share of the table's rows that are in the partition, 0 to 1.
    pub share: f64,
}

/// The largest partitions of a table.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PartitionReport {
    /// The largest partitions, sorted by rows, then by bytes.
    pub top: Vec<PartitionSize>,
    /// Partitions of the table.
    pub partitions: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of the table's rows, as the service counts them.
    pub bytes: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Whether the whole table was read. `false` if the scan ended at its
    /// [limit of requests](PartitionScan::max_requests). Its last partition may then be larger than reported.
    pub is_whole: bool,
}

impl fmt::Display for PartitionReport {
    /// Writes a line for each partition, such as `Sales: 1200 rows, 96000 bytes, 60.0%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {} bytes in {} partitions", self.rows, self.bytes, self.partitions)?;
        for PartitionSize { partition_key, rows, bytes, share } in &self.top {
            let key = partition_key.escape_debug();
            write!(f, "\n{key}: {rows} rows, {bytes} bytes, {:.1}%", share * 100.0)?;
        }
        Ok(())
    }
}

impl Client {
    /// Reads a whole table and reports its largest partitions. One server of the service handles each partition,
    /// so a large partition limits the speed of its writers.
    ///
    /// Costs one request for every 1,000 rows. Only the reported partitions are kept in memory, except on stores
    /// without an order.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// client.create_table("Staff").await?;
    /// let staff = client.dynamic("Staff");
    /// for id in 0..4 {
    ///     let department = if id == 0 { "Sales" } else { "Marketing" };
    ///     staff.insert(&DynamicEntity::new(department, format!("empid_{id:06}"))).await?;
    /// }
    /// let report = client.partition_report("Staff").top(1).await?;
    /// assert_eq!((report.rows, report.partitions), (4, 2));
    /// assert_eq!(report.top[0].partition_key, "Marketing");
    /// assert_eq!(report.top[0].share, 0.75);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition_report(&self, table: impl Into<String>) -> PartitionScan {
        PartitionScan {
            client: self.clone(),
            table: table.into(),
            top: DEFAULT_TOP,
            max_requests: u64::MAX,
            on_progress: Listener::silent(),
        }
    }
}

impl PartitionScan {
    /// Sets how many partitions are reported. The default is 10.
    pub fn top(self, partitions: usize) -> Self {
        Self { top: partitions, ..self }
    }

    /// Ends the scan after this many requests, at least 1. If the table was not completely read,
    /// [`is_whole`](PartitionReport::is_whole) of the report is `false`.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.dynamic("Staff");
    /// # for id in 0..1001 {
    /// #     staff.insert(&DynamicEntity::new("Sales", format!("empid_{id:06}"))).await?;
    /// # }
    /// let report = client.partition_report("Staff").max_requests(1).await?;
    /// assert_eq!((report.rows, report.is_whole), (1000, false));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_requests(self, requests: u64) -> Self {
        Self { max_requests: requests, ..self }
    }

    /// Calls `report` after every page.
    pub fn on_progress(self, report: impl Fn(PartitionProgress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(move |progress| report(*progress)), ..self }
    }
}

run_when_awaited!([] PartitionScan => PartitionReport);

impl PartitionScan {
    async fn run(self) -> Result<PartitionReport> {
        let store = self.client.store();
        let is_ordered = store.capabilities().ordered;
        let mut sizes = PartitionSizes { top: self.top, ..PartitionSizes::default() };
        let mut progress = PartitionProgress::default();
        let mut pages = store.pages(&self.table, Filter::Constant(true));
        while let Some(page) = pages.next_page().await? {
            progress.requests += 1;
            for row in page.rows {
                let bytes = sizes.add_row(&row?, is_ordered)?;
                progress.rows += 1;
                progress.bytes += bytes;
            }
            self.on_progress.notify_callback(|| progress);
            if progress.requests >= self.max_requests {
                break;
            }
        }
        Ok(PartitionReport { is_whole: pages.is_over(), ..sizes.into_report(progress) })
    }
}

/// Rows, bytes and PartitionKey of a partition, compared in this order.
type SizeOrder = (u64, u64, Reverse<String>);

/// Adds up the sizes of partitions while a scan reads their rows.
#[derive(Default)]
struct PartitionSizes {
    top: usize,
    /// Partitions that may have more rows. If rows come in order, only the current one.
    open: BTreeMap<String, (u64, u64)>,
    /// The largest finished partitions, with the smallest of them on top.
    largest: BinaryHeap<Reverse<SizeOrder>>,
    partitions: u64,
}

impl PartitionSizes {
    /// Counts a row and its bytes for its partition. Returns the row's size in bytes. If `is_ordered` is set, rows
    /// come in key order, and a new PartitionKey closes the previous partition.
    fn add_row(&mut self, row: &Row, is_ordered: bool) -> Result<u64> {
        let bytes = saturating_u64(row.service_size()?);
        let partition_key = row.partition_key();
        if let Some((rows, sum)) = self.open.get_mut(partition_key) {
            *rows += 1;
            *sum += bytes;
            return Ok(bytes);
        }
        if is_ordered {
            // In key order, a new PartitionKey means that the previous partition is complete.
            self.close_all_partitions();
        }
        self.partitions += 1;
        self.open.insert(partition_key.to_owned(), (1, bytes));
        Ok(bytes)
    }

    /// Moves the open partitions to the finished ones. Keeps the `top` largest of these: first by rows, then by
    /// bytes, then with the smaller PartitionKey.
    fn close_all_partitions(&mut self) {
        for (partition_key, (rows, bytes)) in std::mem::take(&mut self.open) {
            self.largest.push(Reverse((rows, bytes, Reverse(partition_key))));
            if self.largest.len() > self.top {
                // Drop the smallest, to keep only the reported partitions in memory.
                self.largest.pop();
            }
        }
    }

    fn into_report(mut self, progress: PartitionProgress) -> PartitionReport {
        self.close_all_partitions();
        let PartitionProgress { rows: all, bytes, requests } = progress;
        // Sorted in reverse order, which puts the largest first.
        let top = self.largest.into_sorted_vec().into_iter().map(|Reverse(size)| {
            let (rows, bytes, Reverse(partition_key)) = size;
            #[allow(clippy::cast_precision_loss, reason = "a share needs no 52 bits")]
            let share = rows as f64 / all as f64;
            PartitionSize { partition_key, rows, bytes, share }
        });
        PartitionReport {
            top: top.collect(),
            partitions: self.partitions,
            rows: all,
            bytes,
            requests,
            is_whole: true,
        }
    }
}
