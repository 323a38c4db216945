//! Faults of an encrypted value or of its key.

use super::kind::ErrorKind;

/// A fault of an encrypted value or of its key: enough to act on, nothing that helps to forge one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SealFault {
    /// A plain value, or no value, is stored where an encrypted one belongs.
    NotEncrypted,
    /// The value has the prefix of an encrypted value, but its remaining bytes are malformed.
    Malformed,
    /// The value names a cipher suite that this version does not know.
    UnsupportedSuite(u8),
    /// The row's key scope has no key with this id.
    KeyNotFound([u8; 8]),
    /// The key store did not answer, or has no key to encrypt with.
    KeyUnavailable {
        /// Whether the call may succeed later.
        retryable: bool,
    },
    /// Authentication failed: the key is wrong, the bytes were changed, or the value was moved from
    /// another row or property. The cipher cannot distinguish these causes.
    Authentication,
    /// The key differs from the one that its configuration names.
    KeyIdMismatch,
}

impl SealFault {
    /// Returns the kind of error that reports this fault.
    pub(super) fn kind(self) -> ErrorKind {
        match self {
            Self::KeyUnavailable { .. } => ErrorKind::KeyUnavailable,
            Self::KeyIdMismatch => ErrorKind::Invalid,
            Self::NotEncrypted
            | Self::Malformed
            | Self::UnsupportedSuite(_)
            | Self::KeyNotFound(_)
            | Self::Authentication => ErrorKind::Decrypt,
        }
    }
}
