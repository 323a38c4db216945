//! Tests secret values that are unique across partitions, by their tokens, in sealed rows.

use entable::{
    Error, ErrorKind, OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use std::{sync::Arc, time::Duration};

use crate::fixture::keyring;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "p_{department}",
    row_key = "e_{id:04}",
    seal,
    index(BySsn, partition_key = "ssn_{ssn:hmac}", row_key = "is", unique),
    index(
        ByBadge,
        table = "Badges",
        partition_key = "{badge}",
        row_key = "is",
        unique,
        only(note)
    )
)]
struct Person {
    department: String,
    id: u32,
    badge: String,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt(hide_none))]
    note: Option<String>,
}

fn person(id: u32, ssn: &str) -> Person {
    let (department, ssn) = ("Sales".into(), ssn.into());
    Person { department, id, badge: format!("b{id}"), ssn, note: None }
}

struct World {
    clock: Arc<SteppedClock>,
    recorder: Recorder,
    fault: FaultInjector,
    client: Client,
    people: Table<Person>,
}

async fn world() -> World {
    let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
    let recorder = Recorder::around(Memory::with_clock(clock.clone()));
    let fault = FaultInjector::around(recorder.clone());
    let builder = Client::builder().backend(fault.clone()).clock(clock.clone());
    let client = builder.keys(keyring(1)).build().unwrap();
    let people = client.table::<Person>();
    people.create().await.unwrap();
    World { clock, recorder, fault, client, people }
}

#[tokio::test]
async fn a_secret_is_unique_and_stays_one() {
    let world = world().await;
    let people = &world.people;
    people.insert(&person(1, "123-45-0001")).await.unwrap();
    let mut second = people.insert(&person(2, "123-45-0002")).await.unwrap();
    world.client.wait_for_copies().await;
    let error = people.insert(&person(3, "123-45-0001")).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.holder(), Some(("p_Sales", "e_0001")));
    let found = people.get(Person::by_ssn().ssn("123-45-0001")).await.unwrap().unwrap();
    assert_eq!(*found, person(1, "123-45-0001"));
    second.ssn = "123-45-0003".into();
    second.note = Some("moved".into());
    let second = people.replace(&second).await.unwrap();
    world.client.wait_for_copies().await;
    let found = people.get(Person::by_ssn().ssn("123-45-0003")).await.unwrap().unwrap();
    assert_eq!(*found, *second);
    assert!(people.get(Person::by_ssn().ssn("123-45-0002")).await.unwrap().is_none());
    people.insert(&person(4, "123-45-0002")).await.unwrap();
    let printed = format!("{:?} {error:?} {error}", world.recorder.requests());
    assert!(!printed.contains("123-45"), "{printed}");
}

/// A writer dies at each of its requests; what it left is read, taken over and cleared away.
#[tokio::test]
async fn sealed_reservations_are_read_and_taken_over() {
    for requests in 0..9 {
        let world = world().await;
        world.people.insert(&person(9, "123-45-0009")).await.unwrap();
        world.client.wait_for_copies().await;
        for request in requests..requests + 40 {
            let lost = Error::new(ErrorKind::Backend, "connection lost");
            world.fault.inject(RequestKind::Any, request, InjectedFault::Before(lost));
        }
        let _ = world.people.insert(&person(1, "123-45-0001")).await;
        world.client.wait_for_copies().await;
        world.fault.clear();
        let at = Person::primary().department("Sales").id(1);
        let is_there = world.people.get(at.clone()).await.unwrap().is_some();
        let found = world.people.get(Person::by_ssn().ssn("123-45-0001")).await.unwrap();
        assert_eq!(found.map(|one| one.id), is_there.then_some(1), "{requests}");
        let worker = world.client.worker();
        for _ in 0..3 {
            world.clock.advance(OutboxOptions::CLAIM_TIME + Duration::from_secs(1));
            worker.drain().await.unwrap();
        }
        assert_eq!(worker.stats().open, 0, "{requests}");
        // The entity keeps its own secret, whether it exists or not.
        let again = Person { note: Some("again".into()), ..person(1, "123-45-0001") };
        world.people.insert_or_replace(&again).await.unwrap();
        world.client.wait_for_copies().await;
        let found = world.people.get(Person::by_ssn().ssn("123-45-0001")).await.unwrap().unwrap();
        assert_eq!(*found, again, "{requests}");
        let other = world.people.insert(&person(5, "123-45-0001")).await.unwrap_err();
        assert_eq!(other.holder(), Some(("p_Sales", "e_0001")), "{requests}");
    }
}

/// An insert that fails takes a row over and gives it back: what it held is there again.
#[tokio::test]
async fn what_is_given_back_opens() {
    let world = world().await;
    world.people.insert(&person(1, "123-45-0001")).await.unwrap();
    world.client.wait_for_copies().await;
    let again = Person { note: Some("again".into()), ..person(1, "123-45-0001") };
    let error = world.people.insert(&again).await.unwrap_err();
    assert!(error.is_conflict() && !error.is_unique_violation());
    let found = world.people.get(Person::by_ssn().ssn("123-45-0001")).await.unwrap().unwrap();
    assert_eq!(*found, person(1, "123-45-0001"));
}

/// While another write of its entity reserves a sealed copy once more, readers open it.
#[tokio::test(start_paused = true)]
async fn a_sealed_copy_opens_while_it_is_reserved_again() {
    let world = world().await;
    let people = &world.people;
    people.insert(&person(1, "123-45-0001")).await.unwrap();
    world.client.wait_for_copies().await;
    // The claims, the rows that are in the way, the reservations; then the transaction waits.
    world.fault.inject(RequestKind::Apply, 5, InjectedFault::Delay(Duration::from_secs(20)));
    let again = person(1, "123-45-0001");
    let reader = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(world.fault.pending(), 0, "the transaction is on its way");
        let found = people.get(Person::by_ssn().ssn("123-45-0001")).await.unwrap();
        assert_eq!(*found.unwrap(), person(1, "123-45-0001"));
    };
    let (refused, ()) = tokio::join!(people.insert(&again), reader);
    assert!(refused.unwrap_err().is_conflict());
}
