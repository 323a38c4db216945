//! Tests the cache of keys in front of a provider that counts requests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    BlindTokenKey, CachedKeys, DataKey, Error, KeyId, KeyProvider, KeyScope, Keyring, RootKey,
    SealFault, SteppedClock, Ticks, seal::KeyFuture,
};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};

/// Counts requests, answers slowly, and fails on demand.
#[derive(Debug)]
struct Counting {
    keys: Mutex<Keyring>,
    asked: AtomicUsize,
    fault: Mutex<Option<SealFault>>,
}

impl Counting {
    fn new() -> Arc<Self> {
        let keys = Mutex::new(ring(&[1, 2]));
        Arc::new(Self { keys, asked: AtomicUsize::new(0), fault: Mutex::new(None) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn fail(&self, fault: Option<SealFault>) {
        *self.fault.lock().unwrap() = fault;
    }

    async fn answer(&self) -> Result<Keyring, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        match *self.fault.lock().unwrap() {
            Some(fault) => Err(Error::seal(fault, "the store says no")),
            None => Ok(self.keys.lock().unwrap().clone()),
        }
    }
}

#[derive(Debug, Clone)]
struct Far(Arc<Counting>);

impl KeyProvider for Far {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        KeyScope::named(partition_key)
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move { self.0.answer().await?.primary_key(scope) })
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move { self.0.answer().await?.data_key(scope, id) })
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        Box::pin(async move { self.0.answer().await?.blind_token_key(scope, version) })
    }
}

const DOWN: SealFault = SealFault::KeyUnavailable { retryable: true };
const NO: SealFault = SealFault::KeyUnavailable { retryable: false };

/// A ring whose first key is the primary one.
fn ring(bytes: &[u8]) -> Keyring {
    let scope = KeyScope::default_scope();
    let mut ring = Keyring::builder().blind_token_key(&scope, 1, &RootKey::from_bytes([9; 32]));
    for (at, byte) in bytes.iter().enumerate() {
        let root = RootKey::from_bytes([*byte; 32]);
        ring = if at == 0 { ring.primary(&scope, &root) } else { ring.decrypt_only(&scope, &root) };
    }
    ring.build().unwrap()
}

fn cached(life: u64) -> (Arc<Counting>, Arc<SteppedClock>, Arc<CachedKeys<Far>>, KeyScope) {
    let (keys, clock) = (Counting::new(), Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)));
    let cache = CachedKeys::new(Far(keys.clone())).ttl(Duration::from_secs(life));
    let cache = cache.with_clock(clock.clone());
    (keys, clock, Arc::new(cache), KeyScope::default_scope())
}

fn id(byte: u8) -> KeyId {
    crate::key(byte).id()
}

/// Keys whose primary key is on its way until the gate opens.
#[derive(Debug, Clone)]
struct Gated(Arc<Counting>, Arc<tokio::sync::Semaphore>);

impl KeyProvider for Gated {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        KeyScope::named(partition_key)
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move {
            let key = self.0.answer().await?.primary_key(scope);
            let _opened = self.1.acquire().await.unwrap();
            key
        })
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move { self.0.answer().await?.data_key(scope, id) })
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        Box::pin(async move { self.0.answer().await?.blind_token_key(scope, version) })
    }
}

/// Runs `meanwhile` while the answer with the primary key is on its way, then takes the answer.
async fn during_an_answer(
    meanwhile: impl AsyncFnOnce(&CachedKeys<Gated>, &Counting, &SteppedClock),
) -> (Arc<Counting>, Arc<CachedKeys<Gated>>) {
    let (keys, clock) = (Counting::new(), Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)));
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let cache = CachedKeys::new(Gated(keys.clone(), gate.clone())).with_clock(clock.clone());
    let cache = Arc::new(cache);
    let answer = tokio::spawn({
        let cache = cache.clone();
        async move { cache.primary(&KeyScope::default_scope()).await.unwrap().id() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    meanwhile(&cache, &keys, &clock).await;
    gate.add_permits(1);
    assert_eq!(answer.await.unwrap(), id(1));
    (keys, cache)
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_its_way_brings_no_forgotten_key_back() {
    let (keys, cache) = during_an_answer(async |cache, keys, _| {
        keys.fail(Some(NO));
        cache.forget();
    })
    .await;
    let error = cache.get(&KeyScope::default_scope(), id(1)).await.unwrap_err();
    assert_eq!((error.seal_fault(), keys.asked()), (Some(NO), 2));
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_its_way_does_not_outdo_a_later_no() {
    let scope = KeyScope::default_scope();
    let (keys, cache) = during_an_answer(async |cache, keys, clock| {
        clock.advance(Duration::from_secs(1));
        keys.fail(Some(NO));
        assert!(cache.get(&KeyScope::default_scope(), id(1)).await.is_err());
    })
    .await;
    assert!(cache.get(&scope, id(1)).await.unwrap_err().is_key_unavailable());
    assert_eq!(keys.asked(), 3);
}

/// Counts the look-ups in caches of keys, by whether they were hits.
#[derive(Default)]
struct Lookups(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Lookups {
    fn count(&self, is_hit: &str) -> u64 {
        let counts = self.0.lock().unwrap();
        let name = format!("entable.cache.lookups keys {is_hit}");
        counts.get(&name).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl metrics::Recorder for Lookups {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: String = key.labels().map(|label| format!(" {}", label.value())).collect();
        let name = format!("{}{labels}", key.name());
        Counter::from_arc(self.0.lock().unwrap().entry(name).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_asked_for_once_in_its_time() {
    let lookups = Lookups::default();
    let _guard = metrics::set_default_local_recorder(&lookups);
    let (keys, clock, cache, scope) = cached(3600);
    for _ in 0..5 {
        assert_eq!(cache.get(&scope, id(2)).await.unwrap().id(), id(2));
    }
    assert_eq!(keys.asked(), 1);
    clock.advance(Duration::from_secs(3599));
    cache.get(&scope, id(2)).await.unwrap();
    assert_eq!(keys.asked(), 1);
    clock.advance(Duration::from_secs(1));
    cache.get(&scope, id(2)).await.unwrap();
    assert_eq!(keys.asked(), 2);
    let told = ["true", "false"].map(|hit| lookups.count(hit));
    assert_eq!(told, [5, 2], "hits and misses, as a recorder of figures gets them");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_read_without_a_question() {
    let (keys, _, cache, scope) = cached(3600);
    let primary = cache.primary(&scope).await.unwrap();
    assert_eq!(cache.get(&scope, primary.id()).await.unwrap().id(), id(1));
    assert_eq!(keys.asked(), 1);
    // Tokens and other scopes are other questions.
    assert_eq!(cache.fetch_blind_token_key(&scope, None).await.unwrap().version(), 1);
    assert_eq!(cache.fetch_blind_token_key(&scope, None).await.unwrap().version(), 1);
    assert_eq!(keys.asked(), 2);
    let other = cache.scope_of("elsewhere");
    assert!(cache.get(&other, id(1)).await.unwrap_err().is_decrypt());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_wait_make_one_flight() {
    let (keys, _, cache, scope) = cached(3600);
    let waiting = (0..100).map(|_| {
        let (cache, scope) = (cache.clone(), scope.clone());
        tokio::spawn(async move { cache.get(&scope, id(1)).await.unwrap().id() })
    });
    for one in waiting.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap(), id(1));
    }
    assert_eq!(keys.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_who_wait_share_a_failure_and_later_ones_ask_again() {
    let (keys, _, cache, scope) = cached(3600);
    keys.fail(Some(DOWN));
    let waiting = (0..50).map(|_| {
        let (cache, scope) = (cache.clone(), scope.clone());
        tokio::spawn(async move { cache.primary(&scope).await.unwrap_err().seal_fault() })
    });
    for one in waiting.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap(), Some(DOWN));
    }
    assert_eq!(keys.asked(), 1);
    keys.fail(None);
    assert_eq!(cache.primary(&scope).await.unwrap().id(), id(1));
    assert_eq!(keys.asked(), 2);
}

/// A request whose caller is dropped is repeated by the next waiter.
#[tokio::test(start_paused = true)]
async fn a_dropped_flight_strands_nobody() {
    let (keys, _, cache, scope) = cached(3600);
    let first = tokio::spawn({
        let (cache, scope) = (cache.clone(), scope.clone());
        async move { drop(cache.get(&scope, id(1)).await) }
    });
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(keys.asked(), 1);
    let second = tokio::spawn({
        let (cache, scope) = (cache.clone(), scope.clone());
        async move { cache.get(&scope, id(1)).await.unwrap().id() }
    });
    tokio::time::sleep(Duration::from_millis(5)).await;
    first.abort();
    assert_eq!(second.await.unwrap(), id(1));
    assert_eq!(keys.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_die_with_their_time_when_the_store_is_down() {
    let (keys, clock, cache, scope) = cached(60);
    cache.primary(&scope).await.unwrap();
    keys.fail(Some(DOWN));
    clock.advance(Duration::from_secs(59));
    assert!(cache.primary(&scope).await.is_ok() && cache.get(&scope, id(1)).await.is_ok());
    clock.advance(Duration::from_secs(1));
    let error = cache.get(&scope, id(1)).await.unwrap_err();
    assert!(error.is_key_unavailable() && error.seal_fault() == Some(DOWN));
    assert!(cache.primary(&scope).await.unwrap_err().is_key_unavailable());
}

#[tokio::test(start_paused = true)]
async fn stale_keys_read_while_the_store_is_down_and_never_write() {
    let (keys, clock) = (Counting::new(), Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)));
    let cache = CachedKeys::new(Far(keys.clone()))
        .ttl(Duration::from_secs(60))
        .stale_for_decrypt(Duration::from_secs(600))
        .with_clock(clock.clone());
    let scope = KeyScope::default_scope();
    cache.primary(&scope).await.unwrap();
    cache.fetch_blind_token_key(&scope, None).await.unwrap();
    keys.fail(Some(DOWN));
    clock.advance(Duration::from_secs(100));
    assert!(cache.get(&scope, id(1)).await.is_ok());
    // A store that is down is not asked for every value.
    let asked = keys.asked();
    for _ in 0..100 {
        cache.get(&scope, id(1)).await.unwrap();
    }
    assert_eq!(keys.asked(), asked);
    assert!(cache.primary(&scope).await.unwrap_err().is_key_unavailable());
    assert!(cache.fetch_blind_token_key(&scope, None).await.unwrap_err().is_key_unavailable());
    clock.advance(Duration::from_secs(559));
    assert!(cache.get(&scope, id(1)).await.is_ok());
    clock.advance(Duration::from_secs(1));
    assert!(cache.get(&scope, id(1)).await.unwrap_err().is_key_unavailable());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_says_no_is_obeyed() {
    let (keys, clock) = (Counting::new(), Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)));
    let cache = CachedKeys::new(Far(keys.clone()))
        .ttl(Duration::from_secs(60))
        .stale_for_decrypt(Duration::from_secs(6000))
        .with_clock(clock.clone());
    let scope = KeyScope::default_scope();
    cache.get(&scope, id(2)).await.unwrap();
    cache.get(&scope, id(1)).await.unwrap();
    clock.advance(Duration::from_secs(60));
    *keys.keys.lock().unwrap() = ring(&[1]);
    assert!(cache.get(&scope, id(2)).await.unwrap_err().is_decrypt());
    keys.fail(Some(NO));
    assert!(cache.get(&scope, id(1)).await.unwrap_err().is_key_unavailable());
    // And stays so when the store goes down afterwards.
    keys.fail(Some(DOWN));
    clock.advance(Duration::from_secs(30));
    assert!(cache.get(&scope, id(2)).await.unwrap_err().is_key_unavailable());
    assert!(cache.get(&scope, id(1)).await.unwrap_err().is_key_unavailable());
}

/// Rows name keys, and anyone who writes rows can name any.
#[tokio::test(start_paused = true)]
async fn made_up_key_ids_cost_one_question_each_and_no_memory() {
    let (keys, clock, cache, scope) = cached(3600);
    for _ in 0..10 {
        assert!(cache.get(&scope, id(77)).await.unwrap_err().is_decrypt());
    }
    assert_eq!(keys.asked(), 1);
    cache.get(&scope, id(1)).await.unwrap();
    for made_up in 0..3_000_u64 {
        let made_up = KeyId::from_bytes(made_up.to_be_bytes());
        assert!(cache.get(&scope, made_up).await.is_err());
    }
    let asked = keys.asked();
    cache.get(&scope, id(1)).await.unwrap();
    assert_eq!(keys.asked(), asked, "a key that is there was dropped for names that are not");
    // A key that is new in the store is found when the pause is over.
    *keys.keys.lock().unwrap() = ring(&[77, 1]);
    clock.advance(Duration::from_secs(5));
    assert!(cache.get(&scope, id(77)).await.is_ok());
}

/// A key whose time is over does not wait in memory for the next question about it.
#[tokio::test(start_paused = true)]
async fn keys_leave_memory_after_their_time() {
    let (_, clock, cache, scope) = cached(60);
    let key = Arc::downgrade(&cache.get(&scope, id(2)).await.unwrap());
    clock.advance(Duration::from_secs(59));
    cache.get(&scope, id(1)).await.unwrap();
    clock.advance(Duration::from_secs(1));
    // The provider's own ring holds it, until that lets go.
    *cache.provider().0.keys.lock().unwrap() = ring(&[1]);
    assert!(key.upgrade().is_some());
    drop(cache.get(&scope, id(77)).await);
    assert!(key.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn forgetting_is_at_once() {
    let (keys, _, cache, scope) = cached(3600);
    cache.primary(&scope).await.unwrap();
    cache.forget();
    cache.get(&scope, id(1)).await.unwrap();
    assert_eq!(keys.asked(), 2);
}
