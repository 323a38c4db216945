//! Computes the worked example of `docs/envelope.md` again from the text alone, with HMAC and the
//! bare cipher, without this crate's envelopes.

use std::collections::BTreeMap;

use entable::{BlindTokenKey, DataKey, RootKey, Value, ValueRef};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use xaes_256_gcm::{
    Nonce, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};

use crate::{PLACE, hex};

const PAGE: &str = include_str!("../../docs/envelope.md");

/// The lines `name  hex digits` of the page's example; a line that begins with a space goes on.
fn example() -> BTreeMap<&'static str, Vec<u8>> {
    let text = PAGE.split("```example\n").nth(1).unwrap().split("```").next().unwrap();
    let mut values: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut last = "";
    for line in text.lines() {
        let digits = match line.strip_prefix(' ') {
            Some(digits) => digits,
            None => {
                let (name, digits) = line.split_once(' ').unwrap();
                last = name;
                digits
            }
        };
        values.entry(last).or_default().extend(hex(digits));
    }
    values
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

/// HKDF-Expand of one block.
fn expand(root: &[u8], info: &[u8]) -> Vec<u8> {
    hmac(root, &[info, &[1]])
}

fn counted(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

#[test]
fn the_example_is_right() {
    let example = example();
    let value = |name: &str| example.get(name).unwrap_or_else(|| panic!("{name}")).clone();
    let root = value("root");
    assert_eq!(value("fingerprint"), expand(&root, b"azt-enc-v1/kid"));
    assert_eq!(value("enc"), expand(&root, b"azt-enc-v1/enc"));
    assert_eq!(value("id"), value("fingerprint")[..8]);
    let mut bound = b"azt-enc-v1\0\x01".to_vec();
    bound.extend(value("id"));
    for part in [PLACE.table, PLACE.partition_key, PLACE.row_key, PLACE.property] {
        bound.extend(counted(part));
    }
    assert_eq!(value("bound"), bound);
    assert_eq!(value("plain"), [b"\x08", &b"123-45-6789"[..]].concat());

    let key: [u8; 32] = value("enc").try_into().unwrap();
    let nonce: [u8; 24] = value("nonce").try_into().unwrap();
    let mut sealed = value("plain");
    let cipher = Xaes256Gcm::new(&key.into());
    let tag = cipher
        .encrypt_inout_detached(&Nonce::from(nonce), &bound, sealed.as_mut_slice().into())
        .unwrap();
    let envelope = [&[0xae, 0x7e, 1], &*value("id"), &value("nonce"), &sealed, &tag].concat();
    assert_eq!(value("envelope"), envelope);

    let key = DataKey::from_root(&RootKey::from_bytes(root.try_into().unwrap()));
    assert_eq!(key.decrypt(&PLACE, &envelope).unwrap(), Some(Value::from("123-45-6789")));
}

#[test]
fn the_seal_and_the_token_are_right() {
    let example = example();
    let root = &example["root"];
    let key = DataKey::from_root(&RootKey::from_bytes(root.clone().try_into().unwrap()));
    let mut sealed = b"azt-seal-v1\0".to_vec();
    sealed.extend(key.id().as_bytes());
    for part in ["People", "p", "r"] {
        sealed.extend(counted(part));
    }
    sealed.extend([0, 0, 0, 2]);
    sealed.extend(counted("A"));
    sealed.extend([0, 0, 0, 5, 2, 0, 0, 0, 1]);
    sealed.extend(counted("Name"));
    sealed.extend([0, 0, 0, 4, 8]);
    sealed.extend(b"Ada");
    let code = hmac(&expand(root, b"azt-enc-v1/seal"), &[&sealed]);
    let seal = [&[0xae, 0x5e, 1], &key.id().as_bytes()[..], &code].concat();
    assert_eq!(example["sealed"], sealed);
    assert_eq!(example["seal"], seal);
    let place = entable::seal::ValueBinding { partition_key: "p", row_key: "r", ..PLACE };
    let properties = [("A", ValueRef::Int32(1)), ("Name", ValueRef::String("Ada"))];
    key.verify_seal(&place, &properties, &seal).unwrap();

    let root = &example["index-root"];
    let info = [b"azt-idx-v1\0", &*counted("People"), &counted("Email")].concat();
    let code = hmac(&expand(root, &info), &[b"\x08ada@example.com"]);
    assert_eq!(example["token"], code[..16]);
    let index = BlindTokenKey::from_root(&RootKey::from_bytes(root.clone().try_into().unwrap()), 1);
    let token = index.token("People", "Email", ValueRef::String("ada@example.com"));
    assert!(PAGE.contains(&format!("`{token}`")));
}
