//! Encryption of properties and of the contents of blobs, seals of whole entities, codes over work, blind
//! tokens, and the sources of their keys: the part of [entable] that an audit of its encryption reads.
//!
//! Programs use `entable`, which re-exports everything here as `entable::seal` and `entable::authentic`. `docs/envelope.md`
//! specifies the formats byte by byte; `docs/encryption.md` says which attacks they withstand.
//!
//! ```
//! use entable_core::{Value, ValueRef};
//! use entable_seal::{DataKey, RootKey, ValueBinding, key_id_of};
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
//! # Ok::<(), entable_core::Error>(())
//! ```
//!
//! [entable]: https://docs.rs/entable

// The published documentation shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module uses only modules listed above it.
// Floor 0: the formats of encrypted values and their keys, pure.
mod root;
mod envelope;
mod binding;
mod canonical;
mod blind_token_key;
mod data_key;
mod content;
mod content_cipher;
mod entity_seal;
mod work_code;
// Floor 1: sources of keys. A remote source awaits.
mod provider;
mod cache;
mod keyring;
#[cfg(feature = "keyvault")]
pub mod vault;
// Floor 2: proof that somebody with the keys asked for work.
pub mod authentic;
// Floor 2 too: the reader of rows that older libraries encrypted.
#[cfg(feature = "legacy-encryption")]
pub mod legacy;

#[doc(hidden)]
pub mod __runtime;

#[cfg(test)]
mod tests;

pub use crate::{
    binding::ValueBinding,
    blind_token_key::{BlindTokenKey, token_version},
    cache::CachedKeys,
    data_key::{DataKey, sealed_len},
    entity_seal::{properties_to_seal, seal_key_id_of},
    envelope::{KeyId, envelope_range, is_envelope, key_id_of},
    keyring::{Keyring, KeyringBuilder},
    provider::{KeyFuture, KeyProvider, KeyScope},
    root::RootKey,
};
