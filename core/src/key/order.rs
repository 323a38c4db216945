//! Encodes row keys as bytes that sort in the service's order.
//!
//! The service sorts by PartitionKey, then by RowKey, each by UTF-16 units; stores sort bytes. The
//! UTF-8 order differs from the UTF-16 order in one case: UTF-8 sorts characters of four bytes
//! (surrogate pairs, U+D800 up) after U+E000 to U+FFFF. Raising the lead bytes of the latter, `EE`
//! and `EF`, above `F4` corrects that:
//!
//! ```text
//! PartitionKey  00  RowKey          UTF-8, with lead byte EE as FE and EF as FF
//! ```
//!
//! No key contains U+0000, so the first `00` is the boundary, and a PartitionKey sorts before the
//! longer ones that begin with it.

use std::{borrow::Cow, str::from_utf8};

/// The byte between PartitionKey and RowKey. No key contains U+0000, so the first such byte is the
/// boundary, and a PartitionKey sorts before the longer ones that begin with it.
pub(crate) const BOUNDARY: u8 = 0x00;

/// Encodes PartitionKey and RowKey as bytes that sort as the service sorts rows.
///
/// The PartitionKey must not contain U+0000, which [`check_key`](crate::limits::check_key)
/// guarantees.
///
/// ```
/// use entable_core::key::{decode_sort_key, encode_sort_key};
///
/// let address = encode_sort_key("Sales", "empid_000223");
/// assert_eq!(address, b"Sales\0empid_000223");
/// assert_eq!(decode_sort_key(&address), Some(("Sales".to_owned(), "empid_000223".to_owned())));
/// assert!(encode_sort_key("\u{1f600}", "") < encode_sort_key("\u{ffff}", ""));
/// ```
pub fn encode_sort_key(partition_key: &str, row_key: &str) -> Vec<u8> {
    sort_key_from_key_bytes(partition_key.as_bytes(), row_key.as_bytes())
}

/// Encodes the UTF-8 bytes of both keys as [`encode_sort_key`] does.
///
/// ```
/// use entable_core::key::{encode_sort_key, sort_key_from_key_bytes};
///
/// assert_eq!(sort_key_from_key_bytes(b"Sales", b"223"), encode_sort_key("Sales", "223"));
/// ```
pub fn sort_key_from_key_bytes(partition_key: &[u8], row_key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(partition_key.len() + 1 + row_key.len());
    put_bytes(&mut bytes, partition_key);
    bytes.push(BOUNDARY);
    put_bytes(&mut bytes, row_key);
    bytes
}

/// Decodes PartitionKey and RowKey from [`encode_sort_key`]'s bytes. Returns `None` for bytes that it
/// does not write.
pub fn decode_sort_key(bytes: &[u8]) -> Option<(String, String)> {
    let (partition_key, row_key) = keys_of_sort_key(bytes)?;
    Some((partition_key.into_owned(), row_key.into_owned()))
}

/// Decodes both keys like [`decode_sort_key`], but borrows them if the encoding has not changed them, as is the case for
/// nearly all keys.
///
/// ```
/// use entable_core::key::{encode_sort_key, keys_of_sort_key};
///
/// let address = encode_sort_key("Sales", "223");
/// assert_eq!(keys_of_sort_key(&address), Some(("Sales".into(), "223".into())));
/// assert_eq!(keys_of_sort_key(b"no boundary"), None);
/// ```
pub fn keys_of_sort_key(bytes: &[u8]) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    // UTF-8 never has the bytes FE and FF, so only EE and EF tell a text that was not encoded. ASCII is quicker to check.
    let boundary = bytes.iter().position(|byte| *byte == BOUNDARY)?;
    if let Ok(keys) = from_utf8(bytes)
        && (bytes.is_ascii() || !bytes.iter().any(|byte| matches!(byte, 0xee | 0xef)))
    {
        // The boundary is a character.
        let (partition_key, row_key) = (keys.get(..boundary)?, keys.get(boundary + 1..)?);
        return Some((partition_key.into(), row_key.into()));
    }
    let (partition_key, row_key) = bytes.split_at_checked(boundary)?;
    Some((decode_key(partition_key)?.into(), decode_key(row_key.get(1..)?)?.into()))
}

/// Appends one key in an encoding whose byte order is the service's key order.
pub(crate) fn push_sort_key(bytes: &mut Vec<u8>, key: &str) {
    put_bytes(bytes, key.as_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, key: &[u8]) {
    // UTF-8 never has the bytes FE and FF, so the change can be undone.
    bytes.extend(key.iter().map(|byte| match byte {
        0xee => 0xfe,
        0xef => 0xff,
        byte => *byte,
    }));
}

fn decode_key(bytes: &[u8]) -> Option<String> {
    let utf8 = bytes.iter().map(|byte| match byte {
        0xfe => Some(0xee),
        0xff => Some(0xef),
        // The encoder never leaves these bytes, so it did not write this text.
        0xee | 0xef => None,
        byte => Some(*byte),
    });
    String::from_utf8(utf8.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = String> {
        let edges = proptest::sample::select(vec![
            'a',
            'b',
            ' ',
            '\u{7e}',
            '\u{a0}',
            '\u{7ff}',
            '\u{800}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{f8ff}',
            '\u{ffff}',
            '\u{10000}',
            '\u{10ffff}',
        ]);
        proptest::collection::vec(edges, 0..4).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn bytes_sort_as_the_service_does(a in (key(), key()), b in (key(), key())) {
            let units = |(partition, row): &(String, String)| {
                let units = |key: &str| key.encode_utf16().collect::<Vec<u16>>();
                (units(partition), units(row))
            };
            prop_assert_eq!(
                encode_sort_key(&a.0, &a.1).cmp(&encode_sort_key(&b.0, &b.1)),
                units(&a).cmp(&units(&b))
            );
        }

        #[test]
        fn an_address_comes_back(partition in key(), row in key()) {
            let bytes = encode_sort_key(&partition, &row);
            prop_assert_eq!(decode_sort_key(&bytes), Some((partition, row)));
        }

        #[test]
        fn bytes_that_decode_encode_to_themselves(bytes: Vec<u8>) {
            if let Some((partition, row)) = decode_sort_key(&bytes) {
                prop_assert_eq!(encode_sort_key(&partition, &row), bytes);
            }
        }
    }

    #[test]
    fn keys_without_the_changed_characters_are_borrowed() {
        let is_borrowed = |key| {
            let address = encode_sort_key(key, "");
            matches!(keys_of_sort_key(&address), Some((Cow::Borrowed(borrowed), _)) if borrowed == key)
        };
        assert!(["Sales", "gr\u{fc}n", "\u{1f600}"].into_iter().all(is_borrowed));
        assert!(!is_borrowed("\u{ffee}"));
    }

    #[test]
    fn empty_keys_stay_apart() {
        let addresses = [("", ""), ("", "a"), ("a", ""), ("a", "a"), ("aa", "")];
        let encoded = addresses.map(|(partition, row)| encode_sort_key(partition, row));
        assert!(encoded.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bytes in [&b"a"[..], b"\xee\x80\x80\0", b"a\0\xff", b"\xc3\0", b""] {
            assert_eq!(decode_sort_key(bytes), None, "{bytes:?}");
        }
    }
}
