//! Signatures that are used again until they are near their end.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use time::OffsetDateTime;

use super::{SasToken, TableSas};
use crate::{
    backend::azure::AccountKey,
    clock::{Clock, SystemClock},
    error::Result,
};

/// Makes signatures of one lifetime and hands the same one out until a fifth of it is left.
///
/// Signing is cheap; what a cache saves is that every user of a table gets another address, which
/// no other cache on the way can use again.
///
/// ```
/// use std::time::Duration;
/// use entable::{AccountKey, sas::{SasCache, TablePermissions, TableSas}};
///
/// let key = AccountKey::new("myaccount", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
/// let cache = SasCache::new(key, Duration::from_secs(3600));
/// let sas = TableSas::new("Staff").permissions(TablePermissions::READ);
/// assert_eq!(cache.get(&sas)?, cache.get(&sas)?);
/// # Ok::<(), entable::Error>(())
/// ```
pub struct SasCache {
    key: AccountKey,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
    tokens: Mutex<HashMap<TableSas, SasToken>>,
}

/// How much earlier than now a signature begins: clocks differ.
const SKEW: Duration = Duration::from_secs(300);

impl SasCache {
    /// A cache of signatures that are good for `lifetime`.
    pub fn new(key: AccountKey, lifetime: Duration) -> Self {
        Self::with_clock(key, lifetime, Arc::new(SystemClock))
    }

    /// The same by another clock.
    pub fn with_clock(key: AccountKey, lifetime: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { key, lifetime, clock, tokens: Mutex::default() }
    }

    /// The signature for `sas`, whose own times do not count.
    ///
    /// # Errors
    ///
    /// As [`TableSas::sign`].
    pub fn get(&self, sas: &TableSas) -> Result<SasToken> {
        let now = OffsetDateTime::from(self.clock.now());
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |token: &SasToken, left: Duration| {
            token.expires_at().is_some_and(|end| OffsetDateTime::from(end) > now + left)
        };
        if let Some(token) = tokens.get(sas).filter(|token| fresh(token, self.lifetime / 5)) {
            return Ok(token.clone());
        }
        let token = sas.between(now - SKEW, now + self.lifetime).sign(&self.key)?;
        tokens.retain(|_, token| fresh(token, Duration::ZERO));
        tokens.insert(sas.clone(), token.clone());
        Ok(token)
    }
}

impl fmt::Debug for SasCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SasCache")
            .field("key", &self.key)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::SteppedClock, sas::TablePermissions};

    #[test]
    fn a_signature_is_used_again_until_near_its_end() {
        let clock = Arc::new(SteppedClock::new("2024-01-01T00:00:00Z".parse().unwrap()));
        let key = AccountKey::new("a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let cache = SasCache::with_clock(key, Duration::from_secs(100), clock.clone());
        let sas = TableSas::new("Staff").permissions(TablePermissions::READ);
        let first = cache.get(&sas).unwrap();
        clock.advance(Duration::from_secs(79));
        assert_eq!(cache.get(&sas).unwrap(), first);
        assert_ne!(cache.get(&sas.clone().keys_from("a", None)).unwrap(), first);
        clock.advance(Duration::from_secs(1));
        let second = cache.get(&sas).unwrap();
        assert_ne!(second, first);
        clock.advance(Duration::from_secs(500));
        cache.get(&sas).unwrap();
        assert_eq!(cache.tokens.lock().unwrap().len(), 1);
    }
}
