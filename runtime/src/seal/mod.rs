//! Encryption of properties and of the contents of blobs, seals of whole entities, codes over work, blind
//! tokens, and the sources of their keys.
//!
//! `docs/envelope.md` specifies the formats byte by byte; `docs/encryption.md` says which attacks they
//! withstand.
//!
//! ```
//! use entable::{Value, ValueRef, seal::{DataKey, RootKey, ValueBinding, key_id_of}};
//!
//! let key = DataKey::from_root(&RootKey::generate()?);
//! let binding =
//!     ValueBinding { table: "Staff", partition_key: "Sales", row_key: "223", property: "Ssn" };
//! let envelope = key.encrypt(&binding, Some(ValueRef::String("123-45-6789")), 0)?;
//! assert_eq!(key_id_of(&envelope)?, Some(key.id()));
//! assert_eq!(key.decrypt(&binding, &envelope)?, Some(Value::from("123-45-6789")));
//!
//! let elsewhere = ValueBinding { row_key: "224", ..binding };
//! assert!(key.decrypt(&elsewhere, &envelope).unwrap_err().is_decrypt());
//! # Ok::<(), entable::Error>(())
//! ```

mod root;
mod envelope;
mod binding;
mod canonical;
mod blind_token_key;
mod data_key;
mod content;
#[cfg(feature = "blob")]
mod content_cipher;
mod entity_seal;
mod work_code;
mod provider;
mod cache;
mod keyring;
#[cfg(feature = "keyvault")]
pub mod vault;

#[cfg(feature = "legacy-encryption")]
pub mod legacy;

#[cfg(test)]
mod tests;

pub use binding::ValueBinding;
pub use blind_token_key::{BlindTokenKey, token_version};
pub use cache::CachedKeys;
pub(crate) use content::BlobContentKey;
#[cfg(feature = "blob")]
pub(crate) use content_cipher::BlobContentCipher;
pub use data_key::{DataKey, sealed_len};
pub use entity_seal::{properties_to_seal, seal_key_id_of};
pub use envelope::{KeyId, envelope_range, is_envelope, key_id_of};
pub use keyring::{Keyring, KeyringBuilder};
pub use provider::{KeyFuture, KeyProvider, KeyScope};
pub use root::RootKey;
pub(crate) use work_code::{WorkInput, work_key_id_of};
