//! Tests workers on unique values, and an index that is built over old data.

use entable::{OutboxOptions, prelude::*};

use super::{World, by_email, person};

/// The entity before it had the indexes.
mod before {
    use entable::prelude::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(name = "Staff", partition_key = "empid_{department}", row_key = "{id:06}")]
    pub(super) struct Person {
        pub(super) department: String,
        pub(super) id: u32,
        pub(super) name: String,
        pub(super) email: String,
        pub(super) badge: String,
    }
}

fn old(id: u32, email: &str) -> before::Person {
    let super::Person { department, name, email, badge, .. } = person(id, email);
    before::Person { department, id, name, email, badge }
}

#[tokio::test]
async fn a_rebuild_reserves_the_values_that_are_there() {
    let world = World::new().await;
    let staff = world.client.table::<before::Person>();
    staff.insert(&old(1, "a@a.com")).await.unwrap();
    staff.insert(&old(2, "b@a.com")).await.unwrap();
    world.staff.rebuild(super::Person::by_email()).await.unwrap();
    let done = world.client.worker().with::<super::Person>().drain().await.unwrap();
    assert_eq!((done.open, done.poisoned), (0, 0));
    for (email, id) in [("a@a.com", 1), ("b@a.com", 2)] {
        assert_eq!(world.staff.get(by_email(email)).await.unwrap().unwrap().id, id);
    }
    let error = world.staff.insert(&person(3, "a@a.com")).await.unwrap_err();
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
    assert!(error.message().contains("`000001` of the partition `empid_Sales`"), "{error}");
}

#[tokio::test]
async fn a_rebuild_reports_two_with_one_value_and_overwrites_neither() {
    let world = World::new().await;
    let staff = world.client.table::<before::Person>();
    staff.insert(&old(1, "a@a.com")).await.unwrap();
    staff.insert(&old(2, "a@a.com")).await.unwrap();
    world.staff.rebuild(super::Person::by_email()).await.unwrap();
    let worker = world.client.worker().with::<super::Person>();
    let stats = worker.drain().await.unwrap();
    assert_eq!(stats.poisoned, 1);
    let poisoned = worker.poisoned().await.unwrap();
    let [one] = &poisoned[..] else { panic!("{poisoned:?}") };
    assert!(format!("{one:?}").contains("the key of index `ByEmail` is held by the entity"));
    assert!(world.staff.get(by_email("a@a.com")).await.unwrap().is_some());
    world.later(OutboxOptions::FLIGHT);
    worker.drain().await.unwrap();
    assert!(
        staff.get(before::Person::primary().department("Sales").id(1)).await.unwrap().is_some()
    );
    assert!(
        staff.get(before::Person::primary().department("Sales").id(2)).await.unwrap().is_some()
    );
}
