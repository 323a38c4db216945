//! Reads the rows of a table as they are stored, page by page.

use std::collections::VecDeque;

use super::framework::is_outbox_row;
use crate::{
    backend::{Rows, ScanRequest},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    page::Continuation,
    row::Row,
    store::{Store, task_or_future::TaskOrFuture},
};

/// The largest page, in bytes, after which the next page is read ahead. It bounds the memory for both.
const READ_AHEAD_BYTES: usize = 4 * 1024 * 1024;

/// The rows of a table in the order of their keys, without the rows of the outbox. At most two pages are in
/// memory: the caller works on one page while the next page is read.
pub(crate) struct RowPages<'s> {
    store: Store,
    table: &'s str,
    /// The filters of the remaining requests, starting with the current one.
    filters: VecDeque<Filter>,
    from: Option<Continuation>,
    /// The request for the next page, which runs while the caller works on the current one.
    ahead: Option<TaskOrFuture<Result<Rows>>>,
    rows: VecDeque<Row>,
    requests: u64,
    skipped: u64,
}

impl<'s> RowPages<'s> {
    pub(crate) fn new(store: &Store, table: &'s str, filter: Filter) -> Self {
        Self {
            store: store.clone(),
            table,
            filters: [filter].into(),
            from: None,
            ahead: None,
            rows: VecDeque::new(),
            requests: 0,
            skipped: 0,
        }
    }

    /// Starts reading after these keys.
    pub(crate) fn start_after(self, partition_key: &str, row_key: &str) -> Result<Self> {
        if !self.store.capabilities().ordered {
            let message = "the store does not keep rows in key order, so the work cannot be resumed; start again";
            return Err(Error::new(ErrorKind::Unsupported, message).in_table(self.table));
        }
        // Before the first page there is always one filter.
        let filter = self.filters.front().cloned().unwrap_or(Filter::Constant(true));
        let all = |conditions: [Filter; 2]| {
            let [first, second] = conditions;
            match &filter {
                Filter::Constant(true) => first & second,
                filter => Filter::all([first, second, filter.clone()]),
            }
        };
        // Two ranges: a condition with `or` would make the service read the table from its start.
        let in_partition =
            all([Filter::eq("PartitionKey", partition_key), Filter::gt("RowKey", row_key)]);
        let behind = match &filter {
            Filter::Constant(true) => Filter::gt("PartitionKey", partition_key),
            filter => Filter::gt("PartitionKey", partition_key) & filter.clone(),
        };
        Ok(Self { filters: [in_partition, behind].into(), ..self })
    }

    /// Reads the following pages from `store`, another snapshot of the same store or that store itself. The
    /// position of the reading is a key, so it stays valid.
    pub(crate) fn switch_store(&mut self, store: &Store) {
        self.store = store.clone();
        // The page that is being read is of the old store, and is requested again from the new one.
        self.ahead = None;
    }

    /// Reads on until a row is in memory. Returns `false` at the end of the table.
    pub(crate) async fn read_until_row(&mut self) -> Result<bool> {
        // A page can be empty, or hold nothing but rows of the outbox.
        while self.rows.is_empty() {
            let Some(reading) = self.ahead.take().or_else(|| self.begin_page()) else {
                return Ok(false);
            };
            let page = reading.await?;
            self.requests += 1;
            self.from = page.next;
            if self.from.is_none() {
                self.filters.pop_front();
            }
            let mut bytes = 0;
            for row in page.rows {
                let row = row.map_err(|error| error.in_table(self.table))?;
                bytes += row.byte_len();
                if is_outbox_row(&row) {
                    self.skipped += 1;
                } else {
                    self.rows.push_back(row);
                }
            }
            if bytes <= READ_AHEAD_BYTES {
                self.ahead = self.begin_page();
            }
        }
        Ok(true)
    }

    /// Begins to read the page that follows. Returns `None` at the end of the table.
    fn begin_page(&self) -> Option<TaskOrFuture<Result<Rows>>> {
        let filter = self.filters.front()?.clone();
        let (store, table, from) = (self.store.clone(), self.table.to_owned(), self.from.clone());
        Some(TaskOrFuture::begin_task(async move {
            let from = from.as_ref();
            store
                .scan(ScanRequest { table: &table, filter: &filter, select: None, top: None, from })
                .await
        }))
    }

    /// Ends the reading: requests no further page. A copy calls this for a target table that does not exist, so
    /// that the table counts as empty.
    pub(crate) fn end_reading(&mut self) {
        self.filters.clear();
        self.ahead = None;
    }

    /// Returns the next row in memory.
    pub(crate) fn peek_row(&self) -> Option<&Row> {
        self.rows.front()
    }

    /// Takes all rows in memory.
    pub(crate) fn take_all(&mut self) -> VecDeque<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Takes the next row in memory.
    pub(crate) fn take_row(&mut self) -> Option<Row> {
        self.rows.pop_front()
    }

    /// Returns the number of requests so far.
    pub(crate) const fn request_count(&self) -> u64 {
        self.requests
    }

    /// Returns the number of rows of the outbox that were met.
    pub(crate) const fn outbox_row_count(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DynamicEntity, edm::ValueRef, table::Client};

    #[tokio::test]
    async fn the_page_after_a_switch_comes_from_the_new_store() {
        let store_of = async |value: i32| {
            let client = Client::memory();
            client.create_table("Rows").await.unwrap();
            let keys = (0..1_001).map(|key| format!("{key:04}"));
            let rows = keys.map(|key| DynamicEntity::new("p", key).with("V", value));
            client.dynamic("Rows").bulk().insert_or_replace_all(rows).await.unwrap();
            client.store().clone()
        };
        let (old, new) = (store_of(1).await, store_of(2).await);
        let mut pages = RowPages::new(&old, "Rows", Filter::Constant(true));
        assert!(pages.read_until_row().await.unwrap());
        // The page that follows is being read already, from the store that is left.
        pages.switch_store(&new);
        assert_eq!(pages.take_all().len(), 1_000);
        assert!(pages.read_until_row().await.unwrap());
        let last = pages.take_row().unwrap();
        assert_eq!((last.row_key(), last.get("V").unwrap()), ("1000", Some(ValueRef::Int32(2))));
        assert!(!pages.read_until_row().await.unwrap());
    }
}
