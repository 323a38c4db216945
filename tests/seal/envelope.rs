//! Tests the contents of an envelope, and inputs that do not open one.

use entable::{
    DataKey, Error, KeyId, SealFault, Ticks, Value, ValueRef,
    seal::{ValueBinding, envelope_range, is_envelope, key_id_of, sealed_len},
};

use crate::{PLACE, key};

fn open(key: &DataKey, envelope: &[u8]) -> SealFault {
    let error = key.decrypt(&PLACE, envelope).unwrap_err();
    assert!(error.is_decrypt(), "{error:?}");
    error.seal_fault().unwrap()
}

/// One value of each type and shape.
pub(crate) fn values() -> Vec<Option<Value>> {
    vec![
        None,
        Some(true.into()),
        Some(false.into()),
        Some(0_i32.into()),
        Some(i32::MIN.into()),
        Some(i64::MAX.into()),
        Some((-0.0_f64).into()),
        Some(f64::NAN.into()),
        Some(f64::NEG_INFINITY.into()),
        Some(Ticks::MIN_PROPERTY.into()),
        Some(Ticks::MAX.into()),
        Some(uuid::Uuid::from_u128(u128::MAX).into()),
        Some("".into()),
        Some("ascii".into()),
        Some("日本語\u{1f511}".into()),
        Some("ü".into()),
        Some("\u{0}\u{80}".into()),
        Some(Vec::new().into()),
        Some(vec![0_u8, 0x80, 0, 0].into()),
    ]
}

#[test]
fn every_type_comes_back() {
    let key = key(1);
    for value in values() {
        for pad in [0, 1, 2, 16, 1000, usize::MAX] {
            let given = value.as_ref().map(Value::as_ref);
            let envelope = key.encrypt(&PLACE, given, pad).unwrap();
            assert_eq!(envelope.len(), sealed_len(given, pad));
            assert!(is_envelope(&envelope));
            let back = key.decrypt(&PLACE, &envelope).unwrap();
            // NaN is itself here.
            assert_eq!(format!("{back:?}"), format!("{value:?}"));
        }
    }
}

#[test]
fn two_encryptions_never_look_alike() {
    let key = key(1);
    let one = key.encrypt(&PLACE, Some(ValueRef::Int32(1)), 0).unwrap();
    let two = key.encrypt(&PLACE, Some(ValueRef::Int32(1)), 0).unwrap();
    assert_ne!(one[11..35], two[11..35]);
    assert_ne!(one[35..], two[35..]);
}

/// Every bit of an envelope: which error it makes is decided by where it stands and nothing else.
#[test]
fn no_bit_may_change() {
    let key = key(1);
    let envelope = key.encrypt(&PLACE, Some(ValueRef::String("123-45-6789")), 0).unwrap();
    let mut messages = std::collections::BTreeSet::new();
    for bit in 0..envelope.len() * 8 {
        let mut changed = envelope.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = key.decrypt(&PLACE, &changed).unwrap_err();
        match (bit / 8, error.seal_fault().unwrap()) {
            (0..2, SealFault::NotEncrypted) => {}
            (2, SealFault::UnsupportedSuite(suite)) => assert_eq!(suite, changed[2]),
            (3..11, SealFault::KeyNotFound(id)) => assert_eq!(id, changed[3..11]),
            (11.., SealFault::Authentication) => drop(messages.insert(format!("{error:?}"))),
            (byte, fault) => panic!("byte {byte}: {fault:?}"),
        }
    }
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn no_part_is_an_envelope() {
    let key = key(1);
    let envelope = key.encrypt(&PLACE, Some(ValueRef::String("123-45-6789")), 0).unwrap();
    for length in 0..envelope.len() {
        let expected = match length {
            0..2 => SealFault::NotEncrypted,
            // Fewer bytes than an encrypted null has.
            2..52 => SealFault::Malformed,
            _ => SealFault::Authentication,
        };
        assert_eq!(open(&key, &envelope[..length]), expected, "{length}");
    }
    let longer = [&*envelope, &[0]].concat();
    assert_eq!(open(&key, &longer), SealFault::Authentication);
}

#[test]
fn a_value_stays_at_its_place() {
    let key = key(1);
    let envelope = key.encrypt(&PLACE, Some(ValueRef::Int32(1)), 0).unwrap();
    for place in [
        ValueBinding { table: "Persons", ..PLACE },
        ValueBinding { partition_key: "sales", ..PLACE },
        ValueBinding { row_key: "00002", ..PLACE },
        ValueBinding { property: "Note", ..PLACE },
        // These bytes in a row, cut at another position.
        ValueBinding { partition_key: "Sales0", row_key: "0001", ..PLACE },
        ValueBinding { table: "PeopleS", partition_key: "ales", ..PLACE },
        ValueBinding { row_key: "", property: "00001Ssn", ..PLACE },
    ] {
        let error = key.decrypt(&place, &envelope).unwrap_err();
        assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{place:?}");
    }
    assert!(key.decrypt(&PLACE, &envelope).is_ok());
}

/// Places that do not fit the usual room take another way to the same bytes.
#[test]
fn long_places_bind_as_short_ones_do() {
    let key = key(1);
    for length in 150..260 {
        let row_key = "x".repeat(length);
        let place = ValueBinding { row_key: &row_key, ..PLACE };
        let envelope = key.encrypt(&place, Some(ValueRef::Int32(7)), 0).unwrap();
        assert_eq!(key.decrypt(&place, &envelope).unwrap(), Some(Value::Int32(7)), "{length}");
        let other = ValueBinding { row_key: &row_key[1..], ..PLACE };
        assert!(key.decrypt(&other, &envelope).is_err());
    }
}

#[test]
fn another_key_is_named_and_opens_nothing() {
    let (own, other) = (key(1), key(2));
    let envelope = other.encrypt(&PLACE, Some(ValueRef::Int32(1)), 0).unwrap();
    assert_eq!(open(&own, &envelope), SealFault::KeyNotFound(*other.id().as_bytes()));
    // The other key's envelope under one's own name.
    let mut renamed = envelope;
    renamed[3..11].copy_from_slice(own.id().as_bytes());
    assert_eq!(open(&own, &renamed), SealFault::Authentication);
}

#[test]
fn errors_name_the_place_and_no_value() {
    let key = key(1);
    let error = key.decrypt(&PLACE, b"123-45-6789").unwrap_err();
    let text = format!("{error:?} {error}");
    assert!(text.contains("People") && text.contains("00001") && text.contains("Ssn"), "{text}");
    assert!(!text.contains("6789"), "{text}");
    let long = "9".repeat(70_000);
    let error = key.encrypt(&PLACE, Some(ValueRef::String(&long)), 0).unwrap_err();
    assert!(error.is_too_large() && error.code() == Some("PropertyValueTooLarge"));
    let text = format!("{error:?}");
    assert!(text.contains("70052") && text.contains("65536") && !text.contains("999"), "{text}");
}

#[test]
fn a_property_holds_so_much() {
    let key = key(1);
    let seal = |text: &str, pad| {
        let sealed = key.encrypt(&PLACE, Some(ValueRef::String(text)), pad)?;
        let back = key.decrypt(&PLACE, &sealed)?;
        assert_eq!(back.as_ref().and_then(Value::as_str), Some(text));
        Ok::<_, Error>(sealed.len())
    };
    assert_eq!(seal(&"x".repeat(65_484), 0).unwrap(), 65_536);
    assert!(seal(&"x".repeat(65_485), 0).unwrap_err().is_too_large());
    // Text that is three bytes a character in UTF-8.
    assert_eq!(seal(&"語".repeat(32_742), 0).unwrap(), 65_536);
    assert!(seal(&"語".repeat(32_743), 0).unwrap_err().is_too_large());
    // Padding takes what room there is.
    assert_eq!(seal(&"x".repeat(65_000), 10_000).unwrap(), 65_536);
    assert_eq!(seal(&"x".repeat(65_483), 16).unwrap(), 65_536);
    assert!(seal(&"x".repeat(65_484), 16).unwrap_err().is_too_large());
}

#[test]
fn padding_hides_the_length() {
    let key = key(1);
    let length = |text: &str| key.encrypt(&PLACE, Some(ValueRef::String(text)), 64).unwrap().len();
    assert!((0..=62).all(|n| length(&"x".repeat(n)) == 51 + 64));
    assert_eq!(key.encrypt(&PLACE, None, 64).unwrap().len(), 51 + 64);
    assert_eq!(length(&"x".repeat(63)), 51 + 128);
}

#[test]
fn a_range_holds_one_keys_envelopes() {
    for bytes in [[0; 8], [1; 8], [0xff; 8], [0, 0, 0, 0, 0, 0, 0xff, 0xff]] {
        let (from, to) = envelope_range(KeyId::from_bytes(bytes));
        let first = [&from[..], &[0; 41]].concat();
        let last = [&from[..], &[0xff; 100]].concat();
        assert!(from <= first && first < to && last < to && from < to);
        assert_eq!(key_id_of(&first).unwrap(), Some(KeyId::from_bytes(bytes)));
        let below = u64::from_be_bytes(bytes).checked_sub(1).map(u64::to_be_bytes);
        for other in below.into_iter().chain([[7; 8]]) {
            let (other, _) = envelope_range(KeyId::from_bytes(other));
            assert!(other < from || other >= to);
        }
    }
}

#[test]
fn a_reader_learns_which_key_to_ask_for() {
    let key = key(1);
    let envelope = key.encrypt(&PLACE, None, 0).unwrap();
    assert_eq!(key_id_of(&envelope).unwrap(), Some(key.id()));
    assert_eq!(key_id_of(b"plain").unwrap(), None);
    assert_eq!(key_id_of(b"").unwrap(), None);
    let cut = key_id_of(&envelope[..40]).unwrap_err();
    assert_eq!(cut.seal_fault(), Some(SealFault::Malformed));
    let future = key_id_of(&[0xae, 0x7e, 2]).unwrap_err();
    assert_eq!(future.seal_fault(), Some(SealFault::UnsupportedSuite(2)));
}
