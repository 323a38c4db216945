//! The forms of the protocol that `entable-server` shares with the client.

pub use crate::wire::{
    account_text_to_sign, escape_xml, read_entity_body, read_policies, table_text_to_sign,
};
use crate::{
    backend::azure::{self, AccountKey},
    edm::Ticks,
    row::json,
    wire::{HttpDate, parse_http_date, push_row_address},
};

/// The key of the storage emulator, which is public.
pub const EMULATOR_KEY: &str = azure::EMULATOR_KEY;

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

/// Returns the encoded address of a row below its account, such as `Staff(PartitionKey='Sales',RowKey='empid_000223')`.
pub fn row_address(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut out = Vec::new();
    push_row_address(&mut out, table, partition_key, row_key);
    // The encoded text is ASCII, so the conversion never fails.
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the protocol's text of a number that JSON has no form for.
pub fn text_of_not_finite(value: f64) -> &'static str {
    json::text_of_not_finite(value)
}
