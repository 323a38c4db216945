//! Attacks by somebody who writes every table and queue, without keys: workers do no work that nobody
//! with the keys asked for.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{
    Authenticity, Batch, BlindTokenKey, ClientBuilder, Condition, DataKey, DynamicTable, Guard,
    KeyId, KeyProvider, KeyScope, Keyring, Operation, OutboxOptions, Poisoned, Row, SealFault,
    SteppedClock, Ticks, WorkAuthenticity, Worker, WorkerStats, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest, layer::FaultInjector,
    },
    prelude::*,
    queue::Queue,
    seal::KeyFuture,
};
use serde::{Deserialize, Serialize};

use crate::fixture::{key, root};

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Pay")]
struct Pay {
    amount: u32,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Signed", authenticated, expires = "1h")]
struct Signed {
    amount: u32,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Foreign", unauthenticated)]
struct Foreign {
    amount: u32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Patients", partition_key = "{clinic}", row_key = "{id:04}")]
struct Patient {
    clinic: String,
    id: u32,
    #[table(encrypt(hide_none))]
    diagnosis: Option<String>,
    visits: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Vips", partition_key = "{clinic}", row_key = "{id:04}", seal)]
struct Vip {
    clinic: String,
    id: u32,
    #[table(encrypt)]
    diagnosis: String,
    visits: i32,
}

/// Each clinic has a scope of its own; `evil` has one without keys of others.
fn keys() -> Keyring {
    let mut keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1));
    for (at, clinic) in ["north", "south", "evil"].into_iter().enumerate() {
        keys = keys.primary(&KeyScope::named(clinic), &root(2 + at as u8));
    }
    keys.build().unwrap().with_scopes(KeyScope::named)
}

struct World {
    clock: Arc<SteppedClock>,
    fault: FaultInjector,
    client: Client,
    paid: Arc<AtomicU32>,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
        let outbox = OutboxOptions::default().background(0);
        let builder = Client::builder().backend(fault.clone()).clock(clock.clone()).keys(keys());
        let client = builder.outbox(outbox).build().unwrap();
        for table in ["Patients", "Vips"] {
            client.create_table(table).await.unwrap();
        }
        Self { clock, fault, client, paid: Arc::default() }
    }

    fn builder(&self) -> ClientBuilder {
        Client::builder().backend(self.fault.clone()).clock(self.clock.clone())
    }

    fn keyed(&self, without: Option<Guard>) -> ClientBuilder {
        let builder = self.builder().keys(keys());
        match without {
            Some(guard) => builder.without_guard(guard),
            None => builder,
        }
    }

    fn worker(&self, builder: ClientBuilder) -> Worker {
        let client = builder.build().unwrap();
        let paid = |paid: &Arc<AtomicU32>| paid.clone();
        let (a, b, c) = (paid(&self.paid), paid(&self.paid), paid(&self.paid));
        let add = |paid: Arc<AtomicU32>, amount: u32| async move {
            paid.fetch_add(amount, Ordering::SeqCst);
            Ok(())
        };
        client
            .worker()
            .with::<Patient>()
            .with::<Vip>()
            .on(move |_, message: Pay| add(a.clone(), message.amount))
            .on(move |_, message: Signed| add(b.clone(), message.amount))
            .on(move |_, message: Foreign| add(c.clone(), message.amount))
    }

    async fn drain(&self, builder: ClientBuilder) -> WorkerStats {
        self.worker(builder).drain().await.unwrap()
    }

    /// Returns what was paid since the last call.
    fn paid(&self) -> u32 {
        self.paid.swap(0, Ordering::SeqCst)
    }

    fn patients(&self) -> Table<Patient> {
        self.client.table()
    }

    fn vips(&self) -> Table<Vip> {
        self.client.table()
    }

    async fn emit<M: Message>(&self, client: &Client, message: &M) -> Result<(), Error> {
        let mut egt = client.table::<Patient>().transaction();
        egt.in_partition("north")?.emit(message)?;
        egt.commit().await.map(drop)
    }

    /// Returns the outbox rows with messages of a partition.
    async fn messages(&self, table: &str, partition_key: &str) -> Vec<DynamicEntity> {
        // Without keys, rows are seen as they are stored.
        let rows = self.plain(table).query(Keys::partition(partition_key).rows("~e3_".."~e4"));
        let rows = rows.collect().await.unwrap().into_iter();
        rows.map(|row| row.into_inner().with_framework_names()).collect()
    }

    /// Returns a table without keys, as the attacker sees it.
    fn plain(&self, table: &str) -> DynamicTable {
        self.builder().build().unwrap().dynamic(table)
    }
}

fn patient(id: u32) -> Patient {
    Patient { clinic: "north".into(), id, diagnosis: Some("influenza".into()), visits: 1 }
}

fn vip(id: u32) -> Vip {
    Vip { clinic: "north".into(), id, diagnosis: "influenza".into(), visits: 1 }
}

#[tokio::test]
async fn a_message_that_nobody_emitted_reaches_no_handler() {
    for without in [None, Some(Guard::VerifiedFirst)] {
        let world = World::new().await;
        world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
        let [real] = &world.messages("Patients", "north").await[..] else { panic!() };
        let mut other = real.clone().with("Body", r#"{"amount":1000}"#);
        world.plain("Patients").insert_or_replace(&other).await.unwrap();
        let stats = world.drain(world.keyed(without)).await;
        assert_eq!(world.paid(), if without.is_none() { 0 } else { 1000 });
        assert_eq!(stats.refused, u64::from(without.is_none()), "{stats:?}");
        if without.is_some() {
            continue;
        }
        // Neither without a code, nor with one under another id, in another partition or table.
        other.remove("Mac");
        let elsewhere = DynamicEntity::new("south", real.row_key()).with_framework_names();
        let renamed = DynamicEntity::new("north", "~e3_another").with_framework_names();
        let moved = |mut to: DynamicEntity| {
            for (name, value) in real.properties().iter() {
                to.set(name, value.clone());
            }
            to
        };
        world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
        world.patients().insert(&Patient { clinic: "south".into(), ..patient(1) }).await.unwrap();
        for row in [other, moved(renamed)] {
            world.plain("Patients").insert_or_replace(&row).await.unwrap();
        }
        let mut egt = world.patients().transaction();
        egt.in_partition("south").unwrap().emit(&Pay { amount: 1 }).unwrap();
        egt.commit().await.unwrap();
        world.plain("Patients").insert_or_replace(&moved(elsewhere)).await.unwrap();
        let worker = world.worker(world.keyed(None));
        let stats = worker.drain().await.unwrap();
        // The scope of `south` does not have the key of `north`, which another program may know there.
        assert_eq!((world.paid(), stats.refused, stats.poisoned), (2, 2, 3), "{stats:?}");
        let poisoned = worker.poisoned().await.unwrap();
        assert_eq!(poisoned.len(), 4);
        let refused = |one: &&Poisoned| one.error == "the work is not authentic";
        assert_eq!(poisoned.iter().filter(refused).count(), 3);
        let is_forged = |one: &&Poisoned| one.authenticity == WorkAuthenticity::NotAuthentic;
        assert_eq!(poisoned.iter().filter(is_forged).count(), 3);
        // A worker that verifies does not put it back. If another program puts it back, it is refused again.
        let forged = poisoned.iter().find(refused).unwrap();
        assert!(worker.requeue(forged).await.unwrap_err().is_decrypt());
        assert_eq!(worker.drain().await.unwrap().refused, 2);
        world.worker(world.builder()).requeue(forged).await.unwrap();
        assert_eq!(worker.drain().await.unwrap().refused, 3);
    }
}

#[tokio::test]
async fn an_operator_sees_who_signed_and_vouches() {
    let world = World::new().await;
    let plain = world.builder().build().unwrap();
    world.emit(&plain, &Pay { amount: 1 }).await.unwrap();
    world.emit(&world.client, &Pay { amount: 10 }).await.unwrap();
    let mut stored = world.patients().insert(&patient(1)).await.unwrap();
    stored.clinic = "south".into();
    world.patients().move_to(&stored, &world.patients()).await.unwrap();
    for mut row in world.messages("Patients", "north").await {
        if row.str("Type").unwrap() == "entable.move" {
            row.remove("Mac");
            world.plain("Patients").insert_or_replace(&row).await.unwrap();
        }
    }
    let worker = world.worker(world.keyed(None));
    let status = world.client.outbox_status().await.unwrap();
    let north = key(2).id().to_string();
    assert_eq!((status.unsigned, status.signed_by.get(&north)), (2, Some(&1)));
    let stats = worker.drain().await.unwrap();
    assert_eq!((world.paid(), stats.refused), (10, 2), "{stats:?}");
    for poisoned in worker.poisoned().await.unwrap() {
        worker.requeue_vouched(&poisoned).await.unwrap();
    }
    let status = world.client.outbox_status().await.unwrap();
    assert_eq!((status.unsigned, status.signed_by.get(&north)), (0, Some(&2)));
    let stats = worker.drain().await.unwrap();
    assert_eq!((world.paid(), stats.refused), (1, 2), "{stats:?}");
    let point = Patient::primary().clinic("south").id(1);
    assert!(world.patients().get(point).await.unwrap().is_some());
    // Without keys nobody can vouch.
    world.emit(&plain, &Pay { amount: 1 }).await.unwrap();
    worker.drain().await.unwrap();
    let poisoned = worker.poisoned().await.unwrap().remove(0);
    let error = world.worker(world.builder()).requeue_vouched(&poisoned).await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
}

#[tokio::test]
async fn messages_say_whether_they_need_a_code() {
    let world = World::new().await;
    let plain = world.builder().build().unwrap();
    let error = world.emit(&plain, &Signed { amount: 1 }).await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
    world.emit(&plain, &Pay { amount: 1 }).await.unwrap();
    world.emit(&plain, &Foreign { amount: 10 }).await.unwrap();
    world.emit(&world.client, &Signed { amount: 100 }).await.unwrap();
    // A worker without keys leaves alone what it cannot verify, and verifies nothing else.
    let stats = world.drain(world.builder()).await;
    assert_eq!((world.paid(), stats.unknown, stats.refused), (11, 1, 0), "{stats:?}");
    world.emit(&plain, &Pay { amount: 1 }).await.unwrap();
    world.emit(&plain, &Foreign { amount: 10 }).await.unwrap();
    let stats = world.drain(world.keyed(None)).await;
    assert_eq!((world.paid(), stats.refused), (110, 1), "{stats:?}");
    // A roll-out takes work without a code, except where a type asks for it, and no wrong code.
    world.emit(&plain, &Pay { amount: 1 }).await.unwrap();
    world.emit(&world.client, &Signed { amount: 100 }).await.unwrap();
    world.emit(&world.client, &Pay { amount: 1000 }).await.unwrap();
    for mut row in world.messages("Patients", "north").await {
        if row.str("Type").unwrap() == "Signed" {
            row.remove("Mac");
        } else if row.get("Mac").is_some() {
            row.set("Body", r#"{"amount":2000}"#);
        }
        world.plain("Patients").insert_or_replace(&row).await.unwrap();
    }
    let stats = world.drain(world.keyed(None).authenticity(Authenticity::Accept)).await;
    assert_eq!((world.paid(), stats.refused), (1, 2), "{stats:?}");
}

#[tokio::test]
async fn a_message_expires_and_its_time_cannot_be_set_anew() {
    let world = World::new().await;
    world.emit(&world.client, &Signed { amount: 1 }).await.unwrap();
    world.clock.advance(Duration::from_secs(3700));
    world.emit(&world.client, &Signed { amount: 10 }).await.unwrap();
    let rows = world.messages("Patients", "north").await;
    let stats = world.drain(world.keyed(None)).await;
    assert_eq!((world.paid(), stats.poisoned, stats.refused), (10, 1, 0), "{stats:?}");
    // Brought back later, once as it was, once with a newer time, once without one.
    world.emit(&world.client, &Pay { amount: 100 }).await.unwrap();
    world.clock.advance(Duration::from_secs(3700));
    let newer = rows.iter().map(|row| row.get("Sent").cloned()).max_by_key(|s| format!("{s:?}"));
    for (at, row) in rows.iter().enumerate() {
        let mut row = row.clone();
        if at == 0 {
            row.set("Sent", newer.clone().flatten().unwrap());
        } else {
            row.remove("Sent");
        }
        world.plain("Patients").insert_or_replace(&row).await.unwrap();
    }
    let stats = world.drain(world.keyed(None)).await;
    assert_eq!(world.paid(), 100, "{stats:?}");
    assert_eq!(stats.poisoned, 2);
}

/// The message as an earlier program declared it: it never expires.
mod everlasting {
    use entable::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[table(name = "Signed", authenticated)]
    pub(super) struct Signed {
        pub(super) amount: u32,
    }
}

/// Its code is right, but nobody can say whether it has expired.
#[tokio::test]
async fn a_message_without_the_time_at_which_it_was_sent_reaches_no_handler() {
    let world = World::new().await;
    let signed = everlasting::Signed { amount: 1 };
    world.emit(&world.client, &signed).await.unwrap();
    assert!(world.messages("Patients", "north").await[0].get("Mac").is_some());
    let queue = world.client.queue("work");
    queue.send(&signed).await.unwrap();
    let worker = world.worker(world.keyed(None)).queue(&queue);
    let stats = worker.drain().await.unwrap();
    assert_eq!((world.paid(), stats.refused), (0, 2), "{stats:?}");
}

#[tokio::test]
async fn a_queues_message_that_nobody_sent_reaches_no_handler() {
    let world = World::new().await;
    let queue = world.client.queue("work");
    queue.send(&Pay { amount: 1 }).await.unwrap();
    let real = world.client.table_queue("work").receive(1, Duration::from_secs(1)).await.unwrap();
    let real = real[0].body().to_owned();
    let forged = real.replace(r#""amount":1"#, r#""amount":1000"#);
    assert_ne!(forged, real);
    let unsigned = r#"{"id":"7","type":"Pay","version":1,"body":{"amount":1000}}"#;
    let foreign = r#"{"type":"Foreign","body":{"amount":10}}"#;
    for text in [&forged, unsigned, foreign] {
        queue.port().send(text, Duration::ZERO).await.unwrap();
    }
    // A code of one queue is none of another.
    let other = world.client.queue("other");
    other.port().send(&real, Duration::ZERO).await.unwrap();
    world.clock.advance(Duration::from_secs(2));
    let worker = world.worker(world.keyed(None)).queue(&queue).queue(&other);
    let stats = worker.drain().await.unwrap();
    assert_eq!((world.paid(), stats.refused), (11, 3), "{stats:?}");
    // A queue that verifies tells messages with a wrong code, and puts none of them back.
    let mut told = Vec::new();
    for queue in [&queue, &other] {
        for poison in queue.poisoned(9).await.unwrap() {
            let authenticity = queue.authenticity(&poison).await;
            let is_forged = authenticity == WorkAuthenticity::NotAuthentic;
            told.push(authenticity);
            let requeued = queue.requeue(&poison).await;
            assert_eq!(requeued.is_err_and(|error| error.is_decrypt()), is_forged, "{poison:?}");
        }
    }
    told.sort_by_key(|authenticity| format!("{authenticity:?}"));
    // The unsigned one is of a type whose declaration the queue does not know.
    let unverified = WorkAuthenticity::Unverified;
    assert_eq!(told, [WorkAuthenticity::NotAuthentic, WorkAuthenticity::NotAuthentic, unverified]);
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!((world.paid(), worker.drain().await.unwrap().refused), (0, 4));
}

/// The attack: a move of a victim's row into the attacker's partition.
#[tokio::test]
async fn a_move_that_nobody_asked_for_takes_no_secret_away() {
    for without in [None, Some(Guard::VerifiedFirst)] {
        let world = World::new().await;
        world.patients().insert(&patient(1)).await.unwrap();
        // A message of the partition, so that it is in the directory.
        world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
        let mark =
            DynamicEntity::new("north", "0001").with_framework_names().with("EntableMoving", "abc");
        world.plain("Patients").insert_or_merge(&mark).await.unwrap();
        let body = r#"{"entity_type":"Patient","row_key":"0001","to_table":"Patients","to_partition":"evil","to_row":"0001"}"#;
        let forged = DynamicEntity::new("north", "~e3_abc")
            .with_framework_names()
            .with("EntityType", "entable.message")
            .with("Format", 1)
            .with("Type", "entable.move")
            .with("Version", 1)
            .with("Body", body);
        world.plain("Patients").insert(&forged).await.unwrap();
        // Said to have failed too often, it is not followed either.
        let poisoned =
            DynamicEntity::new("north", "~e3_abd").with_framework_names().with("Poison", "x");
        let poisoned = forged
            .properties()
            .iter()
            .fold(poisoned, |row, (name, value)| row.with(name, value.clone()));
        world.plain("Patients").insert(&poisoned).await.unwrap();
        let stats = world.drain(world.keyed(without)).await;
        let is_away = world.plain("Patients").get("evil", "0001").await.unwrap().is_some();
        let stays = world.plain("Patients").get("north", "0001").await.unwrap().is_some();
        assert_eq!((is_away, stays), (without.is_some(), without.is_none()), "{stats:?}");
        assert_eq!(stats.refused, u64::from(without.is_none()));
        let tombstones = world.plain("Patients").query(Keys::partition("evil").rows("~e".."~f"));
        let tombstones = tombstones.collect().await.unwrap();
        assert_eq!(tombstones.is_empty(), without.is_none(), "{tombstones:?}");
    }
}

/// The attack on `seal`: the row and the message of a real move that was given up, put back later.
#[tokio::test]
async fn a_move_serves_for_its_own_values_alone() {
    for without in [None, Some(Guard::VerifiedFirst)] {
        let world = World::new().await;
        let mut stored = world.vips().insert(&vip(1)).await.unwrap();
        // The target is taken, so that the move is given up.
        let taken = Vip { clinic: "south".into(), diagnosis: "other".into(), ..vip(1) };
        world.vips().insert(&taken).await.unwrap();
        stored.clinic = "south".into();
        world.vips().move_to(&stored, &world.vips()).await.unwrap();
        let message = world.messages("Vips", "north").await.remove(0);
        let moving = world.plain("Vips").get("north", "0001").await.unwrap().unwrap().into_inner();
        world.drain(world.keyed(None)).await;
        for _ in 0..2 {
            world.clock.advance(OutboxOptions::WRITE_DEADLINE + Duration::from_secs(1));
            world.drain(world.keyed(None)).await;
        }
        // The target is free again, and the entity has another secret by now.
        world.vips().delete_at(Vip::primary().clinic("south").id(1)).await.unwrap();
        let newer = Vip { diagnosis: "newer".into(), ..vip(1) };
        world.vips().insert_or_replace(&newer).await.unwrap();
        let sealed = world.plain("Vips").get("north", "0001").await.unwrap().unwrap().into_inner();
        // A fence of the partition, and the real move's message, with the newer secret's row marked.
        let mut egt = world.vips().transaction();
        egt.in_partition("north").unwrap().emit(&Pay { amount: 1 }).unwrap();
        egt.commit().await.unwrap();
        world.plain("Vips").insert_or_replace(&message).await.unwrap();
        let marked = sealed
            .clone()
            .with_framework_names()
            .with("EntableMoving", moving.str("EntableMoving").unwrap());
        world.plain("Vips").insert_or_replace(&marked).await.unwrap();
        let stats = world.drain(world.keyed(without)).await;
        // Its seal does not cover the mark: the row does not open, in either case.
        assert!(world.plain("Vips").get("south", "0001").await.unwrap().is_none(), "{stats:?}");
        // Unsealed types have no such seal: the code alone tells one secret from the other.
    }
    for without in [None, Some(Guard::VerifiedFirst)] {
        let world = World::new().await;
        let mut stored = world.patients().insert(&patient(1)).await.unwrap();
        world.patients().insert(&Patient { clinic: "south".into(), ..patient(1) }).await.unwrap();
        stored.clinic = "south".into();
        world.patients().move_to(&stored, &world.patients()).await.unwrap();
        let message = world.messages("Patients", "north").await.remove(0);
        world.drain(world.keyed(None)).await;
        for _ in 0..2 {
            world.clock.advance(OutboxOptions::WRITE_DEADLINE + Duration::from_secs(1));
            world.drain(world.keyed(None)).await;
        }
        world.patients().delete_at(Patient::primary().clinic("south").id(1)).await.unwrap();
        let newer = Patient { diagnosis: None, ..patient(1) };
        world.patients().insert_or_replace(&newer).await.unwrap();
        world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
        world.plain("Patients").insert_or_replace(&message).await.unwrap();
        let id = message.row_key().strip_prefix("~e3_").unwrap();
        let mark =
            DynamicEntity::new("north", "0001").with_framework_names().with("EntableMoving", id);
        world.plain("Patients").insert_or_merge(&mark).await.unwrap();
        let stats = world.drain(world.keyed(without)).await;
        let went = world.plain("Patients").get("south", "0001").await.unwrap().is_some();
        assert_eq!(went, without.is_some(), "{stats:?}");
        assert_eq!(stats.refused, u64::from(without.is_none()));
    }
}

/// The attack on `seal` as it ran: the marked row of a real move, put back with its message, which leads
/// elsewhere now. The row opens, since it is one that was there.
#[tokio::test]
async fn the_marked_row_of_a_sealed_type_goes_nowhere_else() {
    for (without, to) in [(None, "evil"), (Some(Guard::VerifiedFirst), "evil"), (None, "south")] {
        let world = World::new().await;
        let mut stored = world.vips().insert(&vip(1)).await.unwrap();
        stored.clinic = "south".into();
        world.vips().move_to(&stored, &world.vips()).await.unwrap();
        let mut message = world.messages("Vips", "north").await.remove(0);
        let marked = world.plain("Vips").get("north", "0001").await.unwrap().unwrap().into_inner();
        world.drain(world.keyed(None)).await;
        for _ in 0..2 {
            world.clock.advance(OutboxOptions::WRITE_DEADLINE + Duration::from_secs(1));
            world.drain(world.keyed(None)).await;
        }
        world.vips().delete_at(Vip::primary().clinic("south").id(1)).await.unwrap();
        // Whoever writes the table puts both back.
        let body = message.str("Body").unwrap().replace("\"south\"", &format!("\"{to}\""));
        message.set("Body", body);
        let mut egt = world.vips().transaction();
        egt.in_partition("north").unwrap().emit(&Pay { amount: 1 }).unwrap();
        egt.commit().await.unwrap();
        world.plain("Vips").insert_or_replace(&marked.with_framework_names()).await.unwrap();
        world.plain("Vips").insert_or_replace(&message).await.unwrap();
        let stats = world.drain(world.keyed(without)).await;
        let is_there = world.plain("Vips").get(to, "0001").await.unwrap().is_some();
        // An old row in its own place, with the move that was asked for it, is not told from the first time.
        assert_eq!(is_there, without.is_some() || to == "south", "{to}: {stats:?}");
        assert_eq!(stats.refused, u64::from(!is_there), "{to}: {stats:?}");
    }
}

/// A move that was given up and put back for the very values that it was signed for.
#[tokio::test]
async fn a_move_that_was_given_up_goes_again_for_the_same_secret() {
    let world = World::new().await;
    let mut stored = world.patients().insert(&patient(1)).await.unwrap();
    let taken = Patient { clinic: "south".into(), ..patient(1) };
    world.patients().insert(&taken).await.unwrap();
    stored.clinic = "south".into();
    world.patients().move_to(&stored, &world.patients()).await.unwrap();
    let message = world.messages("Patients", "north").await.remove(0);
    world.drain(world.keyed(None)).await;
    for _ in 0..2 {
        world.clock.advance(OutboxOptions::WRITE_DEADLINE + Duration::from_secs(1));
        world.drain(world.keyed(None)).await;
    }
    world.patients().delete_at(Patient::primary().clinic("south").id(1)).await.unwrap();
    // Another plain value is no other secret.
    let point = || Patient::primary().clinic("north").id(1);
    world.patients().patch_at(point(), Patient::patch().visits(9)).await.unwrap();
    world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
    world.plain("Patients").insert_or_replace(&message).await.unwrap();
    let id = message.row_key().strip_prefix("~e3_").unwrap();
    let mark = DynamicEntity::new("north", "0001").with_framework_names().with("EntableMoving", id);
    world.plain("Patients").insert_or_merge(&mark).await.unwrap();
    let stats = world.drain(world.keyed(None)).await;
    let moved = world.patients().get(Patient::primary().clinic("south").id(1)).await.unwrap();
    assert_eq!(moved.map(|moved| moved.visits), Some(9), "{stats:?}");
    assert_eq!(stats.refused, 0);
    assert!(world.patients().get(point()).await.unwrap().is_none());
}

/// A key that only decrypts still verifies: work that waits outlives a change of keys.
#[tokio::test]
async fn a_key_that_only_decrypts_verifies_work() {
    let world = World::new().await;
    world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
    let mut stored = world.patients().insert(&patient(1)).await.unwrap();
    stored.clinic = "south".into();
    world.patients().move_to(&stored, &world.patients()).await.unwrap();
    let mut changed = Keyring::builder().primary(&KeyScope::default_scope(), &root(1));
    for (at, clinic) in ["north", "south"].into_iter().enumerate() {
        let (scope, at) = (KeyScope::named(clinic), at as u8);
        changed = changed.primary(&scope, &root(52 + at)).decrypt_only(&scope, &root(2 + at));
    }
    let changed = changed.build().unwrap().with_scopes(KeyScope::named);
    let stats = world.drain(world.builder().keys(changed.clone())).await;
    assert_eq!((world.paid(), stats.refused, stats.poisoned), (1, 0, 0), "{stats:?}");
    let client = world.builder().keys(changed).build().unwrap();
    let south = Patient::primary().clinic("south").id(1);
    assert!(client.table::<Patient>().get(south).await.unwrap().is_some());
}

/// A row of the poison table says where it belongs, and anybody may have written that.
#[tokio::test]
async fn a_poison_row_of_another_place_is_put_back_and_refused() {
    let world = World::new().await;
    world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
    let mut row = world.messages("Patients", "north").await.remove(0);
    row.set("Body", r#"{"amount":"#);
    world.plain("Patients").insert_or_replace(&row).await.unwrap();
    let worker = world.worker(world.keyed(None));
    assert_eq!(worker.drain().await.unwrap().refused, 1);
    let table = "EntablePoison";
    let all = Filter::parse("RowKey ge ''").unwrap();
    let rows = world.plain(table).query(all).allow_scan().collect().await.unwrap();
    let mut forged = rows.into_iter().next().unwrap().into_inner().with_framework_names();
    assert_eq!(forged.str("PoisonPartition").unwrap(), "north");
    forged.set("PoisonPartition", "south");
    forged.set("Body", r#"{"amount":1}"#);
    world.plain(table).insert_or_replace(&forged).await.unwrap();
    let poisoned = worker.poisoned().await.unwrap().remove(0);
    assert_eq!(poisoned.partition_key, "south");
    assert_eq!(poisoned.authenticity, WorkAuthenticity::Unverified);
    assert!(worker.requeue(&poisoned).await.unwrap_err().is_decrypt());
    world.worker(world.builder()).requeue(&poisoned).await.unwrap();
    let stats = worker.drain().await.unwrap();
    assert_eq!(world.paid(), 0, "{stats:?}");
}

/// Puts each message aside as it stands, and those with a code once more with another id or table.
async fn put_aside_by_hand(world: &World) {
    let poison = world.plain("EntablePoison");
    world.client.create_table("EntablePoison").await.unwrap();
    let mut count = 0;
    let mut put_aside = Vec::new();
    for row in world.messages("Patients", "north").await {
        put_aside.push(("Patients", row.row_key().to_owned(), row.clone()));
        if row.get("Mac").is_some() {
            put_aside.push(("Patients", "~e3_another".to_owned(), row.clone()));
            put_aside.push(("Vips", row.row_key().to_owned(), row));
        }
    }
    for (table, row_key, row) in put_aside {
        count += 1;
        let mut poisoned = DynamicEntity::new("1", format!("{count:04}")).with_framework_names();
        for (name, value) in row.properties().iter() {
            poisoned.set(name, value.clone());
        }
        let texts =
            [("Table", table), ("Partition", "north"), ("Row", &row_key), ("Error", "all is well")];
        for (name, text) in texts {
            poisoned.set(format!("Poison{name}"), text);
        }
        poison.insert(&poisoned).await.unwrap();
    }
}

/// The texts of a poison row are anybody's: what its code proves is told by a field of its own.
#[tokio::test]
async fn the_poison_table_says_which_work_is_authentic() {
    use WorkAuthenticity::{Authentic, NotAuthentic, Unsigned, Unverified};
    let world = World::new().await;
    let plain = world.builder().build().unwrap();
    world.emit(&plain, &Foreign { amount: 1 }).await.unwrap();
    world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
    for id in [1, 2] {
        let mut stored = world.patients().insert(&patient(id)).await.unwrap();
        stored.clinic = "south".into();
        world.patients().move_to(&stored, &world.patients()).await.unwrap();
    }
    let mut moves = world.messages("Patients", "north").await;
    moves.retain(|row| row.str("Type").unwrap() == "entable.move");
    assert_eq!(moves.len(), 2);
    put_aside_by_hand(&world).await;
    let told = |poisoned: Vec<Poisoned>| {
        let mut told: Vec<_> = poisoned
            .iter()
            .map(|one| {
                assert_eq!(one.error, "all is well");
                let is_own = one.table == "Patients" && one.row_key() != "~e3_another";
                (one.message().unwrap().to_owned(), is_own, one.authenticity)
            })
            .collect();
        told.sort_by_key(|one| format!("{one:?}"));
        told
    };
    let of = |name: &str, is_own, authenticity| (name.to_owned(), is_own, authenticity);
    // A forged place: the message is none of that place's, and the move locks no entity there.
    let wanted = [
        of("Foreign", true, Unsigned),
        of("Pay", false, NotAuthentic),
        of("Pay", false, NotAuthentic),
        of("Pay", true, Authentic),
        of("entable.move", false, Unverified),
        of("entable.move", false, Unverified),
        of("entable.move", false, Unverified),
        of("entable.move", false, Unverified),
        of("entable.move", true, Authentic),
        of("entable.move", true, Authentic),
    ];
    let worker = world.worker(world.keyed(None));
    assert_eq!(told(worker.poisoned().await.unwrap()), wanted);
    // A worker that does not know the type does not know whether it needs a code.
    let of_nobody = told(world.client.worker().poisoned().await.unwrap());
    assert_eq!(of_nobody[0], of("Foreign", true, Unverified));
    assert_eq!(of_nobody[3], of("Pay", true, Authentic));
    let without = told(world.worker(world.builder()).poisoned().await.unwrap());
    let is_verified =
        |one: &(String, bool, WorkAuthenticity)| !matches!(one.2, Unsigned | Unverified);
    assert!(!without.iter().any(is_verified), "{without:?}");
    // A move is authentic for the values that it was asked for: its mark is carried to others.
    let stored = world.plain("Patients");
    let body = moves[0].str("Body").unwrap().to_owned();
    let moved = if body.contains("0001") { "0001" } else { "0002" };
    let source = stored.get("north", moved).await.unwrap().unwrap().into_inner();
    let marked = source.with_framework_names().get("EntableMoving").cloned().unwrap();
    stored.delete("north", moved, Condition::Any).await.unwrap();
    let id: u32 = moved.parse().unwrap();
    let other = Patient { diagnosis: Some("measles".into()), ..patient(id) };
    world.patients().insert(&other).await.unwrap();
    let other = stored.get("north", moved).await.unwrap().unwrap().into_inner();
    let other = other.with_framework_names().with("EntableMoving", marked);
    stored.insert_or_replace(&other).await.unwrap();
    let after = told(worker.poisoned().await.unwrap());
    let count = |state| {
        let is_it =
            |one: &&(String, bool, WorkAuthenticity)| one.0 == "entable.move" && one.2 == state;
        after.iter().filter(is_it).count()
    };
    assert_eq!((count(Authentic), count(NotAuthentic)), (1, 1), "{after:?}");
}

#[tokio::test]
async fn an_authentic_move_goes_and_its_target_consents() {
    let world = World::new().await;
    for id in [1, 2] {
        let mut stored = world.patients().insert(&patient(id)).await.unwrap();
        stored.clinic = "south".into();
        world.patients().move_to(&stored, &world.patients()).await.unwrap();
    }
    let mut stored = world.vips().insert(&vip(1)).await.unwrap();
    stored.clinic = "south".into();
    world.vips().move_to(&stored, &world.vips()).await.unwrap();
    let open = world.vips().unlock(Vip::primary().clinic("north").id(1)).await.unwrap_err();
    assert!(open.is_conflict(), "{open}");
    // Plain properties follow; the consent of the target cannot be left out.
    let visits = DynamicEntity::new("north", "0001").with("Visits", 7);
    world.plain("Patients").insert_or_merge(&visits).await.unwrap();
    for mut row in world.messages("Patients", "north").await {
        if row.str("Body").unwrap().contains("0002") {
            row.remove("MacTo");
            world.plain("Patients").insert_or_replace(&row).await.unwrap();
        }
    }
    let stats = world.drain(world.keyed(None)).await;
    assert_eq!(stats.refused, 1, "{stats:?}");
    let at = |id: u32| Patient::primary().clinic("south").id(id);
    let moved = world.patients().get(at(1)).await.unwrap().unwrap();
    assert_eq!((moved.diagnosis.as_deref(), moved.visits), (Some("influenza"), 7));
    assert!(world.patients().get(at(2)).await.unwrap().is_none());
    assert!(world.vips().get(Vip::primary().clinic("south").id(1)).await.unwrap().is_some());
    assert!(world.vips().get(Vip::primary().clinic("north").id(1)).await.unwrap().is_none());
    // Without a key of the target's scope nothing is begun.
    let mut stored = world.patients().insert(&patient(3)).await.unwrap();
    stored.clinic = "nowhere".into();
    let error = world.patients().move_to(&stored, &world.patients()).await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
    assert!(
        world
            .plain("Patients")
            .get("north", "0003")
            .await
            .unwrap()
            .unwrap()
            .get("EntableMoving")
            .is_none()
    );
}

#[tokio::test]
async fn a_forged_receipt_deletes_no_source() {
    for without in [None, Some(Guard::ArrivalVerified)] {
        let world = World::new().await;
        let mut stored = world.patients().insert(&patient(1)).await.unwrap();
        stored.clinic = "south".into();
        world.patients().move_to(&stored, &world.patients()).await.unwrap();
        let message = world.messages("Patients", "north").await.remove(0);
        let id = message.row_key().strip_prefix("~e3_").unwrap();
        let receipt = DynamicEntity::new("south", format!("~e4_{id}"))
            .with_framework_names()
            .with("EntityType", "entable.receipt")
            .with("Format", 1);
        world.plain("Patients").insert(&receipt).await.unwrap();
        let stats = world.drain(world.keyed(without)).await;
        let stays = world.plain("Patients").get("north", "0001").await.unwrap().is_some();
        assert_eq!(stays, without.is_none(), "{stats:?}");
        assert!(world.plain("Patients").get("south", "0001").await.unwrap().is_none());
        assert_eq!(stats.poisoned, u64::from(without.is_none()));
    }
}

/// A store in which somebody changes a row right after the first write into the partition `south`.
#[derive(Debug)]
struct Meddling {
    store: FaultInjector,
    change: Mutex<Option<Operation>>,
}

impl Backend for Meddling {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.store.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.store.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let written = self.store.apply(batch).await;
            if batch.operations()[0].row().partition_key() == "south" {
                let change = self.change.lock().unwrap().take();
                if let Some(change) = change {
                    self.store.apply(&Batch::single(batch.table(), change)?).await?;
                }
            }
            written
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.store.tables(request)
    }
}

/// The secret is exchanged for an older one of the row after the move was verified.
#[tokio::test]
async fn each_read_of_the_source_is_verified() {
    for without in [None, Some(Guard::HeldAtEachRead)] {
        let world = World::new().await;
        let first = Patient { diagnosis: Some("older".into()), ..patient(1) };
        world.patients().insert(&first).await.unwrap();
        let read = ReadRequest {
            table: "Patients",
            partition_key: "north",
            row_key: "0001",
            select: None,
        };
        let older = world.fault.read(read).await.unwrap().unwrap();
        let mut stored = world.patients().insert_or_replace(&patient(1)).await.unwrap();
        stored.clinic = "south".into();
        world.patients().move_to(&stored, &world.patients()).await.unwrap();
        let mut change = Row::build("north", "0001");
        change.put("Diagnosis", older.get("Diagnosis").unwrap().unwrap());
        let change = Operation::merge(change.finish().unwrap(), Condition::Any);
        let change = Mutex::new(Some(change));
        let meddling = Meddling { store: world.fault.clone(), change };
        let builder = Client::builder().backend(meddling).clock(world.clock.clone()).keys(keys());
        let builder = match without {
            Some(guard) => builder.without_guard(guard),
            None => builder,
        };
        let stats = world.drain(builder).await;
        let target = world.patients().get(Patient::primary().clinic("south").id(1)).await.unwrap();
        let target = target.unwrap().diagnosis.clone();
        let wanted = if without.is_none() { "influenza" } else { "older" };
        assert_eq!(target.as_deref(), Some(wanted), "{without:?}, {stats:?}");
        assert_eq!(stats.refused, u64::from(without.is_none()));
        let source = world.plain("Patients").get("north", "0001").await.unwrap();
        assert_eq!(source.is_some(), without.is_none());
        if without.is_none() {
            // The entity stays locked until somebody decides.
            let point = || Patient::primary().clinic("north").id(1);
            assert!(world.patients().insert_or_merge(&patient(1)).await.unwrap_err().is_conflict());
            assert!(world.patients().unlock(point()).await.unwrap());
            assert!(!world.patients().unlock(point()).await.unwrap());
            world.patients().insert_or_merge(&patient(1)).await.unwrap();
        }
    }
}

/// Its copy has the scope of the city, a plain property.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Contacts",
    partition_key = "{clinic}",
    row_key = "{id:04}",
    index(ByCity, partition_key = "{city}", row_key = "city_{clinic}_{id:04}")
)]
struct Contact {
    clinic: String,
    id: u32,
    city: String,
    #[table(encrypt)]
    phone: String,
}

#[tokio::test]
async fn a_plain_property_chooses_no_scope_for_a_secret() {
    let world = World::new().await;
    let contacts = world.client.table::<Contact>();
    contacts.create().await.unwrap();
    let one = |city: &str| Contact {
        clinic: "north".into(),
        id: 1,
        city: city.into(),
        phone: "555".into(),
    };
    let error = contacts.insert(&one("south")).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("another key scope"), "{error}");
    assert!(world.plain("Contacts").get("north", "0001").await.unwrap().is_none());
    contacts.insert(&one("north")).await.unwrap();
    world.drain(world.keyed(None)).await;
    // Somebody writes the plain property, and the name of the copy that it makes.
    let city = DynamicEntity::new("north", "0001").with("City", "evil");
    world.plain("Contacts").insert_or_merge(&city).await.unwrap();
    let name = r#"["Contact#ByCity","Contacts","evil","city_north_0001"]"#;
    let dirty = DynamicEntity::new("north", "~e2_0001")
        .with_framework_names()
        .with("EntityType", "entable.dirty")
        .with("Format", 1)
        .with("D_1", name);
    world.plain("Contacts").insert_or_replace(&dirty).await.unwrap();
    let client = world.keyed(None).build().unwrap();
    let stats = client.worker().with::<Contact>().drain().await.unwrap();
    let rows = world.plain("Contacts").query(Keys::partition("evil")).collect().await.unwrap();
    assert!(rows.is_empty(), "{rows:?}");
    assert_eq!(stats.poisoned, 1, "{stats:?}");
    let rebuilt = contacts.rebuild(Contact::by_city()).await;
    assert!(rebuilt.is_err_and(|error| error.is_invalid()));
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Say", authenticated)]
struct Say {
    text: String,
}

/// A code covers the body byte by byte: each store gives back what it was given, also of a program that
/// writes its JSON in another way.
#[tokio::test]
async fn bodies_come_back_from_every_store_as_their_codes_cover_them() {
    const ODD: &str = "\u{10ffff}\r\n\u{0}\u{1}\u{7f} \u{feff}e\u{301}";
    let directory = tempfile::tempdir().unwrap();
    let file = Embedded::open(directory.path().join("store.db")).unwrap();
    let stores: [Arc<dyn Backend>; 2] = [Arc::new(Memory::new()), Arc::new(file)];
    for store in stores {
        let name = store.capabilities().name;
        let client = Client::builder().backend(store.clone()).keys(keys()).build().unwrap();
        client.create_table("Patients").await.unwrap();
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = said.clone();
        let worker = client.worker().with::<Patient>().on(move |_, say: Say| {
            heard.lock().unwrap().push(say.text);
            async { Ok(()) }
        });
        let emit = async || {
            let mut egt = client.table::<Patient>().transaction();
            let partition = egt.in_partition("north").unwrap();
            partition.emit(&Say { text: ODD.into() }).unwrap();
            egt.commit().await.unwrap();
        };
        emit().await;
        let stats = worker.drain().await.unwrap();
        assert_eq!(
            (stats.refused, said.lock().unwrap().pop().as_deref()),
            (0, Some(ODD)),
            "{name}"
        );
        // Another program's bodies, signed by an operator: line ends between the tokens, then no JSON at all.
        let plain = Client::builder().backend(store.clone()).build().unwrap().dynamic("Patients");
        for (body, is_json) in [
            ("{\r\n\t\"text\": \"\u{10ffff}\u{7f}\"\r\n}\r\n".to_owned(), true),
            ("\u{10ffff}\r\n\u{0}".to_owned(), false),
        ] {
            emit().await;
            let messages = plain.query(Keys::partition("north").rows("~e3_".."~e4"));
            let message = messages.collect().await.unwrap().remove(0).into_inner();
            let changed = message.with_framework_names().with("Body", body.as_str());
            plain.insert_or_replace(&changed).await.unwrap();
            assert_eq!(worker.drain().await.unwrap().refused, 1 + u64::from(!is_json), "{name}");
            let poisoned = worker.poisoned().await.unwrap().remove(0);
            assert_eq!(poisoned.authenticity, WorkAuthenticity::NotAuthentic);
            worker.requeue_vouched(&poisoned).await.unwrap();
            let stats = worker.drain().await.unwrap();
            assert_eq!(stats.refused, 1 + u64::from(!is_json), "{name}: {stats:?}");
            assert_eq!(said.lock().unwrap().pop().is_some(), is_json, "{name}");
        }
        // Its code is right, and what it says is no message of that type.
        let poisoned = worker.poisoned().await.unwrap();
        assert_eq!(poisoned.len(), 1, "{name}: {poisoned:?}");
        assert_eq!(poisoned[0].authenticity, WorkAuthenticity::Authentic, "{name}");
    }
}

/// A key store that does not answer.
#[derive(Debug)]
struct Down;

fn no_answer<'a, T: 'a>() -> KeyFuture<'a, T> {
    let fault = SealFault::KeyUnavailable { retryable: true };
    Box::pin(async move { Err(Error::seal(fault, "the vault does not answer")) })
}

impl KeyProvider for Down {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        KeyScope::named(partition_key)
    }

    fn primary<'a>(&'a self, _: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        no_answer()
    }

    fn get<'a>(&'a self, _: &'a KeyScope, _: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        no_answer()
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        _: &'a KeyScope,
        _: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        no_answer()
    }
}

/// A key store that is down delays work, however long, and counts nothing against it.
#[tokio::test(start_paused = true)]
async fn work_waits_for_a_key_store_that_is_down() {
    let world = World::new().await;
    world.emit(&world.client, &Pay { amount: 1 }).await.unwrap();
    let mut stored = world.patients().insert(&patient(1)).await.unwrap();
    stored.clinic = "south".into();
    world.patients().move_to(&stored, &world.patients()).await.unwrap();
    let before = world.messages("Patients", "north").await;
    for _ in 0..7 {
        let told: Arc<AtomicU32> = Arc::default();
        let count = told.clone();
        let worker = world.worker(world.builder().keys(Down)).on_error(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let error = worker.drain().await.unwrap_err();
        assert!(error.is_key_unavailable(), "{error}");
        let stats = worker.stats();
        assert_eq!((stats.poisoned, stats.refused), (0, 0), "{stats:?}");
        assert!(told.load(Ordering::SeqCst) > 0);
        world.clock.advance(Duration::from_secs(3600));
    }
    let after = world.messages("Patients", "north").await;
    let bodies = |rows: &[DynamicEntity]| {
        let bag = |row: &DynamicEntity| (row.row_key().to_owned(), row.properties().clone());
        rows.iter().map(bag).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&before), bodies(&after), "nothing is written");
    world.drain(world.keyed(None)).await;
    assert_eq!(world.paid(), 1);
    let south = Patient::primary().clinic("south").id(1);
    assert!(world.patients().get(south).await.unwrap().is_some());
}

/// Scopes whose keys were destroyed while entities moved out of them or into them: the moves end, and
/// an entity that still opens is not locked for ever.
#[tokio::test(start_paused = true)]
async fn moves_end_where_the_keys_of_a_scope_were_destroyed() {
    for (lost, kept) in [("north", false), ("south", true)] {
        let world = World::new().await;
        let mut stored = world.patients().insert(&patient(1)).await.unwrap();
        stored.clinic = "south".into();
        world.patients().move_to(&stored, &world.patients()).await.unwrap();
        let mut sealed = world.vips().insert(&vip(1)).await.unwrap();
        sealed.clinic = "south".into();
        world.vips().move_to(&sealed, &world.vips()).await.unwrap();
        let mut ring = Keyring::builder().primary(&KeyScope::default_scope(), &root(1));
        for (at, clinic) in ["north", "south"].into_iter().enumerate() {
            if clinic != lost {
                ring = ring.primary(&KeyScope::named(clinic), &root(2 + at as u8));
            }
        }
        let ring = ring.build().unwrap().with_scopes(KeyScope::named);
        let left = || world.builder().keys(ring.clone());
        let stats = world.drain(left()).await;
        assert_eq!((stats.refused, stats.poisoned), (0, 2), "{lost}: {stats:?}");
        for _ in 0..2 {
            world.clock.advance(OutboxOptions::WRITE_DEADLINE + Duration::from_secs(1));
            world.drain(left()).await;
        }
        for table in ["Patients", "Vips"] {
            assert!(world.messages(table, "north").await.is_empty(), "{lost}");
            assert!(world.plain(table).get("south", "0001").await.unwrap().is_none(), "{lost}");
            let source = world.plain(table).get("north", "0001").await.unwrap().unwrap();
            let is_locked = source.into_inner().get("EntableMoving").is_some();
            assert_eq!(is_locked, !kept, "{lost} {table}");
        }
        if kept {
            let client = left().build().unwrap();
            let point = Patient::primary().clinic("north").id(1);
            client.table::<Patient>().patch_at(point, Patient::patch().visits(2)).await.unwrap();
            let newer = Vip { visits: 2, ..vip(1) };
            client.table::<Vip>().insert_or_replace(&newer).await.unwrap();
        }
    }
}

/// The attack: the receipt that keeps the effect of a message from a second time is taken away by a message of
/// its name that says it is done.
#[tokio::test]
async fn a_message_that_says_it_is_done_takes_no_receipt_away() {
    let digest = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (with_code, digest) in [(false, None), (true, None), (true, Some(digest))] {
        let world = World::new().await;
        let queue = world.client.queue("work");
        queue.send(&Pay { amount: 1 }).await.unwrap();
        let received =
            world.client.table_queue("work").receive(1, Duration::from_secs(1)).await.unwrap();
        let mut forged: serde_json::Value = serde_json::from_str(received[0].body()).unwrap();
        let members = forged.as_object_mut().unwrap();
        members.remove("body");
        members.insert("done".into(), true.into());
        members.insert("receipts".into(), serde_json::json!([["Patients", "north"]]));
        if !with_code {
            members.remove("mac");
        }
        if let Some(digest) = digest {
            members.insert("digest".into(), digest.into());
        }
        let forged = forged.to_string();
        world.clock.advance(Duration::from_secs(2));

        let (calls, effects) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (call, effect, attacker) = (calls.clone(), effects.clone(), queue.clone());
        let client = world.keyed(None).build().unwrap();
        let worker = client.worker().queue(&queue).on(move |cx, _: Pay| {
            let (call, effect) = (call.clone(), effect.clone());
            let (attacker, forged) = (attacker.clone(), forged.clone());
            async move {
                let mut egt = cx.client().table::<Patient>().transaction();
                egt.insert_or_replace(&patient(1))?;
                effect.fetch_add(u32::from(cx.once(egt).await?), Ordering::SeqCst);
                match call.fetch_add(1, Ordering::SeqCst) {
                    0 => drop(attacker.port().send(&forged, Duration::ZERO).await?),
                    1 | 2 => {}
                    _ => return Ok(()),
                }
                Err("it fails three times".into())
            }
        });
        let stats = worker.drain().await.unwrap();
        assert_eq!((stats.applied, stats.refused, stats.poisoned), (1, 1, 1), "{stats:?}");
        assert_eq!((calls.load(Ordering::SeqCst), effects.load(Ordering::SeqCst)), (4, 1));
        let receipts = async || {
            let rows = world.plain("Patients").query(Keys::partition("north").rows("~e4_".."~e5"));
            rows.collect().await.unwrap().len()
        };
        assert_eq!(receipts().await, 1);
        // The message itself, done one write deadline ago, takes it away. Its type has no handler here.
        world.clock.advance(Duration::from_secs(301));
        let other = world.keyed(None).build().unwrap().worker().queue(&queue);
        let stats = other.drain().await.unwrap();
        assert_eq!((stats.applied, stats.refused, receipts().await), (1, 0, 0), "{stats:?}");
    }
}

/// Whether a message without a code needs one, its type alone tells.
#[tokio::test]
async fn a_done_message_without_a_code_waits_for_a_program_that_knows_its_type() {
    let world = World::new().await;
    let queue = world.client.queue("work");
    let done = r#"{"id":"7","type":"Foreign","done":true,"receipts":[["Patients","north"]]}"#;
    queue.port().send(done, Duration::ZERO).await.unwrap();
    let stranger = world.keyed(None).build().unwrap().worker().queue(&queue);
    let stats = stranger.drain().await.unwrap();
    assert_eq!((stats.unknown, stats.applied, stats.refused), (1, 0, 0), "{stats:?}");
    world.clock.advance(Duration::from_secs(61));
    let stats = world.worker(world.keyed(None)).queue(&queue).drain().await.unwrap();
    assert_eq!((stats.applied, stats.refused), (1, 0), "{stats:?}");
}
