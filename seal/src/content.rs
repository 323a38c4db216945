//! The key of one blob's content.

use std::{fmt, sync::Arc};

use zeroize::Zeroizing;

use crate::{envelope::SUITE, root::fill_random};
use entable_core::{edm::InvalidValue, error::Result};

/// Number of secret bytes.
const KEY_BYTES: usize = 32;

/// The secret key of one blob's content. It is random, serves one content, and is stored in the rows that
/// point to the blob, as an encrypted property. `Debug` does not show it.
#[derive(Clone)]
pub struct BlobContentKey(pub(crate) Arc<Zeroizing<[u8; KEY_BYTES]>>);

impl BlobContentKey {
    /// Generates a key from the random bytes of the operating system.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the system has no random bytes.
    pub fn generate() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        fill_random(bytes.as_mut_slice())?;
        Ok(Self(Arc::new(bytes)))
    }

    /// Reads the value that a row holds: the suite and the key.
    ///
    /// # Errors
    ///
    /// Fails for another suite and for another number of bytes.
    pub fn from_stored(stored: &[u8]) -> Result<Self, InvalidValue> {
        let Some((&SUITE, bytes)) = stored.split_first() else {
            let message = "expected a blob key for suite 1, found another suite";
            return Err(InvalidValue::new(message));
        };
        let bytes = <[u8; KEY_BYTES]>::try_from(bytes).map_err(|_| {
            InvalidValue::new("expected a blob key of 33 bytes, found another length")
        })?;
        Ok(Self(Arc::new(Zeroizing::new(bytes))))
    }

    /// Returns the value that a row holds, before it is encrypted.
    pub fn to_stored(&self) -> Vec<u8> {
        let mut stored = Vec::with_capacity(1 + KEY_BYTES);
        stored.push(SUITE);
        stored.extend_from_slice(self.0.as_slice());
        stored
    }
}

impl fmt::Debug for BlobContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlobContentKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::BlobContentKey;

    fn key() -> BlobContentKey {
        let stored: Vec<u8> = std::iter::once(1).chain([0x42; 32]).collect();
        BlobContentKey::from_stored(&stored).unwrap()
    }

    #[test]
    fn a_stored_key_says_its_suite() {
        let stored = key().to_stored();
        assert_eq!((stored.len(), stored[0]), (33, 1));
        assert_eq!(format!("{:?}", key()), "BlobContentKey(..)");
        for other in [&stored[..32], &[], &[2; 33], &[1; 34]] {
            assert!(BlobContentKey::from_stored(other).is_err());
        }
    }
}
