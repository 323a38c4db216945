//! Tests unique values of entities in a table whose name has capitals, with an index in a table of its
//! own, on stores where case counts in names of tables and on stores where it does not.

use std::{sync::Arc, time::Duration};

use entable::{
    Condition, Operation, OutboxOptions, SteppedClock, Ticks,
    backend::{Backend, Embedded, Memory, TableCase},
    maintain::FindingKind,
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
            self.clock.advance(OutboxOptions::FLIGHT * 2);
        }
        worker.drain().await.unwrap()
    }

    /// Reads the copy of badge B1.
    async fn copy(&self) -> Option<Stored<DynamicEntity>> {
        self.client.dynamic("Badges").get("B1", "badge").await.unwrap()
    }

    /// Names the table of the copy's owner in lower case, as older versions did.
    async fn store_old_form(&self) {
        let mut copy = self.copy().await.unwrap();
        assert_eq!(copy.str("SrcT").unwrap(), "Staff");
        copy.allow_framework_names();
        copy.set("SrcT", "staff");
        self.client.dynamic("Badges").replace(&copy).await.unwrap();
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

#[tokio::test]
async fn a_copy_in_the_old_form_keeps_its_value_and_is_rewritten() {
    for case in [TableCase::Insensitive, TableCase::Sensitive] {
        let (store, staff) = Store::memory(case).with_first().await;
        store.store_old_form().await;
        let error = staff.insert(&badge(2, "B1")).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!(error.holder(), Some(("empid_Sales", "000001")));
        let mut first =
            staff.get(Person::primary().department("Sales").id(1)).await.unwrap().unwrap();
        first.name = "Somebody".into();
        staff.replace(&first).await.unwrap();
        let stats = store.recover().await;
        assert_eq!((stats.open, stats.poisoned, stats.unknown), (0, 0, 0), "{case:?}");
        let copy = store.copy().await.unwrap();
        assert_eq!(copy.str("SrcT").unwrap(), "Staff");
        assert_eq!(copy.str("Name").unwrap(), "Somebody");
        // A copy in the old form is deleted with its entity, too.
        store.store_old_form().await;
        let first = staff.get(Person::primary().department("Sales").id(1)).await.unwrap().unwrap();
        staff.delete(&first).await.unwrap();
        store.recover().await;
        assert!(store.copy().await.is_none(), "{case:?}");
        staff.insert(&badge(2, "B1")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_calls_the_old_form_stale() {
    for case in [TableCase::Insensitive, TableCase::Sensitive] {
        let (store, staff) = Store::memory(case).with_first().await;
        store.recover().await;
        assert!(staff.check().await.unwrap().findings.is_empty());
        store.store_old_form().await;
        let report = staff.check().await.unwrap();
        let [stale] = &report.findings[..] else { panic!("{case:?} {:?}", report.findings) };
        assert_eq!((stale.kind, stale.index), (FindingKind::Stale, "ByBadge"));
        assert_eq!(staff.check().repair().await.unwrap(), 1);
        store.recover().await;
        assert_eq!(store.copy().await.unwrap().str("SrcT").unwrap(), "Staff");
        assert!(staff.check().await.unwrap().findings.is_empty());
    }
}

/// A name in lower case may mean a table of exactly that name.
#[tokio::test]
async fn a_copy_of_another_table_is_not_taken_for_an_old_form() {
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
async fn a_value_of_a_missing_table_is_refused_until_the_table_is_forgotten() {
    for case in [TableCase::Insensitive, TableCase::Sensitive] {
        let (store, _) = Store::memory(case).with_first().await;
        let other = store.client.table_named::<Person>("Staff2");
        other.create().await.unwrap();
        let error = other.insert(&badge(1, "B1")).await.unwrap_err();
        assert!(error.is_unique_violation() && error.holder().is_some());
        assert!(store.client.forget_table("Staff").await.unwrap_err().is_conflict());
        store.client.delete_table("Staff").await.unwrap();
        // Whoever has not opened the table sees only that it is missing.
        let client = store.other_client();
        let other = client.table_named::<Person>("Staff2");
        let error = other.insert(&badge(2, "B1")).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert!(error.to_string().contains("forget_table"), "{error}");
        assert!(store.copy().await.is_some());
        assert_eq!(client.forget_table("Other").await.unwrap(), 0);
        assert_eq!(client.forget_table("Staff").await.unwrap(), 1);
        other.insert(&badge(2, "B1")).await.unwrap();
        assert!(other.insert(&badge(3, "B1")).await.unwrap_err().is_unique_violation());
    }
}

/// A client that has not opened the table that the old form means knows nothing, and does nothing.
#[tokio::test]
async fn a_worker_leaves_what_it_cannot_ask_about() {
    let (store, staff) = Store::memory(TableCase::Sensitive).with_first().await;
    store.store_old_form().await;
    // The rows of a writer that died after it took the value over from an entity in the old form.
    let mut reserved = store.copy().await.unwrap();
    reserved.allow_framework_names();
    reserved.set("SrcT", "Staff2");
    reserved.set("SrcR", "000009");
    reserved.set("SrcC", "c1");
    reserved.set("SrcF", r#"["staff","empid_Sales","000001"]"#);
    reserved.remove("Src");
    store.client.dynamic("Badges").replace(&reserved).await.unwrap();
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
    store.clock.advance(OutboxOptions::FLIGHT * 3);
    let worker = client.worker();
    for _ in 0..3 {
        let stats = worker.drain().await.unwrap();
        assert_eq!((stats.unknown, stats.poisoned), (1, 0), "{stats:?}");
        store.clock.advance(OutboxOptions::FLIGHT * 3);
    }
    assert_eq!(store.copy().await.unwrap().str("SrcC").unwrap(), "c1");
    assert!(client.dynamic("Staff2").get("empid_Sales", "~e1_c1").await.unwrap().is_some());
    let error = other.insert(&badge(3, "B1")).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    // A worker that has opened the table gives the value back to the entity that has it.
    store.recover().await;
    let copy = store.copy().await.unwrap();
    assert_eq!((copy.str("SrcT").unwrap(), copy.str("SrcR").unwrap()), ("Staff", "000001"));
    assert_eq!(copy.str("SrcC").ok(), None);
    drop(staff);
}

#[tokio::test]
async fn a_forgotten_table_gives_a_value_that_was_taken_over_back() {
    let (store, _) = Store::memory(TableCase::Sensitive).with_first().await;
    // An entity of a table that is gone by now was about to take the value over.
    let mut reserved = store.copy().await.unwrap();
    reserved.allow_framework_names();
    reserved.set("SrcT", "Gone");
    reserved.set("SrcR", "000009");
    reserved.set("SrcC", "c1");
    reserved.set("SrcF", r#"["Staff","empid_Sales","000001"]"#);
    store.client.dynamic("Badges").replace(&reserved).await.unwrap();
    assert_eq!(store.client.forget_table("Gone").await.unwrap(), 1);
    let copy = store.copy().await.unwrap();
    assert_eq!((copy.str("SrcT").unwrap(), copy.str("SrcR").unwrap()), ("Staff", "000001"));
    // An entity that exists was about to take the value over from one that is gone.
    let mut reserved = store.copy().await.unwrap();
    reserved.allow_framework_names();
    reserved.set("SrcC", "c1");
    reserved.set("SrcF", r#"["Gone","empid_Sales","000009"]"#);
    store.client.dynamic("Badges").replace(&reserved).await.unwrap();
    assert_eq!(store.client.forget_table("Gone").await.unwrap(), 1);
    let copy = store.copy().await.unwrap();
    assert_eq!((copy.str("SrcC").unwrap(), copy.str("SrcF").ok()), ("c1", None));
    store.client.dynamic("Badges").delete("B1", "badge", Condition::Any).await.unwrap();
    assert_eq!(store.client.forget_table("Gone").await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_holder_is_removed_from_a_row_within_the_write_deadline() {
    let (store, _) = Store::memory(TableCase::Sensitive).with_first().await;
    // The entity was about to take the value over from one of a table that is gone.
    let mut reserved = store.copy().await.unwrap();
    reserved.allow_framework_names();
    reserved.set("SrcC", "c1");
    reserved.set("SrcF", r#"["Gone","empid_Sales","000009"]"#);
    store.client.dynamic("Badges").replace(&reserved).await.unwrap();
    let is_copy = |one: &Operation| one.row().row_key() == "badge";
    let (held, kept) = Hooked::holding(store.client.backend().clone(), is_copy);
    let client = Client::builder().backend(held).clock(store.clock.clone()).build().unwrap();
    client.table::<Person>();
    let request = client.forget_table("Gone");
    let forgotten = tokio::time::timeout(Duration::from_millis(200), request).await;
    assert!(forgotten.is_err(), "the request waits: {forgotten:?}");
    let batch = kept.lock().unwrap().take().unwrap();
    assert!(batch.check_deadline().is_ok());
    store.clock.advance(OutboxOptions::FLIGHT);
    assert!(batch.check_deadline().is_err_and(|error| error.is_contended()));
}
