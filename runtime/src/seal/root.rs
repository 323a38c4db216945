//! The secret that a key is derived from.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, Result, SealFault};

/// 32 secret bytes that keys are derived from. Wiped when dropped, and silent in Debug.
///
/// ```
/// use entable::seal::RootKey;
///
/// let root = RootKey::from_bytes([7; 32]);
/// assert_eq!(format!("{root:?}"), "RootKey(..)");
/// ```
#[derive(Clone)]
pub struct RootKey([u8; 32]);

impl Drop for RootKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for RootKey {}

impl RootKey {
    /// The key of these bytes, which must be random: nothing stretches them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A new key from the system's source of random bytes.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` where the system has no random bytes.
    pub fn generate() -> Result<Self> {
        let mut root = Self([0; 32]);
        fill_random(&mut root.0)?;
        Ok(root)
    }

    /// The secret bytes, to be kept where secrets are kept.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// 32 bytes for one purpose: HKDF-Expand of SHA-256.
    pub(super) fn expand(&self, purpose: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut out = Zeroizing::new([0; 32]);
        // A root has the size of the hash and so does what is asked for: neither step can fail.
        if let Ok(hkdf) = Hkdf::<Sha256>::from_prk(&self.0) {
            let _ = hkdf.expand_multi_info(purpose, out.as_mut_slice());
        }
        out
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootKey(..)")
    }
}

/// Fills with random bytes of the system.
pub(super) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|cause| {
        Error::seal(
            SealFault::KeyUnavailable { retryable: true },
            "the system gave no random bytes, which sealing a value needs",
        )
        .with_source(cause)
    })
}
