//! Tests remote copies: the rows that are written, and the requests.

use entable::{
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use crate::fixture::{Age, Employee, World, employee};

#[tokio::test]
async fn an_insert_is_answered_after_one_transaction() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.client.wait_for_copies().await;
    world.requests();
    world.staff.insert(&employee(2)).await.unwrap();
    let before_the_answer = world.recorder.count();
    assert_eq!(before_the_answer, 1, "{:?}", world.requests());
    world.client.wait_for_copies().await;
    let requests = world.requests();
    assert!(
        requests[0].starts_with(
            "apply Staff Sales: Insert empid_000002 Insert ~e2_empid_000002 Merge ~e0_"
        ),
        "{requests:#?}"
    );
    assert_eq!(
        requests[1..],
        [
            "apply Staff email_jones2@contoso.com: Insert at_Sales_000002",
            "apply StaffByName Jones: Insert name_Sales_00000002",
            "apply Staff Sales: Delete ~e2_empid_000002",
        ]
    );
}

#[tokio::test]
async fn copies_are_found_by_their_own_paths() {
    let world = World::new().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    let by_email = Employee::by_email().email("JONES1@contoso.com").department("Sales").id(1);
    let found = world.staff.get(by_email).await.unwrap().unwrap();
    assert_eq!(*found, employee(1));
    assert_eq!(found.index(), Some("ByEmail"));
    let in_table = world.staff.query(Employee::by_name().last_name("Jones")).select::<Age>();
    assert!(in_table.explain().to_string().contains("StaffByName"));
    let ages: Vec<i32> = in_table.collect().await.unwrap().iter().map(|age| age.age).collect();
    assert_eq!(ages, [34]);
    // The framework's rows are not the entity's.
    assert_eq!(
        world.staff.query(Employee::primary().department("Sales")).collect().await.unwrap().len(),
        1
    );
    assert_eq!(world.staff.query(Employee::scan()).collect().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_copy_says_whose_it_is_where_its_keys_do_not() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let rows = world.client.dynamic("Staff");
    let primary = rows.get("Sales", "empid_000001").await.unwrap().unwrap();
    let by_email = rows.get("email_jones1@contoso.com", "at_Sales_000001").await.unwrap().unwrap();
    assert_eq!(by_email.str("Src").unwrap(), primary.etag().to_string().as_str());
    assert_eq!(by_email.str("EntityType").unwrap(), "Employee#ByEmail");
    assert_eq!(by_email.str("SrcP").ok(), None);
    let by_name = world.client.dynamic("StaffByName");
    let by_name = by_name.get("Jones", "name_Sales_00000001").await.unwrap().unwrap();
    assert_eq!(by_name.str("SrcP").unwrap(), "Sales");
    assert_eq!(by_name.str("SrcR").unwrap(), "empid_000001");
    assert_eq!(by_name.str("SrcT").unwrap(), "Staff");
}

#[tokio::test]
async fn an_update_in_place_reads_the_copy_and_no_more() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    world.requests();
    stored.visits = 1;
    let stored = world.staff.replace(&stored).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 4, "{requests:#?}");
    assert_eq!(requests[0], "read Staff (email_jones1@contoso.com, at_Sales_000001)");
    assert!(
        requests[1].starts_with("apply Staff Sales: Replace empid_000001 Insert ~e2_empid_000001")
    );
    assert_eq!(requests[2], "apply Staff email_jones1@contoso.com: Replace at_Sales_000001");
    assert_eq!(requests[3], "apply Staff Sales: Delete ~e2_empid_000001");
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_changed_key_takes_effect_at_once_and_is_confirmed_later() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    stored.email = "Other@contoso.com".into();
    stored.last_name = "Smith".into();
    let stored = world.staff.replace(&stored).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    assert!(world.rows("Staff", "email_jones1@contoso.com").await.is_empty());
    assert_eq!(world.rows("Staff", "email_other@contoso.com").await, ["at_Sales_000001"]);
    assert!(world.rows("StaffByName", "Jones").await.is_empty());
    assert_eq!(world.rows("StaffByName", "Smith").await, ["name_Sales_00000001"]);
    assert_eq!(world.open().await, ["~e2_empid_000001"]);
    let worker = world.client.worker();
    assert_eq!(worker.drain().await.unwrap().waiting, 1);
    world.later(entable::OutboxOptions::WRITE_DEADLINE);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.waiting, stats.applied), (0, 0, 1));
    assert!(world.open().await.is_empty());
}

/// A writer that died before it deleted its dirty row costs one pass, and no second look.
#[tokio::test]
async fn copies_that_are_current_settle_at_once() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    stored.age = 35;
    let denied = Error::new(ErrorKind::Denied, "not today");
    world.fault.inject(RequestKind::Apply, 3, InjectedFault::Before(denied));
    drop(world.staff.replace(&stored).await.unwrap().wait_for_copies().await);
    world.client.wait_for_copies().await;
    assert_eq!(world.open().await, ["~e2_empid_000001"]);
    world.requests();
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.applied, stats.waiting, stats.written), (1, 0, 0));
    assert!(world.open().await.is_empty());
    let pass: Vec<_> =
        world.requests().into_iter().filter(|one| !one.starts_with("scan")).collect();
    assert_eq!(pass.len(), 4, "two copies, the primary, the deletion: {pass:#?}");
}

#[tokio::test]
async fn a_deleted_entity_leaves_no_copies() {
    let world = World::new().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    world.client.wait_for_copies().await;
    assert!(world.rows("Staff", "email_jones1@contoso.com").await.is_empty());
    assert!(world.rows("StaffByName", "Jones").await.is_empty());
}

#[tokio::test]
async fn every_verb_is_followed_by_the_copies() {
    let world = World::new().await;
    let point = || Employee::primary().department("Sales").id(1);
    world.staff.insert_or_replace(&employee(1)).await.unwrap();
    world.client.wait_for_copies().await;
    world.staff.insert_or_replace(&Employee { age: 35, ..employee(1) }).await.unwrap();
    world.client.wait_for_copies().await;
    world.staff.patch_at(point(), Employee::patch().age(36)).await.unwrap();
    world.client.wait_for_copies().await;
    world
        .staff
        .update(point(), |e| {
            e.visits = 9;
            Ok(())
        })
        .await
        .unwrap();
    world.client.wait_for_copies().await;
    world.staff.replace_any(&Employee { age: 37, visits: 9, ..employee(1) }).await.unwrap();
    world.client.wait_for_copies().await;
    let by_email = || Employee::by_email().email("jones1@contoso.com").department("Sales").id(1);
    let found = world.staff.get(by_email()).await.unwrap().unwrap();
    assert_eq!((found.age, found.visits), (37, 9));
    let mut egt = world.client.transaction();
    egt.insert(&employee(2)).unwrap().delete_at(point()).unwrap();
    egt.commit().await.unwrap().wait_for_copies().await.unwrap();
    assert!(world.staff.get(by_email()).await.unwrap().is_none());
    let report = world.client.bulk().insert_all((3..300).map(employee)).await.unwrap();
    assert_eq!(report.done, 297);
    world.client.worker().drain().await.unwrap();
    for id in 2..300 {
        assert_eq!(world.rows("Staff", &format!("email_jones{id}@contoso.com")).await.len(), 1);
    }
    assert_eq!(world.rows("StaffByName", "Jones").await.len(), 298);
}

#[tokio::test]
async fn a_value_that_was_read_through_a_copy_is_written_by_its_primary() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let by_email = || Employee::by_email().email("jones1@contoso.com").department("Sales").id(1);
    let mut found = world.staff.get(by_email()).await.unwrap().unwrap();
    found.age = 50;
    let stored = world.staff.replace(&found).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    assert_eq!(world.staff.get(by_email()).await.unwrap().unwrap().age, 50);
    let error = world.staff.replace(&found).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
}

#[tokio::test]
async fn work_that_is_still_open_is_joined() {
    let world = World::left_to_workers().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.email = "second@contoso.com".into();
    let mut stored = world.staff.replace(&stored).await.unwrap();
    stored.email = "third@contoso.com".into();
    world.staff.replace(&stored).await.unwrap();
    assert_eq!(world.open().await, ["~e2_empid_000001"]);
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.rows("Staff", "email_third@contoso.com").await.len(), 1);
    for gone in ["email_jones1@contoso.com", "email_second@contoso.com"] {
        assert!(world.rows("Staff", gone).await.is_empty());
    }
}

#[tokio::test]
async fn long_row_keys_are_recorded_by_their_hash() {
    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Pages",
        partition_key = "{site}",
        row_key = "{path}",
        index(ByTitle, table = "Titles", partition_key = "{title}", row_key = "{path}_{site}")
    )]
    struct Page {
        site: String,
        path: String,
        title: String,
    }
    let client = Client::memory();
    let pages = client.table::<Page>();
    pages.create().await.unwrap();
    let hash_like = format!("h{}", "0".repeat(32));
    for path in ["x".repeat(508), "x".repeat(509), hash_like] {
        let page = Page { site: "a".into(), path: path.clone(), title: "t".into() };
        pages.insert(&page).await.unwrap();
    }
    client.worker().drain().await.unwrap();
    let found = pages.query(Page::by_title().title("t")).collect().await.unwrap();
    assert_eq!(found.len(), 3);
}

#[tokio::test]
async fn an_index_is_built_over_entities_that_are_there() {
    /// The employee of a program that does not know the indexes.
    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        entity_type = "Employee",
        partition_key = "{department}",
        row_key = "empid_{id:06}"
    )]
    struct Plain {
        department: String,
        id: u32,
        last_name: String,
        age: i32,
        email: String,
        visits: i64,
    }
    let world = World::new().await;
    let plain = world.client.table::<Plain>();
    for id in 0..250 {
        let Employee { last_name, age, email, visits, .. } = employee(id);
        let department = format!("d{}", id % 2);
        plain.insert(&Plain { department, id, last_name, age, email, visits }).await.unwrap();
    }
    let report = world.staff.rebuild(Employee::by_email()).await.unwrap();
    assert_eq!((report.primaries, report.written), (250, 250));
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.written), (0, 250));
    for id in [0, 1, 249] {
        let found = world.rows("Staff", &format!("email_jones{id}@contoso.com")).await;
        assert_eq!(found, [format!("at_d{}_{id:06}", id % 2)]);
    }
    // The other index was not asked for.
    assert!(world.rows("StaffByName", "Jones").await.is_empty());
}

#[tokio::test]
async fn an_entity_whose_work_is_far_behind_is_refused_and_goes_on_after_a_worker() {
    let world = World::left_to_workers().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    let mut refused = None;
    for number in 0..300 {
        stored.email = format!("another{number}@contoso.com");
        match world.staff.replace(&stored).await {
            Ok(written) => stored = written,
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let error = refused.unwrap();
    assert!(error.is_contended() && error.to_string().contains("worker"), "{error}");
    world.client.worker().drain().await.unwrap();
    world.later(entable::OutboxOptions::WRITE_DEADLINE);
    world.client.worker().drain().await.unwrap();
    assert!(world.open().await.is_empty());
    world.staff.replace(&stored).await.unwrap();
}

#[tokio::test]
async fn a_bulk_write_leaves_room_for_its_records() {
    let world = World::left_to_workers().await;
    let report = world.staff.bulk().insert_all((0..196).map(employee)).await.unwrap();
    assert_eq!(report.done, 196);
    // 49 employees with a record each and a fence: 99 operations.
    let written = world.requests();
    let transactions = written.iter().filter(|request| request.contains("Merge ~e0_")).count();
    assert_eq!(transactions, 4, "{written:#?}");
}
