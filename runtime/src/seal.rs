//! Encrypts properties and the contents of blobs, seals whole entities, and makes blind tokens. Also
//! provides the sources of their keys.
//!
//! All of it is in the crate `entable-seal`. `docs/envelope.md` specifies the formats byte by byte;
//! `docs/encryption.md` says which attacks they withstand.
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

pub(crate) use entable_seal::__runtime::seal::*;
#[cfg(feature = "legacy-encryption")]
pub use entable_seal::legacy;
#[cfg(feature = "keyvault")]
pub use entable_seal::vault;
pub use entable_seal::{
    BlindTokenKey, CachedKeys, DataKey, KeyFuture, KeyId, KeyProvider, KeyScope, Keyring,
    KeyringBuilder, RootKey, ValueBinding, envelope_range, is_envelope, key_id_of,
    properties_to_seal, seal_key_id_of, sealed_len, token_version,
};
