//! Encrypts rows again after a change of encryption keys, encrypted fields, or format.

pub(crate) mod report;
pub(crate) mod filter;
#[cfg(feature = "legacy-encryption")]
pub(crate) mod legacy;
pub(crate) mod writer;
pub(crate) mod blobs;
pub(crate) mod run;

pub use report::{ReencryptFailure, ReencryptProgress, ReencryptReport};
pub use run::Reencrypt;
