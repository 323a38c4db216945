//! The keys that unwrap the content keys of legacy rows.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use aes_kw::{KeyInit, KwAes256};
use zeroize::Zeroizing;

use super::metadata::{WrappedKey, legacy_decrypt_error};
use crate::root::RootKey;
use entable_core::error::{BoxError, Error, Result, SealFault};

/// The future that [`LegacyKeyUnwrap::unwrap`] returns.
pub type UnwrapFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Zeroizing<Vec<u8>>>, BoxError>> + Send + 'a>>;

/// Unwraps content keys with wrapping keys that the process does not hold, such as RSA keys in a key
/// store. (This crate contains no RSA: the `rsa` crate has an open advisory, RUSTSEC-2023-0071, for this
/// use.)
///
/// A key store that is asked over the network, here with an RSA key:
///
/// ```
/// use entable_seal::legacy::{
///     LegacyKeyUnwrap, LegacyKeys, UnwrapFuture, WrappedKey, Zeroizing,
/// };
/// # use entable_core::BoxError;
/// # use std::sync::Arc;
/// # struct KeyStore;
/// # impl KeyStore {
/// #     async fn unwrap_key(&self, _: &str, _: &str, _: &[u8]) -> Result<Vec<u8>, BoxError> {
/// #         Ok(vec![7; 32])
/// #     }
/// # }
///
/// struct Vault(KeyStore);
///
/// impl LegacyKeyUnwrap for Vault {
///     fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> UnwrapFuture<'a> {
///         Box::pin(async move {
///             let algorithm = match &*wrapped.algorithm {
///                 "RSA-OAEP" => "RSA-OAEP",
///                 "RSA1_5" => "RSA1_5",
///                 _ => return Ok(None),
///             };
///             let key = self.0.unwrap_key(&wrapped.key_id, algorithm, &wrapped.bytes).await?;
///             Ok(Some(Zeroizing::new(key)))
///         })
///     }
/// }
///
/// // AES keys that the program holds, and RSA keys in the key store.
/// let keys = LegacyKeys::new().aes("local:kek-1", [7; 32]).unwrapper(Arc::new(Vault(KeyStore)));
/// # let _ = keys;
/// ```
pub trait LegacyKeyUnwrap: Send + Sync {
    /// Returns the content key, 32 bytes, or `None` for the id of a wrapping key that it does not know.
    ///
    /// # Errors
    ///
    /// An [`Error`] that is [`is_key_unavailable`](Error::is_key_unavailable) says that the key store cannot
    /// be asked now, and is returned for the row: it may be retried. All other errors of the key store,
    /// such as that it refuses the bytes, become the one error of rows that cannot be decrypted.
    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> UnwrapFuture<'a>;
}

/// The wrapping keys for a migration from the legacy protocol. `Debug` shows only the ids of the AES keys and
/// the number of unwrappers.
#[derive(Clone, Default)]
pub struct LegacyKeys {
    aes: BTreeMap<String, RootKey>,
    others: Vec<Arc<dyn LegacyKeyUnwrap>>,
}

impl LegacyKeys {
    /// Makes an empty set of wrapping keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a 256-bit wrapping key for `A256KW` (RFC 3394) under its id.
    #[must_use]
    pub fn aes(mut self, key_id: &str, key: [u8; 32]) -> Self {
        self.aes.insert(key_id.to_owned(), RootKey::from_bytes(*Zeroizing::new(key)));
        self
    }

    /// Adds an implementation that unwraps content keys outside this process.
    #[must_use]
    pub fn unwrapper(mut self, unwrap: Arc<dyn LegacyKeyUnwrap>) -> Self {
        self.others.push(unwrap);
        self
    }

    /// Unwraps a content key. A known AES key unwraps `A256KW` only: another algorithm fails with
    /// `is_decrypt`, like wrapped bytes that do not match the key.
    pub(super) async fn unwrap_content_key(
        &self,
        wrapped: &WrappedKey,
    ) -> Result<Zeroizing<[u8; 32]>> {
        if let Some(key) = self.aes.get(&wrapped.key_id) {
            return unwrap_aes(key, wrapped).ok_or_else(legacy_decrypt_error);
        }
        // Asked in the order they were added. The first one that has the key wins.
        for other in &self.others {
            let unwrapped =
                other.unwrap(wrapped).await.map_err(|cause| match cause.downcast::<Error>() {
                    Ok(error) if error.is_key_unavailable() => *error,
                    _ => legacy_decrypt_error(),
                })?;
            if let Some(key) = unwrapped {
                return key
                    .as_slice()
                    .try_into()
                    .map(Zeroizing::new)
                    .map_err(|_| legacy_decrypt_error());
            }
        }
        Err(Error::seal(
            SealFault::KeyUnavailable { retryable: false },
            format!(
                "the row's content key is wrapped with the key `{}`, which is not one of the legacy keys; add it",
                wrapped.key_id.escape_debug()
            ),
        ))
    }
}

fn unwrap_aes(key: &RootKey, wrapped: &WrappedKey) -> Option<Zeroizing<[u8; 32]>> {
    if wrapped.algorithm != "A256KW" {
        return None;
    }
    let mut content = Zeroizing::new([0; 32]);
    let unwrapped = KwAes256::new(key.expose().into())
        .unwrap_key(&wrapped.bytes, content.as_mut_slice())
        .ok()?;
    (unwrapped.len() == 32).then_some(content)
}

impl fmt::Debug for LegacyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegacyKeys")
            .field("aes", &self.aes.keys())
            .field("others", &self.others.len())
            .finish()
    }
}
