//! The figures that go to the recorder of the `metrics` facade.
//!
//! Without the feature `metrics` each function here does nothing.

use std::time::Duration;

use tokio::time::Instant;

#[cfg(feature = "metrics")]
use crate::limits::saturating_u64;

/// Whether a client reports figures. Only then does the client look at the clock for them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metering {
    #[cfg(feature = "metrics")]
    is_on: bool,
    /// The name of the backend, a label of each figure.
    #[cfg(feature = "metrics")]
    namespace: &'static str,
}

/// What the metrics say of one request: its kind and table, the rows and bytes that it returned or wrote, and
/// whether it failed or was throttled.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "nobody reads figures"))]
pub struct RequestOutcome<'a> {
    /// The kind of the request, such as `read`.
    pub kind: &'static str,
    /// The table, or nothing if the request is about several.
    pub table: &'a str,
    /// The rows that were returned or written.
    pub rows: usize,
    /// The bytes of the rows that were returned or written.
    pub bytes: usize,
    /// Whether the request failed.
    pub is_failed: bool,
    /// Whether the store refused the request because of its load.
    pub is_throttled: bool,
}

impl Metering {
    /// Returns the metering of a client that reports metrics, and registers unit and description of
    /// each metric with the installed recorder.
    #[cfg(feature = "metrics")]
    pub fn enabled() -> Self {
        describe_figures();
        Self { is_on: true, namespace: "" }
    }

    /// Sets the name of the backend that the figures are about.
    pub fn with_backend_name(self, name: &'static str) -> Self {
        #[cfg(feature = "metrics")]
        let named = Self { namespace: name, ..self };
        #[cfg(not(feature = "metrics"))]
        let named = {
            let _ = name;
            self
        };
        named
    }

    /// Returns whether the client reports figures.
    pub const fn is_on(self) -> bool {
        #[cfg(feature = "metrics")]
        let is_on = self.is_on;
        #[cfg(not(feature = "metrics"))]
        let is_on = false;
        is_on
    }

    /// Looks at the clock if the client reports figures.
    pub fn start_timer(self) -> Option<Instant> {
        self.is_on().then(Instant::now)
    }

    /// Reports a verb that has ended. `server` is the host of the store with its port, and `error` the type of
    /// the failure.
    pub fn record_verb(
        self,
        verb: &'static str,
        table: &str,
        server: (Option<&str>, Option<u16>),
        took: Duration,
        error: Option<String>,
    ) {
        #[cfg(feature = "metrics")]
        if self.is_on {
            let mut labels = vec![
                metrics::Label::new("db.system.name", "azure.tables"),
                metrics::Label::new("db.namespace", self.namespace),
                metrics::Label::new("db.operation.name", verb),
                metrics::Label::new("db.collection.name", table.to_owned()),
            ];
            let (host, port) = server;
            let host = host.map(|host| metrics::Label::new("server.address", host.to_owned()));
            let port = port.map(|port| metrics::Label::new("server.port", port.to_string()));
            labels.extend(host.into_iter().chain(port));
            labels.extend(error.map(|error| metrics::Label::new("error.type", error)));
            metrics::histogram!("db.client.operation.duration", labels).record(took.as_secs_f64());
        }
        #[cfg(not(feature = "metrics"))]
        let _ = (verb, table, server, took, error);
    }

    /// Reports a request that has ended.
    pub fn count_request(self, request: RequestOutcome<'_>) {
        #[cfg(feature = "metrics")]
        if self.is_on {
            let count = |name: &'static str, by: usize| {
                let table = request.table.to_owned();
                metrics::counter!(
                    name,
                    "db.namespace" => self.namespace,
                    "db.operation.name" => request.kind,
                    "db.collection.name" => table
                )
                .increment(saturating_u64(by));
            };
            count("entable.requests", 1);
            let counts = [
                ("entable.rows", request.rows),
                ("entable.bytes", request.bytes),
                ("entable.failures", usize::from(request.is_failed)),
                ("entable.throttles", usize::from(request.is_throttled)),
            ];
            counts.into_iter().filter(|(_, by)| *by > 0).for_each(|(name, by)| count(name, by));
        }
        #[cfg(not(feature = "metrics"))]
        let _ = request;
    }

    /// Reports what a worker has seen in a round: its open rows, and the age of the oldest of them.
    pub fn record_open_work(self, open: u64, oldest: Option<Duration>) {
        #[cfg(feature = "metrics")]
        if self.is_on {
            let namespace = self.namespace;
            metrics::counter!("entable.worker.rounds", "db.namespace" => namespace).increment(1);
            #[allow(clippy::cast_precision_loss, reason = "a gauge needs no 52 bits")]
            metrics::gauge!("entable.outbox.open", "db.namespace" => namespace).set(open as f64);
            metrics::gauge!("entable.outbox.lag", "db.namespace" => namespace)
                .set(oldest.unwrap_or_default().as_secs_f64());
        }
        #[cfg(not(feature = "metrics"))]
        let _ = (open, oldest);
    }

    /// Reports passes of a worker over rows of a table.
    pub fn count_passes(self, table: &str, passes: usize) {
        #[cfg(feature = "metrics")]
        if self.is_on {
            metrics::counter!(
                "entable.worker.passes",
                "db.namespace" => self.namespace,
                "db.collection.name" => table.to_owned()
            )
            .increment(saturating_u64(passes));
        }
        #[cfg(not(feature = "metrics"))]
        let _ = (table, passes);
    }

    /// Reports a row or a message that was put into the poison table.
    pub fn count_poisoned(self) {
        #[cfg(feature = "metrics")]
        if self.is_on {
            metrics::counter!("entable.outbox.poisoned", "db.namespace" => self.namespace)
                .increment(1);
        }
    }
}

/// Reports that a layer sends a request again. A layer belongs to no client, so it cannot ask whether
/// the client reports figures: the retry is reported whenever the feature `metrics` is on.
pub(crate) fn count_request_retry(table: &str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("entable.retries", "db.collection.name" => table.to_owned()).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = table;
}

/// Counts the decision about a write whose answer was lost, such as whether it was sent again. Does nothing
/// without the feature `metrics`.
pub(crate) fn count_lost_answer_decision(table: &str, decision: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "entable.lost_answers",
        "db.collection.name" => table.to_owned(),
        "entable.decision" => decision
    )
    .increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (table, decision);
}

/// Counts a lookup in a cache of the process as a hit or a miss. The metric names no client, since
/// clients share caches.
pub fn count_cache_lookup(cache: &'static str, is_hit: bool) {
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "entable.cache.lookups",
        "entable.cache" => cache,
        "entable.hit" => if is_hit { "true" } else { "false" }
    )
    .increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (cache, is_hit);
}

/// Registers the unit and description of each metric with the recorder.
#[cfg(feature = "metrics")]
fn describe_figures() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_histogram!("db.client.operation.duration", Unit::Seconds, "Duration of verbs");
    describe_counter!("entable.requests", Unit::Count, "Requests to the store");
    describe_counter!("entable.rows", Unit::Count, "Rows that requests returned or wrote");
    describe_counter!(
        "entable.bytes",
        Unit::Bytes,
        "Bytes of rows that requests returned or wrote"
    );
    describe_counter!("entable.failures", Unit::Count, "Requests that failed");
    describe_counter!("entable.throttles", Unit::Count, "Requests that the store throttled");
    describe_counter!("entable.retries", Unit::Count, "Requests that were sent again");
    describe_counter!(
        "entable.lost_answers",
        Unit::Count,
        "Decisions about writes without an answer"
    );
    describe_counter!("entable.cache.lookups", Unit::Count, "Lookups in caches");
    describe_counter!(
        "entable.worker.rounds",
        Unit::Count,
        "Rounds of workers through the directory"
    );
    describe_counter!("entable.worker.passes", Unit::Count, "Passes of workers over open rows");
    describe_counter!("entable.outbox.poisoned", Unit::Count, "Work that workers put aside");
    describe_gauge!("entable.outbox.open", Unit::Count, "Open rows that a worker last saw");
    describe_gauge!("entable.outbox.lag", Unit::Seconds, "Age of the oldest open row");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_without_figures_never_looks_at_the_clock() {
        assert!(Metering::default().start_timer().is_none());
    }
}
