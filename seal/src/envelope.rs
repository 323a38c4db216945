//! The bytes of an encrypted value (an envelope), by offset and length.
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

use entable_core::{
    error::{Error, ErrorKind, Result, SealFault},
    limits,
};

/// The first two bytes of every envelope.
const MAGIC: [u8; 2] = [0xae, 0x7e];
/// The cipher suite of envelopes: XAES-256-GCM.
pub(crate) const SUITE: u8 = 1;
/// Number of bytes of magic, suite and key id.
pub(crate) const HEADER_BYTES: usize = 11;
/// Number of bytes of the nonce.
pub(crate) const NONCE_BYTES: usize = 24;
/// Number of bytes of the authentication tag.
pub(crate) const TAG_BYTES: usize = 16;
/// Number of bytes of an envelope without type tag, value and padding.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;
/// Largest number of bytes of type tag, value and padding that fits into a property.
pub(crate) const PLAIN_BYTES: usize = limits::PROPERTY_BYTES - OVERHEAD_BYTES;

/// The id of a data key: the first eight bytes of the key's fingerprint. A key therefore cannot be configured with
/// another key's id.
///
/// Eight bytes are enough to select one of the few keys of a scope. They do not prove its identity: an attacker can try
/// keys until one has a given id. Pin a key by its whole [`DataKey::fingerprint`](crate::DataKey::fingerprint).
///
/// ```
/// use entable_seal::KeyId;
///
/// let id: KeyId = "2c7d2f902fb02b61".parse()?;
/// assert_eq!(id.to_string(), "2c7d2f902fb02b61");
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// Makes an id from its eight bytes.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// Returns the eight bytes of the id, as an envelope contains them.
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
        // Exactly 16 digits: `from_str_radix` also takes fewer digits and a sign.
        match id.filter(|_| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(id) => Ok(Self(id.to_be_bytes())),
            None => Err(Error::new(ErrorKind::Invalid, "a key id is 16 hexadecimal digits")),
        }
    }
}

/// The parts of an envelope, borrowed from its bytes.
pub(crate) struct EnvelopeParts<'a> {
    pub(crate) suite: u8,
    pub(crate) id: KeyId,
    pub(crate) nonce: &'a [u8; NONCE_BYTES],
    pub(crate) ciphertext: &'a [u8],
    pub(crate) tag: &'a [u8; TAG_BYTES],
}

impl<'a> EnvelopeParts<'a> {
    /// Splits an envelope into its parts. Returns `None` if the bytes do not begin as an envelope. Fails for
    /// an envelope of another suite, and for one that is cut short.
    pub(crate) fn split_envelope(envelope: &'a [u8]) -> Result<Option<Self>> {
        let Some(rest) = envelope.strip_prefix(&MAGIC) else { return Ok(None) };
        let Some((&suite, rest)) = rest.split_first() else { return Err(malformed_error()) };
        if suite != SUITE {
            let message = format!(
                "the value is sealed with suite {suite}, but this version of entable knows only suite {SUITE}"
            );
            return Err(Error::seal(SealFault::UnsupportedSuite(suite), message));
        }
        Self::split_rest(suite, rest).map(Some).ok_or_else(malformed_error)
    }

    fn split_rest(suite: u8, rest: &'a [u8]) -> Option<Self> {
        let (id, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (ciphertext, tag) = rest.split_last_chunk()?;
        // Every plaintext has a type tag, so bytes with an empty ciphertext are not an envelope.
        (!ciphertext.is_empty()).then_some(Self { suite, id: KeyId(*id), nonce, ciphertext, tag })
    }
}

/// Returns the bytes of an envelope before the nonce: magic, suite and key id.
pub(crate) fn envelope_header(id: KeyId) -> [u8; HEADER_BYTES] {
    let [m0, m1] = MAGIC;
    let [k0, k1, k2, k3, k4, k5, k6, k7] = id.0;
    [m0, m1, SUITE, k0, k1, k2, k3, k4, k5, k6, k7]
}

fn malformed_error() -> Error {
    Error::seal(SealFault::Malformed, "the sealed value is truncated")
}

/// Returns whether the bytes begin as an envelope does. The rest is not checked.
pub fn is_envelope(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns the id of the key that an envelope is encrypted with, or `None` if the bytes are not an envelope.
///
/// # Errors
///
/// `is_decrypt` for an envelope that is truncated or has an unknown suite.
pub fn key_id_of(envelope: &[u8]) -> Result<Option<KeyId>> {
    Ok(EnvelopeParts::split_envelope(envelope)?.map(|parts| parts.id))
}

/// Returns the range of Binary values, end excluded, that contains all envelopes of one key. A filter
/// of two comparisons finds them on the server.
///
/// ```
/// use entable_seal::{KeyId, envelope_range};
///
/// let (from, to) = envelope_range(KeyId::from_bytes([1, 2, 3, 4, 5, 6, 7, 0xff]));
/// assert_eq!(from, [0xae, 0x7e, 1, 1, 2, 3, 4, 5, 6, 7, 0xff]);
/// assert_eq!(to, [0xae, 0x7e, 1, 1, 2, 3, 4, 5, 6, 8, 0]);
/// ```
pub fn envelope_range(id: KeyId) -> (Vec<u8>, Vec<u8>) {
    let from = envelope_header(id).to_vec();
    let mut to = from.clone();
    // Adds 1 to the header as one big-endian number. The magic does not begin with 0xff, so the carry cannot overflow.
    for byte in to.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    (from, to)
}
