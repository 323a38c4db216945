//! Values under keys: encrypted properties, sealed entities, blind tokens, and where keys come from.
//!
//! The format is written down byte by byte in `docs/envelope.md`, what it protects from in
//! `docs/encryption.md`.
//!
//! ```
//! use entable::{Value, ValueRef, seal::{DataKey, Place, RootKey, key_id_of}};
//!
//! let key = DataKey::from_root(&RootKey::generate()?);
//! let place = Place { table: "Staff", partition_key: "Sales", row_key: "223", property: "Ssn" };
//! let envelope = key.encrypt(&place, Some(ValueRef::String("123-45-6789")), 0)?;
//! assert_eq!(key_id_of(&envelope)?, Some(key.id()));
//! assert_eq!(key.decrypt(&place, &envelope)?, Some(Value::from("123-45-6789")));
//!
//! let elsewhere = Place { row_key: "224", ..place };
//! assert!(key.decrypt(&elsewhere, &envelope).unwrap_err().is_decrypt());
//! # Ok::<(), entable::Error>(())
//! ```

mod cache;
mod canonical;
mod data_key;
mod entity;
mod envelope;
mod index_key;
mod keyring;
#[cfg(feature = "legacy-encryption")]
pub mod legacy;
mod place;
mod provider;
mod root;
#[cfg(test)]
mod tests;
#[cfg(feature = "keyvault")]
pub mod vault;

pub use cache::CachedKeys;
pub use data_key::{DataKey, sealed_len};
pub use entity::{properties_of, seal_key_id_of};
pub use envelope::{KeyId, id_range, is_envelope, key_id_of};
pub use index_key::{IndexKey, token_version};
pub use keyring::{Keyring, KeyringBuilder};
pub use place::Place;
pub use provider::{KeyFuture, KeyProvider, KeyScope};
pub use root::RootKey;
