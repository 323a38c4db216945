//! Tests reads through a unique index while values are claimed.

use std::time::Duration;

use entable::{
    Error, ErrorKind, OutboxOptions, Ticks,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use super::{Person, World, by_email, person};

#[derive(Debug, Projection)]
#[table(of = Person)]
struct Name {
    name: String,
}

#[derive(Debug, EntitySet)]
enum StaffRow {
    Person(Person),
}

/// A store in which an insert died after a number of requests, and its value.
async fn died_after(requests: usize) -> World {
    let world = World::new().await;
    // All requests from then on fail.
    for request in requests..requests + 40 {
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        world.fault.inject(RequestKind::Any, request, InjectedFault::Before(lost));
    }
    let _ = world.staff.insert(&person(1, "don@a.com")).await;
    world.client.wait_for_copies().await;
    world.fault.clear();
    world.requests();
    world
}

async fn through_the_index(world: &World) -> Vec<String> {
    let staff = &world.staff;
    let mut names = Vec::new();
    names.extend(staff.get(by_email("don@a.com")).await.unwrap().map(|one| one.name.clone()));
    let one = staff.get_as::<Name>(by_email("don@a.com")).await.unwrap();
    names.extend(one.map(|one| one.name.clone()));
    let query = staff.query(by_email("don@a.com"));
    names.extend(query.collect().await.unwrap().iter().map(|one| one.name.clone()));
    let some = query.select::<Name>().collect().await.unwrap();
    names.extend(some.iter().map(|one| one.name.clone()));
    let set = world.client.set::<StaffRow>("Staff");
    let rows = set.query(Keys::partition("email_don@a.com")).include_copies().collect().await;
    names.extend(rows.unwrap().iter().map(|row| match &**row {
        StaffRow::Person(person) => person.name.clone(),
    }));
    names
}

#[tokio::test]
async fn a_value_that_is_only_reserved_is_not_handed_out() {
    let world = died_after(2).await;
    assert!(world.reservation("don@a.com").await.unwrap().get("SrcC").is_some());
    assert!(through_the_index(&world).await.is_empty());
    let before = world.recorder.take().len();
    assert!(before > 0);
    assert!(world.staff.get(by_email("don@a.com")).await.unwrap().is_none());
    assert_eq!(world.requests().len(), 2, "the row and its primary");
}

#[tokio::test]
async fn a_value_whose_transaction_came_is_handed_out_at_once() {
    let world = died_after(3).await;
    assert!(world.reservation("don@a.com").await.unwrap().get("SrcC").is_some());
    assert_eq!(through_the_index(&world).await, ["Person 1"; 5]);
}

#[tokio::test]
async fn what_a_dead_writer_reserved_is_free_when_its_claim_is_dead() {
    let world = died_after(2).await;
    let error = world.staff.insert(&person(2, "don@a.com")).await.unwrap_err();
    assert!(error.is_unique_violation() && error.message().contains("pending"), "{error}");
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
    let worker = world.client.worker();
    assert_eq!(worker.drain().await.unwrap().open, 1, "claims are open work");
    world.later(OutboxOptions::CLAIM_TIME);
    worker.drain().await.unwrap();
    world.staff.insert(&person(2, "don@a.com")).await.unwrap();
    world.recover().await;
    let found = world.staff.get(by_email("don@a.com")).await.unwrap().unwrap();
    assert_eq!(found.id, 2);
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_condition_is_met_by_what_the_primary_says() {
    let world = World::new().await;
    world.staff.insert(&person(1, "don@a.com")).await.unwrap().wait_for_copies().await.unwrap();
    // Another write of the entity has reserved the value anew, and its transaction did not come.
    let rows = world.client.dynamic("Staff");
    let mut row = rows.get("email_don@a.com", "email").await.unwrap().unwrap();
    row.allow_framework_names();
    row.set("SrcC", "ffffffffffffffffffffffff");
    row.set("Name", "Else");
    rows.replace(&row).await.unwrap();
    let named = |name: &str| {
        let found = world.staff.query(Person::by_email().email("don@a.com"));
        found.filter(Person::NAME.eq(name))
    };
    assert_eq!(named("Else").collect().await.unwrap().len(), 0);
    let all = world.staff.query(Person::by_email().email("don@a.com")).collect().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].name, "Person 1");
}

#[tokio::test]
async fn who_writes_again_after_a_crash_is_told_what_is_in_the_way() {
    // The claim and the reservation came, the transaction did not.
    let world = died_after(2).await;
    // The program that starts again after the crash.
    let client = world.another_client();
    let staff = client.table::<Person>();
    let error = staff.insert(&person(1, "don@a.com")).await.unwrap_err();
    assert!(error.is_contended());
    assert!(
        error.to_string().contains("a worker removes the claim after the claim time"),
        "{error}"
    );
    // The claim is of the first day that the clock shows, and a worker ends it five minutes later.
    let claim = world.open().await.pop().unwrap();
    let claim = world.client.dynamic("Staff").get("empid_Sales", &claim).await.unwrap().unwrap();
    let since = Ticks::try_from(claim.timestamp().unwrap()).unwrap();
    let until = Ticks::new(since.get() + 5 * 60 * 10_000_000).unwrap();
    let expected = format!(" since {since} (the claim time ends at {until})");
    assert!(error.to_string().contains(&expected), "{error}");
    world.later(OutboxOptions::CLAIM_TIME);
    world.recover().await;
    staff.insert(&person(1, "don@a.com")).await.unwrap();
}

/// A client of a writer with a name, which remembers nothing of another run.
fn run_of(world: &World, writer: &str) -> Client {
    let outbox = OutboxOptions::default().copies_before_answer(false);
    let builder = Client::builder().backend(world.fault.clone()).clock(world.clock.clone());
    builder.outbox(outbox).writer_id(writer).build().unwrap()
}

#[tokio::test]
async fn the_next_run_of_a_writer_takes_over_the_claims_of_the_run_that_died() {
    let world = World::new().await;
    // The claim of both and their reservations come, the transaction does not.
    let people = [person(1, "don@a.com"), person(2, "jun@a.com")];
    let dying = run_of(&world, "import-1");
    for request in 5..60 {
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        world.fault.inject(RequestKind::Any, request, InjectedFault::Before(lost));
    }
    let report = dying.table::<Person>().bulk().insert_all(&people).await.unwrap();
    world.fault.clear();
    assert_eq!(report.failed.len(), 2);
    assert!(world.reservation("jun@a.com").await.unwrap().get("SrcC").is_some());

    // Another writer, and one without a name, leave the claim alone.
    for client in [run_of(&world, "import-2"), world.another_client()] {
        let report = client.table::<Person>().bulk().insert_all(&people).await.unwrap();
        assert_eq!(report.failed.len(), 2);
        assert!(report.failed.iter().all(|failed| failed.error.is_contended()), "{report:?}");
    }
    let client = run_of(&world, "import-1");
    let report = client.table::<Person>().bulk().insert_all(&people).await.unwrap();
    assert_eq!(report.done, 2, "{report:?}");
    client.wait_for_copies().await;
    world.recover().await;
    assert!(world.open().await.is_empty());
    assert_eq!(world.staff.get(by_email("jun@a.com")).await.unwrap().unwrap().id, 2);
}

#[tokio::test]
async fn a_client_that_gave_a_write_up_makes_it_again_at_once() {
    let world = died_after(2).await;
    assert_eq!(world.open().await.len(), 1, "the claim");
    world.staff.insert(&person(1, "don@a.com")).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!(world.staff.get(by_email("don@a.com")).await.unwrap().unwrap().id, 1);
    // The claim that was left is dead, and a worker deletes it.
    world.recover().await;
    assert!(world.open().await.is_empty());
    assert!(world.reservation("don@a.com").await.unwrap().get("SrcC").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_mark_whose_answer_is_lost_or_throttled_fails_no_write() {
    // The third write marks the claim that was left dead.
    let lost = || Error::new(ErrorKind::Ambiguous, "the answer was lost");
    let busy = || Error::new(ErrorKind::Throttled, "try later");
    for fault in [InjectedFault::After(lost()), InjectedFault::Before(busy())] {
        let world = died_after(2).await;
        world.fault.inject(RequestKind::Apply, 2, fault);
        world.staff.insert(&person(1, "don@a.com")).await.unwrap();
        assert_eq!(world.fault.pending(), 0);
        world.recover().await;
        assert!(world.open().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_dropped_is_in_nobodys_way() {
    let world = World::new().await;
    let mut one = world.staff.insert(&person(1, "a@a.com")).await.unwrap();
    one.wait_for_copies().await.unwrap();
    world.requests();
    one.email = "b@a.com".into();
    // The write is dropped while its transaction is on its way: the value is reserved by then.
    world.fault.inject(RequestKind::Any, 3, InjectedFault::Delay(Duration::from_secs(10)));
    tokio::time::timeout(Duration::from_secs(1), world.staff.replace(&one)).await.unwrap_err();
    assert!(world.reservation("b@a.com").await.unwrap().get("SrcC").is_some());
    let one = world.staff.replace(&one).await.unwrap();
    assert_eq!(one.email, "b@a.com");
    world.recover().await;
    assert!(world.open().await.is_empty());
}
