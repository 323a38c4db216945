//! Tests unique values of entities in a table whose name has capitals, with an index in a table of its
//! own, on stores where case counts in names of tables and on stores where it does not.

use std::{sync::Arc, time::Duration};

use entable::{
    Guard, Operation, OutboxOptions, SteppedClock, Ticks,
    backend::{Backend, Embedded, Memory, TableCase},
    prelude::*,
};

use super::{Person, person};
use crate::hooked::Hooked;

/// A client of a store, and the clock of the store if it is stepped by hand.
struct Store {
    client: Client,
    clock: Arc<SteppedClock>,
    _file: Option<tempfile::TempDir>,
}

impl Store {
    fn around(backend: impl Backend, clock: Arc<SteppedClock>) -> Self {
        let client = Client::builder().backend(backend).clock(clock.clone()).build().unwrap();
        Self { client, clock, _file: None }
    }

    fn memory(case: TableCase) -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let memory = Memory::with_clock(clock.clone());
        match case {
            TableCase::Sensitive => Self::around(memory.case_sensitive_tables(), clock),
            _ => Self::around(memory, clock),
        }
    }

    fn embedded() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let embedded = Embedded::open(directory.path().join("staff.db")).unwrap();
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        Self { _file: Some(directory), ..Self::around(embedded, clock) }
    }

    fn each() -> [Self; 3] {
        [Self::memory(TableCase::Insensitive), Self::memory(TableCase::Sensitive), Self::embedded()]
    }

    /// Opens the table, with the first of two people who want one badge.
    async fn with_first(self) -> (Self, Table<Person>) {
        let staff = self.client.table::<Person>();
        staff.create().await.unwrap();
        staff.insert(&badge(1, "B1")).await.unwrap();
        self.client.wait_for_copies().await;
        (self, staff)
    }

    /// Another client of the store, which has not opened any table.
    fn other_client(&self) -> Client {
        let backend = self.client.backend().clone();
        Client::builder().backend(backend).clock(self.clock.clone()).build().unwrap()
    }

    async fn recover(&self) -> entable::WorkerStats {
        self.client.wait_for_copies().await;
        let worker = self.client.worker().with::<Person>();
        for _ in 0..3 {
            worker.drain().await.unwrap();
            self.clock.advance(OutboxOptions::WRITE_DEADLINE * 2);
        }
        worker.drain().await.unwrap()
    }

    /// Reads the copy of badge B1.
    async fn copy(&self) -> Option<Stored<DynamicEntity>> {
        self.client.dynamic("Badges").get("B1", "badge").await.unwrap()
    }
}

fn badge(id: u32, badge: &str) -> Person {
    Person { badge: badge.into(), ..person(id, &format!("{id}@a.com")) }
}

#[tokio::test]
async fn a_second_entity_never_gets_the_value() {
    for store in Store::each() {
        let (store, staff) = store.with_first().await;
        for id in 2..6 {
            let error = staff.insert(&badge(id, "B1")).await.unwrap_err();
            assert!(error.is_unique_violation(), "{error}");
            assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
        }
        assert_eq!(store.copy().await.unwrap().str("SrcT").unwrap(), "Staff");
        // The entity itself may keep its value, and give it up.
        let mut first =
            staff.get(Person::primary().department("Sales").id(1)).await.unwrap().unwrap();
        first.badge = "B2".into();
        staff.replace(&first).await.unwrap();
        store.client.wait_for_copies().await;
        staff.insert(&badge(2, "B1")).await.unwrap();
        store.client.wait_for_copies().await;
        assert!(staff.insert(&badge(3, "B2")).await.unwrap_err().is_unique_violation());
    }
}

#[tokio::test]
async fn a_live_reservation_is_never_removed() {
    for store in Store::each() {
        let (store, staff) = store.with_first().await;
        // The rows that a writer has written that is about to send its transaction.
        let copy = store.copy().await.unwrap();
        let mut reserved = DynamicEntity::new("B7", "badge").with_framework_names();
        for (name, value) in copy.properties().clone() {
            if name != "Src" {
                reserved.set(&name, value);
            }
        }
        reserved.set("SrcR", "000007");
        reserved.set("SrcC", "c1");
        store.client.dynamic("Badges").insert(&reserved).await.unwrap();
        let claim = DynamicEntity::new("empid_Sales", "~e1_c1")
            .with_framework_names()
            .with("EntityType", "entable.claim")
            .with("Format", 1);
        store.client.dynamic("Staff").insert(&claim).await.unwrap();
        let error = staff.insert(&badge(2, "B7")).await.unwrap_err();
        assert!(error.is_unique_violation() && error.to_string().contains("pending"), "{error}");
        let left = store.client.dynamic("Badges").get("B7", "badge").await.unwrap().unwrap();
        assert_eq!(left.str("SrcC").unwrap(), "c1");
    }
}

#[tokio::test]
async fn tables_that_differ_in_case_are_one_or_two_as_the_store_says() {
    let (_, staff) = Store::memory(TableCase::Insensitive).with_first().await;
    let same = staff.client().table_named::<Person>("staff");
    assert!(same.insert(&badge(1, "B1")).await.unwrap_err().is_conflict());

    let (store, staff) = Store::memory(TableCase::Sensitive).with_first().await;
    assert_eq!(store.client.capabilities().table_case, TableCase::Sensitive);
    let other = store.client.table_named::<Person>("staff");
    other.create().await.unwrap();
    // The keys of both entities are equal, and the entities are two.
    let error = other.insert(&badge(1, "B1")).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    other.insert(&badge(1, "B2")).await.unwrap();
    store.client.wait_for_copies().await;
    let copy = store.client.dynamic("Badges").get("B2", "badge").await.unwrap().unwrap();
    assert_eq!(copy.str("SrcT").unwrap(), "staff");
    assert!(staff.insert(&badge(2, "B2")).await.unwrap_err().is_unique_violation());
    // Each table has a registration, and so a directory marker, of its own.
    let markers =
        store.client.dynamic("EntableDirectory").query(Filter::parse("Table ge ''").unwrap());
    let markers = markers.allow_scan().collect().await.unwrap();
    let mut tables: Vec<&str> = markers.iter().map(|row| row.str("Table").unwrap()).collect();
    tables.sort_unstable();
    assert_eq!(tables, ["Staff", "staff"]);
    // An entity of one table never counts as that of the other.
    let stats = store.recover().await;
    assert_eq!((stats.open, stats.poisoned), (0, 0));
    assert_eq!(store.copy().await.unwrap().str("SrcT").unwrap(), "Staff");
}

/// Entities with equal keys in tables whose names differ in case alone have copies of their own.
#[tokio::test]
async fn a_copy_of_a_table_whose_name_differs_in_case_is_left_alone() {
    let (store, staff) = Store::memory(TableCase::Sensitive).with_first().await;
    let other = store.client.table_named::<Person>("staff");
    other.create().await.unwrap();
    other.insert(&badge(1, "B2")).await.unwrap();
    store.recover().await;
    // The entity with equal keys in `Staff` loses a copy that it never had.
    let dirty = DynamicEntity::new("empid_Sales", "~e2_000001")
        .with_framework_names()
        .with("EntityType", "entable.dirty")
        .with("Format", 1)
        .with("D_1", r#"["Person#ByBadge","Badges","B2","badge"]"#);
    store.client.dynamic("Staff").insert(&dirty).await.unwrap();
    let first = staff.get(Person::primary().department("Sales").id(1)).await.unwrap().unwrap();
    staff.delete(&first).await.unwrap();
    store.recover().await;
    let copy = store.client.dynamic("Badges").get("B2", "badge").await.unwrap().unwrap();
    assert_eq!(copy.str("SrcT").unwrap(), "staff");
    assert!(staff.insert(&badge(3, "B2")).await.unwrap_err().is_unique_violation());
}

#[tokio::test]
async fn a_value_of_a_deleted_table_is_free() {
    for store in Store::each() {
        let (store, _) = store.with_first().await;
        let other = store.client.table_named::<Person>("Staff2");
        other.create().await.unwrap();
        let error = other.insert(&badge(1, "B1")).await.unwrap_err();
        assert!(error.is_unique_violation() && error.holder().is_some());
        store.client.delete_table("Staff").await.unwrap();
        // Whoever has not opened the table sees only that it is missing.
        let client = store.other_client();
        let other = client.table_named::<Person>("Staff2");
        other.insert(&badge(2, "B1")).await.unwrap();
        client.wait_for_copies().await;
        assert_eq!(store.copy().await.unwrap().str("SrcR").unwrap(), "000002");
        assert!(other.insert(&badge(3, "B1")).await.unwrap_err().is_unique_violation());
        // A table of that name that is created again has none of its entities.
        let again = client.table::<Person>();
        again.create().await.unwrap();
        assert!(again.insert(&badge(1, "B1")).await.unwrap_err().is_unique_violation());
    }
}

/// Writes the copy of badge B1 as a reservation of entity 9 in `table`, which takes it over from `previous`.
async fn reserve_for(store: &Store, table: &str, previous: &str) {
    let mut reserved = store.copy().await.unwrap();
    reserved.allow_framework_names();
    reserved.set("SrcT", table);
    reserved.set("SrcR", "000009");
    reserved.set("SrcC", "c1");
    reserved.set("SrcF", previous);
    reserved.remove("Src");
    store.client.dynamic("Badges").replace(&reserved).await.unwrap();
}

#[tokio::test]
async fn a_value_that_a_deleted_table_was_about_to_take_over_stays_with_its_entity() {
    let (store, staff) = Store::memory(TableCase::Sensitive).with_first().await;
    reserve_for(&store, "Gone", r#"["Staff","empid_Sales","000001"]"#).await;
    let error = staff.insert(&badge(2, "B1")).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
    let first = staff.get(Person::primary().department("Sales").id(1)).await.unwrap().unwrap();
    staff.delete(&first).await.unwrap();
    store.recover().await;
    staff.insert(&badge(2, "B1")).await.unwrap();
}

#[tokio::test]
async fn a_worker_settles_a_claim_on_a_value_of_a_deleted_table() {
    let (store, _) = Store::memory(TableCase::Sensitive).with_first().await;
    // The rows of a writer that died after it took the value over.
    reserve_for(&store, "Staff2", r#"["Staff","empid_Sales","000001"]"#).await;
    store.client.delete_table("Staff").await.unwrap();
    let client = store.other_client();
    let other = client.table_named::<Person>("Staff2");
    other.create().await.unwrap();
    // Its fence and its directory marker lead a worker to the partition.
    other.insert(&badge(2, "B2")).await.unwrap();
    client.wait_for_copies().await;
    let claim = DynamicEntity::new("empid_Sales", "~e1_c1")
        .with_framework_names()
        .with("EntityType", "entable.claim")
        .with("Format", 1)
        .with("C_1", r#"["Person#ByBadge","Badges","B1","badge","000009"]"#);
    client.dynamic("Staff2").insert(&claim).await.unwrap();
    let error = other.insert(&badge(3, "B1")).await.unwrap_err();
    assert!(error.is_unique_violation() && error.to_string().contains("pending"), "{error}");
    store.clock.advance(OutboxOptions::WRITE_DEADLINE * 3);
    let stats = store.recover().await;
    assert_eq!((stats.unknown, stats.poisoned, stats.open), (0, 0, 0), "{stats:?}");
    assert!(store.copy().await.is_none());
    assert!(client.dynamic("Staff2").get("empid_Sales", "~e1_c1").await.unwrap().is_none());
    other.insert(&badge(3, "B1")).await.unwrap();
}

/// A table that is created again has lost the claim row, so that the late transaction fails although its fence is there.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_arrives_in_a_table_created_again_takes_no_value() {
    for guard in [None, Some(Guard::ClaimInTransaction)] {
        let (store, _) = Store::memory(TableCase::Insensitive).with_first().await;
        let is_primary = |one: &Operation| one.row().row_key() == "000002";
        let (held, kept) = Hooked::holding(store.client.backend().clone(), is_primary);
        let builder = Client::builder().backend(held).clock(store.clock.clone());
        let builder = match guard {
            Some(guard) => builder.without_guard(guard),
            None => builder,
        };
        let late = builder.build().unwrap().table::<Person>();
        let second = badge(2, "B2");
        let insert = late.insert(&second);
        tokio::time::timeout(Duration::from_millis(200), insert).await.unwrap_err();
        let transaction = kept.lock().unwrap().take().unwrap();
        let fences =
            store.client.dynamic("Staff").query(Keys::partition("empid_Sales").prefix("~e0_"));
        let fences = fences.collect().await.unwrap();
        assert!(!fences.is_empty());
        store.client.delete_table("Staff").await.unwrap();

        let client = store.other_client();
        let other = client.table_named::<Person>("Staff2");
        other.create().await.unwrap();
        other.insert(&badge(3, "B2")).await.unwrap();
        client.create_table("Staff").await.unwrap();
        for fence in fences {
            let fence = fence.into_inner().with_framework_names();
            client.dynamic("Staff").insert(&fence).await.unwrap();
        }
        let arrived = store.client.backend().apply(&transaction.with_deadline(None)).await;
        assert_eq!(arrived.is_ok(), guard.is_some(), "{guard:?} {arrived:?}");
        let point = Person::primary().department("Sales").id(2);
        let second = client.table::<Person>().get(point).await.unwrap();
        assert_eq!(
            second.is_some(),
            guard.is_some(),
            "two entities have the value only without the guard"
        );
    }
}
