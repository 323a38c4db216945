//! Encodes addresses of rows: `Table(PartitionKey='..',RowKey='..')`, and values of query strings.
//!
//! A `'` in a key is doubled, and the literal is then percent-encoded as UTF-8. Characters that the
//! service forbids in keys have been refused before.

use entable_core::__runtime::batch::is_unreserved_url_byte;

/// Returns the encoded address of a row below its account, such as `Staff(PartitionKey='Sales',RowKey='empid_000223')`.
pub fn row_address(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut out = Vec::new();
    push_row_address(&mut out, table, partition_key, row_key);
    // The encoded text is ASCII, so the conversion never fails.
    String::from_utf8(out).unwrap_or_default()
}

/// Appends the encoded address of a row.
pub(crate) fn push_row_address(out: &mut Vec<u8>, table: &str, partition_key: &str, row_key: &str) {
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    push_key(out, partition_key);
    out.extend_from_slice(b"',RowKey='");
    push_key(out, row_key);
    out.extend_from_slice(b"')");
}

/// Appends a key as the text of a quoted literal. Doubles every `'`, because a single one ends the literal, and
/// percent-encodes bytes that an address cannot contain.
fn push_key(out: &mut Vec<u8>, key: &str) {
    for byte in key.bytes() {
        match byte {
            b'\'' => out.extend_from_slice(b"''"),
            _ => push_encoded(out, byte),
        }
    }
}

/// Appends a value of a query string, percent-encoded. A blank becomes `%20`, never `+`.
pub(crate) fn push_query_value(out: &mut Vec<u8>, text: &str) {
    text.bytes().for_each(|byte| push_encoded(out, byte));
}

/// Percent-encodes a value for a query string. A blank becomes `%20`, never `+`.
pub(crate) fn encode_query_value(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 16);
    push_query_value(&mut out, text);
    // The encoded text is ASCII, so the conversion never fails.
    String::from_utf8(out).unwrap_or_default()
}

fn push_encoded(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if is_unreserved_url_byte(byte) {
        out.push(byte);
        return;
    }
    // A nibble is below 16: there is a digit for each.
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
    out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_awkward_character_is_encoded() {
        assert_eq!(
            row_address("T", "o'brien+%41", "a b:@,$=&\"é😀"),
            "T(PartitionKey='o''brien%2B%2541',RowKey='a%20b%3A%40%2C%24%3D%26%22%C3%A9%F0%9F%98%80')"
        );
        assert_eq!(encode_query_value("a b+c'"), "a%20b%2Bc%27");
    }
}
