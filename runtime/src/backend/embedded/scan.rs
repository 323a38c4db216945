//! One page of a scan: a bounded walk over one snapshot.

use std::{ops::Bound, sync::Arc};

use redb::{Range, ReadableTable};

use super::{faults::guarded, layout, view::View};
use crate::{
    backend::{
        Rows, Scan, rules,
        window::{EXAMINED_ROWS, Window, page_rows},
    },
    edm::Value,
    error::Result,
    filter::{Comparison, Filter, KeyBounds},
    key::decode_sort_key,
    page::Continuation,
};

/// Rows that are looked at before other tasks get their turn.
const SLICE: usize = 512;
/// Bytes of rows after which a page ends short.
const PAGE_BYTES: usize = 16 * 1024 * 1024;

/// The page that `scan` asks for.
pub(super) async fn page(view: Arc<View>, scan: Scan<'_>) -> Result<Rows> {
    let most = page_rows(&scan)?;
    let window = Window::of(scan.filter, scan.from);
    let table = view.place().guarded(|| view.rows(scan.table))?;
    if window.is_empty() {
        return Ok(Rows::default());
    }
    let start = Bound::Included(&*window.start);
    let end = window.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let range = guarded(|| Ok(ReadableTable::range::<&[u8]>(table, (start, end))?));
    let range = range.map_err(|error| view.place().engine(error))?;
    let mut walk = Walk {
        view: &view,
        range,
        all_match: is_of_keys(scan.filter)
            && KeyBounds::of_filter(scan.filter).one_partition().is_some(),
        most,
        examined: 0,
        bytes: 0,
        page: Rows::default(),
    };
    while view.place().guarded(|| walk.slice(&scan))? {
        tokio::task::yield_now().await;
    }
    Ok(walk.page)
}

/// Whether the filter says nothing but what its bounds say; within one partition these are exact.
fn is_of_keys(filter: &Filter) -> bool {
    match filter {
        Filter::And(all) => all.iter().all(is_of_keys),
        Filter::Compare { property, comparison, value: Value::String(_) } => {
            matches!(property.as_str(), "PartitionKey" | "RowKey") && *comparison != Comparison::Ne
        }
        _ => false,
    }
}

struct Walk<'v> {
    view: &'v View,
    range: Range<'v, &'static [u8], &'static [u8]>,
    all_match: bool,
    most: usize,
    examined: usize,
    bytes: usize,
    page: Rows,
}

impl Walk<'_> {
    /// Looks at some rows; false at the end of the page.
    fn slice(&mut self, scan: &Scan<'_>) -> Result<bool> {
        for _ in 0..SLICE {
            let Some(item) = self.range.next() else { return Ok(false) };
            let (key, value) = item.map_err(|error| self.view.place().engine(error))?;
            let key = key.value();
            if self.is_full() {
                self.page.next = Some(self.continuation(key)?);
                return Ok(false);
            }
            self.examined += 1;
            let row = layout::unseal(key, value.value());
            let row = row.ok_or_else(|| self.view.place().damaged(key))?;
            if self.all_match || scan.filter.matches(&row)? {
                self.bytes += row.as_bytes().len();
                self.page.rows.push(match scan.select {
                    None => row,
                    select => rules::selected(&row, select)?,
                });
            }
        }
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.page.rows.len() == self.most
            || self.examined == EXAMINED_ROWS
            || self.bytes >= PAGE_BYTES
    }

    fn continuation(&self, key: &[u8]) -> Result<Continuation> {
        let (partition_key, row_key) = decode_sort_key(key)
            .ok_or_else(|| self.view.place().corrupt("a key does not decode"))?;
        Ok(Continuation { partition_key, row_key: Some(row_key) })
    }
}
