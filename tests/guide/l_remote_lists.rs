//! L, options 3 and 1: index entities in partitions and tables of their own, and in blobs.

use std::sync::Arc;

use entable::{
    OutboxOptions,
    backend::{TableCase, layer::Request},
    object_store::{GetOptions, ObjectStore, memory::InMemory},
    prelude::*,
};

use crate::store::{TestResult, on_both};

/// Option 1: one blob for each last name, of the whole organisation.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "lastnames", row_key = "{last_name}", in_blob)
)]
struct InBlobs {
    department: String,
    id: u32,
    last_name: String,
}

/// Option 3: an index entity in a partition of its own, and one in a table of its own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "lastname_{last_name}", row_key = "ids"),
    list(ByCity, table = "StaffByCity", partition_key = "{city}", row_key = "all")
)]
struct Clerk {
    department: String,
    id: u32,
    last_name: String,
    city: String,
}

fn clerk(department: &str, id: u32, last_name: &str) -> Clerk {
    let [department, last_name] = [department, last_name].map(str::to_owned);
    Clerk { department, id, last_name, city: "Bern".into() }
}

fn keys<E>(points: &[Point<E>]) -> Vec<(&str, &str)> {
    points.iter().map(|point| (point.partition_key(), point.row_key())).collect()
}

#[tokio::test]
async fn l03_one_blob_for_each_last_name_has_pairs_of_keys() -> TestResult {
    on_both(async |store| {
        let blobs = Arc::new(InMemory::new());
        let backend = store.client.backend().clone();
        let client = Client::builder().backend(backend).blobs(blobs.clone()).build()?;
        let staff = client.table::<InBlobs>();
        staff.create_if_not_exists().await?;
        for (department, id) in [("Sales", 152), ("Finance", 7), ("Sales", 3)] {
            let last_name = if id == 3 { "Hall" } else { "Jones" }.to_owned();
            let one = InBlobs { department: department.into(), id, last_name };
            staff.insert(&one).await?.wait_for_copies().await?;
        }
        // The name has the table as the store tells tables apart.
        let table = match store.client.backend().capabilities().table_case {
            TableCase::Sensitive => "!staff",
            _ => "staff",
        };
        let name = format!("{table}/lastnames/!jones.jsonl").into();
        let blob = blobs.get_opts(&name, GetOptions::default()).await?.bytes().await?;
        let text = String::from_utf8(blob.to_vec())?;
        let pairs: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(pairs, [r#"["Finance","empid_000007"]"#, r#"["Sales","empid_000152"]"#]);
        store.requests();
        let jones = || InBlobs::by_last_name().last_name("Jones");
        let found = staff.keys(jones()).await?;
        assert_eq!(keys(&found), [("Finance", "empid_000007"), ("Sales", "empid_000152")]);
        assert_eq!(store.count(), 0, "one read of a blob, and none of a table");
        let found = staff.query(jones()).collect().await?;
        assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [7, 152]);
        assert_eq!(store.count(), 2, "one read for each employee");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l10_index_entities_are_in_a_partition_or_table_of_their_own() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        let first = staff.insert(&clerk("Sales", 152, "Jones")).await?;
        first.wait_for_copies().await?;
        staff.insert(&clerk("Finance", 7, "Jones")).await?.wait_for_copies().await?;
        assert_eq!(store.row_keys("Staff", "lastname_Jones").await, ["ids"]);
        assert_eq!(store.row_keys("StaffByCity", "Bern").await, ["all"]);
        let list = &store.rows("Staff", "lastname_Jones").await[0];
        assert_eq!(list.str("Ids00")?, r#"[["Sales","empid_000152"],["Finance","empid_000007"]]"#);
        store.requests();
        let found = staff.keys(Clerk::by_city().city("Bern")).await?;
        assert_eq!(keys(&found), [("Sales", "empid_000152"), ("Finance", "empid_000007")]);
        assert_eq!(store.count(), 1);

        // No transaction spans partitions: what has to follow is recorded, and follows.
        let mut jones = first;
        jones.last_name = "Hall".into();
        staff.replace(&jones).await?.wait_for_copies().await?;
        let found = staff.keys(Clerk::by_last_name().last_name("Hall")).await?;
        assert_eq!(keys(&found), [("Sales", "empid_000152")]);
        let found = staff.keys(Clerk::by_last_name().last_name("Jones")).await?;
        assert_eq!(keys(&found), [("Finance", "empid_000007")]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l10_a_list_that_is_behind_hands_out_nobody_who_left() -> TestResult {
    on_both(async |store| {
        let backend = store.client.backend().clone();
        let behind = OutboxOptions::default().background(0);
        let client = Client::builder().backend(backend).outbox(behind).build()?;
        let staff = client.table::<Clerk>();
        staff.create_if_not_exists().await?;
        let jones = || Clerk::by_last_name().last_name("Jones");
        let mut one = staff.insert(&clerk("Sales", 1, "Jones")).await?;
        staff.insert(&clerk("Sales", 2, "Jones")).await?;
        assert!(staff.keys(jones()).await?.is_empty(), "the worker has not been there");
        client.worker().drain().await?;
        assert_eq!(staff.keys(jones()).await?.len(), 2);
        one.last_name = "Hall".into();
        staff.replace(&one).await?;
        staff.delete_at(Clerk::primary().department("Sales").id(2)).await?;
        assert_eq!(staff.keys(jones()).await?.len(), 2, "the list itself is behind");
        assert!(staff.query(jones()).collect().await?.is_empty());
        Ok(())
    })
    .await
}

/// Option 2, whose lists are in the transaction of the change.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Pages",
    partition_key = "{site}",
    row_key = "page_{path}",
    list(ByTag, row_key = "tag_{tag}")
)]
struct WebPage {
    site: String,
    path: String,
    tag: String,
}

#[tokio::test]
async fn l12_a_list_without_room_recommends_blobs() -> TestResult {
    on_both(async |store| {
        let pages = store.table::<WebPage>().await;
        // As many rows as can be numbered.
        let mut list = DynamicEntity::new("x", "tag_all");
        list.set("EntityType", "entable.list");
        list.set("Ids00", r#"["page_0"]"#);
        list.set("Spills", 9_999_i32);
        store.other.dynamic("Pages").insert(&list).await?;
        let mut last = DynamicEntity::new("x", "tag_all~s9999");
        last.set("EntityType", "entable.list");
        for chunk in 0..14 {
            last.set(
                format!("Ids{chunk:02}"),
                format!("[\"page_{chunk:02}{}\"]", "p".repeat(32_700)),
            );
        }
        store.other.dynamic("Pages").insert(&last).await?;
        store.requests();
        let page = WebPage { site: "x".into(), path: "p".repeat(500), tag: "all".into() };
        let error = pages.insert(&page).await.unwrap_err();
        assert!(error.is_too_large() && error.to_string().contains("in_blob"), "{error}");
        assert!(!store.requests().iter().any(Request::is_apply), "nothing was sent");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l14_the_whole_organisation_is_looked_up_by_options_1_and_3() -> TestResult {
    // Neither path asks for the department; that of option 2 does:
    // `l14_a_list_is_looked_up_within_its_department_alone`.
    let in_partition = Clerk::by_last_name().last_name("Jones");
    assert_eq!(in_partition.keys().as_point(), Some(("lastname_Jones", "ids")));
    let in_table = Clerk::by_city().city("Bern");
    assert_eq!(in_table.keys().as_point(), Some(("Bern", "all")));
    let in_blob = InBlobs::by_last_name().last_name("Jones");
    assert_eq!(in_blob.keys().as_point(), Some(("lastnames", "Jones")));
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        for (department, id) in [("Sales", 1), ("Finance", 2), ("Marketing", 3)] {
            staff.insert(&clerk(department, id, "Jones")).await?.wait_for_copies().await?;
        }
        store.requests();
        let query = staff.query(Clerk::by_last_name().last_name("Jones"));
        assert_eq!(query.explain().estimated_requests, 1, "and one for each entity");
        assert!(query.explain().to_string().contains("one more for each entity"));
        let mut departments: Vec<String> =
            query.collect().await?.iter().map(|one| one.department.clone()).collect();
        departments.sort();
        assert_eq!(departments, ["Finance", "Marketing", "Sales"]);
        assert_eq!(store.count(), 4, "1 + 3, and never an `or`");
        Ok(())
    })
    .await
}
