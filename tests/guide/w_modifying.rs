//! W: modifying entities, concurrency, merge and replace.

use entable::{Condition, Verb, prelude::*};

use crate::{
    model::{Worker, worker},
    store::{Store, TestResult, on_both},
};

fn point() -> Point<Worker> {
    Worker::primary().department("Sales").id(1)
}

#[tokio::test]
async fn w01_insert_update_and_delete_with_and_without_a_type() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let mut one = staff.insert(&worker(1)).await?;
        one.age = Some(35);
        let one = staff.replace(&one).await?;
        assert_eq!(staff.get(point()).await?.unwrap().age, Some(35));
        staff.delete(&one).await?;
        assert!(staff.get(point()).await?.is_none());

        let raw = store.client.dynamic("Staff");
        let mut bag = raw.insert(&DynamicEntity::new("Sales", "bag").with("Age", 34)).await?;
        bag.set("Age", 35);
        let bag = raw.replace(&bag).await?;
        assert_eq!(raw.get("Sales", "bag").await?.unwrap().i32("Age")?, 35);
        raw.delete("Sales", "bag", Condition::Match(bag.etag())).await?;
        assert!(raw.get("Sales", "bag").await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w03_every_write_is_conditional_unless_told() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let stale = staff.insert(&worker(1)).await?;
        assert!(staff.insert(&worker(1)).await.unwrap_err().is_conflict());
        staff.patch_at(point(), Worker::patch().age(50)).await?;
        let errors = [
            staff.replace(&stale).await.map(drop),
            staff.patch(&stale, Worker::patch().age(52)).await.map(drop),
            staff.delete(&stale).await,
        ];
        for error in errors {
            let error = error.unwrap_err();
            assert!(error.is_precondition_failed());
            assert_eq!(error.code(), Some("UpdateConditionNotSatisfied"));
            assert_eq!(error.status(), Some(412));
        }
        let raw = store.client.dynamic("Staff");
        let mut stale = raw.get("Sales", "empid_000001").await?.unwrap();
        staff.patch_at(point(), Worker::patch().age(51)).await?;
        stale.set("LastName", "Smith");
        assert!(raw.patch(&stale).await.unwrap_err().is_precondition_failed());
        assert!(raw.replace(&stale).await.unwrap_err().is_precondition_failed());
        assert_eq!(*staff.get(point()).await?.unwrap(), Worker { age: Some(51), ..worker(1) });
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w04_the_checks_can_be_bypassed() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let stale = staff.insert(&worker(1)).await?;
        staff.patch_at(point(), Worker::patch().age(50)).await?;
        let replaced = staff.replace_any(&stale).await?;
        assert_eq!(replaced.age, Some(34));
        staff.patch_at(point(), Worker::patch().age(60)).await?;
        staff.insert_or_replace(&stale).await?;
        assert_eq!(staff.get(point()).await?.unwrap().age, Some(34));
        store.client.dynamic("Staff").delete("Sales", "empid_000001", Condition::Any).await?;
        staff.insert(&worker(1)).await?;
        assert!(staff.delete_at(point()).await?);
        Ok(())
    })
    .await
}

/// A row with more than the struct knows.
async fn richer(store: &Store) -> Result<(), Error> {
    let entity = DynamicEntity::new("Sales", "empid_000001")
        .with("EntityType", "Worker")
        .with("LastName", "Jones")
        .with("Age", 34)
        .with("Email", "jones@contoso.com")
        .with("Badge", "gold");
    store.client.dynamic("Staff").insert_or_replace(&entity).await.map(drop)
}

#[tokio::test]
async fn w05_replace_removes_what_it_does_not_send() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        richer(&store).await?;
        let mut one = staff.get(point()).await?.unwrap();
        one.age = None;
        staff.replace_any(&one).await?;
        let raw = store.client.dynamic("Staff").get("Sales", "empid_000001").await?.unwrap();
        assert!(raw.get("Age").is_none(), "replaced without Age: Age is gone");
        assert!(raw.get("Badge").is_none(), "and so is what the struct does not know");
        assert_eq!(raw.str("Email")?, "jones@contoso.com");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w06_a_replace_keeps_what_no_version_declares() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        richer(&store).await?;
        let mut one = staff.get(point()).await?.unwrap();
        one.age = None;
        store.requests();
        staff.replace(&one).await?;
        assert_eq!(store.count(), 1, "what it does not know was read with the row");
        let raw = store.client.dynamic("Staff").get("Sales", "empid_000001").await?.unwrap();
        assert_eq!((raw.get("Age"), raw.str("Badge")?), (None, "gold"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w07_merge_sends_what_it_sets_and_leaves_the_rest() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        richer(&store).await?;
        store.requests();
        staff.patch_at(point(), Worker::patch().last_name("Smith")).await?;
        let requests = store.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].verbs(), [Verb::Merge]);
        let sent = store.batches();
        let [operation] = sent.last().ok_or("a batch")?.operations() else { panic!("{sent:?}") };
        let sent = operation.row().to_bag()?;
        let names: Vec<&str> = sent.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["LastName"], "the property that changes, and no other");
        let raw = async || store.client.dynamic("Staff").get("Sales", "empid_000001").await;
        let merged = raw().await?.unwrap();
        assert_eq!(merged.str("LastName")?, "Smith");
        assert_eq!((merged.i32("Age")?, merged.str("Badge")?), (34, "gold"));
        staff.insert_or_merge(&Worker { age: None, email: None, ..worker(1) }).await?;
        let merged = raw().await?.unwrap();
        assert_eq!(merged.str("LastName")?, "Jones");
        assert_eq!(merged.i32("Age")?, 34, "None is left out: the stored value stays");
        assert_eq!(merged.str("Badge")?, "gold");
        let mut bag = merged;
        bag.set("Badge", "silver");
        store.client.dynamic("Staff").patch(&bag).await?;
        assert_eq!(raw().await?.unwrap().properties().len(), 5);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w08_replace_and_merge_need_the_entity() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let gone = staff.insert(&worker(1)).await?;
        staff.delete_at(point()).await?;
        let errors = [
            staff.replace(&gone).await.map(drop),
            staff.replace_any(&gone).await.map(drop),
            staff.patch_at(point(), Worker::patch().age(1)).await.map(drop),
            staff.patch_at(point(), Worker::patch().remove_age()).await.map(drop),
            staff.update(point(), |_| Ok(())).await.map(drop),
            staff.delete(&gone).await,
        ];
        for error in errors {
            let error = error.unwrap_err();
            assert!(error.is_not_found());
            assert_eq!((error.code(), error.status()), (Some("ResourceNotFound"), Some(404)));
        }
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w09_insert_or_verbs_create_and_change() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert_or_replace(&worker(1)).await?;
        staff.insert_or_merge(&worker(2)).await?;
        let sparse = |id| Worker { age: None, ..worker(id) };
        let replaced = staff.insert_or_replace(&sparse(1)).await?;
        let merged = staff.insert_or_merge(&sparse(2)).await?;
        assert_eq!((replaced.status(), merged.status()), (204, 204));
        let found = staff.query(Worker::primary().department("Sales")).collect().await?;
        assert_eq!(found[0].age, None, "insert or replace");
        assert_eq!(found[1].age, Some(34), "insert or merge");
        assert_eq!(found[0].etag(), replaced.etag());
        assert_eq!(found[1].etag(), merged.etag());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn w10_deleting_needs_no_type() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let one = staff.insert(&worker(1)).await?;
        let raw = store.client.dynamic("Staff");
        raw.delete("Sales", "empid_000001", Condition::Match(one.etag())).await?;
        let again = raw.delete("Sales", "empid_000001", Condition::Any).await.unwrap_err();
        assert!(again.is_not_found());
        assert!(!raw.delete_at("Sales", "empid_000001").await?);
        staff.insert(&worker(1)).await?;
        assert!(raw.delete_at("Sales", "empid_000001").await?);
        Ok(())
    })
    .await
}
