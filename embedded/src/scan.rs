//! Reads one page of a query from a snapshot, with bounds for rows and bytes.

use std::{ops::RangeBounds, sync::Arc};

use entable_core::{
    backend::{
        Rows, ScanRequest,
        rules::{PageRoom, ScanRange},
    },
    edm::Value,
    error::Result,
    filter::{Comparison, Filter, KeyBounds},
    key::decode_sort_key,
    page::Continuation,
    row::Row,
};
use redb::{Range, ReadableTable};

use crate::{
    snapshot::{RowsForRead, Snapshot},
    store_file::catch_panic,
    stored_row::{RowCopier, RowDamage},
};

/// Number of rows that are examined before other tasks of the thread get their turn.
const SLICE_ROWS: usize = 512;

/// Number of rows that a page has room for at first.
const FIRST_ROWS: usize = 32;

/// Reads the page that `scan` asks for.
pub(crate) async fn read_page(snapshot: Arc<Snapshot>, scan: ScanRequest<'_>) -> Result<Rows> {
    let Some(mut page) = begin_page(&snapshot, &scan)? else { return Ok(Rows::default()) };
    while snapshot.file().catch_panic(|| page.examine_slice(&scan))? {
        tokio::task::yield_now().await;
    }
    Ok(page.page)
}

/// Begins a page. Returns `None` if no row can be in it.
// A function of its own, so that the future of the scan does not hold what only its beginning needs.
fn begin_page<'v>(snapshot: &'v Snapshot, scan: &ScanRequest<'v>) -> Result<Option<PageScan<'v>>> {
    let room = PageRoom::for_scan(scan)?;
    let keys = ScanRange::for_scan(scan.filter, scan.from);
    // Before the check for an empty range: a missing table is an error even if no row can match.
    let rows = snapshot.file().catch_panic(|| snapshot.rows_of_table(scan.table))?;
    if keys.is_empty() || room.is_full() {
        return Ok(None);
    }
    let bounds = (keys.start_bound(), keys.end_bound());
    let range = catch_panic(|| Ok(ReadableTable::range::<&[u8]>(&rows.table, bounds)?));
    let range = range.map_err(|error| snapshot.engine_error(error))?;
    // Most pages have more rows than one or two, and a page grows by copies of its rows.
    let page =
        Rows { rows: Vec::with_capacity(room.rows_left().min(FIRST_ROWS)), ..Rows::default() };
    Ok(Some(PageScan {
        snapshot,
        rows,
        range,
        copier: match room.rows_left() {
            1 => RowCopier::of_row(scan.select),
            _ => RowCopier::of_page(scan.select),
        },
        all_match: compares_keys_only(scan.filter)
            && KeyBounds::of_filter(scan.filter).single_partition_key().is_some(),
        room,
        page,
    }))
}

/// Returns whether the filter consists of conditions on the keys alone, joined by `and`. A scan of one partition
/// between the filter's key bounds then reads exactly the matching rows, and the filter need not be evaluated on each.
fn compares_keys_only(filter: &Filter) -> bool {
    match filter {
        Filter::And(all) => all.iter().all(compares_keys_only),
        // `ne` sets no bound, and a literal of another type compares by rules of its own.
        Filter::Compare { property, comparison, value: Value::String(_) } => {
            matches!(property.as_str(), "PartitionKey" | "RowKey") && *comparison != Comparison::Ne
        }
        _ => false,
    }
}

/// A page while it is read.
struct PageScan<'v> {
    snapshot: &'v Snapshot,
    rows: &'v RowsForRead,
    copier: RowCopier<'v>,
    range: Range<'v, &'static [u8], &'static [u8]>,
    all_match: bool,
    room: PageRoom,
    page: Rows,
}

impl PageScan<'_> {
    /// Examines up to [`SLICE_ROWS`] rows. Returns `false` at the end of the page.
    fn examine_slice(&mut self, scan: &ScanRequest<'_>) -> Result<bool> {
        for _ in 0..SLICE_ROWS {
            let Some(item) = self.range.next() else { return Ok(false) };
            let (key, value) = item.map_err(|error| self.snapshot.engine_error(error))?;
            let key = key.value();
            // Asked only when there is a next row: a page that ends with the last row has no
            // continuation.
            if self.room.is_full() {
                self.page.next = Some(self.continuation_at(key)?);
                return Ok(false);
            }
            self.room.take_examined();
            // A damaged row counts as one that matches: whether it does is unknown, so the caller has to
            // see it.
            if let Some(row) = self.read_row(scan, key, value.value()).transpose() {
                self.room.take_returned(row.as_ref().map_or(0, |row| row.byte_len()));
                self.page.rows.push(row);
            }
        }
        Ok(true)
    }

    /// Decodes a stored row with the selected properties. Returns `None` if it does not match the filter.
    #[inline]
    fn read_row(
        &mut self,
        scan: &ScanRequest<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Row>> {
        // Nothing is copied before the filter has found the row, and then only what is selected.
        let damaged = |damage| self.snapshot.file().damaged_row_error(key, damage);
        let row = self.rows.open_value(key, value).map_err(damaged)?;
        if !self.all_match {
            match row.matches(scan.filter) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if error.is_corrupt() => return Err(damaged(RowDamage::Row)),
                Err(error) => return Err(error),
            }
        }
        self.copier.copy(&row).map(Some).map_err(damaged)
    }

    fn continuation_at(&self, key: &[u8]) -> Result<Continuation> {
        let (partition_key, row_key) = decode_sort_key(key)
            .ok_or_else(|| self.snapshot.file().corrupt_error("a key cannot be decoded"))?;
        Ok(Continuation { partition_key, row_key: Some(row_key) })
    }
}
