//! Tests cursors from outside: garbage is refused, and a parsed cursor prints as the text that was
//! read.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entable::Cursor;
use proptest::prelude::*;

/// Golden cursors, with and without a RowKey.
const GOLDEN: [&str; 2] = [
    "AZMlJvoBAAAAAAAAAAIAAAAAAAAAAAUAAABTYWxlcwFlbXBpZF83",
    "AWZBzq8BAAAAAAAAAAIAAAAAAAAAAAUAAABTYWxlcw",
];

#[test]
fn stored_cursors_keep_opening() {
    for text in GOLDEN {
        let cursor: Cursor = text.parse().unwrap();
        assert_eq!(cursor.to_string(), text);
        let json = serde_json::to_string(&cursor).unwrap();
        assert_eq!(serde_json::from_str::<Cursor>(&json).unwrap(), cursor);
    }
}

proptest! {
    #[test]
    fn garbage_is_no_cursor(text in "[A-Za-z0-9_-]{0,80}|.*") {
        let error = text.parse::<Cursor>().unwrap_err();
        prop_assert!(error.is_invalid_cursor());
        prop_assert!(serde_json::from_value::<Cursor>(text.into()).is_err());
    }

    #[test]
    fn garbage_of_the_right_version_is_no_cursor(mut bytes: Vec<u8>) {
        bytes.insert(0, 1);
        let error = URL_SAFE_NO_PAD.encode(bytes).parse::<Cursor>().unwrap_err();
        prop_assert!(error.is_invalid_cursor());
    }

    #[test]
    fn every_flipped_bit_is_found(which in 0_usize..2, byte: prop::sample::Index, bit in 0_u32..8) {
        let mut bytes = URL_SAFE_NO_PAD.decode(GOLDEN[which]).unwrap();
        let at = byte.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let error = URL_SAFE_NO_PAD.encode(bytes).parse::<Cursor>().unwrap_err();
        prop_assert!(error.is_invalid_cursor());
    }
}
