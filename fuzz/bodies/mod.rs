//! What each fuzz target does with its input; `tests/replay` does the same without a fuzzer.
//!
//! An input that is refused is fine. One that is taken has to come back as it went in.

#![allow(dead_code, unused_imports, reason = "each target does one of these")]

mod envelope;
mod history;

use bytes::Bytes;
use entable::{
    Cursor, Filter, KeyBounds, Row, Ticks, ValueRef,
    key::{decode_sort_key, encode_sort_key, escape, unescape},
};
pub(crate) use envelope::envelope;
pub(crate) use history::history;

/// Addresses and escaped text.
pub(crate) fn key_decode(data: &[u8]) {
    if let Some((partition_key, row_key)) = decode_sort_key(data) {
        assert_eq!(encode_sort_key(&partition_key, &row_key), data);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    for terminator in [None, Some('_')] {
        let escaped = escape(text, terminator);
        assert_eq!(unescape(&escaped).unwrap(), text);
    }
    drop(unescape(text));
}

/// Rows from bytes that nobody wrote.
pub(crate) fn row_decode(data: &[u8]) {
    let Ok(row) = Row::from_bytes(Bytes::copy_from_slice(data)) else { return };
    assert_eq!(row.as_bytes(), data);
    let checked = row.check();
    let Ok(bag) = row.to_bag() else {
        assert!(checked.is_err(), "a row that does not decode is not checked");
        return;
    };
    let mut again = Row::build(row.partition_key(), row.row_key());
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next().unwrap() {
        again.put(std::str::from_utf8(name).unwrap(), value);
    }
    let again = match row.timestamp() {
        Some(timestamp) => again.finish_at(timestamp),
        None => again.finish(),
    };
    let again = again.unwrap();
    assert_eq!(again.timestamp(), row.timestamp());
    assert_eq!(format!("{:?}", again.to_bag().unwrap()), format!("{bag:?}"));
    assert_eq!(again.service_size().unwrap(), row.service_size().unwrap());
}

/// Filters from text: what is read prints, reads again, and judges a row.
pub(crate) fn filter_parse(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(filter) = Filter::parse(text) else { return };
    let printed = filter.to_string();
    let again = Filter::parse(&printed).unwrap();
    assert_eq!(again.to_string(), printed, "{text}");
    let mut row = Row::build("p", "r");
    for (name, value) in [
        ("A", ValueRef::Int32(1)),
        ("B", ValueRef::Int64(-1)),
        ("C", ValueRef::Double(0.5)),
        ("D", ValueRef::String("d")),
        ("E", ValueRef::Boolean(true)),
        ("F", ValueRef::DateTime(Ticks::UNIX_EPOCH)),
    ] {
        row.put(name, value);
    }
    let row = row.finish_at(Ticks::UNIX_EPOCH).unwrap();
    let matches = filter.matches(&row).unwrap();
    assert_eq!(again.matches(&row).unwrap(), matches, "{text}");
    let bounds = KeyBounds::of_filter(&filter);
    assert!(!matches || !bounds.is_empty(), "{text}: a row matches within empty bounds");
    let other = bounds.single_partition_key().is_some_and(|partition| partition != "p");
    assert!(!matches || !other, "{text}: a row matches outside of the partition");
}

/// Cursors from text.
pub(crate) fn cursor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(cursor) = text.parse::<Cursor>() else { return };
    let printed = cursor.to_string();
    assert_eq!(printed.parse::<Cursor>().unwrap(), cursor);
}
