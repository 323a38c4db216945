//! Reads rows that the Azure Storage libraries for .NET, Java and Python encrypted before 2020
//! ("client-side encryption", protocol 1.0), for a migration away from that protocol.
//!
//! The protocol has no authentication: a writer of the table can change what a row decrypts to, and a program that
//! reports why a row fails reveals its contents. For that reason, all failures to unwrap the content key or decrypt
//! with it give the same error, and all properties are decrypted before any is judged. Disable the feature
//! `legacy-encryption` once the migration is done.

mod cipher;
pub(crate) mod metadata;

mod keys;

mod decrypt;

pub use decrypt::{decrypt_row, decrypt_row_with, is_legacy, wrapped_key_of};
pub use keys::{LegacyKeyUnwrap, LegacyKeys, UnwrapFuture};
pub use metadata::WrappedKey;
pub use zeroize::Zeroizing;
