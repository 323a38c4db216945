//! A key provider that keeps the keys of another provider for a limited time.

use std::{fmt, sync::Arc, time::Duration};

use super::key_cache::{KeyCache, Lifetime};
use crate::{
    blind_token_key::BlindTokenKey,
    data_key::DataKey,
    envelope::KeyId,
    provider::{KeyFuture, KeyProvider, KeyScope},
};
use entable_core::clock::{Clock, SystemClock};

/// A key provider that caches the keys of another provider for a limited time. Concurrent requests for a key share one
/// request to that provider.
///
/// A key is kept for one hour by default; see [`ttl`](Self::ttl). Until then it remains usable here, even if the key
/// store no longer hands it out. [`stale_for_decrypt`](Self::stale_for_decrypt) allows a longer time while the key
/// store does not answer.
///
/// ```
/// use std::time::Duration;
/// use entable_seal::{CachedKeys, KeyProvider, KeyScope, Keyring};
///
/// let keys = CachedKeys::new(Keyring::from_bytes([7; 32])).ttl(Duration::from_secs(600));
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let scope = KeyScope::default_scope();
/// let key = keys.primary(&scope).await?;
/// assert_eq!(keys.get(&scope, key.id()).await?.id(), key.id());
/// # Ok::<(), entable_core::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CachedKeys<P> {
    provider: P,
    clock: Arc<dyn Clock>,
    fresh: Duration,
    stale: Duration,
    primary: KeyCache<KeyScope, DataKey>,
    data: KeyCache<(KeyScope, KeyId), DataKey>,
    index: KeyCache<(KeyScope, Option<u32>), BlindTokenKey>,
}

impl<P: KeyProvider> CachedKeys<P> {
    /// Makes a cache in front of `provider` that keeps keys for one hour.
    pub fn new(provider: P) -> Self {
        Self {
            provider,
            clock: Arc::new(SystemClock),
            fresh: Duration::from_secs(3600),
            stale: Duration::ZERO,
            primary: KeyCache::default(),
            data: KeyCache::default(),
            index: KeyCache::default(),
        }
    }

    /// Sets how long a key is kept.
    #[must_use]
    pub fn ttl(mut self, time: Duration) -> Self {
        self.fresh = time;
        self
    }

    /// Allows decryption with expired keys for the further time `beyond` while the key store does not
    /// answer; not allowed unless set. Expired keys never encrypt, and a key store that answers "no such
    /// key" is believed at once.
    #[must_use]
    pub fn stale_for_decrypt(mut self, beyond: Duration) -> Self {
        self.stale = beyond;
        self
    }

    /// Sets the clock that measures the age of keys.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the provider behind the cache.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Removes all keys from the cache. Call it after the keys of a scope were destroyed.
    pub fn forget(&self) {
        // Before the data keys, which are filled from the answers with primary keys.
        self.primary.clear();
        self.data.clear();
        self.index.clear();
    }

    fn lifetime(&self, stale: Duration) -> Lifetime<'_> {
        Lifetime { clock: &*self.clock, fresh: self.fresh, stale }
    }
}

impl<P: KeyProvider> KeyProvider for CachedKeys<P> {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        self.provider.scope_of(partition_key)
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move {
            // Expired keys never encrypt: a key that was withdrawn would stay in use.
            let lifetime = self.lifetime(Duration::ZERO);
            // Before the request: its answer must not bring a key back that `forget` removes meanwhile.
            let cleared = self.data.times_cleared();
            let fetch = || self.provider.primary(scope);
            let (key, at) = self.primary.get(scope.clone(), lifetime, fetch).await?;
            // A row that was written is often read soon: the key that decrypts it is known already.
            self.data.insert_key_from_answer(
                (scope.clone(), key.id()),
                &key,
                at,
                cleared,
                self.lifetime(self.stale),
            );
            Ok(key)
        })
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move {
            let fetch = || self.provider.get(scope, id);
            let got = self.data.get((scope.clone(), id), self.lifetime(self.stale), fetch).await?;
            Ok(got.0)
        })
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        Box::pin(async move {
            let fetch = || self.provider.fetch_blind_token_key(scope, version);
            let lifetime = self.lifetime(Duration::ZERO);
            let got = self.index.get((scope.clone(), version), lifetime, fetch).await?;
            Ok(got.0)
        })
    }

    fn has_blind_token_key_per_scope(&self) -> bool {
        self.provider.has_blind_token_key_per_scope()
    }

    fn blind_token_scope(&self, partition_key: &str) -> KeyScope {
        self.provider.blind_token_scope(partition_key)
    }
}

impl<P: fmt::Debug> fmt::Debug for CachedKeys<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedKeys")
            .field("provider", &self.provider)
            .field("life", &self.fresh)
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}
