//! Keeps the tokens of a credential until they expire, and renews them before that.

use std::{fmt, sync::Arc, time::Duration};

use entable_core::{
    __runtime::{
        limits::saturating_i64,
        single_flight::{FlightSlot, SingleFlight},
    },
    backend::BoxFuture,
    clock::{Clock, SystemClock},
    edm::Ticks,
    error::{BoxError, Error, ErrorKind, Result},
};
use zeroize::Zeroizing;

/// How long before its expiry a token is renewed. Requests use the old token meanwhile.
const RENEWED_BEFORE: Duration = Duration::from_secs(5 * 60);
/// The pause after a renewal that failed while the old token is valid.
const RENEWAL_PAUSE: Duration = Duration::from_secs(30);
/// A token with less time left than this is not sent: it could expire on its way.
const LEAST_TIME_LEFT: Duration = Duration::from_secs(10);

/// A source of Microsoft Entra tokens. [`AccessTokenCache`] calls it at most once at a time for each scope.
pub(crate) trait AccessTokenSource: Send + Sync + 'static {
    /// Gets a token for a scope such as `https://storage.azure.com/.default`.
    fn fetch_token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>>;
}

/// A token and the time of its expiry.
#[derive(Clone)]
pub(crate) struct AccessToken {
    pub(crate) secret: Arc<Zeroizing<String>>,
    pub(crate) expires: Ticks,
}

/// Keeps one token for each scope.
pub(crate) struct AccessTokenCache {
    source: Arc<dyn AccessTokenSource>,
    clock: Arc<dyn Clock>,
    scopes: SingleFlight<String, TokenState>,
}

/// The token of one scope.
#[derive(Default)]
struct TokenState {
    token: Option<AccessToken>,
    /// From this time on, the next request that needs the token renews it.
    renew_at: Option<Ticks>,
    /// The number of fetches that failed, and the reason of the last.
    failed: (u64, Option<Arc<dyn std::error::Error + Send + Sync>>),
}

impl AccessTokenCache {
    pub(crate) fn new(source: Arc<dyn AccessTokenSource>) -> Arc<Self> {
        Self::with_clock(source, Arc::new(SystemClock))
    }

    fn with_clock(source: Arc<dyn AccessTokenSource>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { source, clock, scopes: SingleFlight::default() })
    }

    /// Returns a token that is valid now. Requests that need the same token at once share one fetch. If
    /// the token expires soon, starts a renewal in the background.
    ///
    /// # Errors
    ///
    /// `is_denied` if the source gives no token.
    pub(crate) async fn token_for_scope(
        self: &Arc<Self>,
        scope: &str,
    ) -> Result<Arc<Zeroizing<String>>> {
        // A program uses one or two scopes: nothing is ever pruned.
        let slot = self.scopes.flight_slot_of_key(scope.to_owned(), usize::MAX, |_, _| true);
        if self.begin_renewal(&slot) {
            let (cache, slot, scope) = (Arc::clone(self), Arc::clone(&slot), scope.to_owned());
            // A renewal that fails is repeated after a pause; the old token is still valid.
            tokio::spawn(async move { cache.fetch_into(&slot, &scope).await.ok() });
        }
        let failures = slot.lock_state().failed.0;
        let find = |state: &TokenState| match &state.token {
            Some(token) if self.is_valid(token) => Some(Ok(Arc::clone(&token.secret))),
            // The fetch that this request waited for has failed: another one would fail too.
            _ if state.failed.0 > failures => Some(Err(state.failure())),
            _ => None,
        };
        slot.find_or_run(find, async || self.fetch_into(&slot, scope).await).await
    }

    /// Drops a token that the service refused. The next request gets a new one.
    pub(crate) fn forget_token(&self, scope: &str) {
        if let Some(slot) = self.scopes.lock_slots().get(scope) {
            let mut state = slot.lock_state();
            (state.token, state.renew_at) = (None, None);
        }
    }

    fn is_valid(&self, token: &AccessToken) -> bool {
        self.clock.now() < before(token.expires, LEAST_TIME_LEFT)
    }

    /// Returns whether the caller must renew a token that is still valid. Returns `true` to one caller,
    /// and to the next one only if a pause has passed and the token was not renewed.
    fn begin_renewal(&self, slot: &FlightSlot<TokenState>) -> bool {
        let mut state = slot.lock_state();
        let now = self.clock.now();
        let is_due = state.renew_at.is_some_and(|due| due <= now);
        let is_valid = state.token.as_ref().is_some_and(|token| self.is_valid(token));
        if is_due && is_valid {
            state.renew_at = Some(after(now, RENEWAL_PAUSE));
        }
        is_due && is_valid
    }

    /// Fetches a token and keeps it. On a failure, keeps the old token and the reason.
    async fn fetch_into(
        &self,
        slot: &FlightSlot<TokenState>,
        scope: &str,
    ) -> Result<Arc<Zeroizing<String>>> {
        let fetched = self.source.fetch_token(scope).await;
        let mut state = slot.lock_state();
        match fetched {
            Ok(token) => {
                let secret = Arc::clone(&token.secret);
                state.renew_at = Some(before(token.expires, RENEWED_BEFORE));
                state.token = Some(token);
                Ok(secret)
            }
            Err(error) => {
                state.failed = (state.failed.0 + 1, Some(error.into()));
                Err(state.failure())
            }
        }
    }
}

impl TokenState {
    fn failure(&self) -> Error {
        let message = "the credential returned no token; sign in again or check its role";
        let error = Error::new(ErrorKind::Denied, message);
        match &self.failed.1 {
            Some(reason) => error.with_source(Arc::clone(reason)),
            None => error,
        }
    }
}

fn ticks(time: Duration) -> i64 {
    saturating_i64(time.as_nanos() / 100)
}

fn before(time: Ticks, by: Duration) -> Ticks {
    Ticks::new(time.get().saturating_sub(ticks(by))).unwrap_or(Ticks::MIN)
}

fn after(time: Ticks, by: Duration) -> Ticks {
    Ticks::new(time.get().saturating_add(ticks(by))).unwrap_or(Ticks::MAX)
}

impl fmt::Debug for AccessTokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessTokenCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use entable_core::clock::SteppedClock;

    use super::*;

    /// Gives tokens of an hour, or fails; counts.
    struct Source {
        clock: Arc<SteppedClock>,
        fails: Mutex<bool>,
        count: Mutex<u32>,
    }

    impl AccessTokenSource for Source {
        fn fetch_token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
            Box::pin(async {
                let count = {
                    let mut count = self.count.lock().unwrap();
                    *count += 1;
                    *count
                };
                tokio::task::yield_now().await;
                if *self.fails.lock().unwrap() {
                    return Err("no network".into());
                }
                let secret = Arc::new(Zeroizing::new(count.to_string()));
                Ok(AccessToken {
                    secret,
                    expires: after(self.clock.now(), Duration::from_secs(3600)),
                })
            })
        }
    }

    struct World {
        clock: Arc<SteppedClock>,
        source: Arc<Source>,
        cache: Arc<AccessTokenCache>,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
            let (fails, count) = (Mutex::default(), Mutex::default());
            let source = Arc::new(Source { clock: clock.clone(), fails, count });
            let cache = AccessTokenCache::with_clock(source.clone(), clock.clone());
            Self { clock, source, cache }
        }

        async fn token(&self) -> String {
            let token = self.cache.token_for_scope("scope").await.unwrap().to_string();
            // Lets a renewal in the background end.
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            token
        }

        fn pass(&self, seconds: u64) {
            self.clock.advance(Duration::from_secs(seconds));
        }
    }

    #[tokio::test]
    async fn a_token_is_renewed_before_it_expires_while_requests_use_the_old_one() {
        let world = World::new();
        assert_eq!(world.token().await, "1");
        world.pass(3600 - 301);
        assert_eq!(world.token().await, "1");
        assert_eq!(*world.source.count.lock().unwrap(), 1);
        world.pass(2);
        assert_eq!(world.token().await, "1", "the renewal does not hold up a request");
        assert_eq!(world.token().await, "2");
        assert_eq!(*world.source.count.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn a_failed_renewal_is_repeated_after_a_pause_and_fails_no_request() {
        let world = World::new();
        world.token().await;
        *world.source.fails.lock().unwrap() = true;
        world.pass(3600 - 200);
        assert_eq!((world.token().await, world.token().await), ("1".into(), "1".into()));
        assert_eq!(*world.source.count.lock().unwrap(), 2, "one renewal for both");
        world.pass(31);
        *world.source.fails.lock().unwrap() = false;
        assert_eq!(world.token().await, "1");
        assert_eq!(world.token().await, "3");
    }

    #[tokio::test]
    async fn an_expired_token_is_not_sent() {
        let world = World::new();
        world.token().await;
        world.pass(3600 - 9);
        assert_eq!(world.token().await, "2");
        *world.source.fails.lock().unwrap() = true;
        world.pass(3600);
        assert!(world.cache.token_for_scope("scope").await.unwrap_err().is_denied());
    }
}
