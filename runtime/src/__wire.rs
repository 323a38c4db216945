//! The forms of the protocol that `entable-server` shares with the client.

pub use crate::wire::read_entity_body;
use crate::{
    backend::azure::AccountKey,
    edm::Ticks,
    wire::{HttpDate, parse_http_date},
};

/// Returns the signature of a text with the key of an account, as base64.
pub fn sign_text(key: &AccountKey, text: &str) -> String {
    key.sign_text(text)
}

/// Returns the time of an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`, or `None` for another text.
pub fn http_date_ticks(text: &str) -> Option<Ticks> {
    parse_http_date(text)
}

/// Returns a time as an HTTP date.
pub fn http_date_text(time: Ticks) -> String {
    HttpDate(time.into()).to_string()
}
