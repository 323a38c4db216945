//! The layout of an encrypted value.
//!
//! ```text
//! 0   AE 7E   magic
//! 2   01      suite
//! 3   8       key id
//! 11  24      nonce
//! 35  ..      ciphertext of type tag, value, padding
//!     16      tag
//! ```

use std::{fmt, str::FromStr};

use crate::{
    error::{Error, ErrorKind, Result, SealFault},
    limits,
};

/// Begins every envelope.
const MAGIC: [u8; 2] = [0xae, 0x7e];
/// XAES-256-GCM.
pub(super) const SUITE: u8 = 1;
/// Magic, suite, key id.
pub(super) const HEADER: usize = 11;
/// Bytes of the nonce.
pub(super) const NONCE: usize = 24;
/// Bytes of the authentication tag.
pub(super) const TAG: usize = 16;
/// Bytes beside type tag and value.
pub(super) const OVERHEAD: usize = HEADER + NONCE + TAG;
/// Bytes of type tag, value and padding that a property has room for.
pub(super) const PLAIN: usize = limits::PROPERTY_BYTES - OVERHEAD;

/// The name of a data key: a fingerprint of the key itself, so that no key goes by another's name.
///
/// Eight bytes select a key among the few of a scope; to pin one in a configuration take
/// [`DataKey::fingerprint`](super::DataKey::fingerprint).
///
/// ```
/// use entable::KeyId;
///
/// let id: KeyId = "2c7d2f902fb02b61".parse()?;
/// assert_eq!(id.to_string(), "2c7d2f902fb02b61");
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// The id of these bytes.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// The bytes, as they stand in an envelope.
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

impl FromStr for KeyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let id = u64::from_str_radix(text, 16).ok();
        match id.filter(|_| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(id) => Ok(Self(id.to_be_bytes())),
            None => Err(Error::new(ErrorKind::Invalid, "a key id is 16 hexadecimal digits")),
        }
    }
}

/// An envelope, taken apart.
pub(super) struct Parts<'a> {
    pub(super) suite: u8,
    pub(super) id: KeyId,
    pub(super) nonce: &'a [u8; NONCE],
    pub(super) ciphertext: &'a [u8],
    pub(super) tag: &'a [u8; TAG],
}

impl<'a> Parts<'a> {
    /// Takes it apart; `None` where it is no envelope at all.
    pub(super) fn read(envelope: &'a [u8]) -> Result<Option<Self>> {
        let Some(rest) = envelope.strip_prefix(&MAGIC) else { return Ok(None) };
        let Some((&suite, rest)) = rest.split_first() else { return Err(malformed()) };
        if suite != SUITE {
            let message = format!(
                "the value is sealed by suite {suite}, this version knows suite {SUITE} only"
            );
            return Err(Error::seal(SealFault::UnsupportedSuite(suite), message));
        }
        Self::read_rest(suite, rest).map(Some).ok_or_else(malformed)
    }

    fn read_rest(suite: u8, rest: &'a [u8]) -> Option<Self> {
        let (id, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (ciphertext, tag) = rest.split_last_chunk()?;
        // There is a type tag at least.
        (!ciphertext.is_empty()).then_some(Self { suite, id: KeyId(*id), nonce, ciphertext, tag })
    }
}

/// The bytes before the nonce.
pub(super) fn header(id: KeyId) -> [u8; HEADER] {
    let [m0, m1] = MAGIC;
    let [k0, k1, k2, k3, k4, k5, k6, k7] = id.0;
    [m0, m1, SUITE, k0, k1, k2, k3, k4, k5, k6, k7]
}

fn malformed() -> Error {
    Error::seal(SealFault::Malformed, "the sealed value is cut")
}

/// Whether the bytes begin as an envelope does.
pub fn is_envelope(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Which key an envelope is sealed with; `None` for bytes that are no envelope.
///
/// # Errors
///
/// `is_decrypt` for an envelope that is cut or of an unknown suite.
pub fn key_id_of(envelope: &[u8]) -> Result<Option<KeyId>> {
    Ok(Parts::read(envelope)?.map(|parts| parts.id))
}

/// The envelopes of one key as a range of Binary values, the end excluded: a filter of two
/// comparisons finds them on the server.
///
/// ```
/// use entable::{KeyId, seal::id_range};
///
/// let (from, to) = id_range(KeyId::from_bytes([1, 2, 3, 4, 5, 6, 7, 0xff]));
/// assert_eq!(from, [0xae, 0x7e, 1, 1, 2, 3, 4, 5, 6, 7, 0xff]);
/// assert_eq!(to, [0xae, 0x7e, 1, 1, 2, 3, 4, 5, 6, 8, 0]);
/// ```
pub fn id_range(id: KeyId) -> (Vec<u8>, Vec<u8>) {
    let from = header(id).to_vec();
    let mut to = from.clone();
    // The magic's bytes are not the greatest ones, so that the carry ends before them.
    for byte in to.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    (from, to)
}
