//! Tests rows: bytes to rows and back, damage of any kind, sizes.

use bytes::Bytes;
use entable::{ETag, Filter, Row, Ticks, Value, ValueRef};
use proptest::prelude::*;

use crate::edm::{same, ticks, values};

fn names() -> impl Strategy<Value = String> {
    "[A-Za-z_\u{e9}][A-Za-z0-9_\u{e9}]{0,8}"
}

prop_compose! {
    pub(crate) fn rows()(
        partition_key in crate::key::legal_text(),
        row_key in crate::key::legal_text(),
        properties in prop::collection::btree_map(names(), values(), 0..6),
        timestamp in prop::option::of(ticks()),
    ) -> (Row, Vec<(String, Value)>) {
        let mut builder = Row::build(&partition_key, &row_key);
        for (name, value) in &properties {
            builder.put(name, value.as_ref());
        }
        let row = match timestamp {
            Some(at) => builder.finish_at(at),
            None => builder.finish(),
        };
        (row.unwrap(), properties.into_iter().collect())
    }
}

/// Reads everything of a row, whatever it says.
fn read_all(row: &Row) {
    let _ = (row.partition_key(), row.row_key(), row.timestamp(), row.etag());
    let _ = (row.get("A"), row.property_count(), row.service_size(), row.to_bag());
    let _ = row.check();
    let _ = Filter::eq("A", 1).matches(row);
    let _ = format!("{row:?}");
}

proptest! {
    #[test]
    fn bytes_there_and_back((row, properties) in rows()) {
        let again = Row::from_bytes(Bytes::copy_from_slice(&row.as_bytes())).unwrap();
        prop_assert_eq!(&again, &row);
        prop_assert_eq!(again.keys(), (again.partition_key(), again.row_key()));
        prop_assert_eq!(again.property_count().unwrap(), properties.len());
        let mut walk = again.properties();
        for (name, value) in &properties {
            let (found, stored) = walk.next().unwrap().unwrap();
            prop_assert_eq!(found, name.as_bytes());
            prop_assert!(same(stored, value.as_ref()));
            prop_assert!(same(again.get(name).unwrap().unwrap(), value.as_ref()));
        }
        prop_assert!(walk.next().unwrap().is_none());
        let bag = again.to_bag().unwrap();
        prop_assert_eq!(bag.len(), properties.len());
        prop_assert_eq!(again.get("NotThere").unwrap(), None);
    }

    #[test]
    fn a_write_changes_the_timestamp_alone((row, properties) in rows(), at in ticks()) {
        let written = row.with_etag(ETag::from("old")).with_timestamp(at);
        prop_assert_eq!(written.timestamp(), Some(at));
        prop_assert_eq!(written.etag(), Some(ETag::from_timestamp(at)));
        prop_assert_eq!(written.property_count().unwrap(), properties.len());
    }

    #[test]
    fn every_cut_is_an_error_or_a_shorter_row((row, properties) in rows()) {
        let bytes = row.as_bytes();
        for end in 0..bytes.len() {
            let Ok(cut) = Row::from_bytes(Bytes::copy_from_slice(&bytes[..end])) else { continue };
            read_all(&cut);
            if let Ok(count) = cut.property_count() {
                prop_assert!(count < properties.len(), "cut between two properties");
            }
        }
    }

    #[test]
    fn every_changed_byte_is_an_error_or_a_value((row, _) in rows(), to: u8) {
        let bytes = row.as_bytes();
        for at in 0..bytes.len() {
            for to in [to, 0, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)] {
                let mut damaged = bytes.to_vec();
                damaged[at] = to;
                if let Ok(row) = Row::from_bytes(damaged.into()) {
                    read_all(&row);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_an_error_or_a_row(mut bytes: Vec<u8>, sane: bool) {
        if sane {
            let header = [&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &bytes].concat();
            bytes = header;
        }
        if let Ok(row) = Row::from_bytes(bytes.into()) {
            read_all(&row);
        }
    }

    #[test]
    fn the_size_is_the_service_formula((row, properties) in rows()) {
        let units = |text: &str| text.encode_utf16().count();
        let mut size = 4 + 2 * (units(row.partition_key()) + units(row.row_key()));
        for (name, value) in &properties {
            size += 8 + 2 * units(name);
            size += match value {
                Value::Boolean(_) => 1,
                Value::Int32(_) => 4,
                Value::Int64(_) | Value::Double(_) | Value::DateTime(_) => 8,
                Value::Guid(_) => 16,
                Value::String(text) => 4 + 2 * units(text),
                Value::Binary(bytes) => 4 + bytes.len(),
            };
        }
        prop_assert_eq!(row.service_size().unwrap(), size);
    }

    #[test]
    fn tags_go_through_text(at in ticks(), other in ".*") {
        let tag = ETag::from_timestamp(at);
        prop_assert_eq!(&ETag::from(tag.to_string().as_str()), &tag);
        prop_assert_eq!(ETag::from(other.as_str()).to_string(), other);
    }
}

#[test]
fn a_tag_is_written_as_the_service_writes_it() {
    let at: Ticks = "2021-05-26T15:48:25.77957Z".parse().unwrap();
    assert_eq!(
        ETag::from_timestamp(at).to_string(),
        "W/\"datetime'2021-05-26T15%3A48%3A25.77957Z'\""
    );
    // Another spelling of the same time is another tag, sent back as it came.
    let other = ETag::from("W/\"datetime'2021-05-26T15%3A48%3A25.7795700Z'\"");
    assert_eq!(other.timestamp(), Some("2021-05-26T15:48:25.77957Z".parse().unwrap()));
    assert_ne!(other, ETag::from_timestamp(at));
    assert_eq!(other.to_string(), "W/\"datetime'2021-05-26T15%3A48%3A25.7795700Z'\"");
}

#[test]
fn the_layout_does_not_change() {
    let row = Row::build("P", "R\u{e9}")
        .with("A", ValueRef::Int32(258))
        .unwrap()
        .with("B", ValueRef::String("x"))
        .unwrap()
        .finish_at(Ticks::new(1).unwrap())
        .unwrap();
    let golden: &[u8] = &[
        1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, b'P', b'R', 0xc3, 0xa9, // header and keys
        1, 0, 2, b'A', 2, 1, 0, 0, // A: Int32
        1, 0, 5, b'B', 1, 0, 0, 0, b'x', // B: String
    ];
    assert_eq!(row.as_bytes(), golden);
}

#[test]
fn damaged_headers_are_named() {
    let row = Row::build("P", "R").with("A", ValueRef::Boolean(true)).unwrap().finish().unwrap();
    type Change = fn(&mut Vec<u8>);
    let damaged = |change: Change| {
        let mut bytes = row.as_bytes().to_vec();
        change(&mut bytes);
        Row::from_bytes(bytes.into()).and_then(|row| row.get("A").map(|_| ())).unwrap_err()
    };
    let cases: [(Change, &str); 7] = [
        (Vec::clear, "the row is empty"),
        (|bytes| bytes[0] = 9, "row format 9 is unknown"),
        (|bytes| bytes.truncate(14), "the keys are truncated"),
        (|bytes| bytes[13] = 0xff, "the keys are not UTF-8"),
        (|bytes| bytes[8] = 0xff, "the Timestamp is not in the years 1 to 9999"),
        (|bytes| bytes[17] = 99, "has an unknown type"),
        (|bytes| bytes[19] = 7, "a value that does not fit its type"),
    ];
    for (change, text) in cases {
        let error = damaged(change);
        assert!(error.is_corrupt() && error.message().contains(text), "{error}");
    }
}

#[test]
fn a_character_of_two_keys_is_damage() {
    let row = Row::build("ab", "").finish().unwrap();
    let mut bytes = row.as_bytes().to_vec();
    // One text of two bytes, of which each key has one.
    (bytes[9], bytes[11]) = (1, 1);
    bytes[13..15].copy_from_slice("\u{e9}".as_bytes());
    let error = Row::from_bytes(bytes.into()).unwrap_err();
    assert!(error.is_corrupt() && error.message().contains("not UTF-8"), "{error}");
}

#[test]
fn what_a_check_found_stays_with_the_row() {
    let ticks = Ticks::UNIX_EPOCH;
    let small = Row::build("P", "R").with("A", ValueRef::Int32(1)).unwrap().finish().unwrap();
    let twice = small.clone();
    for row in [&small, &small.clone(), &small.clone().with_etag(ETag::from_timestamp(ticks))] {
        assert!(row.check().is_ok() && row.check().is_ok());
    }
    assert_eq!(small.with_timestamp(ticks).check().map_err(|error| error.to_string()), Ok(()));
    // Checked or not, they are the same row.
    assert_eq!(small, twice);
    let mut large = Row::build("P", "R");
    large.put("A", ValueRef::String(&"a".repeat(32_769)));
    let large = large.finish().unwrap();
    for row in [&large, &large, &large.clone(), &large.with_timestamp(ticks)] {
        assert!(row.check().unwrap_err().is_too_large());
        let insert = entable::Operation::insert(row.clone());
        assert!(insert.request_bytes().unwrap_err().is_too_large());
        assert!(entable::Batch::single("Staff", insert).unwrap_err().is_too_large());
    }
}
