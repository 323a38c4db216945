//! One partition, as a worker finds it: its fences first, then its open work, by one range read.

use std::time::Duration;

use crate::{
    access::Keys,
    backend::Scan,
    edm::Ticks,
    error::Result,
    plan::outbox::{
        Fence,
        reserved_keys::{
            CLAIM, DIRTY, FENCE, MESSAGE, RECEIPT, RESERVED, RESERVED_END, has_known_format,
        },
    },
    row::Row,
    table::Client,
};

/// A row of the outbox, and its age by the store's own clock when it was read.
#[derive(Debug, Clone)]
pub(super) struct Aged {
    pub(super) row: Row,
    pub(super) age: Option<Duration>,
}

/// The rows of the outbox in one partition.
#[derive(Debug, Default)]
pub(super) struct Partition {
    pub(super) table: String,
    pub(super) fences: Vec<(Fence, Aged)>,
    /// Fences that do not name their markers, by their registrations: they stand, and are left alone.
    pub(super) unread: Vec<String>,
    pub(super) claims: Vec<Aged>,
    pub(super) dirty: Vec<Aged>,
    pub(super) messages: Vec<Aged>,
    /// The store's time when the last page was read.
    pub(super) date: Option<Ticks>,
    /// Work of kinds or formats that this program does not know.
    pub(super) unknown: u64,
}

impl Partition {
    /// Reads the rows. Every fence is read before, or with, the first row of open work.
    pub(super) async fn read(client: &Client, table: &str, partition_key: &str) -> Result<Self> {
        let mut partition = Self { table: table.to_owned(), ..Self::default() };
        let filter = Keys::partition(partition_key).rows(RESERVED..RESERVED_END).filter();
        let mut from = None;
        loop {
            let scan =
                Scan { table, filter: &filter, select: None, top: None, from: from.as_ref() };
            let page = client.store().scan(scan).await?;
            partition.date = page.date;
            for row in page.rows {
                let age = age(&row, page.date);
                partition.sort_in(Aged { row, age })?;
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(partition),
            }
        }
    }

    fn sort_in(&mut self, aged: Aged) -> Result<()> {
        let key = aged.row.row_key();
        let is_known = has_known_format(&aged.row)?;
        if key.starts_with(FENCE) && is_known {
            match Fence::from_row(&aged.row) {
                Ok(fence) => self.fences.push((fence, aged)),
                Err(_) => self.unread.extend(key.strip_prefix(FENCE).map(str::to_owned)),
            }
        } else if key.starts_with(CLAIM) && is_known {
            self.claims.push(aged);
        } else if key.starts_with(DIRTY) && is_known {
            self.dirty.push(aged);
        } else if key.starts_with(MESSAGE) && is_known {
            self.messages.push(aged);
        } else if !key.starts_with(RECEIPT) {
            self.unknown += 1;
        }
        Ok(())
    }

    /// Whether nothing is open that a fence has to stand for.
    pub(super) fn is_idle(&self) -> bool {
        self.claims.is_empty()
            && self.dirty.is_empty()
            && self.messages.is_empty()
            && self.unknown == 0
    }
}

/// How long a row is there as it is, by the clock that wrote its Timestamp; `None`: unknown.
fn age(row: &Row, date: Option<Ticks>) -> Option<Duration> {
    let ticks = date?.get().checked_sub(row.timestamp()?.get())?;
    let ticks = u64::try_from(ticks).unwrap_or(0);
    Some(Duration::from_nanos(ticks.saturating_mul(100)))
}
