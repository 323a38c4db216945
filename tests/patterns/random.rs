//! Random layouts and loads: what a plan predicts is what a simulated account shows.
//!
//! The requests and round trips of each call are exact. The loads at which a partition and the account refuse requests
//! are those of the plan, within 10 %. `ENTABLE_SEED=n` replays one case; `ENTABLE_LONG=1` runs many.

use std::{sync::Arc, time::Duration};

use entable::{
    Client, KeyScope, Keyring, OutboxOptions, RootKey,
    backend::{
        Memory,
        layer::{Recorder, SimulatedAccount},
    },
    patterns::{self, Pattern, Per, Plan, Question},
    prelude::*,
};
use futures_util::future::{BoxFuture, join_all};
use time::{OffsetDateTime, macros::datetime};
use tokio::time::{Instant, sleep_until};

const START: OffsetDateTime = datetime!(2026-01-01 0:00 UTC);
const LATENCY: Duration = Duration::from_millis(5);
/// For how long calls of a load begin.
const TIME: Duration = Duration::from_secs(4);
/// Entities that calls change have ids from here on, each run inserts new ones above.
const CHANGED: u32 = 10_000;
const CHANGED_COUNT: u32 = 180;
const NEW: u32 = 100_000;
const WARM: u32 = 90_000;
/// Cases whose limits are compared in the ordinary run: each layout once.
const SHORT: u64 = 10;

/// What is random about a layout's rows.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Partitions that share the load.
    over: u32,
    /// Tables that share the entities of a partition; 1 unless the layout is dated.
    tables: u32,
    /// Entities that a query finds in a partition of a table.
    rows: u32,
}

impl Shape {
    fn group(self, id: u32) -> String {
        format!("g{}", (id / self.tables) % self.over)
    }

    fn time(self, id: u32) -> OffsetDateTime {
        START + time::Duration::days(i64::from(id % self.tables))
    }

    /// Returns the id above those that queries find.
    fn end(self) -> u32 {
        self.rows * self.over * self.tables
    }

    /// Returns the value of a list that queries read, or one of an entity alone.
    fn city(self, id: u32) -> String {
        if id < self.end() { format!("found_{}", self.group(id)) } else { format!("city{id}") }
    }
}

type Call = fn(Client, Shape, u32) -> BoxFuture<'static, Result<(), Error>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uses {
    /// An entity that is there.
    Found,
    /// An entity that is there, and whose other calls are long over.
    Changed,
    /// A new id.
    New,
    /// All entities of a partition that queries find.
    Many,
}

struct Verb {
    name: &'static str,
    uses: Uses,
    question: fn(Shape) -> Question,
    call: Call,
}

struct Layout {
    name: &'static str,
    tables: u32,
    prepare: fn(Client, Shape) -> BoxFuture<'static, Result<(), Error>>,
    verbs: Vec<Verb>,
}

macro_rules! verb {
    ($uses:ident $name:literal, |$shape:ident| $question:expr, |$client:ident, $of:ident, $id:ident| $call:expr) => {
        Verb {
            name: $name,
            uses: Uses::$uses,
            question: |$shape| Question::from($question),
            call: |$client, $of, $id| {
                Box::pin(async move {
                    let _ = $of;
                    let _ = $call.await?;
                    Ok(())
                })
            },
        }
    };
}

/// Declares a type with some settings, and returns its layout with the verbs of every type. `point` is the path of an
/// entity, `range` that of the entities that queries find.
macro_rules! layout {
    (
        $name:ident, $table:literal, $tables:literal, [$($setting:meta),*], $(@$field:meta;)?
        |$shape:ident, $id:ident| $point:expr, |$of:ident, $end:ident| $range:expr, [$($verb:expr),*]
    ) => {{
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = $table, partition_key = "{group}", row_key = "e_{id:06}" $(, $setting)*)]
        struct $name {
            group: String,
            id: u32,
            name: String,
            city: String,
            at: OffsetDateTime,
            $(#[$field])?
            email: String,
            age: i32,
        }

        impl $name {
            fn new(shape: Shape, id: u32) -> Self {
                Self {
                    group: shape.group(id),
                    id,
                    name: shape.group(id),
                    city: shape.city(id),
                    at: shape.time(id),
                    email: format!("{id}@contoso.com"),
                    age: 30,
                }
            }
        }

        Layout {
            name: stringify!($name),
            tables: $tables,
            prepare: |client, shape| Box::pin(async move {
                let table = client.table::<$name>();
                if shape.tables == 1 {
                    table.create().await?;
                }
                // The next write of a process registers the partition; each one of these is registered then.
                for id in (0..shape.end()).chain(CHANGED..CHANGED + CHANGED_COUNT) {
                    table.insert(&$name::new(shape, id)).await?;
                }
                client.wait_for_copies().await;
                Ok(())
            }),
            verbs: vec![
                verb!(Found "get",
                    |$shape| { let $id = 0; patterns::get($point) },
                    |client, $shape, $id| client.table::<$name>().get($point)),
                verb!(Many "a range",
                    |$of| { let $end = $of.end(); patterns::query($range(0)) },
                    |client, $of, id| {
                        let ($end, table) = ($of.end(), client.table::<$name>());
                        async move {
                            let found = table.query($range(id)).collect().await?.len();
                            assert_eq!(found as u32, $of.rows * $of.tables, "{}", stringify!($name));
                            Ok::<_, Error>(())
                        }
                    }),
                verb!(New "insert",
                    |shape| { let _ = shape; patterns::insert::<$name>() },
                    |client, shape, id| {
                        let table = client.table::<$name>();
                        async move { table.insert(&$name::new(shape, id)).await }
                    }),
                verb!(Changed "patch_at",
                    |shape| { let _ = shape; patterns::patch_at::<$name>().changing($name::AGE) },
                    |client, $shape, $id| client.table::<$name>().patch_at($point, $name::patch().age(new_age()))),
                verb!(Changed "update",
                    |shape| { let _ = shape; patterns::update::<$name>().changing($name::AGE) },
                    |client, $shape, $id| client.table::<$name>().update($point, |one| {
                        one.age = new_age();
                        Ok(())
                    })),
                $($verb),*
            ],
        }
    }};
}

/// Returns another age each time: a change that changes nothing would not be sent.
fn new_age() -> i32 {
    use std::sync::atomic::{AtomicI32, Ordering};
    static NEXT: AtomicI32 = AtomicI32::new(100);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

macro_rules! plain_layout {
    ($name:ident, [$($setting:meta),*], $(@$field:meta;)? [$($verb:expr),*]) => {
        layout!(
            $name, "Staff", 1, [$($setting),*], $(@$field;)?
            |shape, id| $name::primary().group(shape.group(id)).id(id),
            |shape, end| (|id: u32| $name::primary().group(shape.group(id)).id_range(..end)),
            [$($verb),*]
        )
    };
}

/// Returns a verb that queries an index or a list.
macro_rules! query {
    ($name:ident, |$shape:ident, $id:ident| $path:expr) => {
        verb!(Many "by index",
            |$shape| { let $id = 0; patterns::query($path) },
            |client, $shape, $id| {
                let table = client.table::<$name>();
                async move {
                    let found = table.query($path).collect().await?.len();
                    assert_eq!(found as u32, $shape.rows, "{}", stringify!($name));
                    Ok::<_, Error>(())
                }
            })
    };
}

fn layouts() -> Vec<Layout> {
    vec![
        plain_layout!(Plain, [], []),
        plain_layout!(
            InPartition,
            [index(ByName, row_key = "name_{name}_{id:06}")],
            [query!(InPartition, |shape, id| InPartition::by_name()
                .group(shape.group(id))
                .name(shape.group(id))
                .id_range(..shape.end()))]
        ),
        plain_layout!(
            Elsewhere,
            [index(ByName, partition_key = "name_{name}", row_key = "in_{group}_{id:06}")],
            [query!(Elsewhere, |shape, id| Elsewhere::by_name()
                .name(shape.group(id))
                .group(shape.group(id))
                .id_range(..shape.end()))]
        ),
        plain_layout!(
            Unique,
            [index(ByEmail, partition_key = "mail_{email:lower}", row_key = "account", unique)],
            [verb!(Found "by e-mail",
            |shape| { let _ = shape; patterns::get(Unique::by_email().email("0@contoso.com")) },
            |client, shape, id| {
                let table = client.table::<Unique>();
                async move { table.get(Unique::by_email().email(format!("{id}@contoso.com"))).await }
            })]
        ),
        plain_layout!(
            Partial,
            [
                index(ByName, row_key = "name_{name}_{id:06}", only(email)),
                index(ByCity, row_key = "city_{city}_{id:06}", only(age))
            ],
            []
        ),
        plain_layout!(
            Listed,
            [list(ByCity, row_key = "city_{city}")],
            [query!(Listed, |shape, id| Listed::by_city()
                .group(shape.group(id))
                .city(shape.city(id)))]
        ),
        plain_layout!(
            ListedElsewhere,
            [list(ByCity, partition_key = "city_{city}", row_key = "ids")],
            [query!(ListedElsewhere, |shape, id| ListedElsewhere::by_city().city(shape.city(id)))]
        ),
        plain_layout!(Wide, [wide], @table(part = 2); []),
        plain_layout!(
            Secret, [index(ByEmail, row_key = "mail_{email:hmac}")], @table(encrypt);
            [verb!(Found "by token",
                |shape| patterns::get(Secret::by_email().group(shape.group(0)).email("0@contoso.com")),
                |client, shape, id| {
                    let table = client.table::<Secret>();
                    async move {
                        let path = Secret::by_email().group(shape.group(id));
                        table.get(path.email(format!("{id}@contoso.com"))).await
                    }
                })]
        ),
        layout!(
            Dated,
            "Staff{at:%Y%m%d}",
            3,
            [],
            |shape, id| Dated::primary().at(shape.time(id)).group(shape.group(id)).id(id),
            |shape, end| (|id: u32| Dated::primary()
                .at_between(START..START + time::Duration::days(3))
                .group(shape.group(id))
                .id_range(..end)),
            []
        ),
    ]
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % u64::from(end)) as u32
    }
}

/// A layout with a load: verbs and their calls in a second.
struct Case {
    layout: Layout,
    shape: Shape,
    rates: Vec<(usize, u32)>,
}

impl Case {
    fn of_seed(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.below(2);
        let mut layouts = layouts();
        // Twenty cases have each layout twice.
        let layout = layouts.swap_remove((seed % layouts.len() as u64) as usize);
        let shape =
            Shape { over: 1 + random.below(3), tables: layout.tables, rows: 2 + random.below(12) };
        let mut rates: Vec<(usize, u32)> =
            (0..layout.verbs.len()).map(|verb| (verb, 30 + random.below(30))).collect();
        while rates.len() > 3 {
            rates.remove(random.below(rates.len() as u32) as usize);
        }
        Self { layout, shape, rates }
    }

    fn pattern(&self, verb: usize) -> Pattern {
        let Shape { over, tables, rows } = self.shape;
        let Verb { name, uses, question, .. } = &self.layout.verbs[verb];
        let pattern = Pattern::table_scan(name, question(self.shape));
        match uses {
            Uses::Many => pattern.rows(u64::from(rows * tables)).over(over.into()),
            _ => pattern.over(u64::from(over * tables)),
        }
    }

    fn plan(&self) -> Plan {
        let rates = self.rates.iter();
        let patterns: Vec<_> =
            rates.map(|(verb, rate)| self.pattern(*verb).at((*rate, Per::s))).collect();
        Plan::of_patterns(self.layout.name, &patterns)
    }

    /// Returns the id of call `number` of a verb in a run.
    fn id(&self, verb: usize, run: u32, number: u32) -> u32 {
        match self.layout.verbs[verb].uses {
            Uses::Found | Uses::Many => number % self.shape.end(),
            // Two verbs that change entities change different ones.
            Uses::Changed => {
                let half = CHANGED_COUNT / 2;
                CHANGED + number % half + half * (verb as u32 % 2)
            }
            Uses::New => NEW + run * 10_000 + number,
        }
    }

    /// Compares requests and round trips of each verb.
    async fn compare_calls(&self, store: &Store) -> Vec<String> {
        let account = SimulatedAccount::around(store.memory.clone(), 1).latency(LATENCY, LATENCY);
        let (client, recorder) = store.client(account);
        self.warm_up(&client, 0).await;
        let mut wrong = Vec::new();
        for (index, verb) in self.layout.verbs.iter().enumerate() {
            let pattern = self.pattern(index);
            for number in 0..4 {
                recorder.clear();
                let begun = Instant::now();
                let id = self.id(index, 0, 100 + number);
                (verb.call)(client.clone(), self.shape, id).await.unwrap();
                let round_trips = begun.elapsed().as_millis() / LATENCY.as_millis();
                client.wait_for_copies().await;
                let found = (recorder.count() as u64, round_trips as u64);
                let predicted = (pattern.request_count(), pattern.round_trips());
                if found != predicted {
                    let (name, lines) = (verb.name, &recorder);
                    wrong.push(format!("{name}: predicted {predicted:?}, sent {found:?}\n{lines}"));
                }
            }
        }
        wrong
    }

    /// Writes to each partition: the first write of a process registers it.
    async fn warm_up(&self, client: &Client, run: u32) {
        let insert = self.layout.verbs.iter().find(|verb| verb.name == "insert").unwrap();
        for id in 0..self.shape.over * self.shape.tables {
            (insert.call)(client.clone(), self.shape, WARM + 90 * run + id).await.unwrap();
        }
        client.wait_for_copies().await;
    }

    /// Drives the load, and returns the requests that were sent, those that were refused, and those that the calls
    /// should have sent.
    async fn drive(&self, store: &Store, run: u32, limit: Limit, share: f64) -> (u64, u64, u64) {
        let account = SimulatedAccount::around(store.memory.clone(), run.into());
        let account = account.burst(Duration::from_millis(250));
        // Limits are whole numbers: the share makes them exact.
        let account = match limit {
            Limit::Partition => account
                .entities_per_second_of_partition(1_000)
                .requests_per_second_of_account(u32::MAX),
            Limit::Account => account
                .entities_per_second_of_partition(u32::MAX)
                .requests_per_second_of_account(1_000),
        };
        let (client, _) = store.client(account.clone());
        account.limit_to_share(1e6);
        self.warm_up(&client, run).await;
        account.limit_to_share(share / 1_000.0);
        let before = account.figures();
        let (begun, mut calls, mut expected) = (Instant::now(), Vec::new(), 0);
        for (verb, rate) in &self.rates {
            let count = rate * TIME.as_secs() as u32;
            expected += u64::from(count) * self.pattern(*verb).request_count();
            calls.extend((0..count).map(|number| {
                let at = begun + TIME * number / count;
                let id = self.id(*verb, run, number);
                let call = (self.layout.verbs[*verb].call)(client.clone(), self.shape, id);
                async move {
                    sleep_until(at).await;
                    // A refused call fails.
                    call.await.ok();
                }
            }));
        }
        join_all(calls).await;
        client.wait_for_copies().await;
        let after = account.figures();
        (after.requests - before.requests, after.throttled - before.throttled, expected)
    }

    /// Compares the limits: a tenth above the predicted load nothing is refused, a tenth below something is.
    async fn compare_limits(&self, store: &Store) -> Vec<String> {
        let (plan, mut wrong) = (self.plan(), Vec::new());
        let loads =
            [(Limit::Partition, plan.hottest_load()), (Limit::Account, plan.requests_per_second())];
        for (run, (limit, load)) in (1..).zip(loads) {
            let (sent, refused, expected) = self.drive(store, run, limit, load * 1.1).await;
            if sent != expected || refused > 0 {
                wrong.push(format!(
                    "{limit:?} of 1.1 times {load}: sent {sent} requests, predicted {expected}, {refused} refused"
                ));
            }
        }
        for (run, (limit, load)) in (3..).zip(loads) {
            let (_, refused, _) = self.drive(store, run, limit, load / 1.1).await;
            if refused == 0 {
                wrong.push(format!("{limit:?} of {load} / 1.1: nothing was refused"));
            }
        }
        wrong
    }
}

#[derive(Debug, Clone, Copy)]
enum Limit {
    Partition,
    Account,
}

struct Store {
    memory: Arc<Memory>,
}

impl Store {
    async fn of_case(case: &Case) -> Self {
        let store = Self { memory: Arc::new(Memory::new()) };
        let account = SimulatedAccount::around(store.memory.clone(), 0);
        let account = account
            .entities_per_second_of_partition(u32::MAX)
            .requests_per_second_of_account(u32::MAX);
        let (client, _) = store.client(account.latency(Duration::ZERO, Duration::ZERO));
        (case.layout.prepare)(client, case.shape).await.unwrap();
        store
    }

    fn client(&self, account: SimulatedAccount) -> (Client, Recorder) {
        let recorder = Recorder::around(account);
        let scope = KeyScope::default_scope();
        let keys = Keyring::builder()
            .primary(&scope, &RootKey::from_bytes([1; 32]))
            .blind_token_key(&scope, 1, &RootKey::from_bytes([2; 32]))
            .build();
        let outbox = OutboxOptions::default().copies_before_answer(false);
        let client = Client::builder().backend(recorder.clone()).outbox(outbox).keys(keys.unwrap());
        (client.build().unwrap(), recorder)
    }
}

fn seeds() -> std::ops::Range<u64> {
    if let Ok(seed) = std::env::var("ENTABLE_SEED") {
        let seed = seed.parse().unwrap();
        return seed..seed + 1;
    }
    0..if is_long() { 200 } else { 20 }
}

fn is_long() -> bool {
    std::env::var_os("ENTABLE_LONG").is_some() || std::env::var_os("ENTABLE_SEED").is_some()
}

#[tokio::test(start_paused = true)]
async fn random_layouts_and_loads_are_predicted() {
    let mut wrong = Vec::new();
    for seed in seeds() {
        let case = Case::of_seed(seed);
        let store = Store::of_case(&case).await;
        let mut found = case.compare_calls(&store).await;
        if seed < SHORT || is_long() {
            found.extend(case.compare_limits(&store).await);
        }
        let (name, shape, rates) = (case.layout.name, case.shape, &case.rates);
        wrong.extend(found.into_iter().map(|wrong| {
            format!("{name} {shape:?} {rates:?} (replay with ENTABLE_SEED={seed}): {wrong}")
        }));
    }
    assert!(wrong.is_empty(), "{} figures are wrong\n{}", wrong.len(), wrong.join("\n"));
}
