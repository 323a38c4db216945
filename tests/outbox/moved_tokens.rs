//! Tests moves of entities whose keys hold blind tokens: other values of secret fields, faults at every request,
//! keys that are replaced, and what the messages say to do.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use entable::{
    Blob, KeyScope, Keyring, KeyringBuilder, OutboxOptions, RootKey, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
    entity::FullCopy,
    prelude::*,
    seal::token_version,
};

use crate::blob_store::{Fails, TestBlobs};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Members",
    partition_key = "m_{email:hmac}",
    row_key = "member_{club}",
    index(ByNumber, partition_key = "n_{number}", row_key = "member", unique),
    index(ByPhone, partition_key = "p_{phone:hmac}", row_key = "member", unique),
    index(ByName, row_key = "name_{name:hmac}"),
    list(OfCity, partition_key = "city_{city:hmac}", row_key = "members")
)]
struct Member {
    club: String,
    number: i32,
    #[table(encrypt)]
    email: String,
    #[table(encrypt)]
    phone: String,
    #[table(encrypt)]
    name: String,
    #[table(encrypt)]
    city: String,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
    visits: i32,
}

fn member(email: &str) -> Member {
    Member {
        club: "chess".into(),
        number: 7,
        email: email.into(),
        phone: "secret-555".into(),
        name: "secret-Ada".into(),
        city: "secret-Oslo".into(),
        photo: Some(Blob::new("a photo")),
        visits: 3,
    }
}

const OLD: &str = "secret-old@b";
const NEW: &str = "secret-new@b";

fn at(email: &str) -> Point<Member> {
    Member::primary().email(email).club("chess")
}

fn root(byte: u8) -> RootKey {
    RootKey::from_bytes([byte; 32])
}

fn ring() -> KeyringBuilder {
    Keyring::builder().primary(&KeyScope::default_scope(), &root(1))
}

fn keys() -> Keyring {
    ring().blind_token_key(&KeyScope::default_scope(), 1, &root(100)).build().unwrap()
}

/// The earlier blind token key reads, and a later one makes tokens.
fn later_keys() -> Keyring {
    let scope = KeyScope::default_scope();
    ring()
        .blind_token_key_for_lookups(&scope, 1, &root(100))
        .blind_token_key(&scope, 2, &root(101))
        .build()
        .unwrap()
}

struct World {
    clock: Arc<SteppedClock>,
    fault: FaultInjector,
    blobs: Arc<TestBlobs>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
        Self { clock, fault, blobs: Arc::new(TestBlobs::default()) }
    }

    fn client(&self, keys: Keyring) -> Client {
        let builder = Client::builder().backend(self.fault.clone()).clock(self.clock.clone());
        builder.blobs(self.blobs.clone()).keys(keys).build().unwrap()
    }

    /// Lets workers of another program do what is left.
    async fn settle<E: TableEntity>(&self, keys: Keyring) -> Table<E> {
        self.fault.clear();
        let client = self.client(keys);
        for _ in 0..4 {
            // The claim of a writer that died stops a worker for the claim time.
            let _ = client.worker().with::<E>().drain().await;
            self.clock.advance(Duration::from_secs(3_600));
            self.blobs.advance(Duration::from_secs(3_600));
        }
        client.worker().with::<E>().drain().await.unwrap();
        self.clock.advance(Duration::from_secs(25 * 3_600));
        self.blobs.advance(Duration::from_secs(25 * 3_600));
        let table: Table<E> = client.table();
        if !E::SCHEMA.blobs.is_empty() {
            table.sweep_blobs().await.unwrap();
        }
        table
    }
}

/// The rows of a table as they are stored: what a client without keys reads.
async fn stored_rows(world: &World, table: &str) -> Vec<Stored<DynamicEntity>> {
    let reader = Client::builder().backend(world.fault.clone()).build().unwrap();
    let rows = reader.dynamic(table).query(Filter::ge("PartitionKey", "")).allow_scan();
    rows.collect().await.unwrap()
}

async fn hides_its_secrets(world: &World, table: &str) {
    for row in stored_rows(world, table).await {
        let text = format!("{:?}{}", row.row(), String::from_utf8_lossy(&row.row().as_bytes()));
        assert!(!text.contains("secret-"), "{text}");
    }
}

/// Requires that the member is in one place, with everything that belongs to it; returns its email.
async fn in_one_place(world: &World, members: &Table<Member>, about: &str) -> String {
    let (old, new) = (members.get(at(OLD)).await.unwrap(), members.get(at(NEW)).await.unwrap());
    let found = match (old, new) {
        (Some(found), None) | (None, Some(found)) => found,
        both => panic!("{about}: {both:?}"),
    };
    let expected = member(&found.email);
    assert_eq!((found.number, found.visits), (7, 3), "{about}");
    let bytes = members.blob(found.photo.as_ref().unwrap()).bytes().await.unwrap();
    assert_eq!(bytes, "a photo", "{about}");
    let by_number: Point<Member, FullCopy> = Member::by_number().number(7);
    let by_phone = Member::by_phone().phone(expected.phone.as_str());
    let by_name = Member::by_name().email(found.email.as_str()).name(expected.name.as_str());
    for copy in [
        members.get(by_number).await.unwrap(),
        members.get(by_phone).await.unwrap(),
        members.get(by_name).await.unwrap(),
    ] {
        assert_eq!(copy.as_deref(), Some(&*found), "{about}");
    }
    let of_city = members.query(Member::of_city().city(expected.city.as_str()));
    let of_city = of_city.collect().await.unwrap();
    assert_eq!(of_city.iter().map(|one| &**one).collect::<Vec<_>>(), [&*found], "{about}");
    let other = Member { club: "go".into(), photo: None, ..member("other@b") };
    let taken = members.insert(&other).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{about}: {taken}");
    assert_eq!(taken.holder(), Some(found.row().keys()), "{about}");

    assert!(members.check().await.unwrap().is_clean(), "{about}");
    let rows = stored_rows(world, "Members").await;
    let open = rows.iter().filter(|row| row.row_key().starts_with("~e"));
    let open: Vec<_> = open.filter(|row| !row.row_key().starts_with("~e0_")).collect();
    assert!(open.is_empty(), "{about}: {open:?}");
    // The primary, a copy in its partition, two elsewhere, and the list.
    let entity = rows.iter().filter(|row| !row.row_key().starts_with("~e"));
    assert_eq!(entity.count(), 5, "{about}");
    let marks = rows.iter().filter(|row| row.get("EntableMoving").is_some());
    assert_eq!(marks.count(), 0, "{about}");
    let names: BTreeSet<_> = world.blobs.names().await.into_iter().collect();
    let named = found.photo.as_ref().and_then(|photo| photo.name().map(str::to_owned));
    assert_eq!(names, named.into_iter().collect(), "{about}");
    found.email.clone()
}

/// A world with a member, and the member with another email.
async fn world_with_member() -> (World, Client, Stored<Member>) {
    let world = World::new();
    let client = world.client(keys());
    let members: Table<Member> = client.table();
    members.create().await.unwrap();
    let mut stored = members.insert(&member(OLD)).await.unwrap();
    client.wait_for_copies().await;
    stored.email = NEW.into();
    (world, client, stored)
}

async fn moves(client: &Client, stored: &Stored<Member>) -> Result<(), Error> {
    let members: Table<Member> = client.table();
    members.move_to(stored, &members).await?.wait().await
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_the_partition_key_changes_by_a_move() {
    let (world, client, stored) = world_with_member().await;
    let members: Table<Member> = client.table();
    // No transaction does it, and what the error names does.
    let error = members.replace(&stored).await.unwrap_err();
    assert!(error.is_invalid() && error.message().contains("use `move_to`"), "{error}");
    let copy = members.get(Member::by_number().number(7)).await.unwrap().unwrap();
    let mut changed = copy.clone();
    changed.email = NEW.into();
    let error = members.replace(&changed).await.unwrap_err();
    assert!(error.is_invalid() && error.message().contains("use `move_to`"), "{error}");
    let error = members.move_to(&changed, &members).await.map(drop).unwrap_err();
    assert!(error.message().contains("`get(stored.point())`"), "{error}");
    let mut read = members.get(copy.point()).await.unwrap().unwrap();
    read.email = NEW.into();

    moves(&client, &read).await.unwrap();
    hides_its_secrets(&world, "Members").await;
    let members = world.settle(keys()).await;
    assert_eq!(in_one_place(&world, &members, "a move").await, NEW);
    // And back, where it has been before.
    let mut back = members.get(at(NEW)).await.unwrap().unwrap();
    back.email = OLD.into();
    moves(members.client(), &back).await.unwrap();
    let members = world.settle(keys()).await;
    assert_eq!(in_one_place(&world, &members, "back").await, OLD);
}

/// The writer dies at each of its requests, and a worker of another program does what is left.
#[tokio::test(start_paused = true)]
async fn a_writer_that_dies_leaves_one_member_whatever_was_carried_out() {
    let (mut moved, mut stayed) = (0, 0);
    for (nth, carried_out) in (0..80).flat_map(|nth| [(nth, false), (nth, true)]) {
        let (world, client, stored) = world_with_member().await;
        let about = format!("request {nth}, {carried_out}");
        let lost = || Error::new(ErrorKind::Backend, "connection lost");
        if carried_out {
            world.fault.inject(RequestKind::Any, nth, InjectedFault::After(lost()));
        }
        let from = nth + usize::from(carried_out);
        for later in from..from + 80 {
            world.fault.inject(RequestKind::Any, later, InjectedFault::Before(lost()));
        }
        let done = moves(&client, &stored).await;
        let is_met = world.fault.pending() < 80 + usize::from(carried_out);
        world.fault.clear();
        hides_its_secrets(&world, "Members").await;
        // Readers find it at one key at least.
        let reader: Table<Member> = world.client(keys()).table();
        let mut seen = 0;
        for email in [OLD, NEW] {
            seen += usize::from(reader.get(at(email)).await.unwrap().is_some());
        }
        assert!(seen > 0, "{about}");
        let members = world.settle(keys()).await;
        match &*in_one_place(&world, &members, &about).await {
            NEW => moved += 1,
            _ => {
                assert!(done.is_err(), "{about}");
                stayed += 1;
            }
        }
        if !is_met {
            assert!(moved > 10 && stayed > 0, "{moved} moved, {stayed} stayed");
            return;
        }
    }
    panic!("no move went through");
}

/// One request fails, of rows or of blobs; the writer goes on as writers do.
#[tokio::test(start_paused = true)]
async fn no_fault_parts_a_member_from_its_values_and_its_photo() {
    for in_blobs in [false, true] {
        for fails in [Fails::Before, Fails::After] {
            let mut nth = 0;
            loop {
                let (world, client, stored) = world_with_member().await;
                let before = world.fault.requests();
                if in_blobs {
                    world.blobs.inject(nth, fails);
                } else {
                    let lost = Error::new(ErrorKind::Backend, "connection lost");
                    let fault = match fails {
                        Fails::Before => InjectedFault::Before(lost),
                        Fails::After => InjectedFault::After(lost),
                    };
                    world.fault.inject(RequestKind::Any, nth, fault);
                }
                let done = moves(&client, &stored).await;
                client.wait_for_copies().await;
                let is_met = if in_blobs {
                    !world.blobs.calm()
                } else {
                    world.fault.requests() - before > nth
                };
                let about = format!("request {nth}, in blobs {in_blobs}, {fails:?}: {done:?}");
                let members = world.settle(keys()).await;
                let email = in_one_place(&world, &members, &about).await;
                assert!(email == NEW || done.is_err(), "{about}");
                if !is_met {
                    assert!(nth > 0, "{about}");
                    break;
                }
                nth += 1;
            }
        }
    }
}

/// An email that another member has: nothing changes, and the values stay reserved.
#[tokio::test(start_paused = true)]
async fn a_target_that_is_taken_leaves_the_member_and_its_values() {
    let (world, client, stored) = world_with_member().await;
    let members: Table<Member> = client.table();
    let (name, phone) = ("other".to_owned(), "other".to_owned());
    let other = Member { number: 8, phone, name, city: "x".into(), photo: None, ..member(NEW) };
    members.insert(&other).await.unwrap();
    let error = moves(&client, &stored).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(!format!("{error:?} {error}").contains("secret-"), "{error:?}");
    let members: Table<Member> = world.settle(keys()).await;
    let there = members.get(at(OLD)).await.unwrap().unwrap();
    members.delete_at(at(NEW)).await.unwrap();
    // It can be written again, without what the move was to bring.
    let there = members.replace(&there).await.unwrap();
    drop(there);
    let members = world.settle(keys()).await;
    assert_eq!(in_one_place(&world, &members, "refused").await, OLD);
}

/// A worker without the blind token key puts the move aside, as one without the data key does. Put back, it goes on.
#[tokio::test(start_paused = true)]
async fn a_move_that_a_worker_without_the_blind_token_key_put_aside_goes_on_when_it_is_put_back() {
    let (world, client, stored) = world_with_member().await;
    // The mark is written, and nothing more.
    for later in 1..40 {
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        world.fault.inject(RequestKind::Apply, later, InjectedFault::Before(lost));
    }
    moves(&client, &stored).await.unwrap_err();
    world.fault.clear();
    let half = world.client(ring().build().unwrap());
    let half = half.worker().with::<Member>();
    for _ in 0..9 {
        half.drain().await.unwrap();
        world.clock.advance(Duration::from_secs(3_600));
    }
    let members: Table<Member> = world.settle(keys()).await;
    assert!(!members.unlock(at(NEW)).await.unwrap(), "nothing is there");
    let worker = members.client().worker().with::<Member>();
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!(poisoned.len(), 1, "{poisoned:?}");
    worker.requeue(&poisoned[0]).await.unwrap();
    let members = world.settle(keys()).await;
    assert_eq!(in_one_place(&world, &members, "put back").await, NEW);
}

/// Where a move is not to go on, `unlock` finds the entity by the value behind its token.
#[tokio::test(start_paused = true)]
async fn a_member_is_unlocked_by_its_email() {
    let (world, client, stored) = world_with_member().await;
    for later in 1..40 {
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        world.fault.inject(RequestKind::Apply, later, InjectedFault::Before(lost));
    }
    moves(&client, &stored).await.unwrap_err();
    world.fault.clear();
    let members: Table<Member> = client.table();
    let open = members.unlock(at(OLD)).await.unwrap_err();
    assert!(open.is_conflict(), "{open}");
    let rows = client.dynamic("Members");
    for row in stored_rows(&world, "Members").await {
        if row.row_key().starts_with("~e4_") || row.row_key().starts_with("~e3_") {
            rows.delete_at(row.partition_key(), row.row_key()).await.unwrap();
        }
    }
    assert!(members.unlock(at(OLD)).await.unwrap());
    let members: Table<Member> = world.settle(keys()).await;
    assert_eq!(in_one_place(&world, &members, "unlocked").await, OLD);
}

/// A member under the token of an earlier blind token key moves to the token of the present one, without any
/// change by the caller.
#[tokio::test(start_paused = true)]
async fn a_move_brings_a_member_to_the_present_blind_token_key() {
    let (world, client, _) = world_with_member().await;
    drop(client);
    let client = world.client(later_keys());
    let members: Table<Member> = client.table();
    assert!(members.get(at(OLD)).await.unwrap().is_none(), "a lookup uses the present key");
    let found = members.query(Member::scan()).allow_scan().collect().await.unwrap();
    let [stored] = &found[..] else { panic!("{found:?}") };
    let version = |stored: &Stored<Member>| token_version(&stored.partition_key()[2..]);
    assert_eq!(version(stored), Some(1));
    let error = members.replace(stored).await.unwrap_err();
    assert!(error.message().contains("use `move_to`"), "{error}");
    // A patch leaves the keys as they are.
    members.patch(stored, Member::patch().visits(3)).await.unwrap();
    let found = members.query(Member::scan()).allow_scan().collect().await.unwrap();
    moves(&client, &found[0]).await.unwrap();
    let moved = members.get(at(OLD)).await.unwrap().unwrap();
    assert_eq!(version(&moved), Some(2));
    let members: Table<Member> = world.settle(later_keys()).await;
    // Copies and list entries under old tokens are left, as after any other write.
    let report = members.check().await.unwrap();
    assert!(!report.is_clean());
    report.repair().await.unwrap();
    let members = world.settle(later_keys()).await;
    assert_eq!(in_one_place(&world, &members, "the present key").await, OLD);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Clerks", partition_key = "{department}", row_key = "e_{ssn:hmac}")]
struct Clerk {
    department: String,
    #[table(encrypt)]
    ssn: String,
}

/// Who writes the table without keys has no worker encrypt a value of their choice.
#[tokio::test(start_paused = true)]
async fn a_value_that_somebody_adds_to_a_moving_row_does_not_arrive() {
    for name in ["EntableMovingToSsn", "EntableMovingToEntityType"] {
        let world = World::new();
        // A writer that leaves everything to workers.
        let options = OutboxOptions::default().background(0).copies_before_answer(false);
        let builder = Client::builder().backend(world.fault.clone()).clock(world.clock.clone());
        let client = builder.outbox(options).keys(keys()).build().unwrap();
        let clerks: Table<Clerk> = client.table();
        clerks.create().await.unwrap();
        let clerk = Clerk { department: "Sales".into(), ssn: "secret-1".into() };
        let mut stored = clerks.insert(&clerk).await.unwrap();
        stored.department = "Law".into();
        clerks.move_to(&stored, &clerks).await.unwrap();
        let raw = Client::builder().backend(world.fault.clone()).build().unwrap();
        let forged = DynamicEntity::new("Sales", stored.row_key()).with_framework_names();
        raw.dynamic("Clerks").insert_or_merge(&forged.with(name, "forged")).await.unwrap();
        let clerks: Table<Clerk> = world.settle(keys()).await;
        let at = |department: &str| Clerk::primary().department(department).ssn("secret-1");
        assert!(clerks.get(at("Law")).await.unwrap().is_none(), "{name}");
        let there = clerks.get(at("Sales")).await.unwrap().unwrap();
        assert_eq!(*there, clerk, "{name}");
        // Given up: the entity can be written, and moved again.
        let mut there = clerks.replace(&there).await.unwrap();
        there.department = "Law".into();
        clerks.move_to(&there, &clerks).await.unwrap().wait().await.unwrap();
        assert!(clerks.get(at("Law")).await.unwrap().is_some(), "{name}");
    }
}
