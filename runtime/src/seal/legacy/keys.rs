//! The keys that legacy content keys are wrapped with.

use std::{collections::BTreeMap, fmt, sync::Arc};

use aes_kw::{KeyInit, KwAes256};
use zeroize::Zeroizing;

use super::{metadata::WrappedKey, unreadable};
use crate::{
    error::{BoxError, Error, Result, SealFault},
    seal::root::RootKey,
};

/// Unwraps content keys where the key for it is held elsewhere: in a key store, in a library for
/// RSA. (This crate brings no RSA: the crate for it has an open advisory, RUSTSEC-2023-0071, for
/// just this use.)
pub trait LegacyKeyUnwrap: Send + Sync {
    /// The content key, 32 bytes; `None` for a key id that this one does not know.
    ///
    /// # Errors
    ///
    /// Whatever the store answers. The reader of a row sees one error for all of them.
    fn unwrap(&self, wrapped: &WrappedKey) -> Result<Option<Zeroizing<Vec<u8>>>, BoxError>;
}

/// The keys that legacy content keys are wrapped with. Debug shows their ids.
#[derive(Clone, Default)]
pub struct LegacyKeys {
    aes: BTreeMap<String, RootKey>,
    others: Vec<Arc<dyn LegacyKeyUnwrap>>,
}

impl LegacyKeys {
    /// No keys yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same and a 256-bit key for `A256KW` (RFC 3394) of that id.
    #[must_use]
    pub fn aes(mut self, key_id: &str, key: [u8; 32]) -> Self {
        self.aes.insert(key_id.to_owned(), RootKey::from_bytes(*Zeroizing::new(key)));
        self
    }

    /// The same and something that unwraps elsewhere.
    #[must_use]
    pub fn unwrapper(mut self, unwrap: Arc<dyn LegacyKeyUnwrap>) -> Self {
        self.others.push(unwrap);
        self
    }

    /// The content key. A wrong algorithm for a known key is as unreadable as wrong bytes are.
    pub(super) fn unwrap(&self, wrapped: &WrappedKey) -> Result<Zeroizing<[u8; 32]>> {
        if let Some(key) = self.aes.get(&wrapped.key_id) {
            return unwrap_aes(key, wrapped).ok_or_else(unreadable);
        }
        for other in &self.others {
            if let Some(key) = other.unwrap(wrapped).map_err(|_| unreadable())? {
                return key.as_slice().try_into().map(Zeroizing::new).map_err(|_| unreadable());
            }
        }
        Err(Error::seal(
            SealFault::KeyUnavailable { retryable: false },
            format!(
                "the row's content key is wrapped with the key `{}`, which is not among the legacy keys",
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
