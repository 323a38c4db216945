//! A store that promises less than Azure Table storage does: rows without order, reads that lag, answers without a date.

use std::{fmt, future::Future, sync::Mutex};

use entable::{
    Continuation, ServiceCode, Ticks,
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::FaultInjector,
    },
    batch::{Batch, Written},
    prelude::*,
    row::Row,
};

/// The beginning of a fence's RowKey.
const FENCE: &str = "~e0_";

type Event = BoxFuture<'static, ()>;

/// A store that promises less than the one inside.
pub(crate) struct WeakStore {
    inner: FaultInjector,
    is_ordered: bool,
    has_strong_reads: bool,
    /// The event before the second page of the first scan of outbox rows.
    between: Mutex<Option<Event>>,
    /// The table that reads do not show.
    hidden_table: Option<&'static str>,
    /// Changes the date in the store's answers, or removes it.
    date: fn(Ticks) -> Option<Ticks>,
}

impl WeakStore {
    /// A store whose scans return fences last, on a second page. `between` runs once, before such a page
    /// is read.
    pub(crate) fn unordered(
        inner: FaultInjector,
        between: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let between = Mutex::new(Some(Box::pin(between) as Event));
        Self { is_ordered: false, between, ..Self::telling(inner, Some) }
    }

    /// A store whose reads may not show the last writes.
    pub(crate) fn lagging(inner: FaultInjector) -> Self {
        Self { has_strong_reads: false, ..Self::telling(inner, Some) }
    }

    /// A store whose answers have their date changed, or removed, by `date`.
    pub(crate) fn telling(inner: FaultInjector, date: fn(Ticks) -> Option<Ticks>) -> Self {
        Self {
            inner,
            is_ordered: true,
            has_strong_reads: true,
            between: Mutex::default(),
            hidden_table: None,
            date,
        }
    }

    /// The store with a table that reads do not show.
    pub(crate) fn hiding(self, table: &'static str) -> Self {
        Self { hidden_table: Some(table), ..self }
    }

    async fn scan_in_order(&self, request: ScanRequest<'_>) -> Result<Rows, Error> {
        if self.hidden_table == Some(request.table) {
            return Err(Error::service(ServiceCode::TableNotFound, "not there yet"));
        }
        let page = self.inner.scan(request).await?;
        Ok(Rows { date: page.date.and_then(self.date), ..page })
    }

    async fn scan_without_order(&self, request: ScanRequest<'_>) -> Result<Rows, Error> {
        let is_second = request.from.is_some();
        let is_outbox = request.table == "Staff" && request.filter.to_string().contains("'~e");
        let event = if is_second && is_outbox { self.between.lock().unwrap().take() } else { None };
        if let Some(event) = event {
            event.await;
        }
        let mut page = self.inner.scan(ScanRequest { from: None, top: None, ..request }).await?;
        assert!(page.next.is_none(), "the tests have few rows");
        page.rows.retain(|row| {
            let is_fence = row.as_ref().is_ok_and(|row| row.row_key().starts_with(FENCE));
            is_fence == is_second
        });
        let second = Continuation { partition_key: "second".to_owned(), row_key: None };
        page.next = (!is_second).then_some(second);
        Ok(page)
    }
}

impl fmt::Debug for WeakStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakStore").finish_non_exhaustive()
    }
}

impl Backend for WeakStore {
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        let inner = if self.is_ordered { inner } else { inner.unordered() };
        if self.has_strong_reads { inner } else { inner.lagging_reads() }
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        if self.is_ordered {
            Box::pin(self.scan_in_order(request))
        } else {
            Box::pin(self.scan_without_order(request))
        }
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        self.inner.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}
