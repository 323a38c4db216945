//! Keys of a remote key store, kept in memory for a limited time.

mod key_cache;

mod cached_keys;

pub use cached_keys::CachedKeys;
#[cfg(feature = "keyvault")]
pub(super) use key_cache::{KeyCache, Lifetime};
