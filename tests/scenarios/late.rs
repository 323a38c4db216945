//! Scenarios of a write that was dropped, and whose transaction is carried out later.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    OutboxOptions, Verb,
    backend::Backend,
    batch::{Batch, Operation},
    prelude::*,
};

use super::build;
use crate::{
    hooked::Hooked,
    unique::{Person, World, by_email, person},
};

/// The value that the dropped write takes.
const VALUE: &str = "k@a.com";

/// A client with a write that was dropped while its transaction was on its way.
struct Dropped {
    world: World,
    staff: Table<Person>,
    /// The transaction, which the store has not carried out yet.
    transaction: Batch,
}

fn deletes_claim(one: &Operation) -> bool {
    one.verb() == Verb::Delete && one.row().row_key().starts_with("~e1_")
}

impl Dropped {
    /// Drops `write` once its value is reserved and its transaction is on its way.
    async fn drop_write(
        world: World,
        write: impl AsyncFnOnce(&Table<Person>) -> Result<(), Error>,
    ) -> Self {
        let (store, kept) = Hooked::holding(world.fault.clone(), deletes_claim);
        let client = build(store, world.clock.clone(), OutboxOptions::default());
        let staff = client.table::<Person>();
        let written = tokio::time::timeout(Duration::from_secs(1), write(&staff)).await;
        assert!(written.is_err(), "the transaction is on its way");
        let reservation = world.reservation(VALUE).await.unwrap();
        assert!(reservation.get("SrcC").is_some());
        let transaction = kept.lock().unwrap().take().unwrap();
        Self { world, staff, transaction }
    }

    /// Drops an update that takes the value for an entity that exists.
    async fn drop_update() -> (Self, Stored<Person>) {
        let world = World::new().await;
        let mut one = world.staff.insert(&person(1, "a@a.com")).await.unwrap();
        one.wait_for_copies().await.unwrap();
        one.email = VALUE.into();
        let update = one.clone();
        let write = async move |staff: &Table<Person>| staff.replace(&update).await.map(drop);
        (Self::drop_write(world, write).await, one)
    }

    /// Carries the transaction out now. Returns how it ended.
    async fn carry_out(&self) -> Result<(), Error> {
        self.world.fault.apply(&self.transaction).await.map(drop)
    }

    /// Returns the ids of the entities whose own row has the value, after workers have finished all work.
    async fn holders(&self) -> Vec<u32> {
        self.world.recover().await;
        assert_eq!(self.world.open().await, [""; 0], "open work is left");
        let people = self.world.staff.query(Person::primary().department("Sales"));
        let people = people.collect().await.unwrap();
        let holders: Vec<_> =
            people.iter().filter(|one| one.email == VALUE).map(|one| one.id).collect();
        let found = self.world.staff.get(by_email(VALUE)).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| one.id).collect();
        assert!(holders.len() > 1 || holders == found, "the index has {found:?} for {holders:?}");
        holders
    }
}

/// Another entity takes the value after the writer gave it up. Whatever the writer did meanwhile, its first
/// transaction, which arrives late, changes nothing.
#[tokio::test(start_paused = true)]
async fn a_late_transaction_takes_no_value_of_another() {
    // The second write takes the value for the same version of the entity and is refused, so that it gives
    // the value up.
    let (dropped, one) = Dropped::drop_update().await;
    let taken = person(999_999, "other@a.com");
    let mut egt = dropped.staff.transaction();
    egt.replace(&one).unwrap().insert(&taken).unwrap();
    let refused = egt.commit().await.unwrap_err();
    assert!(refused.is_conflict() && !refused.is_unique_violation(), "{refused}");
    dropped.world.staff.insert(&person(2, VALUE)).await.unwrap();
    let late = dropped.carry_out().await;
    let holders = dropped.holders().await;
    assert_eq!(holders, [2], "{holders:?} have the value after {late:?}");
    assert!(late.unwrap_err().is_precondition_failed());

    // The second write takes the value; then the entity goes.
    let insert = async |staff: &Table<Person>| staff.insert(&person(1, VALUE)).await.map(drop);
    let dropped = Dropped::drop_write(World::new().await, insert).await;
    let one = dropped.staff.insert(&person(1, VALUE)).await.unwrap();
    dropped.staff.delete(&one).await.unwrap();
    dropped.world.staff.insert(&person(2, VALUE)).await.unwrap();
    let late = dropped.carry_out().await;
    let holders = dropped.holders().await;
    assert_eq!(holders, [2], "{holders:?} have the value after {late:?}");
    assert!(late.unwrap_err().is_precondition_failed());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_made_again_stops_the_dropped_one() {
    let (dropped, one) = Dropped::drop_update().await;
    let one = dropped.staff.replace(&one).await.unwrap();
    let late = dropped.carry_out().await.unwrap_err();
    assert!(late.is_precondition_failed(), "{late}");
    assert_eq!(dropped.holders().await, [1]);
    let point = Person::primary().department("Sales").id(1);
    let found = dropped.world.staff.get(point).await.unwrap().unwrap();
    assert_eq!(found.etag(), one.etag());
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_arrives_before_its_claim_is_marked_counts() {
    let world = World::new().await;
    let mut one = world.staff.insert(&person(1, "a@a.com")).await.unwrap();
    one.wait_for_copies().await.unwrap();
    one.email = VALUE.into();
    // The writer's transaction is held; then the mark of its claim waits until it was carried out.
    let (store, kept) = Hooked::holding(world.fault.clone(), deletes_claim);
    let (late, inner) = (kept.clone(), world.fault.clone());
    let was_carried_out = Arc::new(Mutex::new(false));
    let told = was_carried_out.clone();
    let marks_claim =
        |one: &Operation| one.verb() == Verb::Merge && one.row().row_key().starts_with("~e1_");
    let store = Hooked::before(store, marks_claim, async move {
        let transaction = late.lock().unwrap().take().unwrap();
        inner.apply(&transaction).await.unwrap();
        *told.lock().unwrap() = true;
    });
    let client = build(store, world.clock.clone(), OutboxOptions::default());
    let staff = client.table::<Person>();
    let dropped = tokio::time::timeout(Duration::from_secs(1), staff.replace(&one)).await;
    assert!(dropped.is_err());
    // The version that this write knows is gone by now.
    let again = staff.replace(&one).await.unwrap_err();
    assert!(again.is_precondition_failed(), "{again}");
    assert!(*was_carried_out.lock().unwrap());
    let found = world.staff.get(by_email(VALUE)).await.unwrap().unwrap();
    assert_eq!(found.id, 1);
    let violation = world.staff.insert(&person(2, VALUE)).await.unwrap_err();
    assert_eq!(violation.holder(), Some(("empid_Sales", "000001")));
    world.recover().await;
    assert_eq!(world.open().await, [""; 0]);
    let mut found = world.staff.get(by_email(VALUE)).await.unwrap().unwrap();
    assert_eq!((found.id, &*found.email), (1, VALUE));
    assert!(world.reservation(VALUE).await.unwrap().get("SrcC").is_none());
    // Nothing of either write is in the way of the next one.
    found.email = "b@a.com".into();
    staff.replace(&found).await.unwrap();
}
