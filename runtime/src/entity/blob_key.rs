//! The key of an encrypted blob's content, which the rows that point to the blob hold.

#[cfg(all(feature = "encrypt", feature = "blob"))]
pub(crate) use crate::seal::ContentCipher as BlobCipher;
#[cfg(feature = "encrypt")]
pub(crate) use crate::seal::ContentKey as BlobKey;
#[cfg(not(feature = "encrypt"))]
use crate::{
    edm::InvalidValue,
    error::{Error, ErrorKind, Result},
};

/// Stands for the key of an encrypted blob in a build without the feature `encrypt`. Nothing
/// creates such a key.
#[cfg(not(feature = "encrypt"))]
#[allow(dead_code, reason = "nothing makes one")]
#[derive(Debug, Clone)]
pub(crate) struct BlobKey;

/// Stands for the cipher of an encrypted blob in a build without the feature `encrypt`. Nothing
/// creates one, because there is no key.
#[cfg(not(feature = "encrypt"))]
#[allow(dead_code, reason = "nothing makes one")]
pub(crate) struct BlobCipher;

#[cfg(not(feature = "encrypt"))]
#[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "seals blobs"))]
impl BlobKey {
    /// Returns an `is_unsupported` error, because a build without the feature `encrypt` makes no key.
    pub(crate) fn generate() -> Result<Self> {
        let message = "the blob is to be encrypted, which needs the feature `encrypt`";
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Returns an error, because a build without the feature `encrypt` reads no key.
    pub(crate) fn from_stored(_: &[u8]) -> Result<Self, InvalidValue> {
        let message = "expected no key, found that of a blob, which needs the feature `encrypt`";
        Err(InvalidValue::new(message))
    }

    /// Returns no bytes, because a build without the feature `encrypt` has no key.
    pub(crate) fn to_stored(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the cipher. Never runs, because a build without the feature `encrypt` has no key.
    pub(crate) fn cipher(&self) -> BlobCipher {
        BlobCipher
    }
}

#[cfg(not(feature = "encrypt"))]
#[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "seals blobs"))]
impl BlobCipher {
    /// Fills the buffer with zeros. Never runs, because there is no key; if it ran by mistake, the
    /// chunk would still not be stored unencrypted.
    pub(crate) fn seal_chunk(&self, _: u64, _: bool, _: &[u8], sealed: &mut [u8]) {
        sealed.fill(0);
    }

    /// Returns `false`, because a build without the feature `encrypt` decrypts no chunk.
    pub(crate) fn open_chunk(&self, _: u64, _: bool, _: &[u8], _: &mut Vec<u8>) -> bool {
        false
    }
}
