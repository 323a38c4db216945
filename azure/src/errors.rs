//! Errors for requests that the service refuses, for unexpected answers and for lost answers. The
//! messages say what the user can do.

use std::time::Duration;

use entable_core::{
    backend::NotSent,
    error::{Error, ErrorKind, ServiceCode},
};
use time::OffsetDateTime;

use crate::{
    account::AccountConnection,
    call::ReadOrWrite,
    credential::Credential,
    transport::{HttpAnswer, SendFailure},
    wire::{ServiceRefusal, parse_http_date, read_refusal},
};

impl AccountConnection {
    /// Returns the error for an answer that refuses the request.
    pub(crate) fn refusal_error(&self, answer: &HttpAnswer, read_or_write: ReadOrWrite) -> Error {
        let found = read_refusal(answer.status(), answer.body(), answer.header("x-ms-error-code"));
        // Callers act on "not found", so a 404 counts only if the service itself gives its code: a proxy or
        // another server may answer 404 too.
        if !found.named && matches!(answer.status(), 300..=399 | 404) {
            return self.foreign_answer_error(answer, read_or_write);
        }
        let error = self.service_error(answer.status(), found, read_or_write);
        match retry_after(answer) {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }

    /// Returns the error for an answer that does not come from the Table service but from a proxy, a
    /// sign-in page or another server. The error is `is_ambiguous` for a write whose answer has the
    /// status of a success, else `is_backend`.
    pub(crate) fn foreign_answer_error(
        &self,
        answer: &HttpAnswer,
        read_or_write: ReadOrWrite,
    ) -> Error {
        let message = format!(
            "`{}` answered {}, but not in the format of the Table service; check the endpoint, proxies and network",
            self.endpoint.url,
            answer.status()
        );
        match read_or_write {
            // A proxy may have passed the write on and replaced only the answer.
            ReadOrWrite::Writes if answer.is_success() => {
                Error::new(ErrorKind::Ambiguous, format!("the write may have happened: {message}"))
            }
            _ => {
                let status = answer.status();
                let code = ServiceCode::Other(format!("Http{status}").into(), status);
                Error::new(ErrorKind::Backend, message).with_code(code)
            }
        }
    }

    /// Returns the error for a request or an operation that the service refused. `found` is read from
    /// the body of an answer, or from a part of the answer to an entity group transaction.
    pub(crate) fn service_error(
        &self,
        status: u16,
        found: ServiceRefusal,
        read_or_write: ReadOrWrite,
    ) -> Error {
        let ServiceRefusal { code, named, index, mut message } = found;
        if message.is_empty() {
            message = format!("the service answered {status}");
        }
        if let Some(advice) = self.advice_on_error(&code) {
            message.push_str("; ");
            message.push_str(advice);
        }
        let error = if read_or_write == ReadOrWrite::Writes && is_outcome_open(status, named) {
            Error::new(ErrorKind::Ambiguous, format!("the write may have happened: {message}"))
                .with_code(code)
        } else {
            Error::service(code, message)
        };
        match index {
            Some(index) => error.at_operation(index),
            None => error,
        }
    }

    /// Returns the error for a request without an answer.
    pub(crate) fn send_failure_error(
        &self,
        failure: SendFailure,
        read_or_write: ReadOrWrite,
    ) -> Error {
        match (failure, read_or_write) {
            (SendFailure::NotSent(source), _) => {
                let message = format!(
                    "the service cannot be reached at `{}`; check the endpoint and network",
                    self.endpoint.url
                );
                Error::new(ErrorKind::Backend, message).with_source(NotSent::new(source))
            }
            (SendFailure::Lost(source), ReadOrWrite::Reads) => {
                let message = format!("the answer from `{}` was lost", self.endpoint.url);
                Error::new(ErrorKind::Backend, message).with_source(source)
            }
            (SendFailure::Lost(source), ReadOrWrite::Writes) => {
                let message =
                    "the answer was lost and the write may have happened; read to find out";
                Error::new(ErrorKind::Ambiguous, message).with_source(source)
            }
        }
    }

    /// Returns the error for a request that was not sent because the credential gave no token in time.
    pub(crate) fn token_timeout_error(&self) -> Error {
        let seconds = self.timeout.as_secs_f32();
        let message = format!(
            "the credential returned no token within {seconds} s; check its network connection"
        );
        Error::new(ErrorKind::Backend, message).with_source(NotSent::new("no token in time"))
    }

    /// Returns the error for a request that exceeded its time limit.
    pub(crate) fn timeout_error(&self, read_or_write: ReadOrWrite) -> Error {
        let seconds = self.timeout.as_secs_f32();
        match read_or_write {
            ReadOrWrite::Reads => Error::new(
                ErrorKind::Backend,
                format!("`{}` did not answer within {seconds} s", self.endpoint.url),
            ),
            ReadOrWrite::Writes => Error::new(
                ErrorKind::Ambiguous,
                format!(
                    "no answer within {seconds} s, and the write may have happened; read to find out"
                ),
            ),
        }
    }

    /// Returns advice on an error code for the kind of credential in use, or `None` if there is none.
    fn advice_on_error(&self, code: &ServiceCode) -> Option<&'static str> {
        use ServiceCode as Code;
        Some(match (code, &self.credential) {
            (Code::AuthenticationFailed | Code::AuthorizationFailure, Credential::Key(_)) => {
                "check that the key is this account's and that this machine's clock is right"
            }
            (Code::AuthenticationFailed, Credential::Sas(_)) => {
                "check that the SAS is complete, has started and has not expired"
            }
            (Code::AuthorizationFailure, Credential::Sas(_)) => {
                "the SAS does not cover this table, key range, address or time"
            }
            (Code::AuthorizationPermissionMismatch, Credential::Sas(_)) => {
                "the SAS does not permit this operation; insert-or-replace needs both add and update"
            }
            (Code::AuthorizationResourceTypeMismatch, Credential::Sas(_)) => {
                "the account SAS does not cover this kind of resource"
            }
            (Code::AuthorizationPermissionMismatch, Credential::Token(_)) => {
                "the identity needs a role such as Storage Table Data Contributor; Storage Table Delegator for a \
                 user delegation key"
            }
            (Code::TableNotFound, _) => "create the table first",
            (Code::TableBeingDeleted, _) => "wait until the service has deleted it, about 40 s",
            _ => return None,
        })
    }
}

/// Returns whether a write that was answered with this status may have happened. `named` means that the answer has an
/// error code of the service. With a code, the service answers 501, 505 and 503 ("too busy") before it does any work.
/// After 408, other server errors and errors of a proxy, the write may have happened.
fn is_outcome_open(status: u16, named: bool) -> bool {
    match status {
        408 => true,
        501 | 505 => false,
        503 => !named,
        status => status >= 500,
    }
}

/// Reads how long the service asks to wait, in milliseconds, in seconds or until a date.
fn retry_after(answer: &HttpAnswer) -> Option<Duration> {
    let millis = |name| answer.header(name)?.trim().parse().ok().map(Duration::from_millis);
    millis("retry-after-ms").or_else(|| millis("x-ms-retry-after-ms")).or_else(|| {
        let value = answer.header("retry-after")?.trim();
        value.parse().ok().map(Duration::from_secs).or_else(|| {
            let date = OffsetDateTime::from(parse_http_date(value)?);
            // A date in the past gives a negative duration, which does not convert: no wait is left.
            Some((date - OffsetDateTime::now_utc()).try_into().unwrap_or_default())
        })
    })
}
