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
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    assert!(
        staff.get(before::Person::primary().department("Sales").id(1)).await.unwrap().is_some()
    );
    assert!(
        staff.get(before::Person::primary().department("Sales").id(2)).await.unwrap().is_some()
    );
}

fn framework_row(partition_key: &str, row_key: &str, entity_type: &str) -> DynamicEntity {
    DynamicEntity::new(partition_key, row_key)
        .with_framework_names()
        .with("EntityType", entity_type)
        .with("Format", 1)
}

/// A value that a move took over goes back to the source when the move's claim is dead: a pass over the
/// target, which never came to be, does not delete it.
#[tokio::test]
async fn a_value_that_was_taken_over_under_a_dead_claim_goes_back_to_its_holder() {
    let world = World::new().await;
    world.staff.insert(&person(1, "a@a.com")).await.unwrap().wait_for_copies().await.unwrap();
    let rows = world.client.dynamic("Staff");
    let key = ["Person#ByEmail", "Staff", "email_a@a.com", "email", "000009"];
    let dirty = framework_row("empid_Sales", "~e2_000009", "entable.dirty")
        .with("D_1", serde_json::to_string(&key[..4]).unwrap());
    let claim = framework_row("empid_Sales", "~e1_c1", "entable.claim")
        .with("C_1", serde_json::to_string(&key).unwrap())
        .with("Dead", true);
    let mut reserved = world.reservation("a@a.com").await.unwrap().with_framework_names();
    reserved.set("SrcR", "000009");
    reserved.set("SrcC", "c1");
    reserved.set("SrcF", r#"["Staff","empid_Sales","000001"]"#);
    for row in [&dirty, &claim, &reserved] {
        rows.insert_or_replace(row).await.unwrap();
    }
    world.client.worker().drain().await.unwrap();
    let taken = world.staff.insert(&person(2, "a@a.com")).await.unwrap_err();
    assert_eq!(taken.holder(), Some(("empid_Sales", "000001")), "{taken}");
    assert_eq!(world.staff.get(by_email("a@a.com")).await.unwrap().unwrap().id, 1);
    world.recover().await;
    let row = world.reservation("a@a.com").await.unwrap();
    assert_eq!((row.str("SrcR").unwrap(), row.get("SrcC")), ("000001", None));
    assert_eq!(world.open().await, [""; 0]);
}
