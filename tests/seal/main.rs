//! Tests encryption: envelopes, seals, tokens, keyrings, caches, legacy rows.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop where something is wrong"
)]

mod cache;
mod docs;
mod entity;
mod envelope;
mod generated;
mod keys;
#[cfg(feature = "legacy-encryption")]
mod legacy;
mod stranger;
mod token;
#[cfg(feature = "keyvault")]
mod vault;
mod xaes;

use entable::{DataKey, RootKey, seal::ValueBinding};

fn key(byte: u8) -> DataKey {
    DataKey::from_root(&RootKey::from_bytes([byte; 32]))
}

const PLACE: ValueBinding<'static> =
    ValueBinding { table: "People", partition_key: "Sales", row_key: "00001", property: "Ssn" };

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.decode(text).unwrap()
}
