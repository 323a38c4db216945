//! The key that makes blind tokens: keyed hashes for looking up an encrypted value.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{binding::length_prefix_bytes, canonical, root::RootKey};
use entable_core::edm::ValueRef;

/// The digits of base32hex. They sort by their values and are allowed in keys.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
/// Number of characters of a blind token.
const CHARACTERS: usize = 26;

/// A key that makes blind tokens: the `{f:hmac}` parts of keys and the companion properties of `blind` fields. It is
/// independent of the data keys: rotating a data key does not affect lookups.
///
/// Equal values of a field have equal blind tokens. A reader of the table learns only which values are equal and how
/// often each occurs.
///
/// ```
/// use entable_core::ValueRef;
/// use entable_seal::{BlindTokenKey, RootKey};
///
/// let key = BlindTokenKey::from_root(&RootKey::from_bytes([0x43; 32]), 1);
/// let token = key.token("People", "Email", ValueRef::String("ada@example.com"));
/// assert_eq!(token, "7fk5gujb7kccdq7728bvdqsnvg");
/// ```
pub struct BlindTokenKey {
    version: u32,
    root: RootKey,
}

impl BlindTokenKey {
    /// Derives the key from a root key. Versions begin at 1 and increase by 1 with each new key.
    pub fn from_root(root: &RootKey, version: u32) -> Self {
        Self { version, root: root.clone() }
    }

    /// Returns the version of the key, counted from 1.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the blind token of a value: 128 bits as 26 characters that are allowed in keys. The
    /// two spare bits of the last character hold the version of the key, modulo 4.
    pub fn token(&self, table: &str, field: &str, value: ValueRef<'_>) -> String {
        let code = self.hash_value(b"azt-idx-v1\0", table, field, value);
        let bits = u128::from_be_bytes(code);
        // Versions begin at 1, and version 1 has the bits 00.
        let spare = self.version.wrapping_sub(1) % 4;
        let last = u128::from(spare) | (bits << 2);
        let digits = (0..CHARACTERS).map(|at| match at {
            25 => last & 31,
            _ => (bits >> (123 - 5 * at)) & 31,
        });
        digits.map(digit).collect()
    }

    /// Returns a blind token of `bits` bits. `bits` below 1 counts as 1, above 128 as 128. Different values can share a
    /// short token, which therefore reveals less about a value. After a query by the token, decrypt the rows and
    /// compare their values. A short blind token is independent of the 26-character blind token of the same value.
    pub fn short_token(&self, table: &str, field: &str, value: ValueRef<'_>, bits: u32) -> String {
        let bits = bits.clamp(1, 128);
        let code = self.hash_value(b"azt-idx-v1/short\0", table, field, value);
        let kept = u128::from_be_bytes(code) & (u128::MAX << (128 - bits));
        let characters = bits.div_ceil(5);
        (0..characters)
            // The 26th character has three bits of the hash only.
            .map(|at| {
                digit(if at == 25 { (kept << 2) & 31 } else { (kept >> (123 - 5 * at)) & 31 })
            })
            .collect()
    }

    fn hash_value(&self, domain: &[u8], table: &str, field: &str, value: ValueRef<'_>) -> [u8; 16] {
        // Table and field are part of the key: equal values of two fields have different tokens.
        let key = self.root.derive_secret(&[
            domain,
            &length_prefix_bytes(table.len()),
            table.as_bytes(),
            &length_prefix_bytes(field.len()),
            field.as_bytes(),
        ]);
        let mut bytes = Zeroizing::new(Vec::with_capacity(canonical::plain_len(Some(value))));
        canonical::write_value(&mut bytes, with_one_zero(value));
        let mut code = [0; 16];
        // HMAC takes keys of any length: this never fails.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_slice()) {
            mac.update(&bytes);
            let whole = mac.finalize().into_bytes();
            code.iter_mut().zip(whole).for_each(|(code, byte)| *code = byte);
        }
        code
    }
}

/// Replaces negative zero with positive zero, since they compare equal.
fn with_one_zero(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        // -0.0 + 0.0 is 0.0; every other value stays as it is.
        ValueRef::Double(v) => ValueRef::Double(v + 0.0),
        other => other,
    }
}

fn digit(value: u128) -> char {
    let at = usize::try_from(value).unwrap_or_default();
    DIGITS.get(at).copied().map_or('0', char::from)
}

impl fmt::Debug for BlindTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlindTokenKey").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Returns the version, modulo 4, of the key that made a blind token: 0 for the versions 4, 8 and so on. Returns `None`
/// if the text is not a 26-character blind token.
pub fn token_version(token: &str) -> Option<u32> {
    let values = token.bytes().map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let values: Option<Vec<usize>> = values.collect();
    let values = values.filter(|values| values.len() == CHARACTERS)?;
    let spare = u32::try_from(values.last()? & 3).ok()?;
    Some((spare + 1) % 4)
}
