//! The text form of a keyring.
//!
//! ```text
//! entable-keyring 1
//! # a comment
//! data  default  primary    <64 hex digits>  pin=<32 to 64 hex digits>
//! data  default  decrypt    <64 hex digits>
//! index default  1 current  <64 hex digits>
//! index default  2 other    <64 hex digits>
//! ```
//!
//! Messages name the line and never show it: a word out of place may be the secret.

use std::fmt::Write;

use zeroize::Zeroizing;

use super::{Keyring, KeyringBuilder};
use crate::{
    error::{Error, ErrorKind, Result, SealFault},
    seal::{data_key::DataKey, provider::KeyScope, root::RootKey},
};

const HEADER: &str = "entable-keyring 1";

/// The ring that the text describes.
pub(super) fn parse(text: &str) -> Result<KeyringBuilder> {
    let mut ring = Keyring::builder();
    let mut has_header = false;
    // Some editors put a byte order mark before a text, which nobody sees.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refuse = |why: &str| {
            let message = format!("line {} of the keyring {why}", number + 1);
            Error::new(ErrorKind::Invalid, message)
        };
        if !has_header {
            has_header = line == HEADER;
            if !has_header {
                return Err(refuse(&format!("is not `{HEADER}`, with which a keyring begins")));
            }
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        ring = match *words {
            ["data", scope, role, secret] => data(ring, scope, role, secret, None, refuse)?,
            ["data", scope, role, secret, pin] => {
                data(ring, scope, role, secret, Some(pin), refuse)?
            }
            ["index", scope, version, role, secret] => {
                index(ring, scope, version, role, secret, refuse)?
            }
            _ => {
                return Err(refuse(
                    "is neither `data SCOPE primary|decrypt KEY [pin=FINGERPRINT]` \
                                    nor `index SCOPE VERSION current|other KEY`",
                ));
            }
        };
        // What is wrong with a scope is told at the line that made it so.
        if let Some(fault) = &ring.fault {
            return Err(refuse(&format!("is one too many: {}", fault.message())));
        }
    }
    if has_header { Ok(ring) } else { Err(Error::new(ErrorKind::Invalid, "the keyring is empty")) }
}

fn data(
    ring: KeyringBuilder,
    scope: &str,
    role: &str,
    secret: &str,
    pin: Option<&str>,
    refuse: impl Fn(&str) -> Error,
) -> Result<KeyringBuilder> {
    let is_primary = match role {
        "primary" => true,
        "decrypt" => false,
        _ => return Err(refuse("gives a data key a role that is neither `primary` nor `decrypt`")),
    };
    let key = DataKey::from_root(&root(secret, &refuse)?);
    if let Some(pin) = pin {
        check_pin(&key, pin, &refuse)?;
    }
    Ok(ring.data(&KeyScope::named(scope), key, is_primary))
}

/// Refuses a key that is not the pinned one.
fn check_pin(key: &DataKey, pin: &str, refuse: impl Fn(&str) -> Error) -> Result<()> {
    let digits = pin.strip_prefix("pin=").filter(|digits| matches!(digits.len(), 32..=64));
    // A key's id alone is no pin: keys with a given id can be searched for.
    let pinned = digits.and_then(hex).ok_or_else(|| {
        refuse(
            "ends in something that is not `pin=` and 32 to 64 hexadecimal digits of a fingerprint",
        )
    })?;
    if key.fingerprint().starts_with(&pinned) {
        return Ok(());
    }
    let message = format!("holds the key {}, which is not the pinned one", key.id());
    Err(Error::seal(SealFault::KeyIdMismatch, refuse(&message).message()))
}

fn index(
    ring: KeyringBuilder,
    scope: &str,
    version: &str,
    role: &str,
    secret: &str,
    refuse: impl Fn(&str) -> Error,
) -> Result<KeyringBuilder> {
    let version: u32 = version
        .parse()
        .ok()
        .filter(|version| *version > 0)
        .ok_or_else(|| refuse("gives an index key a version that is no number from 1 on"))?;
    let root = root(secret, &refuse)?;
    let scope = KeyScope::named(scope);
    match role {
        "current" => Ok(ring.index(&scope, version, &root)),
        "other" => Ok(ring.index_only(&scope, version, &root)),
        _ => Err(refuse("gives an index key a role that is neither `current` nor `other`")),
    }
}

fn root(secret: &str, refuse: impl Fn(&str) -> Error) -> Result<RootKey> {
    let bytes = hex(secret);
    let root = bytes.as_ref().and_then(|bytes| bytes.as_slice().try_into().ok());
    root.map(RootKey::from_bytes)
        .ok_or_else(|| refuse("holds a key that is not 64 hexadecimal digits"))
}

fn hex(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    // All at once: a Vec that grows leaves pieces behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for [high, low] in pairs {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
    }
    rest.is_empty().then_some(bytes)
}

/// The text of a new ring.
pub(super) fn generate() -> Result<Zeroizing<String>> {
    let (data, index) = (RootKey::generate()?, RootKey::generate()?);
    let fingerprint = *DataKey::from_root(&data).fingerprint();
    // All at once: a text that grows leaves pieces behind.
    let mut text = Zeroizing::new(String::with_capacity(512));
    text.push_str(HEADER);
    text.push_str("\ndata default primary ");
    push_hex(&mut text, data.expose());
    text.push_str(" pin=");
    push_hex(&mut text, &fingerprint);
    text.push_str("\nindex default 1 current ");
    push_hex(&mut text, index.expose());
    text.push('\n');
    Ok(text)
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
}
