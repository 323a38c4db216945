//! Counts the requests of one verb, for the verb's span.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::Span;

use super::span_fields::record_count_in_span;
use crate::metering;

tokio::task_local! {
    /// The counts of the verb that is running, if a subscriber records the verb's span.
    static COUNTS: Arc<VerbCounts>;
}

/// What one call of a verb, such as `insert`, asked of its store: the requests, how many of them were sent
/// again, and the last decision about a write whose answer was lost.
#[derive(Debug, Default)]
pub struct VerbCounts {
    requests: AtomicU64,
    retries: AtomicU64,
    decision: Mutex<Option<&'static str>>,
}

impl VerbCounts {
    /// Runs a verb whose requests are counted, and returns its answer and its counts.
    pub async fn count_requests_of<T>(verb: impl Future<Output = T>) -> (T, Arc<Self>) {
        let counts = Arc::<Self>::default();
        let answer = COUNTS.scope(counts.clone(), verb).await;
        (answer, counts)
    }

    /// Records the verb's requests and retries in its span, and what was decided about a write whose
    /// answer was lost.
    pub fn record_in_span(&self, span: &Span) {
        record_count_in_span(span, "entable.requests", self.requests());
        if self.retries() > 0 {
            record_count_in_span(span, "entable.retries", self.retries());
        }
        if let Some(decision) = self.last_lost_answer_decision() {
            span.record("entable.decision", decision);
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Returns the last decision about a write of the verb whose answer was lost: `carried_out`,
    /// `not_carried_out`, `ambiguous` or `sent_again`. `None` if no such decision was made.
    pub(crate) fn last_lost_answer_decision(&self) -> Option<&'static str> {
        *self.decision.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request of the verb that runs.
pub fn count_request() {
    // Fails where no verb with a listener runs.
    let _ = COUNTS.try_with(|counts| counts.requests.fetch_add(1, Ordering::Relaxed));
}

/// Counts a request that is sent again: in the trace and the metrics under `table`, and in the
/// counts of the verb.
pub(super) fn count_request_retry(table: &str) {
    tracing::debug!(name: "entable.retry", { db.collection.name = table }, "a request is sent again");
    metering::count_request_retry(table);
    // Fails where no verb with a listener runs: nobody would read the count.
    let _ = COUNTS.try_with(|counts| counts.retries.fetch_add(1, Ordering::Relaxed));
}

/// Records the decision about a write whose answer was lost: in the trace, the metrics and the counts
/// of the verb that runs.
pub(super) fn note_lost_answer_decision(table: &str, decision: &'static str) {
    tracing::debug!(
        name: "entable.lost_answer",
        { db.collection.name = table, entable.decision = decision },
        "the answer to a write was lost"
    );
    metering::count_lost_answer_decision(table, decision);
    let _ = COUNTS.try_with(|counts| {
        *counts.decision.lock().unwrap_or_else(PoisonError::into_inner) = Some(decision);
    });
}
