//! Reads the code and the message of an error answer: both from the body, which is JSON or XML, and the code
//! from the header if the body has none.
//!
//! Data errors have their code only in the body; the body of an authentication error can be XML.

use entable_core::{__runtime::error::is_printable, error::ServiceCode};
use serde::Deserialize;

/// The error that an answer contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceRefusal {
    /// The error code from the body or the header. If the answer has none, the usual code of its status.
    pub(crate) code: ServiceCode,
    /// Whether the answer contains an error code. Otherwise, `code` follows from the status.
    pub(crate) named: bool,
    /// The position of the failed operation of a batch, from the prefix of the message.
    pub(crate) index: Option<usize>,
    /// The message, without prefix, request id and time.
    pub(crate) message: String,
}

/// Reads the error of an answer. `header` is the value of `x-ms-error-code`.
pub(crate) fn read_refusal(status: u16, body: &[u8], header: Option<&str>) -> ServiceRefusal {
    let text = String::from_utf8_lossy(body);
    // XML of the service may begin with a byte order mark.
    let text = text.trim_start_matches('\u{feff}').trim();
    let (code, message) = from_json(text).or_else(|| from_xml(text)).unwrap_or_default();
    let code = Some(code).filter(|code| !code.is_empty()).or_else(|| header.map(str::to_owned));
    let code = code.map(|code| printable(&code, CODE_CHARACTERS)).filter(|code| !code.is_empty());
    let (index, message) = split_index(&message);
    // The lines that follow hold the id and the time of the request, which differ with each answer.
    let message = printable(message.lines().next().unwrap_or_default(), MESSAGE_CHARACTERS);
    let message = message.trim_end_matches('.');
    ServiceRefusal {
        named: code.is_some(),
        code: code.map_or_else(|| code_of(status), |code| ServiceCode::parse(&code, status)),
        index,
        message: lower_first(message),
    }
}

/// The most characters of an error's code; the service's longest has 41.
const CODE_CHARACTERS: usize = 80;
/// The most characters of an error's message.
const MESSAGE_CHARACTERS: usize = 400;

/// Returns the text without control characters, which could forge lines of a log or steer a terminal.
/// Cuts the text after `most` characters and then appends an ellipsis.
fn printable(text: &str, most: usize) -> String {
    let mut shown = text.trim().chars().filter(|character| is_printable(*character));
    let mut cut: String = shown.by_ref().take(most).collect();
    if shown.next().is_some() {
        cut.push('\u{2026}');
    }
    cut
}

#[derive(Deserialize)]
struct Body {
    #[serde(rename = "odata.error")]
    error: Fault,
}

#[derive(Deserialize)]
struct Fault {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: Message,
}

#[derive(Deserialize, Default)]
struct Message {
    #[serde(default)]
    value: String,
}

fn from_json(text: &str) -> Option<(String, String)> {
    let body: Body = serde_json::from_str(text).ok()?;
    Some((body.error.code, body.error.message.value))
}

fn from_xml(text: &str) -> Option<(String, String)> {
    let element = |names: [&str; 2]| names.into_iter().find_map(|name| element_text(text, name));
    let code = element(["m:code", "Code"])?;
    Some((code, element(["m:message", "Message"]).unwrap_or_default()))
}

/// Returns the text of the first element of that name.
fn element_text(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}"))?;
    let (_, rest) = rest.split_once('>')?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(super::xml::unescape_xml(text))
}

/// Splits the position off a message such as `3:The specified entity already exists.` Most messages of
/// failed batches have the prefix, not all.
fn split_index(message: &str) -> (Option<usize>, &str) {
    let Some((digits, rest)) = message.split_once(':') else { return (None, message) };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return (None, message);
    }
    digits.parse().map_or((None, message), |index| (Some(index), rest))
}

fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// Returns the usual code of a status, for an answer without a code.
fn code_of(status: u16) -> ServiceCode {
    match status {
        400 => ServiceCode::InvalidInput,
        401 => ServiceCode::NoAuthenticationInformation,
        403 => ServiceCode::AuthorizationFailure,
        404 => ServiceCode::ResourceNotFound,
        405 => ServiceCode::MethodNotAllowed,
        412 => ServiceCode::UpdateConditionNotSatisfied,
        413 => ServiceCode::RequestBodyTooLarge,
        429 => ServiceCode::TooManyRequests,
        500 => ServiceCode::InternalError,
        501 => ServiceCode::NotImplemented,
        503 => ServiceCode::ServerBusy,
        status => ServiceCode::Other(format!("Http{status}").into(), status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_asked_before_the_header() {
        let body = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"3:The specified entity already exists.\nRequestId:x\nTime:y"}}}"#;
        let found = read_refusal(409, body.as_bytes(), Some("Other"));
        assert_eq!(found.code, ServiceCode::EntityAlreadyExists);
        assert_eq!(found.index, Some(3));
        assert_eq!(found.message, "the specified entity already exists");
        assert_eq!(
            read_refusal(409, b"", Some("TableBeingDeleted")).code,
            ServiceCode::TableBeingDeleted
        );
    }

    #[test]
    fn what_a_server_says_is_shown_without_control_characters_and_not_at_length() {
        let long = "x".repeat(100_000);
        let body = format!(
            r#"{{"odata.error":{{"code":"Odd\u001b[2J{long}","message":{{"value":"No\u001b[31m\u202e\u0007 {long}"}}}}}}"#
        );
        let found = read_refusal(400, body.as_bytes(), None);
        let shown = format!("{}|{}", found.message, found.code.as_str());
        assert!(
            shown.len() < 600 && !shown.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{shown}"
        );
        assert!(found.message.starts_with("no[31m x"), "{}", found.message);
        let header = "E\tvil".repeat(1000);
        assert!(read_refusal(400, b"", Some(&header)).code.as_str().len() < 100);
    }

    #[test]
    fn xml_is_read_with_and_without_prefix() {
        let plain = "\u{feff}<?xml version=\"1.0\"?>\n<Error>\n<Code>AuthenticationFailed</Code><Message>Server failed. See</Message></Error>";
        assert_eq!(
            read_refusal(403, plain.as_bytes(), None).code,
            ServiceCode::AuthenticationFailed
        );
        let prefixed = "<m:error xmlns:m=\"x\"><m:code>TableNotFound</m:code><m:message xml:lang=\"en\">0:It &amp; all</m:message></m:error>";
        let found = read_refusal(404, prefixed.as_bytes(), None);
        assert_eq!((found.code, found.index), (ServiceCode::TableNotFound, Some(0)));
        assert_eq!(found.message, "it & all");
    }

    #[test]
    fn an_empty_body_still_has_a_code() {
        let found = read_refusal(412, b"", None);
        assert_eq!(found.code, ServiceCode::UpdateConditionNotSatisfied);
        assert!(!found.named);
        assert_eq!(read_refusal(502, b"<html>", None).code.status(), 502);
    }
}
