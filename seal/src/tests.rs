//! Tests what only code in `seal` can reach: envelopes with a given nonce, the padding of values, decrypted
//! bytes that encode no value, the wiping of keys, and codes over work.

use serde_json::Value as Json;

use super::{DataKey, RootKey, ValueBinding};
use entable_core::edm::{Ticks, Value};

const VECTORS: &str = include_str!("../vectors/property-envelope.json");

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.decode(text).unwrap()
}

fn value(json: &Json) -> Option<Value> {
    let v = &json["v"];
    Some(match json["t"].as_str().unwrap() {
        "Null" => return None,
        "String" => Value::from(v.as_str().unwrap()),
        "Int32" => Value::from(i32::try_from(v.as_i64().unwrap()).unwrap()),
        "Int64" => Value::from(v.as_str().unwrap().parse::<i64>().unwrap()),
        "Double" => Value::from(v.as_f64().unwrap()),
        "Boolean" => Value::from(v.as_bool().unwrap()),
        "Guid" => Value::from(v.as_str().unwrap().parse::<uuid::Uuid>().unwrap()),
        "Binary" => Value::from(base64(v.as_str().unwrap())),
        "DateTime" => {
            let ticks: i64 = json["ticks100ns_unix"].as_str().unwrap().parse().unwrap();
            Value::from(Ticks::new(ticks + Ticks::UNIX_EPOCH.get()).unwrap())
        }
        other => panic!("{other}"),
    })
}

#[test]
fn envelopes_come_out_as_the_vectors_say() {
    let vectors: Json = serde_json::from_str(VECTORS).unwrap();
    let root = hex(vectors["data_key_root_hex"].as_str().unwrap());
    let key = DataKey::from_root(&RootKey::from_bytes(root.try_into().unwrap()));
    assert_eq!(key.id().to_string(), vectors["key_id_hex"].as_str().unwrap());
    let properties = vectors["properties"].as_array().unwrap();
    assert_eq!(properties.len(), 11);
    for vector in properties {
        let text = |name: &str| vector[name].as_str().unwrap();
        let binding = ValueBinding {
            table: text("table"),
            partition_key: text("partition_key"),
            row_key: text("row_key"),
            property: text("property"),
        };
        let value = value(&vector["value"]);
        let nonce = hex(text("nonce_hex")).try_into().unwrap();
        let envelope = base64(text("ciphertext_b64"));
        let made =
            key.encrypt_with_nonce(&binding, value.as_ref().map(Value::as_ref), 0, nonce).unwrap();
        assert_eq!(made, envelope, "{vector}");
        assert_eq!(key.decrypt(&binding, &envelope).unwrap(), value);
    }
}

#[test]
fn padded_values_come_out_as_written_down() {
    let key = DataKey::from_root(&RootKey::from_bytes([0x42; 32]));
    let binding = ValueBinding { table: "T", partition_key: "p", row_key: "r", property: "P" };
    let plain = |value, pad| {
        let mut out = Vec::new();
        super::canonical::write_plain(&mut out, value, pad);
        out
    };
    let ada = Value::from("Ada");
    let mut expected = vec![0x88, b'A', b'd', b'a', 0x80];
    expected.resize(16, 0);
    assert_eq!(plain(Some(ada.as_ref()), 16), expected);
    assert_eq!(plain(Some(ada.as_ref()), 1), [8, b'A', b'd', b'a']);
    // A length that is a multiple without the mark goes to the next one.
    assert_eq!(plain(Some(ada.as_ref()), 4).len(), 8);
    assert_eq!(plain(None, 4), [0x80, 0x80, 0, 0]);
    let envelope = key.encrypt_with_nonce(&binding, Some(ada.as_ref()), 16, [9; 24]).unwrap();
    assert_eq!(envelope.len(), 51 + 16);
    assert_eq!(key.decrypt(&binding, &envelope).unwrap(), Some(ada));
}

#[test]
fn keys_are_wiped_and_moving_them_leaves_no_copy() {
    use zeroize::ZeroizeOnDrop;

    fn is_wiped<T: ZeroizeOnDrop>(_: &T) {}
    let key = DataKey::from_root(&RootKey::from_bytes([1; 32]));
    is_wiped(&*key.seal);
    is_wiped(&*key.work);
    // Fails to compile without the feature `zeroize` of the crate.
    is_wiped(&*key.cipher);
    is_wiped(&RootKey::from_bytes([1; 32]));
    // Moving a key moves only a pointer. The secrets stay in place, and none remains on a stack.
    let places = |key: &DataKey| {
        [
            key.seal.as_ptr().addr(),
            key.work.as_ptr().addr(),
            std::ptr::from_ref(&*key.cipher).addr(),
        ]
    };
    let before = places(&key);
    let moved = Box::new(std::hint::black_box(key));
    assert_eq!(places(&moved), before);
    let root = RootKey::from_bytes([1; 32]);
    let at = root.expose().as_ptr().addr();
    assert_eq!(std::hint::black_box(Box::new(root)).expose().as_ptr().addr(), at);
}

#[test]
fn what_the_key_opens_and_is_no_value_is_malformed() {
    for plain in [
        &[][..],
        &[0, 0],
        &[1],
        &[1, 2],
        &[1, 0, 0],
        &[2, 0, 0, 0],
        &[3; 8],
        &[5, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[6; 16],
        &[8, 0xff],
        &[9, 0, 0, 0],
        &[9, 0, 0xd8],
        &[10],
        &[0x7f],
        &[0x80],
        &[0x80, 0],
        &[0x80, 1],
        &[0x80, 0, 0x81, 0],
        &[0x8a, 0x80],
    ] {
        let error = super::canonical::read_plain(plain.to_vec()).unwrap_err();
        assert_eq!(error.seal_fault(), Some(entable_core::SealFault::Malformed), "{plain:?}");
    }
}

/// Codes over work, as `tests/vectors/authentic-work` has them.
mod work {
    use std::collections::BTreeMap;

    use super::hex;
    use crate::{
        DataKey, RootKey,
        authentic::work::{MoveIdentity, SecretValues, Work},
    };
    use entable_core::{
        __runtime::address::Names,
        edm::{Ticks, Value},
        error::SealFault,
    };

    const VECTORS: &str = include_str!("../vectors/work_vectors.txt");
    const ID: &str = "0102030405060708090a0b0c";
    const BODY: &str = r#"{"department":"Sales","id":152}"#;

    fn key(byte: u8) -> DataKey {
        DataKey::from_root(&RootKey::from_bytes([byte; 32]))
    }

    fn vectors() -> BTreeMap<&'static str, Vec<u8>> {
        VECTORS.lines().filter_map(|line| line.split_once(' ')).map(|(n, v)| (n, hex(v))).collect()
    }

    fn place() -> MoveIdentity<'static> {
        MoveIdentity {
            id: ID,
            entity_type: "Employee",
            from: Names::ANY_CASE.row_at("people", "Sales", "00001"),
            to: Names::ANY_CASE.row_at("people", "Marketing", "00001"),
        }
    }

    fn held(value: Option<Value>) -> SecretValues {
        SecretValues::from([("Ssn".to_owned(), value)])
    }

    fn message(table: &'static str, body: &'static str) -> Work<'static> {
        let (partition_key, name) = ("Sales", "ArchiveEmployee");
        let table = Names::ANY_CASE.name(table);
        Work::Message { table, partition_key, id: ID, name, version: 1, body, sent: None }
    }

    fn digest_of(body: &str) -> [u8; 32] {
        use sha2::{Digest, Sha256};
        Sha256::digest(body).into()
    }

    fn queued(queue: &'static str) -> Work<'static> {
        let (name, version, digest) = ("ArchiveEmployee", 1, digest_of(BODY));
        Work::Queued { queue, id: ID, name, version, digest, sent: None }
    }

    #[test]
    fn codes_come_out_as_the_vectors_say() {
        let (vectors, held) = (vectors(), held(Some("123-45-6789".into())));
        assert_eq!(key(0x42).work.as_slice(), vectors["work"]);
        let moved = Work::Move { place: place(), held: &held };
        let code = key(0x42).sign_work(&moved.signed_input()).unwrap();
        let all = [
            ("message.mac", key(0x42), message("people", BODY)),
            ("queue.mac", key(0x42), queued("archive")),
            ("move.from.mac", key(0x42), moved),
            ("move.to.mac", key(0x44), Work::Consent { place: place(), code: &code }),
            ("receipt.mac", key(0x44), Work::Arrival { place: place() }),
        ];
        for (name, key, work) in all {
            let code = key.sign_work(&work.signed_input()).unwrap();
            assert_eq!(code, vectors[name], "{name}");
            key.verify_work(&work.signed_input(), &code).unwrap();
            // A code does for its own work alone.
            let another = message("people", BODY);
            let verified = key.verify_work(&another.signed_input(), &code);
            assert_eq!(verified.is_ok(), name == "message.mac", "{name}");
            for length in 0..code.len() {
                assert!(
                    key.verify_work(&work.signed_input(), &code[..length]).is_err(),
                    "{length}"
                );
            }
            for at in 0..code.len() {
                let mut changed = code.clone();
                changed[at] ^= 1;
                assert!(
                    key.verify_work(&work.signed_input(), &changed).is_err(),
                    "{name}, byte {at}"
                );
            }
        }
    }

    /// Values of all types, those that stores give back in another form among them.
    fn all_values() -> SecretValues {
        let guid = uuid::Uuid::from_bytes([7; 16]);
        let second = Ticks::new(Ticks::UNIX_EPOCH.get() + 10_000_000).unwrap();
        let values = [
            ("Age", Some(Value::from(-7_i32))),
            ("Big", Some(Value::from(9_007_199_254_740_993_i64))),
            ("Binary", Some(Value::from(vec![0_u8, 255]))),
            ("Born", Some(Value::from(second))),
            ("Flag", Some(Value::from(true))),
            ("Guid", Some(Value::from(guid))),
            ("Nan", Some(Value::from(-f64::NAN))),
            ("Note", None),
            ("Pay", Some(Value::from(1.5))),
            ("Text", Some(Value::from("\u{10ffff}\r\n\0"))),
            ("Zero", Some(Value::from(-0.0))),
        ];
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn codes_over_all_types_come_out_as_the_vectors_say() {
        let (vectors, held) = (vectors(), all_values());
        let to_nowhere =
            MoveIdentity { to: Names::ANY_CASE.row_at("people", "", "00001"), ..place() };
        let (name, version) = ("ArchiveEmployee", 1);
        let second = Ticks::new(Ticks::UNIX_EPOCH.get() + 10_000_000);
        let odd = "\u{10ffff}\r\n\0";
        let message = |partition_key, body, sent| Work::Message {
            table: Names::ANY_CASE.name("people"),
            partition_key,
            id: ID,
            name,
            version,
            body,
            sent,
        };
        for (name, work) in [
            ("sealed.mac", Work::Move { place: to_nowhere, held: &held }),
            ("odd.mac", message("", odd, None)),
            ("expires.mac", message("Sales", BODY, second)),
        ] {
            let code = key(0x42).sign_work(&work.signed_input()).unwrap();
            assert_eq!(code, vectors[name], "{name}");
        }
    }

    #[test]
    fn a_code_over_a_move_covers_every_field_and_does_for_no_other_kind() {
        let (held, place) = (held(Some("123-45-6789".into())), place());
        let input = |work: &Work<'_>| work.signed_input();
        let code = key(0x42).sign_work(&input(&Work::Move { place, held: &held })).unwrap();
        let from = |table, partition_key, row_key| MoveIdentity {
            from: Names::ANY_CASE.row_at(table, partition_key, row_key),
            ..place
        };
        let to = |table, partition_key, row_key| MoveIdentity {
            to: Names::ANY_CASE.row_at(table, partition_key, row_key),
            ..place
        };
        let others = [
            MoveIdentity { id: "0102030405060708090a0b0d", ..place },
            MoveIdentity { entity_type: "Employe", ..place },
            from("person", "Sales", "00001"),
            from("people", "Sale", "00001"),
            from("people", "Sales", "00002"),
            to("person", "Marketing", "00001"),
            to("people", "Marketin", "00001"),
            to("people", "Marketing", "00002"),
            // Parts that are shifted over a border.
            from("peopleS", "ales", "00001"),
            from("people", "Sales0", "0001"),
            to("people", "Marketing0", "0001"),
            // Source and target exchanged.
            MoveIdentity { from: place.to, to: place.from, ..place },
        ];
        let kinds = |place| {
            [
                Work::Move { place, held: &held },
                Work::Consent { place, code: &code },
                Work::Arrival { place },
            ]
        };
        for (at, work) in kinds(place).iter().enumerate() {
            let signed = key(0x42).sign_work(&input(work)).unwrap();
            key(0x42).verify_work(&input(work), &signed).unwrap();
            for (other_at, other) in kinds(place).iter().enumerate() {
                let verified = key(0x42).verify_work(&input(other), &signed);
                assert_eq!(verified.is_ok(), at == other_at, "kind {at} as {other_at}");
            }
            assert!(key(0x42).verify_work(&input(&message("people", BODY)), &signed).is_err());
            assert!(key(0x42).verify_work(&input(&queued("people")), &signed).is_err());
            for (number, other) in others.iter().enumerate() {
                let other = &kinds(*other)[at];
                let error = key(0x42).verify_work(&input(other), &signed).unwrap_err();
                assert_eq!(
                    error.seal_fault(),
                    Some(SealFault::Authentication),
                    "kind {at}, field {number}"
                );
            }
        }
        // A consent is to one code.
        let mut another = code.clone();
        another[42] ^= 1;
        let consent = key(0x44).sign_work(&input(&Work::Consent { place, code: &code })).unwrap();
        let other = Work::Consent { place, code: &another };
        assert!(key(0x44).verify_work(&input(&other), &consent).is_err());
        // A queue's message is bound to its queue and its fields.
        let signed = key(0x42).sign_work(&input(&queued("archive"))).unwrap();
        let change = |id, name, version, body| Work::Queued {
            queue: "archive",
            id,
            name,
            version,
            digest: digest_of(body),
            sent: None,
        };
        for other in [
            queued("archives"),
            change("0102030405060708090a0b0d", "ArchiveEmployee", 1, BODY),
            change(ID, "Archive", 1, BODY),
            change(ID, "ArchiveEmployee", 2, BODY),
            change(ID, "ArchiveEmployee", 1, "null"),
        ] {
            assert!(key(0x42).verify_work(&input(&other), &signed).is_err());
        }
    }

    #[test]
    fn a_code_covers_every_field_and_its_border() {
        let code = key(0x42).sign_work(&message("people", BODY).signed_input()).unwrap();
        let at = |table, partition_key, id, name, version, sent| Work::Message {
            table: Names::ANY_CASE.name(table),
            partition_key,
            id,
            name,
            version,
            body: BODY,
            sent,
        };
        let now = Some(Ticks::UNIX_EPOCH);
        for (what, other) in [
            ("table", message("person", BODY)),
            ("body", message("people", "{}")),
            ("partition", at("people", "Sale", ID, "ArchiveEmployee", 1, None)),
            ("id", at("people", "Sales", "0102030405060708090a0b0d", "ArchiveEmployee", 1, None)),
            ("type", at("people", "Sales", ID, "Archive", 1, None)),
            ("version", at("people", "Sales", ID, "ArchiveEmployee", 2, None)),
            ("border", at("peopleS", "ales", ID, "ArchiveEmployee", 1, None)),
            ("expiry", at("people", "Sales", ID, "ArchiveEmployee", 1, now)),
            ("queue", queued("people")),
        ] {
            let error = key(0x42).verify_work(&other.signed_input(), &code).unwrap_err();
            assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{what}");
        }
        // The case of a table's name is whose marker the worker met.
        key(0x42).verify_work(&message("People", BODY).signed_input(), &code).unwrap();
        let error =
            key(0x41).verify_work(&message("people", BODY).signed_input(), &code).unwrap_err();
        assert!(matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_))));
    }

    #[test]
    fn a_move_is_signed_for_its_values_alone() {
        let sign = |value: Option<Value>| {
            let work_held = held(value);
            key(0x42)
                .sign_work(&Work::Move { place: place(), held: &work_held }.signed_input())
                .unwrap()
        };
        let guid = uuid::Uuid::from_bytes([7; 16]);
        let values = [
            None,
            Some(Value::from(true)),
            Some(Value::from(1_i32)),
            Some(Value::from(1_i64)),
            Some(Value::from(1.0)),
            Some(Value::from(Ticks::UNIX_EPOCH)),
            Some(Value::from(guid)),
            Some(Value::from(b"1".to_vec())),
            Some(Value::from("1")),
            Some(Value::from("")),
            Some(Value::from("\u{10ffff}\r\n\0")),
            Some(Value::from(f64::NAN)),
        ];
        let codes: Vec<_> = values.iter().cloned().map(sign).collect();
        for (at, code) in codes.iter().enumerate() {
            assert!(!codes[..at].contains(code), "{:?}", values[at]);
        }
        // Stores give these back as one.
        assert_eq!(sign(Some(Value::from(-0.0))), sign(Some(Value::from(0.0))));
        assert_eq!(sign(Some(Value::from(-f64::NAN))), sign(Some(Value::from(f64::NAN))));
        let none = SecretValues::new();
        let plain = key(0x42).sign_work(&Work::Move { place: place(), held: &none }.signed_input());
        assert!(!codes.contains(&plain.unwrap()));
    }
}
