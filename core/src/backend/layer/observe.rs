//! A layer that makes a `tracing` span for each request.

use std::{future::Future, sync::Arc};

use tracing::{Instrument, Span, field::Empty};

use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::{
            forward::forward_to_inner,
            span_fields::{record_count_in_span, record_failure_in_span},
        },
    },
    batch::{Batch, Written},
    error::Result,
    row::Row,
};

/// A layer that makes a `tracing` span of each request, with the database names of OpenTelemetry.
///
/// A span names the operation and the table, and how many rows and operations there were. It holds no key,
/// no value and no text of a filter, unless [`redact`](Self::redact) says so. Around [`Retry`](super::Retry) it shows what the program asked for;
/// inside, it shows each attempt. Verbs make spans of their own, with or without this layer.
///
/// ```
/// use entable_core::backend::{Memory, layer::Observe};
///
/// let store = Observe::around(Memory::new());
/// # let _ = store;
/// ```
#[derive(Debug, Clone)]
pub struct Observe {
    inner: Arc<dyn Backend>,
    server: Option<String>,
    port: Option<u16>,
    shows_keys: bool,
}

impl Observe {
    /// Makes a layer in front of `backend`.
    pub fn around(backend: impl Backend) -> Self {
        Self { inner: Arc::new(backend), server: None, port: None, shows_keys: false }
    }

    /// Sets the `server.address` of spans and metrics. The default is the host that the backend
    /// names, if it names one.
    #[must_use]
    pub fn server(self, address: impl Into<String>) -> Self {
        Self { server: Some(address.into()), ..self }
    }

    /// Sets the `server.port` of spans and metrics, for a store that is not at its default port. The default is the
    /// backend's port. There is no default if [`server`](Self::server) sets another host.
    ///
    /// ```
    /// use entable_core::backend::{Memory, layer::Observe};
    ///
    /// let backend = Observe::around(Memory::new()).server("staff.example.com").port(8_443);
    /// # let _ = backend;
    /// ```
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Sets whether spans leave out the keys of rows and the text of filters with its values; `true` by
    /// default. With `false` they show both as the store gets them: encrypted values stay encrypted, and
    /// filters on them show blind tokens. Keys are often personal data.
    ///
    /// ```
    /// use entable_core::backend::{Memory, layer::Observe};
    ///
    /// let backend = Observe::around(Memory::new()).redact(false);
    /// # let _ = backend;
    /// ```
    #[must_use]
    pub fn redact(self, redact: bool) -> Self {
        Self { shows_keys: !redact, ..self }
    }

    /// Records the keys of a row in a span, if spans show them.
    fn record_keys(&self, span: &Span, partition_key: &str, row_key: Option<&str>) {
        if self.shows_keys {
            span.record("entable.partition_key", partition_key);
            if let Some(row_key) = row_key {
                span.record("entable.row_key", row_key);
            }
        }
    }

    fn request_span(&self, operation: &'static str, table: Option<&str>) -> Span {
        tracing::debug_span!(
            "entable.request",
            otel.name = operation,
            otel.kind = "client",
            db.system.name = "azure.tables",
            db.namespace = self.inner.capabilities().name,
            db.operation.name = operation,
            db.collection.name = table,
            db.operation.batch.size = Empty,
            db.response.status_code = Empty,
            "error.type" = Empty,
            server.address = self.server_address(),
            server.port = self.server_port().map(i64::from),
            db.query.text = Empty,
            entable.partition_key = Empty,
            entable.row_key = Empty,
            entable.rows = Empty,
        )
    }
}

/// Runs a request in its span, and records its failure or the number of its rows.
async fn observe_request<T>(
    span: Span,
    request: impl Future<Output = Result<T>>,
    rows: impl FnOnce(&T) -> usize,
) -> Result<T> {
    let answer = request.instrument(span.clone()).await;
    match &answer {
        Ok(answer) => {
            record_count_in_span(&span, "entable.rows", rows(answer));
        }
        Err(error) => record_failure_in_span(&span, error),
    }
    answer
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Observe {
    forward_to_inner!(store);

    fn server_address(&self) -> Option<&str> {
        self.server.as_deref().or_else(|| self.inner.server_address())
    }

    fn server_port(&self) -> Option<u16> {
        // The port of the backend belongs to the backend's host.
        let inherited = || self.inner.server_port().filter(|_| self.server.is_none());
        self.port.or_else(inherited)
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        let span = self.request_span("read", Some(request.table));
        // Where nobody listens, a request costs no second future.
        if span.is_disabled() {
            return self.inner.read(request);
        }
        self.record_keys(&span, request.partition_key, Some(request.row_key));
        Box::pin(observe_request(span, self.inner.read(request), |row| usize::from(row.is_some())))
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        let span = self.request_span("scan", Some(request.table));
        if span.is_disabled() {
            return self.inner.scan(request);
        }
        if self.shows_keys {
            span.record("db.query.text", tracing::field::display(request.filter));
        }
        Box::pin(observe_request(span, self.inner.scan(request), |page| page.rows.len()))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        let span = self.request_span("apply", Some(batch.table()));
        if span.is_disabled() {
            return self.inner.apply(batch);
        }
        record_count_in_span(&span, "db.operation.batch.size", batch.len());
        if let [first, others @ ..] = batch.operations() {
            let (partition_key, row_key) = first.row().keys();
            self.record_keys(&span, partition_key, others.is_empty().then_some(row_key));
        }
        Box::pin(observe_request(span, self.inner.apply(batch), |written: &Vec<Written>| {
            written.len()
        }))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        let span = match request {
            TableRequest::Create(name) => self.request_span("create_table", Some(name)),
            TableRequest::Delete(name) => self.request_span("delete_table", Some(name)),
            TableRequest::List { .. } => self.request_span("list_tables", None),
        };
        if span.is_disabled() {
            self.inner.tables(request)
        } else {
            Box::pin(observe_request(span, self.inner.tables(request), |_| 0))
        }
    }
}
