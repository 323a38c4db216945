//! Counts the requests of a client, for their price and for the spans of verbs.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
};

use tracing::{Instrument, Span, field::Empty};

use crate::{
    backend::{
        Backend, Rows,
        layer::{
            VerbCounts, count_request as count_request_of_verb, error_code_or_kind,
            record_failure_in_span,
        },
    },
    batch::Batch,
    error::{Error, Result},
    limits::saturating_u64,
    metering::{Metering, RequestOutcome},
    row::Row,
};

/// The requests that a client has sent to its store since it was built, and their results. A request that a retry layer
/// repeats counts once. Requests of queues are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Point reads.
    pub reads: u64,
    /// Pages of queries.
    pub scans: u64,
    /// Rows that reads and queries returned.
    pub rows: u64,
    /// Writes of one row.
    pub writes: u64,
    /// Entity group transactions.
    pub transactions: u64,
    /// Operations in writes and transactions.
    pub operations: u64,
    /// Requests that created, deleted or listed tables.
    pub table_requests: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Failed requests that the store throttled.
    pub throttled: u64,
    /// Lookups by blind token that found nothing because the keys of a scope are permanently deleted, and rows that
    /// such lookups omitted for this reason.
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
    storage: f64,
}

impl Prices {
    /// Creates a table of prices for 10,000 requests each: point reads, pages of queries, writes of one row, and
    /// entity group transactions.
    pub const fn per_10_000(read: f64, scan: f64, write: f64, transaction: f64) -> Self {
        Self { read, scan, write, transaction, storage: 0.0 }
    }

    /// Sets the price of storing a GiB for a month, which a [`Plan`](crate::patterns::Plan) adds.
    #[must_use]
    pub const fn with_storage(self, per_gib_and_month: f64) -> Self {
        Self { storage: per_gib_and_month, ..self }
    }

    /// Returns the prices of one request of each kind: a read, a page of a query, a write of one row, a transaction.
    pub(crate) fn of_each_request(&self) -> [f64; 4] {
        [self.read, self.scan, self.write, self.transaction].map(|price| price / 10_000.0)
    }

    /// Returns the price of storing `bytes` bytes for a month.
    pub(crate) fn of_stored_bytes(&self, bytes: f64) -> f64 {
        bytes / 1_073_741_824.0 * self.storage
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

/// The future of a verb, pinned by its caller. If it were moved into the functions that observe it, it would be stored
/// once for each of them.
pub(crate) type VerbFuture<'v, T> = Pin<&'v mut (dyn Future<Output = Result<T>> + Send + 'v)>;

/// The counters of a client.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters {
    pub(crate) metering: Metering,
    /// The backend's name, for spans.
    backend: &'static str,
    /// The host of the store, for spans, if the backend knows it.
    server: Option<String>,
    /// The port of the store, if it is not the default.
    port: Option<u16>,
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
    /// Creates counters for the requests to a backend. `metering` is whether measurements are reported.
    pub(crate) fn new(metering: Metering, backend: &dyn Backend) -> Self {
        let server = backend.server_address().map(str::to_owned);
        let name = backend.capabilities().name;
        let port = backend.server_port();
        Self {
            metering: metering.with_backend_name(name),
            backend: name,
            server,
            port,
            ..Self::default()
        }
    }

    /// Begins a verb in its own span, which has the verb's name and table, and no key and no value.
    pub(crate) fn begin_verb<'v>(&'v self, name: &'static str, table: &'v str) -> RunningVerb<'v> {
        let span = tracing::info_span!(
            "entable.verb",
            otel.name = name,
            otel.kind = "client",
            db.system.name = "azure.tables",
            db.namespace = self.backend,
            db.operation.name = name,
            db.collection.name = table,
            db.response.status_code = Empty,
            "error.type" = Empty,
            server.address = self.server.as_deref(),
            server.port = self.port.map(i64::from),
            entable.cost_class = Empty,
            entable.requests = Empty,
            entable.rows = Empty,
            entable.retries = Empty,
            entable.decision = Empty,
        );
        RunningVerb { usage: self, name, table, span }
    }

    /// Counts the answer to a point read.
    pub(crate) fn count_read(&self, table: &str, answer: &Result<Option<Row>>) {
        let row = answer.as_ref().ok().and_then(Option::as_ref);
        let request = RequestKind { name: "read", counter: &self.reads };
        self.count_request(request, table, row, answer.as_ref().err());
        add_to_counter(&self.rows, usize::from(row.is_some()));
    }

    /// Counts the answer to one page of a query.
    pub(crate) fn count_scan(&self, table: &str, answer: &Result<Rows>) {
        let rows = answer.as_ref().map_or(&[][..], |page| &page.rows);
        let request = RequestKind { name: "scan", counter: &self.scans };
        let read = rows.iter().filter_map(|row| row.as_ref().ok());
        self.count_request(request, table, read, answer.as_ref().err());
        add_to_counter(&self.rows, rows.len());
    }

    /// Counts the answer to a write.
    pub(crate) fn count_write<T>(&self, batch: &Batch, answer: &Result<T>) {
        let counter = if batch.len() == 1 { &self.writes } else { &self.transactions };
        let request = RequestKind { name: "apply", counter };
        // A failed write wrote no row.
        let operations = if answer.is_ok() { batch.operations() } else { &[] };
        let rows = operations.iter().map(|operation| operation.row());
        self.count_request(request, batch.table(), rows, answer.as_ref().err());
        add_to_counter(&self.operations, batch.len());
    }

    /// Counts the answer to a request about tables.
    pub(crate) fn count_table_request<T>(&self, table: &str, answer: &Result<T>) {
        let request = RequestKind { name: "tables", counter: &self.table_requests };
        self.count_request(request, table, None, answer.as_ref().err());
    }

    /// Counts a lookup or row whose scope has no keys left. Does nothing for `false`.
    pub(crate) fn count_if_shredded(&self, is_shredded: bool) {
        add_to_counter(&self.shredded, usize::from(is_shredded));
    }

    /// Counts one request, and reports it to the metrics recorder if there is one. `rows` are the rows that were read
    /// or written.
    fn count_request<'r>(
        &self,
        request: RequestKind<'_>,
        table: &str,
        rows: impl IntoIterator<Item = &'r Row>,
        failure: Option<&Error>,
    ) {
        add_to_counter(request.counter, 1);
        if let Some(error) = failure {
            add_to_counter(&self.failures, 1);
            add_to_counter(&self.throttled, usize::from(error.is_throttled()));
        }
        count_request_of_verb();
        // Compute sizes only if measurements are reported.
        if !self.metering.is_on() {
            return;
        }
        let sizes = rows.into_iter().map(|row| row.byte_len());
        let (rows, bytes) = sizes.fold((0, 0), |(rows, bytes), size| (rows + 1, bytes + size));
        self.metering.count_request(RequestOutcome {
            kind: request.name,
            table,
            rows,
            bytes,
            is_failed: failure.is_some(),
            is_throttled: failure.is_some_and(Error::is_throttled),
        });
    }

    /// Returns the counts so far.
    pub(crate) fn usage_so_far(&self) -> Usage {
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

/// A kind of requests: its name in metrics, and its counter.
struct RequestKind<'u> {
    name: &'static str,
    counter: &'u AtomicU64,
}

/// A verb that is about to run, with its span.
pub(crate) struct RunningVerb<'v> {
    usage: &'v UsageCounters,
    name: &'static str,
    table: &'v str,
    span: Span,
}

impl RunningVerb<'_> {
    /// Returns the verb's span, for fields that only some verbs have.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Returns whether somebody observes the verb, through its span or the metrics.
    pub(crate) fn is_observed(&self) -> bool {
        !self.span.is_disabled() || self.usage.metering.is_on()
    }

    /// Runs the verb in its span. Records the verb's requests, retries and failure in the span, and its duration in
    /// the metrics. If the span is disabled and metrics are off, only runs the verb.
    pub(crate) async fn run<T>(&self, work: VerbFuture<'_, T>) -> Result<T> {
        if !self.is_observed() {
            return work.await;
        }
        // Boxed because most verbs are not observed, and all of them would reserve space for this future.
        Box::pin(self.observe(work)).await
    }

    async fn observe<T>(&self, work: VerbFuture<'_, T>) -> Result<T> {
        let Self { usage, name, table, span } = self;
        let began = usage.metering.start_timer();
        let (done, counts) = VerbCounts::count_requests_of(work).instrument(span.clone()).await;
        let error = done.as_ref().err();
        if let Some(began) = began {
            let server = (usage.server.as_deref(), usage.port);
            let code = error.map(error_code_or_kind);
            usage.metering.record_verb(name, table, server, began.elapsed(), code);
        }
        counts.record_in_span(span);
        if let Some(error) = error {
            record_failure_in_span(span, error);
        }
        done
    }
}

fn add_to_counter(counter: &AtomicU64, count: usize) {
    counter.fetch_add(saturating_u64(count), Ordering::Relaxed);
}
