//! What the spans of requests and verbs record: counts and failures.

use tracing::Span;

use crate::error::Error;

/// Records a number in a span. As a signed number, the only whole number that OpenTelemetry knows: exporters
/// write others as text.
pub fn record_count_in_span(span: &Span, field: &str, count: impl TryInto<i64>) {
    span.record(field, count.try_into().unwrap_or(i64::MAX));
}

/// Records the code and status of a failure. Leaves out its message, which may contain keys.
pub fn record_failure_in_span(span: &Span, error: &Error) {
    span.record("error.type", error_code_or_kind(error));
    if let Some(status) = error.status() {
        span.record("db.response.status_code", status);
    }
}

/// Returns the code of an error, or its kind if it has none.
pub fn error_code_or_kind(error: &Error) -> String {
    error.code().map_or_else(|| format!("{:?}", error.kind()), str::to_owned)
}
