//! Answers that are no success, and answers that never came, as errors that say what to do.

use std::time::Duration;

use time::OffsetDateTime;

use super::{
    account::Account,
    call::Effect,
    credential::Credential,
    transport::{HttpAnswer, SendFailure},
    wire::{ServiceRefusal, read_refusal},
};
use crate::{
    backend::NotSent,
    error::{Error, ErrorKind, ServiceCode},
};

impl Account {
    /// The error of an answer that refuses.
    pub(super) fn refusal_error(&self, answer: &HttpAnswer, effect: Effect) -> Error {
        let found = read_refusal(answer.status, &answer.body, answer.header("x-ms-error-code"));
        // "Not there" is acted on, and only the service knows: not a page of some other server.
        if !found.named && matches!(answer.status, 300..=399 | 404) {
            return self.foreign_answer_error(answer, effect);
        }
        let error = self.service_error(answer.status, found, effect);
        match retry_after(answer) {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }

    /// The error of an answer that is not the Table service's: of a proxy, a sign-in page, another
    /// server. Where it says success, a write may have come through all the same.
    pub(super) fn foreign_answer_error(&self, answer: &HttpAnswer, effect: Effect) -> Error {
        let message = format!(
            "`{}` answered {} as the Table service does not; check endpoint, proxy and network",
            self.endpoint, answer.status
        );
        match effect {
            Effect::Writes if answer.is_success() => {
                Error::new(ErrorKind::Ambiguous, format!("the write may have happened: {message}"))
            }
            _ => {
                let code =
                    ServiceCode::Other(format!("Http{}", answer.status).into(), answer.status);
                Error::new(ErrorKind::Backend, message).with_code(code)
            }
        }
    }

    /// The error of a refusal, from an answer or from a part of a batch's answer.
    pub(super) fn service_error(
        &self,
        status: u16,
        found: ServiceRefusal,
        effect: Effect,
    ) -> Error {
        let ServiceRefusal { code, named, index, mut message } = found;
        if message.is_empty() {
            message = format!("the service answered {status}");
        }
        if let Some(advice) = self.advice(&code) {
            message.push_str("; ");
            message.push_str(advice);
        }
        let error = if effect == Effect::Writes && is_outcome_open(status, named) {
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

    /// The error of an answer that never came.
    pub(super) fn no_answer_error(&self, failure: SendFailure, effect: Effect) -> Error {
        match (failure, effect) {
            (SendFailure::Unsent(what, source), _) => {
                let message = format!("{what} at `{}`; check endpoint and network", self.endpoint);
                Error::new(ErrorKind::Backend, message).with_source(NotSent::new(source))
            }
            (SendFailure::Token(source), _) => {
                let message = "the credential gave no token; sign in again or check its role";
                Error::new(ErrorKind::Denied, message).with_source(source)
            }
            (SendFailure::Lost(source), Effect::Reads) => {
                let message = format!("the answer of `{}` was lost", self.endpoint);
                Error::new(ErrorKind::Backend, message).with_source(source)
            }
            (SendFailure::Lost(source), Effect::Writes) => {
                let message = "the answer was lost, the write may have happened; read to find out";
                Error::new(ErrorKind::Ambiguous, message).with_source(source)
            }
        }
    }

    /// The error of a request that took too long.
    pub(super) fn timeout_error(&self, effect: Effect) -> Error {
        let seconds = self.timeout.as_secs_f32();
        match effect {
            Effect::Reads => Error::new(
                ErrorKind::Backend,
                format!("`{}` did not answer within {seconds} s", self.endpoint),
            ),
            Effect::Writes => Error::new(
                ErrorKind::Ambiguous,
                format!(
                    "no answer within {seconds} s, the write may have happened; read to find out"
                ),
            ),
        }
    }

    fn advice(&self, code: &ServiceCode) -> Option<&'static str> {
        use ServiceCode as Code;
        Some(match (code, &self.credential) {
            (Code::AuthenticationFailed | Code::AuthorizationFailure, Credential::Key(_)) => {
                "check that the key is this account's and that this machine's clock is right"
            }
            (Code::AuthenticationFailed, Credential::Sas(_)) => {
                "check that the SAS is whole, has begun and has not expired"
            }
            (Code::AuthorizationFailure, Credential::Sas(_)) => {
                "the SAS does not cover this table, key range, address or time"
            }
            (Code::AuthorizationPermissionMismatch, Credential::Sas(_)) => {
                "the SAS does not permit this operation; an insert_or_replace needs both add and update"
            }
            (Code::AuthorizationResourceTypeMismatch, Credential::Sas(_)) => {
                "the account SAS does not cover this kind of resource"
            }
            (Code::AuthorizationPermissionMismatch, Credential::Token(_)) => {
                "the identity needs a role such as Storage Table Data Contributor"
            }
            (Code::TableNotFound, _) => "create the table first",
            (Code::TableBeingDeleted, _) => "wait until the service has deleted it, about 40 s",
            _ => return None,
        })
    }
}

/// Whether a refused write may have happened all the same: the service's own `ServerBusy` comes
/// before any work, other failures of a server or of something on the way do not say.
fn is_outcome_open(status: u16, named: bool) -> bool {
    match status {
        408 => true,
        501 | 505 => false,
        503 => !named,
        status => status >= 500,
    }
}

/// How long the service asks to wait: in milliseconds, seconds, or until a date.
fn retry_after(answer: &HttpAnswer) -> Option<Duration> {
    let millis = |name| answer.header(name)?.trim().parse().ok().map(Duration::from_millis);
    millis("retry-after-ms").or_else(|| millis("x-ms-retry-after-ms")).or_else(|| {
        let value = answer.header("retry-after")?.trim();
        value.parse().ok().map(Duration::from_secs).or_else(|| {
            let date = azure_core::date::parse_rfc1123(value).ok()?;
            Some((date - OffsetDateTime::now_utc()).try_into().unwrap_or_default())
        })
    })
}
