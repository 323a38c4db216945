//! Translates between ETags of the store and headers of HTTP.

use axum::http::{HeaderMap, StatusCode, header};
use entable::ETag;

use crate::problem::Problem;

/// Returns the value of the header `ETag`.
///
/// The store's ETags are weak, `W/"datetime'..'"`, and `If-Match` never matches a weak one. A response here
/// depends on its row alone, so that the part in quotes is a strong ETag of it.
pub fn to_header(etag: &ETag) -> String {
    let text = etag.to_string();
    text.strip_prefix("W/").map_or(text.clone(), str::to_owned)
}

/// What a write expects to find.
#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    /// `If-None-Match: *`: nothing.
    Nothing,
    /// `If-Match: "..."`: this version.
    Version(ETag),
}

/// Returns what the headers of a write expect.
///
/// # Errors
///
/// 428 without a condition, because such a write would undo the change of somebody else, and 400 for conditions
/// of other forms.
pub fn expected(headers: &HeaderMap) -> Result<Expected, Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (Some(tag), None) => version(tag).map(Expected::Version),
        (None, Some("*")) => Ok(Expected::Nothing),
        (None, None) => Err(Problem::new(
            StatusCode::PRECONDITION_REQUIRED,
            "send If-Match with the ETag that you have read, or If-None-Match: * for a new one",
        )),
        _ => Err(Problem::new(StatusCode::BAD_REQUEST, "expected If-Match, or If-None-Match: *")),
    }
}

/// Returns the store's ETag of one tag in a header. A proxy that compresses a response may have made its ETag
/// weak, so that both forms are accepted.
fn version(tag: &str) -> Result<ETag, Problem> {
    let strong = tag.strip_prefix("W/").unwrap_or(tag);
    let inside = strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inside {
        Some(inside) if !inside.contains('"') => Ok(ETag::from(format!("W/{strong}").as_str())),
        _ => Err(Problem::new(StatusCode::BAD_REQUEST, "If-Match takes one ETag in quotes")),
    }
}
