//! Tests the seal of a whole entity.

use entable::{
    EdmType, Row, SealFault, Ticks, Value, ValueRef,
    seal::{ValueBinding, properties_to_seal, seal_key_id_of},
};

use crate::{base64, key};

const PLACE: ValueBinding<'static> =
    ValueBinding { table: "People", partition_key: "p", row_key: "r", property: "Seal" };

type Properties<'a> = Vec<(&'a str, ValueRef<'a>)>;

fn properties() -> Properties<'static> {
    vec![
        ("Name", ValueRef::String("Ada")),
        ("A", ValueRef::Int32(1)),
        ("At", ValueRef::DateTime(Ticks::UNIX_EPOCH)),
        ("Bytes", ValueRef::Binary(b"1")),
    ]
}

fn fault(properties: &Properties<'_>, seal: &[u8]) -> Option<SealFault> {
    key(0x42).verify_seal(&PLACE, properties, seal).err().and_then(|error| error.seal_fault())
}

/// A change that the seal has to notice.
type Alteration = fn(&mut Properties<'_>);

#[test]
fn the_vector() {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../vectors/property-envelope.json")).unwrap();
    let expected = base64(vectors["entity_seal"]["seal_b64"].as_str().unwrap());
    let seal = key(0x42).seal(&PLACE, &properties()[..2]).unwrap();
    assert_eq!(seal, expected);
    assert_eq!(seal.len(), 43);
    assert_eq!(seal_key_id_of(&seal).unwrap(), Some(key(0x42).id()));
}

#[test]
fn order_and_the_seal_itself_do_not_count() {
    let seal = key(0x42).seal(&PLACE, &properties()).unwrap();
    let mut read = properties();
    read.reverse();
    read.push(("Seal", ValueRef::Binary(&seal)));
    assert_eq!(fault(&read, &seal), None);
}

#[test]
fn every_change_is_seen() {
    let seal = key(0x42).seal(&PLACE, &properties()).unwrap();
    let changes: [(&str, Alteration); 9] = [
        ("a value", |p| p[1].1 = ValueRef::Int32(2)),
        ("a type", |p| p[1].1 = ValueRef::Int64(1)),
        ("text for bytes", |p| p[3].1 = ValueRef::String("1")),
        ("a name", |p| p[1].0 = "B"),
        ("one less", |p| p.truncate(3)),
        ("one more", |p| p.push(("Z", ValueRef::Boolean(true)))),
        ("none", |p| p.clear()),
        ("two swapped", |p| (p[0].0, p[3].0) = (p[3].0, p[0].0)),
        ("one twice", |p| p.push(p[0])),
    ];
    for (what, change) in changes {
        let mut changed = properties();
        change(&mut changed);
        assert_eq!(fault(&changed, &seal), Some(SealFault::Authentication), "{what}");
    }
    for place in [
        ValueBinding { table: "People2", ..PLACE },
        ValueBinding { partition_key: "pr", row_key: "", ..PLACE },
        ValueBinding { row_key: "s", ..PLACE },
    ] {
        let error = key(0x42).verify_seal(&place, &properties(), &seal).unwrap_err();
        assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{place:?}");
    }
}

#[test]
fn every_bit_of_a_seal_counts() {
    let seal = key(0x42).seal(&PLACE, &properties()).unwrap();
    for bit in 0..seal.len() * 8 {
        let mut changed = seal.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0..2 => SealFault::NotEncrypted,
            2 => SealFault::UnsupportedSuite(changed[2]),
            3..11 => SealFault::KeyNotFound(changed[3..11].try_into().unwrap()),
            _ => SealFault::Authentication,
        };
        assert_eq!(fault(&properties(), &changed), Some(expected));
    }
    for length in 0..seal.len() {
        let expected = if length < 2 { SealFault::NotEncrypted } else { SealFault::Malformed };
        assert_eq!(fault(&properties(), &seal[..length]), Some(expected));
    }
    let longer = [&*seal, &[0]].concat();
    assert_eq!(fault(&properties(), &longer), Some(SealFault::Malformed));
}

#[test]
fn a_property_twice_is_not_sealed() {
    let twice = [("A", ValueRef::Int32(1)), ("A", ValueRef::Int32(2))];
    assert!(key(0x42).seal(&PLACE, &twice).unwrap_err().is_invalid());
}

/// The service knows one NaN only, and some stores give -0.0 back as 0.0.
#[test]
fn doubles_as_stores_return_them() {
    let seal = |v| key(0x42).seal(&PLACE, &[("D", ValueRef::Double(v))]).unwrap();
    assert_eq!(seal(f64::NAN), seal(f64::from_bits(0xfff8_0000_0000_1234)));
    assert_eq!(seal(0.0), seal(-0.0));
    assert_ne!(seal(0.0), seal(f64::MIN_POSITIVE));
}

#[test]
fn a_rows_properties_are_sealed_as_they_stand() {
    let row = Row::build("p", "r").with("A", ValueRef::Int32(1)).unwrap();
    let row = row.with("Name", ValueRef::String("Ada")).unwrap().finish().unwrap();
    let taken = properties_to_seal(&row).unwrap();
    assert_eq!(taken[1].1.edm_type(), EdmType::String);
    let seal = key(0x42).seal(&PLACE, &taken).unwrap();
    assert_eq!(fault(&properties()[..2].to_vec(), &seal), None);
}

/// A seal's key is another one than the values', and the same bytes are no envelope.
#[test]
fn a_seal_is_no_envelope() {
    let seal = key(0x42).seal(&PLACE, &properties()).unwrap();
    let error = key(0x42).decrypt(&PLACE, &seal).unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted));
    let envelope = key(0x42).encrypt(&PLACE, Some(Value::from(1_i32).as_ref()), 0).unwrap();
    assert_eq!(fault(&properties(), &envelope), Some(SealFault::NotEncrypted));
}
