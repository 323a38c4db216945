//! The key that blind tokens are made with.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{canonical, place::counted, root::RootKey};
use crate::edm::ValueRef;

/// The digits of base32hex, which sort as their values do and are allowed in keys.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
/// Characters of a token.
const CHARACTERS: usize = 26;

/// A key that blind tokens are made with: `{f:hmac}` parts and the companions of blind fields.
/// Apart from the data keys, so that changing one of those changes no lookup.
///
/// Equal values of a field have equal tokens: that, and how often each occurs, is what a token tells.
///
/// ```
/// use entable::{IndexKey, RootKey, ValueRef};
///
/// let key = IndexKey::from_root(&RootKey::from_bytes([0x43; 32]), 1);
/// let token = key.token("People", "Email", ValueRef::String("ada@example.com"));
/// assert_eq!(token, "7fk5gujb7kccdq7728bvdqsnvg");
/// ```
pub struct IndexKey {
    version: u32,
    root: RootKey,
}

impl IndexKey {
    /// The key of that root. Versions count from 1 and go up by one when the key is changed.
    pub fn from_root(root: &RootKey, version: u32) -> Self {
        Self { version, root: root.clone() }
    }

    /// Which of the successive keys this is.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The token of a value: 128 bits as 26 characters that keys may hold. The two bits to spare
    /// tell the key's version, modulo four.
    pub fn token(&self, table: &str, field: &str, value: ValueRef<'_>) -> String {
        let code = self.code(b"azt-idx-v1\0", table, field, value);
        let bits = u128::from_be_bytes(code);
        let spare = self.version.wrapping_sub(1) % 4;
        let last = u128::from(spare) | (bits << 2);
        let digits = (0..CHARACTERS).map(|at| match at {
            25 => last & 31,
            _ => (bits >> (123 - 5 * at)) & 31,
        });
        digits.map(digit).collect()
    }

    /// A token of that many bits, at most 128: different values share it, so that it tells less,
    /// and what it finds has to be compared after decryption. It is no part of the long token.
    pub fn short_token(&self, table: &str, field: &str, value: ValueRef<'_>, bits: u32) -> String {
        let bits = bits.clamp(1, 128);
        let code = self.code(b"azt-idx-v1/short\0", table, field, value);
        let kept = u128::from_be_bytes(code) & (u128::MAX << (128 - bits));
        let characters = bits.div_ceil(5);
        (0..characters)
            .map(|at| {
                digit(if at == 25 { (kept << 2) & 31 } else { (kept >> (123 - 5 * at)) & 31 })
            })
            .collect()
    }

    fn code(&self, domain: &[u8], table: &str, field: &str, value: ValueRef<'_>) -> [u8; 16] {
        let key = self.root.expand(&[
            domain,
            &counted(table.len()),
            table.as_bytes(),
            &counted(field.len()),
            field.as_bytes(),
        ]);
        let mut bytes = Zeroizing::new(Vec::with_capacity(canonical::plain_len(Some(value))));
        canonical::write(&mut bytes, as_compared(value));
        let mut code = [0; 16];
        // HMAC takes keys of any length.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_slice()) {
            mac.update(&bytes);
            let whole = mac.finalize().into_bytes();
            code.iter_mut().zip(whole).for_each(|(code, byte)| *code = byte);
        }
        code
    }
}

/// A value as comparisons see it: there is one zero.
fn as_compared(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        // The sum of both zeros is the positive one.
        ValueRef::Double(v) => ValueRef::Double(v + 0.0),
        other => other,
    }
}

fn digit(value: u128) -> char {
    let at = usize::try_from(value).unwrap_or_default();
    DIGITS.get(at).copied().map_or('0', char::from)
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexKey").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The version, modulo four, of the key that a token was made with: 0 for versions 4, 8, ..
/// `None` for text that is no token.
pub fn token_version(token: &str) -> Option<u32> {
    let values = token.bytes().map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let values: Option<Vec<usize>> = values.collect();
    let values = values.filter(|values| values.len() == CHARACTERS)?;
    let spare = u32::try_from(values.last()? & 3).ok()?;
    Some((spare + 1) % 4)
}
