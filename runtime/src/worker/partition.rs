//! Reads the outbox rows of one partition in chunks: first its fences, then its open work.

use std::time::Duration;

use tokio::time::Instant;

use super::lease::StoreTime;
use crate::{
    access::Keys,
    backend::{Rows, ScanRequest},
    edm::Ticks,
    error::Result,
    filter::Filter,
    guard::{ActiveGuards, Guard},
    limits::PAGE_ROWS,
    page::Continuation,
    plan::outbox::{
        Fence,
        reserved_keys::{
            CLAIM, DIRTY, FENCE, MESSAGE, RECEIPT, RESERVED, RESERVED_END, has_known_format,
        },
    },
    row::Row,
    table::Client,
};

/// The maximum number of rows in a partition's first chunk. It is small because the size of the rows is still
/// unknown.
const FIRST_CHUNK_ROWS: u32 = 128;

/// The target size of later chunks in bytes, estimated from the size of the previous rows.
const CHUNK_BYTES: usize = 2 * 1024 * 1024;

/// An outbox row, and its age when it was read.
#[derive(Debug, Clone)]
pub(super) struct OutboxRow {
    pub(super) row: Row,
    /// The time between the row's last write and its read, by the store's dates. `None` if the store sends no
    /// date, in which case the row counts as new.
    pub(super) age: Option<Duration>,
}

impl OutboxRow {
    /// Returns the time until the row has the age `least`, or zero if it is older. A row of unknown age counts as
    /// new.
    pub(super) fn time_until_age(&self, least: Duration) -> Duration {
        least.saturating_sub(self.age.unwrap_or_default())
    }

    /// Returns whether the row is known to be at least this old. A row of unknown age counts as new.
    pub(super) fn is_older_than(&self, least: Duration) -> bool {
        self.age.is_some_and(|age| age >= least)
    }
}

/// The fences of one partition, and whether open work requires them.
#[derive(Debug, Default)]
pub(super) struct Fences {
    pub(super) table: String,
    pub(super) fences: Vec<(Fence, OutboxRow)>,
    /// The registration ids of fence rows that do not contain their own directory markers. These fences and
    /// markers are kept.
    pub(super) damaged_fences: Vec<String>,
    /// Whether the partition had open work or unreadable rows, in which case its fences must be kept.
    pub(super) may_have_open_work: bool,
}

impl Fences {
    /// Creates an empty list of fences of `table`, before the first chunk is read.
    pub(super) fn empty_for_table(table: &str) -> Self {
        Self { table: table.to_owned(), ..Self::default() }
    }

    /// Takes over the fences of the next chunk, and records whether the chunk has open work.
    pub(super) fn take_fences_from(&mut self, chunk: &mut OutboxChunk) {
        self.fences.append(&mut chunk.fences);
        self.damaged_fences.append(&mut chunk.damaged_fences);
        self.may_have_open_work |= chunk.may_have_open_work();
    }
}

/// Some outbox rows of one partition, by kind.
#[derive(Debug, Default)]
pub(super) struct OutboxChunk {
    pub(super) table: String,
    pub(super) fences: Vec<(Fence, OutboxRow)>,
    /// The registration ids of fence rows in this chunk that do not contain their own directory markers.
    pub(super) damaged_fences: Vec<String>,
    pub(super) claims: Vec<OutboxRow>,
    pub(super) dirty: Vec<OutboxRow>,
    pub(super) messages: Vec<OutboxRow>,
    /// The store's date in its answer, or `None` if the store sends none.
    pub(super) date: Option<Ticks>,
    /// When the chunk was requested.
    pub(super) sent: Option<Instant>,
    /// The number of rows that do not decode, or whose kind or format this program does not know.
    pub(super) unknown: u64,
}

/// Reads the outbox rows of one partition in chunks with a limited number of rows and bytes. A worker holds only
/// a few of many open rows, and removes finished rows before it continues.
pub(super) struct PartitionReader<'a> {
    client: &'a Client,
    table: &'a str,
    partition_key: &'a str,
    rows: RowsOfChunks,
    next: NextChunk,
    /// The maximum number of rows in the next chunk.
    most: u32,
}

/// Selects the rows of the next chunks.
///
/// Every fence is read before or together with the first row of open work. If a fence's ETag has not changed
/// since, nothing was committed under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowsOfChunks {
    /// Fences and open work in key order, with fences first.
    Ordered,
    /// Only fences, for a store that returns rows in no particular order.
    Fences,
    /// Only open work, after all fences.
    Work,
}

impl RowsOfChunks {
    /// Returns the filter for these rows in a partition.
    fn filter_of_rows(self, partition_key: &str) -> Filter {
        let rows = match self {
            Self::Ordered => RESERVED..RESERVED_END,
            Self::Fences => FENCE..CLAIM,
            Self::Work => CLAIM..RESERVED_END,
        };
        Keys::partition(partition_key).rows(rows).filter()
    }
}

/// The position of a partition's next chunk.
enum NextChunk {
    AtStart,
    From(Continuation),
    /// All rows were read.
    End,
}

impl<'a> PartitionReader<'a> {
    pub(super) fn new(client: &'a Client, table: &'a str, partition_key: &'a str) -> Self {
        let rows = if client.store().capabilities().ordered {
            RowsOfChunks::Ordered
        } else {
            // Without key order, open work could be returned before the fence that it was committed under, so read
            // the fences first.
            RowsOfChunks::Fences
        };
        let (next, most) = (NextChunk::AtStart, FIRST_CHUNK_ROWS);
        Self { client, table, partition_key, rows, next, most }
    }

    /// Returns whether no chunk has been read so far.
    pub(super) fn is_at_start(&self) -> bool {
        matches!(self.next, NextChunk::AtStart) && self.rows != RowsOfChunks::Work
    }

    /// Reads the next chunk, or returns `None` after the last one. After an error, the next call reads the same
    /// chunk again.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<OutboxChunk>> {
        let from = match &self.next {
            NextChunk::AtStart => None,
            NextChunk::From(from) => Some(from),
            NextChunk::End => return Ok(None),
        };
        let filter = self.rows.filter_of_rows(self.partition_key);
        let (table, top) = (self.table, Some(self.most));
        let scan = ScanRequest { table, filter: &filter, select: None, top, from };
        // Taken before the request, which keeps the estimate of the store's time from being too early.
        let sent = Instant::now();
        let page = self.client.store().scan(scan).await?;
        self.most = rows_of_next_chunk(&page, self.most);
        let mut chunk = OutboxChunk { table: self.table.to_owned(), ..OutboxChunk::default() };
        (chunk.sent, chunk.date) = (Some(sent), page.date);
        for row in page.rows {
            match row {
                Ok(row) => {
                    let age = row_age(&row, page.date);
                    chunk.add_row(OutboxRow { row, age }, self.client.outbox().guards);
                }
                // It may be open work, so the partition must stay in the directory.
                Err(_) => chunk.unknown += 1,
            }
        }
        // Pages may be short: only the continuation shows whether there is more.
        self.next = match page.next {
            Some(next) => NextChunk::From(next),
            None if self.rows == RowsOfChunks::Fences => {
                self.rows = RowsOfChunks::Work;
                NextChunk::AtStart
            }
            None => NextChunk::End,
        };
        Ok(Some(chunk))
    }
}

/// Returns how many rows to read after `page` for a chunk of about [`CHUNK_BYTES`] bytes. Returns `before`, the
/// number for `page` itself, if `page` has no rows.
fn rows_of_next_chunk(page: &Rows, before: u32) -> u32 {
    let sizes = page.rows.iter().flatten().map(|row| row.byte_len());
    let (rows, bytes) = sizes.fold((0, 0), |(rows, bytes), size| (rows + 1, bytes + size));
    // An empty page says nothing about the size of rows.
    if rows == 0 {
        return before;
    }
    let mean = (bytes / rows).max(1);
    u32::try_from(CHUNK_BYTES / mean).unwrap_or(PAGE_ROWS).clamp(1, PAGE_ROWS)
}

impl OutboxChunk {
    fn add_row(&mut self, row: OutboxRow, guards: ActiveGuards) {
        let key = row.row.row_key();
        // A row whose format cannot be read is unknown work.
        let is_known = has_known_format(&row.row).unwrap_or_default();
        let is_checked = guards.is_guard_enabled(Guard::OwnMarker);
        if key.starts_with(FENCE) && is_known {
            match Fence::from_row(&row.row) {
                Ok(fence) if !is_checked || fence.names_own_marker(&self.table) => {
                    self.fences.push((fence, row));
                }
                // Like every fence, it indicates open work, and the partition must stay in the directory. A marker
                // of another registration in it must stay too, or the work of that partition would never be found.
                _ => self.damaged_fences.extend(key.strip_prefix(FENCE).map(str::to_owned)),
            }
        } else if key.starts_with(CLAIM) && is_known {
            self.claims.push(row);
        } else if key.starts_with(DIRTY) && is_known {
            self.dirty.push(row);
        } else if key.starts_with(MESSAGE) && is_known {
            self.messages.push(row);
        // A receipt is not work. Its message deletes it.
        } else if !key.starts_with(RECEIPT) {
            self.unknown += 1;
        }
    }

    /// Returns the store's time, estimated from the date of this chunk.
    pub(super) fn store_time(&self) -> StoreTime {
        StoreTime::new(self.date, self.sent.unwrap_or_else(Instant::now))
    }

    /// Returns whether the chunk has open work, or unknown rows that may be open work. The partition's fences must
    /// then be kept.
    pub(super) fn may_have_open_work(&self) -> bool {
        let has_rows =
            !(self.claims.is_empty() && self.dirty.is_empty() && self.messages.is_empty());
        has_rows || self.unknown > 0
    }
}

/// Returns the time from a row's Timestamp to `date`, or `None` if either is unknown.
fn row_age(row: &Row, date: Option<Ticks>) -> Option<Duration> {
    let ticks = date?.get().checked_sub(row.timestamp()?.get())?;
    // A negative age means that the row was written after the page's date was taken.
    let ticks = u64::try_from(ticks).unwrap_or(0);
    // A tick is 100 ns.
    Some(Duration::from_nanos(ticks.saturating_mul(100)))
}
