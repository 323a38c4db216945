//! Counts the requests of a client, for their price and for the spans of verbs.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{Instrument, Span, field::Empty};

use crate::{
    backend::layer::record_failure,
    error::{Error, Result},
};

tokio::task_local! {
    /// The requests of the verb that runs, where somebody listens to its span.
    static REQUESTS: Arc<AtomicU64>;
}

/// The requests that a client has sent to its store since it was built, and what came of them. Requests
/// that a retry layer repeats count once; those of queues do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The number of point reads.
    pub reads: u64,
    /// The number of pages of queries.
    pub scans: u64,
    /// The number of rows that reads and queries returned.
    pub rows: u64,
    /// The number of writes of one row.
    pub writes: u64,
    /// The number of entity group transactions.
    pub transactions: u64,
    /// The number of operations in writes and transactions.
    pub operations: u64,
    /// The number of requests that created, deleted or listed tables.
    pub table_requests: u64,
    /// The number of requests that failed.
    pub failures: u64,
    /// The number of requests that the store throttled, among the failures.
    pub throttled: u64,
    /// The number of lookups by a blind token that found nothing since the keys of the row's scope are
    /// gone for good.
    pub shredded: u64,
}

/// The price of 10,000 requests of each kind, in any currency.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Prices {
    read: f64,
    scan: f64,
    write: f64,
    transaction: f64,
}

impl Prices {
    /// Creates a table of prices for 10,000 requests each: point reads, pages of queries, writes of one
    /// row, and entity group transactions.
    pub const fn per_10_000(read: f64, scan: f64, write: f64, transaction: f64) -> Self {
        Self { read, scan, write, transaction }
    }
}

impl Usage {
    /// Returns the price of the requests. Requests about tables are priced as writes.
    ///
    /// ```
    /// use entable::{Client, Prices};
    ///
    /// let prices = Prices::per_10_000(0.5, 0.5, 0.6, 0.7);
    /// assert_eq!(Client::memory().usage().price(&prices), 0.0);
    /// ```
    #[allow(clippy::cast_precision_loss, reason = "a price need not be exact to the 16th digit")]
    pub fn price(&self, prices: &Prices) -> f64 {
        let of = |count: u64, price: f64| count as f64 / 10_000.0 * price;
        of(self.reads, prices.read)
            + of(self.scans, prices.scan)
            + of(self.writes.saturating_add(self.table_requests), prices.write)
            + of(self.transactions, prices.transaction)
    }
}

/// The counters of a client.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters {
    reads: AtomicU64,
    scans: AtomicU64,
    rows: AtomicU64,
    writes: AtomicU64,
    transactions: AtomicU64,
    operations: AtomicU64,
    table_requests: AtomicU64,
    failures: AtomicU64,
    throttled: AtomicU64,
    shredded: AtomicU64,
}

impl UsageCounters {
    /// Counts the answer to a point read.
    pub(crate) fn count_read<T>(&self, answer: &Result<Option<T>>) {
        let rows = answer.as_ref().map_or(0, |row| usize::from(row.is_some()));
        self.count(&self.reads, rows, answer.as_ref().err());
    }

    /// Counts the answer to a page of a query that has that many rows.
    pub(crate) fn count_scan<T>(&self, answer: &Result<T>, rows: impl FnOnce(&T) -> usize) {
        self.count(&self.scans, answer.as_ref().map_or(0, rows), answer.as_ref().err());
    }

    /// Counts the answer to a write of that many operations.
    pub(crate) fn count_write<T>(&self, operations: usize, answer: &Result<T>) {
        let kind = if operations == 1 { &self.writes } else { &self.transactions };
        add(&self.operations, operations);
        self.count(kind, 0, answer.as_ref().err());
    }

    /// Counts the answer to a request about tables.
    pub(crate) fn count_table_request<T>(&self, answer: &Result<T>) {
        self.count(&self.table_requests, 0, answer.as_ref().err());
    }

    /// Counts a lookup whose row's scope has no keys any more.
    #[cfg(feature = "encrypt")]
    pub(crate) fn count_shredded(&self, is_shredded: bool) {
        add(&self.shredded, usize::from(is_shredded));
    }

    fn count(&self, kind: &AtomicU64, rows: usize, failure: Option<&Error>) {
        add(kind, 1);
        if rows > 0 {
            add(&self.rows, rows);
        }
        if let Some(error) = failure {
            add(&self.failures, 1);
            add(&self.throttled, usize::from(error.is_throttled()));
        }
        // Fails where no verb with a listener runs.
        let _ = REQUESTS.try_with(|requests| add(requests, 1));
    }

    /// Returns the counts so far.
    pub(crate) fn read(&self) -> Usage {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Usage {
            reads: of(&self.reads),
            scans: of(&self.scans),
            rows: of(&self.rows),
            writes: of(&self.writes),
            transactions: of(&self.transactions),
            operations: of(&self.operations),
            table_requests: of(&self.table_requests),
            failures: of(&self.failures),
            throttled: of(&self.throttled),
            shredded: of(&self.shredded),
        }
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Returns the span of a verb: what was called, on which table. It holds no key and no value.
pub(crate) fn verb_span(verb: &'static str, table: &str) -> Span {
    tracing::info_span!(
        "entable.verb",
        otel.name = verb,
        otel.kind = "client",
        db.system.name = "azure.tables",
        db.operation.name = verb,
        db.collection.name = table,
        db.response.status_code = Empty,
        "error.type" = Empty,
        entable.cost_class = Empty,
        entable.requests = Empty,
        entable.rows = Empty,
    )
}

/// Runs a verb in its span, and records its requests and its failure. Does nothing else if nobody listens.
pub(crate) async fn in_span<T>(span: Span, verb: impl Future<Output = Result<T>>) -> Result<T> {
    let verb = pin!(verb);
    if span.is_disabled() {
        return verb.await;
    }
    let requests = Arc::new(AtomicU64::new(0));
    let done = REQUESTS.scope(requests.clone(), verb).instrument(span.clone()).await;
    span.record("entable.requests", requests.load(Ordering::Relaxed));
    if let Err(error) = &done {
        record_failure(&span, error);
    }
    done
}
