//! Scenarios of unique values and of remote lists.

use std::sync::{Arc, OnceLock};

use entable::{
    OutboxOptions, Verb,
    backend::layer::{Recorder, Request},
    prelude::*,
};

use super::{build, client_of};
use crate::{
    fixture,
    hooked::Hooked,
    unique::{Person, World, person},
};

const CLAIM: &str = "0123456789abcdef01234567";

/// A pupil in a list of another partition.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Pupils",
    partition_key = "{school}",
    row_key = "id_{id:06}",
    list(ByTown, partition_key = "town_{town}", row_key = "ids")
)]
struct Pupil {
    school: String,
    id: u32,
    town: String,
}

fn pupil(id: u32) -> Pupil {
    Pupil { school: "North".into(), id, town: "Bern".into() }
}

fn framework_row(partition_key: &str, row_key: &str, entity_type: &str) -> DynamicEntity {
    DynamicEntity::new(partition_key, row_key)
        .with_framework_names()
        .with("EntityType", entity_type)
}

/// A writer that is late at a list writes what its entity says by then.
#[tokio::test(start_paused = true)]
async fn a_late_list_follows_its_primary() {
    let world = fixture::World::new().await;
    let writer = |options| client_of(&world, world.fault.clone(), options);
    let pupils = writer(OutboxOptions::default()).table::<Pupil>();
    pupils.create().await.unwrap();
    let leaving = writer(OutboxOptions::default().background(0)).table::<Pupil>();
    let other = pupils.clone();
    let is_list = |one: &entable::Operation| one.row().partition_key() == "town_Bern";
    let store = Hooked::before(world.fault.clone(), is_list, async move {
        // The late writer's entity goes, and another writer is first at the list.
        leaving.delete_at(Pupil::primary().school("North").id(1)).await.unwrap();
        other.insert(&pupil(2)).await.unwrap().wait_for_copies().await.unwrap();
    });
    let late = client_of(&world, store, OutboxOptions::default());
    drop(late.table::<Pupil>().insert(&pupil(1)).await.unwrap().wait_for_copies().await);
    late.wait_for_copies().await;
    let listed = pupils.keys(Pupil::by_town().town("Bern")).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|at| at.row_key().to_owned()).collect();
    assert!(listed == ["id_000002"], "the list has {listed:?}");
}

/// The row that a claim reserves under a value that nobody has.
fn reservation() -> DynamicEntity {
    framework_row("email_b@a.com", "email", "Person#ByEmail")
        .with("Department", "Sales")
        .with("Id", 9_i64)
        .with("Name", "Nobody")
        .with("Email", "b@a.com")
        .with("Badge", "none")
        .with("SrcT", "Staff")
        .with("SrcP", "empid_Sales")
        .with("SrcR", "000009")
        .with("SrcC", CLAIM)
}

/// A reservation that changes while a worker settles it is read again.
#[tokio::test(start_paused = true)]
async fn settling_goes_on_after_a_change() {
    let world = World::new().await;
    let rows = world.client.dynamic("Staff");
    let claim = framework_row("empid_Sales", &format!("~e1_{CLAIM}"), "entable.claim")
        .with("Format", 1)
        .with("C_1", r#"["Person#ByEmail","Staff","email_b@a.com","email","000009"]"#);
    rows.insert(&claim).await.unwrap();
    world.later(OutboxOptions::CLAIM_TIME);
    // The claim is dead after this.
    world.client.worker().drain().await.unwrap();
    rows.insert(&reservation()).await.unwrap();
    world.later(OutboxOptions::WRITE_DEADLINE);
    let changed = rows.clone();
    let is_reservation = |one: &entable::Operation| one.row().partition_key() == "email_b@a.com";
    let store = Hooked::before(world.fault.clone(), is_reservation, async move {
        let mut row = changed.get("email_b@a.com", "email").await.unwrap().unwrap();
        row.allow_framework_names();
        row.set("Name", "Somebody");
        changed.replace(&row).await.unwrap();
    });
    let client = build(store, world.clock.clone(), OutboxOptions::default());
    client.worker().with::<Person>().drain().await.unwrap();
    assert_eq!(world.open().await, [""; 0], "the claim is settled");
    assert!(world.reservation("b@a.com").await.is_none(), "the reservation stays for ever");
}

/// A row that was an entity's own when it was read may be another entity's when it is taken over.
#[tokio::test(start_paused = true)]
async fn a_row_is_taken_over_in_the_version_that_was_read() {
    let world = World::new().await;
    let leaving = OutboxOptions::default().background(0);
    let leaving = build(world.fault.clone(), world.clock.clone(), leaving);
    let staff = leaving.table::<Person>();
    let mut one = world.staff.insert(&person(1, "b@a.com")).await.unwrap();
    one.wait_for_copies().await.unwrap();
    // The copy under the first value stays for a worker.
    one.email = "c@a.com".into();
    let mut one = staff.replace(&one).await.unwrap();
    let (worker, others) = (world.client.worker(), world.staff.clone());
    let is_taken_over = |one: &entable::Operation| {
        let is_row = one.row().partition_key() == "email_b@a.com";
        is_row && matches!(one.verb(), Verb::Merge | Verb::Replace)
    };
    let store = Hooked::before(world.fault.clone(), is_taken_over, async move {
        worker.drain().await.unwrap();
        others.insert(&person(2, "b@a.com")).await.unwrap().wait_for_copies().await.unwrap();
    });
    let client = build(store, world.clock.clone(), OutboxOptions::default());
    one.email = "b@a.com".into();
    let second = client.table::<Person>().replace(&one).await;
    let is_refused = second.as_ref().is_err_and(Error::is_unique_violation);
    assert!(is_refused, "two entities have the value: {:?}", second.map(drop));
}

/// A writer that is at work keeps its claim, however often another client wants the value for the
/// entity.
#[tokio::test(start_paused = true)]
async fn a_claim_of_another_client_is_left_alone() {
    let world = World::new().await;
    let options = OutboxOptions::default();
    let other = build(world.fault.clone(), world.clock.clone(), options.clone());
    let is_committed = |one: &entable::Operation| one.row().row_key() == "000001";
    let store = Hooked::before(world.fault.clone(), is_committed, async move {
        let one = other.table::<Person>().insert(&person(1, "b@a.com")).await;
        drop(one);
    });
    let client = build(store, world.clock.clone(), options);
    let written = client.table::<Person>().insert(&person(1, "b@a.com")).await;
    assert!(written.is_ok(), "the claim was ended: {:?}", written.map(drop));
}

/// Of lists that are large, a worker writes some before it reads the others, each once.
#[tokio::test(start_paused = true)]
async fn large_lists_are_held_a_few_at_a_time() {
    const LISTS: u32 = 24;
    let in_town = |id: u32, town: u32| Pupil { town: format!("T{town}"), ..pupil(id) };
    let world = fixture::World::new().await;
    let recorder = Recorder::around(world.fault.clone());
    let options = || OutboxOptions::default();
    let first = client_of(&world, world.fault.clone(), options());
    let pupils = first.table::<Pupil>();
    pupils.create().await.unwrap();
    let rows = first.dynamic("Pupils");
    // Each takes some 1 MiB of memory.
    let id = |number: u32| format!(r#"["{number:04}{}","{}"]"#, "p".repeat(500), "r".repeat(500));
    for town in 0..LISTS {
        let one = pupils.insert(&in_town(town, town)).await.unwrap();
        one.wait_for_copies().await.unwrap();
        let mut list = rows.get(&format!("town_T{town}"), "ids").await.unwrap().unwrap();
        list.allow_framework_names();
        for number in 1..12 {
            let ids: Vec<_> = (0..30).map(|one| id(number * 30 + one)).collect();
            list.set(format!("Ids{number:02}"), format!("[{}]", ids.join(",")));
        }
        rows.replace(&list).await.unwrap();
    }
    let leaving = client_of(&world, world.fault.clone(), options().background(0));
    // Three pupils for each list, in turn: each list is written once all the same.
    for number in 0..3 * LISTS {
        let pupil = in_town(LISTS + number, number % LISTS);
        leaving.table::<Pupil>().insert(&pupil).await.unwrap();
    }
    let worker = client_of(&world, recorder.clone(), options()).worker().with::<Pupil>();
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.open), ((3 * LISTS).into(), 0));
    let (mut read, mut written, mut most) = (0, 0, 0);
    for request in recorder.take() {
        match request {
            Request::Read { partition_key, .. } if partition_key.starts_with("town_") => read += 1,
            Request::Apply { partition_key, .. } if partition_key.starts_with("town_") => {
                written += 1;
            }
            _ => {}
        }
        most = most.max(read - written);
    }
    assert_eq!((read, written), (LISTS, LISTS));
    assert!(most <= 12, "{most} lists were held together");
}

/// A teacher beside the pupils of a school, with a copy in another partition. Its open work comes first.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Pupils",
    partition_key = "{school}",
    row_key = "a_teacher_{id:06}",
    index(ByRoom, partition_key = "room_{room}", row_key = "at_{school}_{id:06}")
)]
struct Teacher {
    school: String,
    id: u32,
    room: String,
}

#[tokio::test(start_paused = true)]
async fn a_type_that_becomes_known_while_a_worker_is_at_work_loses_no_entry() {
    let world = fixture::World::new().await;
    let options = || OutboxOptions::default();
    let leaving = client_of(&world, world.fault.clone(), options().background(0));
    leaving.table::<Pupil>().create().await.unwrap();
    for id in 0..20 {
        leaving.table::<Pupil>().insert(&pupil(id)).await.unwrap();
        let teacher = Teacher { school: "North".into(), id, room: format!("{id}") };
        leaving.table::<Teacher>().insert(&teacher).await.unwrap();
    }
    // The program opens the table of pupils when its worker writes the first copy of a teacher.
    let opened = Arc::new(OnceLock::<Client>::new());
    let program = opened.clone();
    let is_copy = |one: &entable::Operation| one.row().partition_key().starts_with("room_");
    let store = Hooked::before(world.fault.clone(), is_copy, async move {
        drop(program.get().unwrap().table::<Pupil>());
    });
    let client = opened.get_or_init(|| client_of(&world, store, options()));
    let stats = client.worker().with::<Teacher>().drain().await.unwrap();
    assert_eq!((stats.open, stats.unknown, stats.poisoned), (0, 0, 0), "{stats:?}");
    let in_bern = client.table::<Pupil>().keys(Pupil::by_town().town("Bern")).await.unwrap();
    assert_eq!(in_bern.len(), 20);
}
