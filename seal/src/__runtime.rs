//! Everything of this crate that `entable` uses and that is not for other programs.
//!
//! The modules below re-export items that are not public elsewhere. No other item or member is hidden.
//!
//! None of them follows the rules of versions. `tests/policy` compares the list with the sources.

pub mod authentic {
    pub use crate::authentic::{
        codes::{WorkCodes, WorkRefusal, is_key_gone},
        work::{MoveIdentity, SecretValues, Work, is_message_expired},
    };
}
pub mod seal {
    #[cfg(feature = "legacy-encryption")]
    pub use crate::legacy::metadata::METADATA_PROPERTY;
    pub use crate::{content::BlobContentKey, content_cipher::BlobContentCipher};
}
