//! Envelopes with a given nonce, which nothing outside can ask for.

use serde_json::Value as Json;

use super::{DataKey, RootKey, ValueBinding};
use crate::edm::{Ticks, Value};

const VECTORS: &str = include_str!("../../../tests/vectors/property-envelope.json");

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
        let made = key.encrypt_with(&binding, value.as_ref().map(Value::as_ref), 0, nonce).unwrap();
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
    let envelope = key.encrypt_with(&binding, Some(ada.as_ref()), 16, [9; 24]).unwrap();
    assert_eq!(envelope.len(), 51 + 16);
    assert_eq!(key.decrypt(&binding, &envelope).unwrap(), Some(ada));
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
        assert_eq!(error.seal_fault(), Some(crate::SealFault::Malformed), "{plain:?}");
    }
}

/// Codes over work, as `tests/vectors/authentic-work` has them.
mod work {
    use std::collections::BTreeMap;

    use super::hex;
    use crate::{
        address::{RowAt, TableCase},
        authentic::{HeldValues, MovePlace, Work},
        edm::{Ticks, Value},
        error::SealFault,
        seal::{DataKey, RootKey},
    };

    const VECTORS: &str = include_str!("../../../tests/vectors/authentic-work/work_vectors.txt");
    const ID: &str = "0102030405060708090a0b0c";
    const BODY: &str = r#"{"department":"Sales","id":152}"#;

    fn key(byte: u8) -> DataKey {
        DataKey::from_root(&RootKey::from_bytes([byte; 32]))
    }

    fn vectors() -> BTreeMap<&'static str, Vec<u8>> {
        VECTORS.lines().filter_map(|line| line.split_once(' ')).map(|(n, v)| (n, hex(v))).collect()
    }

    fn place() -> MovePlace<'static> {
        MovePlace {
            id: ID,
            entity_type: "Employee",
            from: RowAt::new("people", "Sales", "00001"),
            to: RowAt::new("people", "Marketing", "00001"),
        }
    }

    fn held(value: Option<Value>) -> HeldValues {
        HeldValues::from([("Ssn".to_owned(), value)])
    }

    fn message(table: &'static str, body: &'static str) -> Work<'static> {
        let (partition_key, name) = ("Sales", "ArchiveEmployee");
        Work::Message { table, partition_key, id: ID, name, version: 1, body, sent: None }
    }

    fn queued(queue: &'static str) -> Work<'static> {
        let (name, version, body) = ("ArchiveEmployee", 1, BODY);
        Work::Queued { queue, id: ID, name, version, body, sent: None }
    }

    #[test]
    fn codes_come_out_as_the_vectors_say() {
        let (vectors, held) = (vectors(), held(Some("123-45-6789".into())));
        assert_eq!(key(0x42).work.as_slice(), vectors["work"]);
        let moved = Work::Move { place: place(), held: &held };
        let code = key(0x42).sign_work(&moved.input(TableCase::Insensitive)).unwrap();
        let all = [
            ("message.mac", key(0x42), message("people", BODY)),
            ("queue.mac", key(0x42), queued("archive")),
            ("move.from.mac", key(0x42), moved),
            ("move.to.mac", key(0x44), Work::Consent { place: place(), code: &code }),
            ("receipt.mac", key(0x44), Work::Arrival { place: place() }),
        ];
        for (name, key, work) in all {
            let code = key.sign_work(&work.input(TableCase::Insensitive)).unwrap();
            assert_eq!(code, vectors[name], "{name}");
            key.verify_work(&work.input(TableCase::Insensitive), &code).unwrap();
            // A code does for its own work alone.
            let another = message("people", BODY);
            let verified = key.verify_work(&another.input(TableCase::Insensitive), &code);
            assert_eq!(verified.is_ok(), name == "message.mac", "{name}");
            for length in 0..code.len() {
                assert!(
                    key.verify_work(&work.input(TableCase::Insensitive), &code[..length]).is_err(),
                    "{length}"
                );
            }
            for at in 0..code.len() {
                let mut changed = code.clone();
                changed[at] ^= 1;
                assert!(
                    key.verify_work(&work.input(TableCase::Insensitive), &changed).is_err(),
                    "{name}, byte {at}"
                );
            }
        }
    }

    #[test]
    fn a_code_covers_every_field_and_its_border() {
        let code =
            key(0x42).sign_work(&message("people", BODY).input(TableCase::Insensitive)).unwrap();
        let at = |table, partition_key, id, name, version, sent| Work::Message {
            table,
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
            let error =
                key(0x42).verify_work(&other.input(TableCase::Insensitive), &code).unwrap_err();
            assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{what}");
        }
        // The case of a table's name is whose marker the worker met.
        key(0x42)
            .verify_work(&message("People", BODY).input(TableCase::Insensitive), &code)
            .unwrap();
        let error = key(0x41)
            .verify_work(&message("people", BODY).input(TableCase::Insensitive), &code)
            .unwrap_err();
        assert!(matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_))));
    }

    #[test]
    fn a_move_is_signed_for_its_values_alone() {
        let sign = |value: Option<Value>| {
            let work_held = held(value);
            key(0x42)
                .sign_work(
                    &Work::Move { place: place(), held: &work_held }.input(TableCase::Insensitive),
                )
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
        let none = HeldValues::new();
        let plain = key(0x42)
            .sign_work(&Work::Move { place: place(), held: &none }.input(TableCase::Insensitive));
        assert!(!codes.contains(&plain.unwrap()));
    }
}
