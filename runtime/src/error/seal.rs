//! What is wrong with a sealed value or its key.

use super::{Error, ErrorKind};

/// What is wrong with a sealed value or its key: enough to act on, nothing that helps to forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SealFault {
    /// Plain bytes, or none, stand where a sealed value belongs.
    NotEncrypted,
    /// The value begins as a sealed one does and is none.
    Malformed,
    /// The value is sealed by a suite that this version does not know.
    UnsupportedSuite(u8),
    /// The row's scope has no key of that id.
    KeyNotFound([u8; 8]),
    /// The key store did not answer, or has no key to seal with.
    KeyUnavailable {
        /// Whether the same call may succeed later.
        retryable: bool,
    },
    /// The value was not sealed under this key for this place: another key, changed bytes, or a
    /// value that was moved. Which of them cannot be told.
    Authentication,
    /// A key is another one than its configuration names.
    KeyIdMismatch,
}

impl SealFault {
    fn kind(self) -> ErrorKind {
        match self {
            Self::KeyUnavailable { .. } => ErrorKind::KeyUnavailable,
            Self::KeyIdMismatch => ErrorKind::Invalid,
            _ => ErrorKind::Decrypt,
        }
    }
}

impl Error {
    /// The error of a sealed value or its key.
    pub fn seal(fault: SealFault, message: impl Into<String>) -> Self {
        let mut error = Self::new(fault.kind(), message);
        error.0.seal = Some(fault);
        error
    }

    /// What is wrong with the sealed value or its key, where that is what failed.
    pub fn seal_fault(&self) -> Option<SealFault> {
        self.0.seal
    }
}
