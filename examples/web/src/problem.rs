//! Maps errors of the store to statuses of HTTP.

use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

/// A response that is no success.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    message: String,
    retry_after: Option<Duration>,
}

impl Problem {
    /// Makes a response with a message for the caller.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }
}

/// What a caller waits for if the store does not say how long.
const SOON: Duration = Duration::from_secs(1);

impl From<entable::Error> for Problem {
    fn from(error: entable::Error) -> Self {
        let retry_after = error.retry_after();
        let (status, message) = match &error {
            e if e.is_not_found() => (StatusCode::NOT_FOUND, "there is no such employee"),
            e if e.is_unique_violation() => (StatusCode::CONFLICT, "the e-mail is taken"),
            e if e.is_conflict() => (StatusCode::CONFLICT, "the employee exists"),
            e if e.is_precondition_failed() => {
                (StatusCode::PRECONDITION_FAILED, "the employee has changed: read it again")
            }
            e if e.is_throttled() => {
                let waiting = Self::new(StatusCode::TOO_MANY_REQUESTS, "too many requests");
                return Self { retry_after: Some(retry_after.unwrap_or(SOON)), ..waiting };
            }
            e if e.is_invalid_cursor() => (StatusCode::BAD_REQUEST, "`after` is no cursor"),
            // The text says which value breaks which rule, and shows no other data.
            e if e.is_invalid() || e.is_too_large() => {
                return Self::new(StatusCode::BAD_REQUEST, e.message());
            }
            _ => {
                // The text may name tables and keys: it is for the log.
                tracing::error!(%error, "the store failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "the store failed")
            }
        };
        Self::new(status, message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.message}))).into_response();
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up: a caller that comes too early is throttled again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
