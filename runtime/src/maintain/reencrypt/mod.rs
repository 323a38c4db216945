//! Encrypts rows again after a change of keys, of the encrypted fields, or of the format.

pub(crate) mod report;
pub(crate) mod filter;
#[cfg(feature = "legacy-encryption")]
pub(crate) mod legacy;
pub(crate) mod writer;
pub(crate) mod blobs;
pub(crate) mod run;

pub use report::{ReencryptFailure, ReencryptProgress, ReencryptReport};
pub use run::Reencrypt;
