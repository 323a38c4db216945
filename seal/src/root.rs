//! The secret bytes that data keys and blind token keys are derived from.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use entable_core::error::{Error, Result, SealFault};

/// 32 secret bytes that keys are derived from. They are wiped when dropped, and `Debug` does not show
/// them.
///
/// ```
/// use entable_seal::RootKey;
///
/// let root = RootKey::from_bytes([7; 32]);
/// assert_eq!(format!("{root:?}"), "RootKey(..)");
/// ```
#[derive(Clone)]
pub struct RootKey(SecretBytes);

/// 32 secret bytes that are wiped when dropped. They are on the heap, so moving them leaves no copy on the stack.
pub(crate) type SecretBytes = Box<Zeroizing<[u8; 32]>>;

impl ZeroizeOnDrop for RootKey {}

impl RootKey {
    /// Creates a root key from 32 bytes, which must be random. A password is not enough: the bytes are not stretched.
    pub fn from_bytes(mut bytes: [u8; 32]) -> Self {
        let mut root = new_secret();
        root.copy_from_slice(&bytes);
        bytes.zeroize();
        Self(root)
    }

    /// Generates a root key from the random bytes of the operating system.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the system has no random bytes.
    pub fn generate() -> Result<Self> {
        let mut root = new_secret();
        fill_random(root.as_mut_slice())?;
        Ok(Self(root))
    }

    /// Returns the secret bytes, for a store of secrets.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives 32 bytes for one purpose (HKDF-Expand with SHA-256). Different purposes give
    /// independent bytes.
    pub(crate) fn derive_secret(&self, purpose: &[&[u8]]) -> SecretBytes {
        let mut out = new_secret();
        // Root and result have the size of the hash, so neither step can fail.
        if let Ok(hkdf) = Hkdf::<Sha256>::from_prk(self.0.as_slice()) {
            let _ = hkdf.expand_multi_info(purpose, out.as_mut_slice());
        }
        out
    }
}

/// Returns zeros, to be filled in place.
fn new_secret() -> SecretBytes {
    Box::new(Zeroizing::new([0; 32]))
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootKey(..)")
    }
}

/// Fills `bytes` with random bytes of the operating system.
///
/// # Errors
///
/// `is_key_unavailable` if the system has no random bytes.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|cause| {
        Error::seal(
            SealFault::KeyUnavailable { retryable: true },
            "the system returned no random bytes, which encryption needs",
        )
        .with_source(cause)
    })
}
