//! A key that properties are encrypted with.

use std::fmt;

use xaes_256_gcm::{
    Key, Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};
use zeroize::{Zeroize, Zeroizing};

use super::{
    canonical,
    envelope::{HEADER, KeyId, NONCE, OVERHEAD, Parts, SUITE, header},
    place::{Bound, Place},
    root::{RootKey, fill_random},
};
use crate::{
    edm::{Value, ValueRef},
    error::{Error, Result, SealFault, ServiceCode},
    limits,
};

/// A key that properties are encrypted and entities are sealed with. Wiped when dropped; Debug shows
/// its id.
///
/// ```
/// use entable::{DataKey, RootKey};
///
/// let key = DataKey::from_root(&RootKey::from_bytes([0x42; 32]));
/// assert_eq!(format!("{key:?}"), "DataKey(2c7d2f902fb02b61)");
/// ```
pub struct DataKey {
    id: KeyId,
    fingerprint: [u8; 32],
    cipher: Xaes256Gcm,
    pub(super) seal: Zeroizing<[u8; 32]>,
}

impl DataKey {
    /// The key of that root.
    pub fn from_root(root: &RootKey) -> Self {
        let fingerprint = *root.expand(&[b"azt-enc-v1/kid"]);
        let [k0, k1, k2, k3, k4, k5, k6, k7, ..] = fingerprint;
        let mut key = <Key>::from(*root.expand(&[b"azt-enc-v1/enc"]));
        let cipher = Xaes256Gcm::new(&key);
        key.as_mut_slice().zeroize();
        Self {
            id: KeyId::from_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            fingerprint,
            cipher,
            seal: root.expand(&[b"azt-enc-v1/seal"]),
        }
    }

    /// The key's id, which stands in every envelope.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The key's whole fingerprint, whose first eight bytes are the id: what a configuration pins.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Encrypts a value for its place, `None` as a null. With a `pad` above 1 the length tells only
    /// the next multiple of it.
    ///
    /// Two calls never give the same bytes: what is to be compared or sent again has to be kept.
    ///
    /// # Errors
    ///
    /// `is_too_large` above 65,536 bytes, `is_key_unavailable` where the system has no random bytes.
    pub fn encrypt(
        &self,
        place: &Place<'_>,
        value: Option<ValueRef<'_>>,
        pad: usize,
    ) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE];
        fill_random(&mut nonce).map_err(|error| place.name(error))?;
        self.encrypt_with(place, value, pad, nonce).map_err(|error| place.name(error))
    }

    /// Encrypts under a nonce that is never used again.
    pub(super) fn encrypt_with(
        &self,
        place: &Place<'_>,
        value: Option<ValueRef<'_>>,
        pad: usize,
        nonce: [u8; NONCE],
    ) -> Result<Vec<u8>> {
        let length = sealed_len(value, pad);
        if length > limits::PROPERTY_BYTES {
            let limit = limits::PROPERTY_BYTES;
            let message =
                format!("the value is {length} bytes when encrypted, the limit is {limit}");
            return Err(Error::service(ServiceCode::PropertyValueTooLarge, message));
        }
        let mut envelope = Vec::with_capacity(length);
        envelope.extend_from_slice(&header(self.id));
        envelope.extend_from_slice(&nonce);
        canonical::write_plain(&mut envelope, value, pad);
        let bound = Bound::new(SUITE, self.id, place);
        let plain = envelope.get_mut(HEADER + NONCE..).unwrap_or_default();
        let sealed =
            self.cipher.encrypt_inout_detached(&Nonce::from(nonce), bound.as_bytes(), plain.into());
        match sealed {
            Ok(tag) => {
                envelope.extend_from_slice(&tag);
                Ok(envelope)
            }
            // Only sizes far above a property's are refused.
            Err(_) => {
                envelope.zeroize();
                Err(Error::service(ServiceCode::PropertyValueTooLarge, "the value is too large"))
            }
        }
    }

    /// Opens an envelope at its place; `None` is an encrypted null.
    ///
    /// # Errors
    ///
    /// `is_decrypt`, with the [`SealFault`]: bytes that are no envelope, one that is cut, of another
    /// suite or another key, and one that was not made by this key for this place.
    pub fn decrypt(&self, place: &Place<'_>, envelope: &[u8]) -> Result<Option<Value>> {
        self.open(place, envelope).map_err(|error| place.name(error))
    }

    fn open(&self, place: &Place<'_>, envelope: &[u8]) -> Result<Option<Value>> {
        let Some(parts) = Parts::read(envelope)? else { return Err(not_encrypted()) };
        if parts.id != self.id {
            return Err(key_not_found(parts.id));
        }
        let bound = Bound::new(parts.suite, parts.id, place);
        let mut plain = parts.ciphertext.to_vec();
        let opened = self.cipher.decrypt_inout_detached(
            &Nonce::from(*parts.nonce),
            bound.as_bytes(),
            plain.as_mut_slice().into(),
            &Tag::from(*parts.tag),
        );
        match opened {
            Ok(()) => canonical::read_plain(plain),
            Err(_) => Err(authentication()),
        }
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataKey({})", self.id)
    }
}

/// The error of plain bytes.
pub(super) fn not_encrypted() -> Error {
    Error::seal(
        SealFault::NotEncrypted,
        "the stored value is not encrypted, an encrypted one was expected; \
         plain values are read during a migration only, where that is allowed",
    )
}

/// The error of a key that is not of the row's scope.
pub(super) fn key_not_found(id: KeyId) -> Error {
    let message =
        format!("the value is sealed with the key {id}, which the row's scope does not have");
    Error::seal(SealFault::KeyNotFound(*id.as_bytes()), message)
}

/// The one error of everything that does not verify.
pub(super) fn authentication() -> Error {
    Error::seal(
        SealFault::Authentication,
        "the value was not sealed with this key for this place, or was changed since",
    )
}

/// Bytes of the envelope that [`DataKey::encrypt`](DataKey::encrypt) makes.
///
/// ```
/// use entable::{ValueRef, seal::sealed_len};
///
/// assert_eq!(sealed_len(Some(ValueRef::String("123-45-6789")), 0), 52 + 11);
/// assert_eq!(sealed_len(Some(ValueRef::String("short")), 64), sealed_len(None, 64));
/// ```
pub fn sealed_len(value: Option<ValueRef<'_>>, pad: usize) -> usize {
    OVERHEAD + canonical::padded_len(canonical::plain_len(value), pad)
}
