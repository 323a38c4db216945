//! Encodes addresses of rows: `Table(PartitionKey='..',RowKey='..')`.
//!
//! A `'` in a key is doubled, and the literal is then percent-encoded as UTF-8. Characters that the
//! service forbids in keys have been refused before.

use std::fmt::Write;

use crate::batch::is_unreserved_url_byte;

/// Doubles every `'` of a key, as a quoted literal needs it: otherwise `o'brien` would end the literal early
/// and address another row.
pub(in crate::backend::azure) fn double_quotes(key: &str) -> String {
    key.replace('\'', "''")
}

/// Appends the encoded address of a row.
pub(in crate::backend::azure) fn push_row_address(
    out: &mut Vec<u8>,
    table: &str,
    partition_key: &str,
    row_key: &str,
) {
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    push_encoded(out, partition_key);
    out.extend_from_slice(b"',RowKey='");
    push_encoded(out, row_key);
    out.extend_from_slice(b"')");
}

fn push_encoded(out: &mut Vec<u8>, key: &str) {
    for byte in key.bytes() {
        match byte {
            _ if is_unreserved_url_byte(byte) => out.push(byte),
            b'\'' => out.extend_from_slice(b"''"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                // A nibble is below 16: there is a digit for each.
                let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

/// Percent-encodes a value for a query string. A blank becomes `%20`, never `+`.
pub(crate) fn encode_query_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        match byte {
            _ if is_unreserved_url_byte(byte) => out.push(char::from(byte)),
            _ => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_awkward_character_is_encoded() {
        let mut out = Vec::new();
        push_row_address(&mut out, "T", "o'brien+%41", "a b:@,$=&\"é😀");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "T(PartitionKey='o''brien%2B%2541',RowKey='a%20b%3A%40%2C%24%3D%26%22%C3%A9%F0%9F%98%80')"
        );
        assert_eq!(double_quotes("o'brien"), "o''brien");
        assert_eq!(encode_query_value("a b+c'"), "a%20b%2Bc%27");
    }
}
