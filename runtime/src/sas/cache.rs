//! Reuses signatures until they are about to expire.

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
    metering,
};

/// Makes signatures of one lifetime, and returns the same one for equal requests until a fifth of
/// its lifetime is left.
///
/// Signing is cheap. The cache keeps addresses stable: with a new signature for every user, no HTTP
/// cache on the way could reuse a response.
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

/// How far in the past a signature begins, in case clocks differ.
const SKEW: Duration = Duration::from_secs(300);

impl SasCache {
    /// Creates a cache of signatures that are valid for `lifetime`, by the system's clock.
    pub fn new(key: AccountKey, lifetime: Duration) -> Self {
        Self::with_clock(key, lifetime, Arc::new(SystemClock))
    }

    /// Creates a cache of signatures that are valid for `lifetime`, by another clock.
    pub fn with_clock(key: AccountKey, lifetime: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { key, lifetime, clock, tokens: Mutex::default() }
    }

    /// Returns a signature for `sas`, cached or new. The cache sets its times and ignores the times in `sas`.
    ///
    /// # Errors
    ///
    /// Fails like [`TableSas::sign`].
    pub fn get(&self, sas: &TableSas) -> Result<SasToken> {
        let now = OffsetDateTime::from(self.clock.now());
        // A panic while the lock was held cannot leave a token half written, so the map is still
        // good.
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let lifetime = time::Duration::try_from(self.lifetime).unwrap_or(time::Duration::MAX);
        // A lifetime that no time can hold ends with the year 9999.
        let end = now.saturating_add(lifetime);
        let fresh = |token: &SasToken, least: time::Duration| {
            let left = token.expires().map(|end| end - now);
            // More than the lifetime is left only after the clock was set back: the token may not be
            // valid yet.
            left.is_some_and(|left| left > least && left <= lifetime)
        };
        if let Some(token) = tokens.get(sas).filter(|token| fresh(token, (end - now) / 5)) {
            metering::count_cache_lookup("signatures", true);
            return Ok(token.clone());
        }
        metering::count_cache_lookup("signatures", false);
        let token = sas.clone().starts(now - SKEW).expires(end).sign(&self.key)?;
        // Without it, the cache would keep a token of every signature that was ever asked for.
        tokens.retain(|_, token| fresh(token, time::Duration::ZERO));
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
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::{clock::SteppedClock, edm::Ticks, sas::TablePermissions};

    /// A clock that can be set back.
    #[derive(Debug)]
    struct SettableClock(AtomicI64);

    impl Clock for SettableClock {
        fn now(&self) -> Ticks {
            Ticks::new(self.0.load(Ordering::SeqCst)).unwrap()
        }
    }

    #[test]
    fn a_signature_that_is_not_valid_yet_is_not_reused() {
        let key = AccountKey::new("a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let clock = Arc::new(SettableClock(AtomicI64::new(638_000_000_000_000_000)));
        let cache = SasCache::with_clock(key, Duration::from_secs(3600), clock.clone());
        let sas = TableSas::new("Staff").permissions(TablePermissions::READ);
        let first = cache.get(&sas).unwrap();
        clock.0.fetch_sub(24 * 3600 * Ticks::PER_SECOND, Ordering::SeqCst);
        let second = cache.get(&sas).unwrap();
        let end = Ticks::try_from(second.expires().unwrap()).unwrap().get();
        assert_eq!(end, clock.now().get() + 3600 * Ticks::PER_SECOND);
        assert_ne!(first, second);
        assert_eq!(cache.get(&sas).unwrap(), second);
    }

    #[test]
    fn a_lifetime_without_end_ends_with_the_last_year() {
        let key = AccountKey::new("a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let cache = SasCache::new(key, Duration::MAX);
        let sas = TableSas::new("Staff").permissions(TablePermissions::READ);
        let token = cache.get(&sas).unwrap();
        let end = token.expires().unwrap();
        assert_eq!(end.year(), 9999);
        assert_eq!(cache.get(&sas).unwrap(), token);
    }

    #[test]
    fn a_time_that_no_signature_can_name_is_refused() {
        let key = AccountKey::new("a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let sas = TableSas::new("Staff").policy("p");
        let before = time::Date::from_calendar_date(-1, time::Month::May, 1).unwrap();
        let error = sas.expires(before.midnight().assume_utc()).sign(&key).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("1 to 9999"), "{error}");
    }

    #[test]
    fn a_signature_is_used_again_until_near_its_end() {
        let clock = Arc::new(SteppedClock::new("2024-01-01T00:00:00Z".parse().unwrap()));
        let key = AccountKey::new("a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let cache = SasCache::with_clock(key, Duration::from_secs(100), clock.clone());
        let sas = TableSas::new("Staff").permissions(TablePermissions::READ);
        let first = cache.get(&sas).unwrap();
        // Begins five minutes early: the clock of the service may be behind.
        assert!(
            first.as_query().contains("&st=2023-12-31T23%3A55%3A00Z&se=2024-01-01T00%3A01%3A40Z&")
        );
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
