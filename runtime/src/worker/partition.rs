//! Reads the outbox rows of one partition: its fences first, then its open work, by one range read.

use std::time::Duration;

use tokio::time::Instant;

use super::lease::StoreTime;
use crate::{
    access::Keys,
    backend::Scan,
    edm::Ticks,
    error::Result,
    outbox::guard::{Guard, Guards},
    plan::outbox::{
        Fence,
        reserved_keys::{
            CLAIM, DIRTY, FENCE, MESSAGE, RECEIPT, RESERVED, RESERVED_END, has_known_format,
        },
    },
    row::Row,
    table::Client,
};

/// An outbox row, and its age when it was read.
#[derive(Debug, Clone)]
pub(super) struct OutboxRow {
    pub(super) row: Row,
    /// The time since its last write, by the store's clock alone. `None` if the store told no time:
    /// such a row counts as new.
    pub(super) age: Option<Duration>,
}

impl OutboxRow {
    /// Returns how long it takes until the row has the age `least`; zero if it has.
    pub(super) fn time_until(&self, least: Duration) -> Duration {
        least.saturating_sub(self.age.unwrap_or_default())
    }

    /// Returns whether the row is known to be at least that old.
    pub(super) fn is_older_than(&self, least: Duration) -> bool {
        self.age.is_some_and(|age| age >= least)
    }
}

/// The outbox rows of one partition, by kind.
#[derive(Debug, Default)]
pub(super) struct Partition {
    pub(super) table: String,
    pub(super) fences: Vec<(Fence, OutboxRow)>,
    /// The registration ids of fence rows that do not name their directory markers. Such fences stay,
    /// and so do their markers.
    pub(super) damaged_fences: Vec<String>,
    pub(super) claims: Vec<OutboxRow>,
    pub(super) dirty: Vec<OutboxRow>,
    pub(super) messages: Vec<OutboxRow>,
    /// The store's time when it sent the last page.
    pub(super) date: Option<Ticks>,
    /// When the last page was asked for.
    pub(super) sent: Option<Instant>,
    /// The number of rows that do not decode, and of rows of kinds or formats that this program does not
    /// know.
    pub(super) unknown: u64,
}

impl Partition {
    /// Reads all outbox rows of a partition.
    pub(super) async fn read(client: &Client, table: &str, partition_key: &str) -> Result<Self> {
        let mut partition = Self { table: table.to_owned(), ..Self::default() };
        // Fences sort before open work, so that every fence is read before or with the first such
        // row: an empty look under a fence's ETag proves that nothing was committed under it.
        let filter = Keys::partition(partition_key).rows(RESERVED..RESERVED_END).filter();
        let mut from = None;
        loop {
            let scan =
                Scan { table, filter: &filter, select: None, top: None, from: from.as_ref() };
            partition.sent = Some(Instant::now());
            let page = client.store().scan(scan).await?;
            partition.date = page.date;
            for row in page.rows {
                match row {
                    Ok(row) => {
                        let age = age(&row, page.date);
                        partition.add(OutboxRow { row, age }, client.outbox().guards)?;
                    }
                    // It may be open work, so that the partition has to stay in the directory.
                    Err(_) => partition.unknown += 1,
                }
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(partition),
            }
        }
    }

    fn add(&mut self, row: OutboxRow, guards: Guards) -> Result<()> {
        let key = row.row.row_key();
        let is_known = has_known_format(&row.row)?;
        let is_checked = guards.holds(Guard::OwnMarker);
        if key.starts_with(FENCE) && is_known {
            match Fence::from_row(&row.row) {
                Ok(fence) if !is_checked || fence.names_own_marker(&self.table) => {
                    self.fences.push((fence, row));
                }
                // It stands for open work, like every fence: the partition must stay in the directory.
                // A marker of another registration that it names must stay too: the work of that
                // partition would never be found.
                _ => self.damaged_fences.extend(key.strip_prefix(FENCE).map(str::to_owned)),
            }
        } else if key.starts_with(CLAIM) && is_known {
            self.claims.push(row);
        } else if key.starts_with(DIRTY) && is_known {
            self.dirty.push(row);
        } else if key.starts_with(MESSAGE) && is_known {
            self.messages.push(row);
        // A receipt is no work: its message deletes it.
        } else if !key.starts_with(RECEIPT) {
            self.unknown += 1;
        }
        Ok(())
    }

    /// Returns the estimate of the store's time that the last page allows.
    pub(super) fn store_time(&self) -> StoreTime {
        StoreTime::new(self.date, self.sent.unwrap_or_else(Instant::now))
    }

    /// Returns whether the partition has no open work that a fence must keep in the directory.
    pub(super) fn is_idle(&self) -> bool {
        self.claims.is_empty()
            && self.dirty.is_empty()
            && self.messages.is_empty()
            && self.unknown == 0
    }
}

/// Returns the time from a row's Timestamp to `date`; `None` if either is unknown.
fn age(row: &Row, date: Option<Ticks>) -> Option<Duration> {
    let ticks = date?.get().checked_sub(row.timestamp()?.get())?;
    let ticks = u64::try_from(ticks).unwrap_or(0);
    // A tick is 100 ns.
    Some(Duration::from_nanos(ticks.saturating_mul(100)))
}
