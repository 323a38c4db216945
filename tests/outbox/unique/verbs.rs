//! Tests every verb on unique values.

use entable::prelude::*;

use super::{Person, World, by_email, person};

#[tokio::test]
async fn an_insert_is_five_requests() {
    let world = World::new().await;
    let stored = world.staff.insert(&person(1, "don@a.com")).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 5, "{requests:#?}");
    let found = world.staff.get(by_email("Don@a.com")).await.unwrap().unwrap();
    assert_eq!((found.id, &*found.name), (1, "Person 1"));
    assert_eq!(world.requests().len(), 1, "without a claim nobody is asked");
    assert!(world.open().await.is_empty());
    let row = world.reservation("don@a.com").await.unwrap();
    assert_eq!((row.str("SrcP").unwrap(), row.str("SrcR").unwrap()), ("empid_Sales", "000001"));
    assert!(row.get("SrcC").is_none());
}

#[tokio::test]
async fn a_taken_value_names_its_holder_and_nothing_is_written() {
    let world = World::new().await;
    world.staff.insert(&person(1, "don@a.com")).await.unwrap();
    world.client.wait_for_copies().await;
    let before = world.rows("Staff", "empid_Sales").await;
    let error = world.staff.insert(&person(2, "DON@a.com")).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.index(), Some("ByEmail"));
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
    assert_eq!(error.failed_index(), None);
    assert_eq!(world.rows("Staff", "empid_Sales").await, before);
    let found = world.staff.get(by_email("don@a.com")).await.unwrap().unwrap();
    assert_eq!(found.id, 1);
}

fn badged(id: u32, email: &str, badge: &str) -> Person {
    Person { badge: badge.into(), ..person(id, email) }
}

fn point(id: u32) -> Point<Person> {
    Person::primary().department("Sales").id(id)
}

/// Returns the holder of the email, by the reservation and by a read through the index.
async fn holder(world: &World, email: &str) -> Option<u32> {
    world.client.wait_for_copies().await;
    let found = world.staff.get(by_email(email)).await.unwrap().map(|one| one.id);
    let reserved = world.reservation(email).await.map(|row| row.str("SrcR").unwrap().to_owned());
    if let Some(id) = found {
        assert_eq!(reserved, Some(format!("{id:06}")));
    }
    found
}

#[tokio::test]
async fn a_further_value_is_two_requests_more() {
    let world = World::new().await;
    let stored = world.staff.insert(&badged(1, "don@a.com", "b1")).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    assert_eq!(world.requests().len(), 7);
    let error = world.staff.insert(&badged(2, "jun@a.com", "b1")).await.unwrap_err();
    assert_eq!((error.is_unique_violation(), error.index()), (true, Some("ByBadge")));
    assert_eq!(error.table(), Some("Badges"));
    assert!(world.reservation("jun@a.com").await.is_none(), "what was reserved is given back");
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_value_that_stays_is_a_copy_like_others() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&person(1, "don@a.com")).await.unwrap();
    world.client.wait_for_copies().await;
    world.requests();
    stored.name = "Donald".into();
    world.staff.replace(&stored).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!(world.requests().len(), 4, "the copy is read and replaced, nothing is claimed");
    let found = world.staff.get(by_email("don@a.com")).await.unwrap().unwrap();
    assert_eq!(found.name, "Donald");
}

#[tokio::test]
async fn every_verb_takes_and_frees_values() {
    let world = World::new().await;
    let staff = &world.staff;
    staff.insert_or_replace(&person(1, "a@a.com")).await.unwrap();
    assert_eq!(holder(&world, "a@a.com").await, Some(1));
    staff.insert_or_replace(&person(1, "b@a.com")).await.unwrap();
    assert_eq!(holder(&world, "b@a.com").await, Some(1));
    assert_eq!(holder(&world, "a@a.com").await, None);
    staff.insert_or_merge(&person(1, "a@a.com")).await.unwrap();
    assert_eq!(holder(&world, "a@a.com").await, Some(1), "what was left is taken again");
    staff.patch_at(point(1), Person::patch().email("c@a.com")).await.unwrap();
    assert_eq!(holder(&world, "c@a.com").await, Some(1));
    let change = |one: &mut Person| {
        one.email = "d@a.com".into();
        Ok(())
    };
    let mut stored = staff.update(point(1), change).await.unwrap();
    assert_eq!(holder(&world, "d@a.com").await, Some(1));
    stored.email = "e@a.com".into();
    staff.replace(&stored).await.unwrap();
    staff.replace_any(&person(1, "f@a.com")).await.unwrap();
    assert_eq!(holder(&world, "f@a.com").await, Some(1));
    staff.insert(&person(2, "e@a.com")).await.unwrap();
    assert_eq!(holder(&world, "e@a.com").await, Some(2), "a value that was left is free");
    let taken = staff.patch_at(point(1), Person::patch().email("e@a.com")).await.unwrap_err();
    assert_eq!(taken.holder(), Some(("empid_Sales", "000002")));
    staff.delete_at(point(2)).await.unwrap();
    staff.patch_at(point(1), Person::patch().email("e@a.com")).await.unwrap();
    assert_eq!(holder(&world, "e@a.com").await, Some(1));
    let stored = staff.get(point(1)).await.unwrap().unwrap();
    staff.delete(&stored).await.unwrap();
    assert_eq!(holder(&world, "e@a.com").await, None);
    world.recover().await;
    for value in ["a", "b", "c", "d", "e", "f"] {
        assert!(world.reservation(&format!("{value}@a.com")).await.is_none(), "{value}");
    }
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn an_entity_that_is_there_keeps_its_value() {
    let world = World::new().await;
    world.staff.insert(&person(1, "don@a.com")).await.unwrap();
    world.client.wait_for_copies().await;
    let again = Person { name: "Another".into(), ..person(1, "don@a.com") };
    let error = world.staff.insert(&again).await.unwrap_err();
    assert!(error.is_conflict() && !error.is_unique_violation(), "{error}");
    let found = world.staff.get(by_email("don@a.com")).await.unwrap().unwrap();
    assert_eq!(found.name, "Person 1");
    assert!(world.reservation("don@a.com").await.unwrap().get("SrcC").is_none());
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_transaction_hands_values_over() {
    let world = World::new().await;
    let staff = &world.staff;
    let mut a = staff.insert(&person(1, "a@a.com")).await.unwrap();
    let mut b = staff.insert(&person(2, "b@a.com")).await.unwrap();
    world.client.wait_for_copies().await;
    (a.email, b.email) = (b.email.clone(), a.email.clone());
    let mut egt = staff.transaction();
    egt.replace(&a).unwrap().replace(&b).unwrap();
    egt.commit().await.unwrap();
    assert_eq!(holder(&world, "a@a.com").await, Some(2));
    assert_eq!(holder(&world, "b@a.com").await, Some(1));
    // A RowKey that changes takes the value along.
    let mut a = staff.get(point(1)).await.unwrap().unwrap();
    a.id = 3;
    staff.replace(&a).await.unwrap();
    assert_eq!(holder(&world, "b@a.com").await, Some(3));
    let mut egt = staff.transaction();
    egt.delete_at::<Person>(point(3)).unwrap().insert(&person(4, "b@a.com")).unwrap();
    egt.commit().await.unwrap();
    assert_eq!(holder(&world, "b@a.com").await, Some(4));
    // A reservation that was taken over goes back if the transaction fails.
    let mut egt = staff.transaction();
    egt.delete_at::<Person>(point(4)).unwrap().insert(&person(5, "b@a.com")).unwrap();
    egt.insert(&person(2, "c@a.com")).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert_eq!((error.is_conflict(), error.failed_index()), (true, Some(2)));
    assert_eq!(holder(&world, "b@a.com").await, Some(4));
    world.recover().await;
    assert_eq!(holder(&world, "a@a.com").await, Some(2));
    assert_eq!(holder(&world, "b@a.com").await, Some(4));
    assert!(world.reservation("c@a.com").await.is_none());
}

#[tokio::test]
async fn who_leaves_one_value_keeps_the_other() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&badged(1, "a@a.com", "b1")).await.unwrap();
    world.client.wait_for_copies().await;
    stored.badge = "b2".into();
    let mut egt = world.staff.transaction();
    egt.replace(&stored).unwrap().insert(&badged(2, "a@a.com", "b1")).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert_eq!((error.index(), error.failed_index()), (Some("ByEmail"), Some(1)));
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
    assert_eq!(holder(&world, "a@a.com").await, Some(1));
    let error = world.staff.insert(&badged(3, "c@a.com", "b1")).await.unwrap_err();
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")), "nothing was handed over");
}

#[tokio::test]
async fn a_transaction_has_a_value_once() {
    let world = World::new().await;
    let mut egt = world.staff.transaction();
    egt.insert(&person(1, "a@a.com")).unwrap().insert(&person(2, "A@a.com")).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_unique_violation());
    assert_eq!(error.failed_index(), Some(1));
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
    assert!(world.requests().iter().all(|request| !request.contains("email_")));
}

#[tokio::test]
async fn a_bulk_write_says_which_values_are_taken() {
    let world = World::new().await;
    world.staff.insert(&person(1, "a7@a.com")).await.unwrap();
    let people: Vec<Person> =
        (100..220).map(|id| person(id, &format!("a{}@a.com", id - 100))).collect();
    let report = world.staff.bulk().insert_all(&people).await.unwrap();
    assert_eq!(report.done, 119);
    let [failure] = &report.failed[..] else { panic!("{report:?}") };
    assert_eq!(failure.index, 7);
    assert_eq!(failure.error.holder(), Some(("empid_Sales", "000001")));
    assert_eq!(holder(&world, "a50@a.com").await, Some(150));
    world.recover().await;
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_value_moves_with_its_entity() {
    let world = World::new().await;
    let archive = world.client.table_named::<Person>("Archive");
    archive.create().await.unwrap();
    let mut stored = world.staff.insert(&badged(1, "a@a.com", "b1")).await.unwrap();
    world.client.wait_for_copies().await;
    stored.department = "Marketing".into();
    world.staff.move_to(&stored, &world.staff).await.unwrap().wait().await.unwrap();
    world.client.wait_for_copies().await;
    let found = world.staff.get(by_email("a@a.com")).await.unwrap().unwrap();
    assert_eq!((&*found.department, found.id), ("Marketing", 1));
    let error = world.staff.insert(&badged(2, "A@a.com", "b2")).await.unwrap_err();
    assert_eq!(error.holder(), Some(("empid_Marketing", "000001")));
    // A table of its own keeps a value unique over all tables of the entities.
    let at = Person::primary().department("Marketing").id(1);
    let stored = world.staff.get(at).await.unwrap().unwrap();
    world.staff.move_to(&stored, &archive).await.unwrap().wait().await.unwrap();
    world.client.wait_for_copies().await;
    let error = world.staff.insert(&badged(2, "b@a.com", "b1")).await.unwrap_err();
    assert_eq!(error.holder(), Some(("empid_Marketing", "000001")));
    world.recover().await;
    assert!(world.staff.insert(&badged(2, "b@a.com", "b1")).await.is_err());
    assert!(world.staff.insert(&badged(2, "a@a.com", "b2")).await.is_ok());
}

/// An entity with more values than others.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "car_{fleet}",
    row_key = "car_{id:06}",
    index(A, partition_key = "a_{id:06}", row_key = "car", unique, only(fleet)),
    index(B, partition_key = "b_{id:06}", row_key = "car", unique, only(fleet)),
    index(C, partition_key = "c_{id:06}", row_key = "car", unique, only(fleet)),
    index(D, partition_key = "d_{id:06}", row_key = "car", unique, only(fleet)),
    index(F, partition_key = "f_{id:06}", row_key = "car", unique, only(fleet)),
    index(G, partition_key = "g_{id:06}", row_key = "car", unique, only(fleet))
)]
struct Car {
    fleet: String,
    id: u32,
}

#[tokio::test]
async fn what_has_no_room_is_refused_before_anything_is_reserved() {
    let world = World::new().await;
    let mut egt = world.client.transaction();
    for id in 0..50 {
        egt.insert(&person(id, &format!("a{id}@a.com"))).unwrap();
    }
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_too_large());
    assert!(error.to_string().contains("this one has 102"), "{error}");
    assert_eq!(world.requests(), [""; 0]);

    let cars = (0..45).map(|id| Car { fleet: "Bern".into(), id });
    let mut egt = world.client.transaction();
    for car in cars.clone() {
        egt.insert(&car).unwrap();
    }
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_too_large());
    let expected = "at most 249 unique values in other partitions; this one claims 270";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(world.requests(), [""; 0]);
    let report = world.client.bulk().insert_all(cars).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (45, 0));
}
