//! Every verb.

use super::{World, by_email, person};

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
