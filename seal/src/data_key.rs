//! The key that encrypts properties and seals entities.

use std::fmt;

use xaes_256_gcm::{
    Key, Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};
use zeroize::Zeroize;

use crate::{
    binding::{AssociatedData, ValueBinding},
    canonical,
    envelope::{
        EnvelopeParts, HEADER_BYTES, KeyId, NONCE_BYTES, OVERHEAD_BYTES, SUITE, envelope_header,
    },
    root::{RootKey, SecretBytes, fill_random},
};
use entable_core::{
    edm::{Value, ValueRef},
    error::{Error, Result, SealFault, ServiceCode},
    limits,
};

/// A key that encrypts properties and seals entities. It is wiped when dropped, and `Debug` shows only
/// its id.
///
/// ```
/// use entable_seal::{DataKey, RootKey};
///
/// let key = DataKey::from_root(&RootKey::from_bytes([0x42; 32]));
/// assert_eq!(format!("{key:?}"), "DataKey(2c7d2f902fb02b61)");
/// ```
pub struct DataKey {
    id: KeyId,
    fingerprint: [u8; 32],
    /// The key schedule. Like the other secrets it is on the heap, so moving the key leaves no copy on the stack.
    pub(crate) cipher: Box<Xaes256Gcm>,
    pub(crate) seal: SecretBytes,
    /// The key of the codes over the work of workers.
    pub(crate) work: SecretBytes,
}

impl DataKey {
    /// Derives the key from a root key. Equal roots give equal keys.
    pub fn from_root(root: &RootKey) -> Self {
        let fingerprint = **root.derive_secret(&[b"azt-enc-v1/kid"]);
        // The id is the start of the fingerprint, so nobody can configure a key under another key's id.
        let [k0, k1, k2, k3, k4, k5, k6, k7, ..] = fingerprint;
        let mut key = <Key>::from(**root.derive_secret(&[b"azt-enc-v1/enc"]));
        let cipher = Box::new(Xaes256Gcm::new(&key));
        key.as_mut_slice().zeroize();
        Self {
            id: KeyId::from_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            fingerprint,
            cipher,
            seal: root.derive_secret(&[b"azt-enc-v1/seal"]),
            work: root.derive_secret(&[b"azt-enc-v1/work"]),
        }
    }

    /// Returns the id of the key, which every envelope and seal contains.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the fingerprint of the key, 32 bytes whose first eight are the id. A line `pin=` in the text
    /// of a [`Keyring`](crate::Keyring) states the fingerprint that a key has to have.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Encrypts a value for one table, row and property. `None` is a null. A `pad` above 1 rounds the length up to a
    /// multiple of it, so the length reveals less about the value.
    ///
    /// Two calls never return equal bytes. Keep the envelope if you must compare it or send it again.
    ///
    /// # Errors
    ///
    /// `is_too_large` if the envelope exceeds 65,536 bytes; `is_key_unavailable` if the system has no
    /// random bytes.
    pub fn encrypt(
        &self,
        binding: &ValueBinding<'_>,
        value: Option<ValueRef<'_>>,
        pad: usize,
    ) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        // A random nonce of 192 bits: two values never share one in practice.
        fill_random(&mut nonce).map_err(|error| binding.error_at_value(error))?;
        self.encrypt_with_nonce(binding, value, pad, nonce)
            .map_err(|error| binding.error_at_value(error))
    }

    /// Encrypts under the given nonce, which must never be used twice with this key.
    pub(crate) fn encrypt_with_nonce(
        &self,
        binding: &ValueBinding<'_>,
        value: Option<ValueRef<'_>>,
        pad: usize,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<Vec<u8>> {
        // Checked before encryption, which would be in vain.
        let length = sealed_len(value, pad);
        if length > limits::PROPERTY_BYTES {
            let limit = limits::PROPERTY_BYTES;
            let message =
                format!("the value has {length} bytes when encrypted, the limit is {limit}");
            return Err(Error::service(ServiceCode::PropertyValueTooLarge, message));
        }
        let mut envelope = Vec::with_capacity(length);
        envelope.extend_from_slice(&envelope_header(self.id));
        envelope.extend_from_slice(&nonce);
        canonical::write_plain(&mut envelope, value, pad);
        let bound = AssociatedData::new(SUITE, self.id, binding);
        let plain = envelope.get_mut(HEADER_BYTES + NONCE_BYTES..).unwrap_or_default();
        let sealed =
            self.cipher.encrypt_inout_detached(&Nonce::from(nonce), bound.as_bytes(), plain.into());
        match sealed {
            Ok(tag) => {
                envelope.extend_from_slice(&tag);
                Ok(envelope)
            }
            // The cipher refuses only sizes far above the limit that was checked above.
            Err(_) => {
                envelope.zeroize();
                Err(Error::service(ServiceCode::PropertyValueTooLarge, "the value is too large"))
            }
        }
    }

    /// Decrypts an envelope that was made for this table, row and property. Returns `None` for an
    /// encrypted null.
    ///
    /// # Errors
    ///
    /// `is_decrypt`, with a [`SealFault`]: the bytes are not an envelope, are truncated, belong to another cipher suite
    /// or key, or were not made by this key for this binding.
    pub fn decrypt(&self, binding: &ValueBinding<'_>, envelope: &[u8]) -> Result<Option<Value>> {
        self.decrypt_envelope(binding, envelope).map_err(|error| binding.error_at_value(error))
    }

    fn decrypt_envelope(
        &self,
        binding: &ValueBinding<'_>,
        envelope: &[u8],
    ) -> Result<Option<Value>> {
        let Some(parts) = EnvelopeParts::split_envelope(envelope)? else {
            return Err(not_encrypted_error());
        };
        // The id only selects the key to try. The tag proves it.
        if parts.id != self.id {
            return Err(key_not_found_error(parts.id));
        }
        let bound = AssociatedData::new(parts.suite, parts.id, binding);
        let mut plain = parts.ciphertext.to_vec();
        let opened = self.cipher.decrypt_inout_detached(
            &Nonce::from(*parts.nonce),
            bound.as_bytes(),
            plain.as_mut_slice().into(),
            &Tag::from(*parts.tag),
        );
        match opened {
            Ok(()) => canonical::read_plain(plain),
            Err(_) => Err(authentication_error()),
        }
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataKey({})", self.id)
    }
}

/// Returns the error for a value that should be encrypted and is not.
pub(crate) fn not_encrypted_error() -> Error {
    Error::seal(
        SealFault::NotEncrypted,
        "expected an encrypted value, found a plain one; plain values are read only during a migration that allows \
         them",
    )
}

/// Returns the error for a value whose key the scope of its row does not have.
pub(crate) fn key_not_found_error(id: KeyId) -> Error {
    let message =
        format!("the value is sealed with the key {id}, which the row's scope does not have");
    Error::seal(SealFault::KeyNotFound(*id.as_bytes()), message)
}

/// Returns the error for bytes that fail authentication. It is the same for every cause.
pub(crate) fn authentication_error() -> Error {
    Error::seal(
        SealFault::Authentication,
        "the value was not sealed with this key for this place, or has been changed since",
    )
}

/// Returns the number of bytes of the envelope that [`DataKey::encrypt`](DataKey::encrypt) makes of a
/// value.
///
/// ```
/// use entable_core::ValueRef;
/// use entable_seal::sealed_len;
///
/// assert_eq!(sealed_len(Some(ValueRef::String("123-45-6789")), 0), 52 + 11);
/// assert_eq!(sealed_len(Some(ValueRef::String("short")), 64), sealed_len(None, 64));
/// ```
pub fn sealed_len(value: Option<ValueRef<'_>>, pad: usize) -> usize {
    OVERHEAD_BYTES + canonical::padded_len(canonical::plain_len(value), pad)
}
