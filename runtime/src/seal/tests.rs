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
