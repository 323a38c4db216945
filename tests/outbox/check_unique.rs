//! Tests checks of values that are unique across partitions: reservations, claims, and holders.

use entable::{Condition, OutboxOptions, maintain::FindingKind, prelude::*};

use crate::unique::{Person, World, by_email, person};

type Reported = (FindingKind, String, Option<String>);

async fn reported(world: &World) -> Vec<Reported> {
    let report = world.staff.check().await.unwrap();
    let findings = report.findings.into_iter();
    let mut reported: Vec<Reported> =
        findings.map(|f| (f.kind, f.partition_key, f.primary)).collect();
    reported.sort_by(|a, b| (&a.1, &a.2).cmp(&(&b.1, &b.2)));
    reported
}

async fn filled() -> World {
    let world = World::new().await;
    for (id, email) in [(1, "a@a.com"), (2, "b@a.com"), (3, "c@a.com")] {
        world.staff.insert(&Person { badge: format!("B{id}"), ..person(id, email) }).await.unwrap();
    }
    world.recover().await;
    world
}

#[tokio::test(start_paused = true)]
async fn values_are_compared_and_mended() {
    let world = filled().await;
    assert!(reported(&world).await.is_empty());
    let rows = world.client.dynamic("Staff");
    rows.delete("email_a@a.com", "email", Condition::Any).await.unwrap();
    let badges = world.client.dynamic("Badges");
    let mut stale = badges.get("B2", "badge").await.unwrap().unwrap();
    stale.set("Name", "Somebody");
    badges.replace(&stale).await.unwrap();
    let left = world.reservation("c@a.com").await.unwrap();
    let mut orphan = DynamicEntity::new("email_old@a.com", "email").with_framework_names();
    for (name, value) in left.properties().clone() {
        orphan.set(&name, value);
    }
    rows.insert_or_replace(&orphan).await.unwrap();
    let primary = |id: u32| Some(format!("{id:06}"));
    let expected = [
        (FindingKind::Stale, "B2".to_owned(), primary(2)),
        (FindingKind::Missing, "email_a@a.com".to_owned(), primary(1)),
        (FindingKind::Orphan, "email_old@a.com".to_owned(), primary(3)),
    ];
    assert_eq!(reported(&world).await, expected);
    assert_eq!(world.staff.check().repair().await.unwrap(), 3);
    world.recover().await;
    assert!(reported(&world).await.is_empty());
    assert_eq!(world.staff.get(by_email("a@a.com")).await.unwrap().unwrap().id, 1);
    // The value is free again.
    world.staff.insert(&person(4, "old@a.com")).await.unwrap();
    world.recover().await;
    assert!(reported(&world).await.is_empty());
}

/// A value that is claimed is nobody's mistake, however long that takes.
#[tokio::test(start_paused = true)]
async fn a_claimed_value_is_pending() {
    let world = filled().await;
    let rows = world.client.dynamic("Staff");
    // The rows that a writer leaves which died before its transaction.
    let taken = world.reservation("c@a.com").await.unwrap();
    let mut reserved = DynamicEntity::new("email_new@a.com", "email").with_framework_names();
    for (name, value) in taken.properties().clone() {
        if name != "Src" {
            reserved.set(&name, value);
        }
    }
    reserved.set("SrcR", "000009");
    reserved.set("SrcC", "c1");
    rows.insert_or_replace(&reserved).await.unwrap();
    let claim = DynamicEntity::new("empid_Sales", "~e1_c1")
        .with_framework_names()
        .with("EntityType", "entable.claim")
        .with("Format", 1);
    rows.insert_or_replace(&claim).await.unwrap();
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean());
    assert_eq!((report.progress.pending, report.progress.suspects), (1, 0));
    // Without the claim it is an orphan.
    rows.delete("empid_Sales", "~e1_c1", Condition::Any).await.unwrap();
    let orphan = (FindingKind::Orphan, "email_new@a.com".to_owned(), Some("000009".to_owned()));
    assert_eq!(reported(&world).await, [orphan]);
    assert_eq!(world.staff.check().repair().await.unwrap(), 1);
    world.recover().await;
    assert!(world.reservation("new@a.com").await.is_none());
    assert!(reported(&world).await.is_empty());
}

/// A program that does not know the index gives two people one value: reported, and left.
#[tokio::test(start_paused = true)]
async fn a_value_that_two_have_is_contested() {
    let world = filled().await;
    let rows = world.client.dynamic("Staff");
    let mut two = rows.get("empid_Sales", "000002").await.unwrap().unwrap();
    two.set("Email", "a@a.com");
    rows.replace(&two).await.unwrap();
    let primary = |id: u32| Some(format!("{id:06}"));
    let expected = [
        (FindingKind::Contested, "email_a@a.com".to_owned(), primary(2)),
        (FindingKind::Orphan, "email_b@a.com".to_owned(), primary(2)),
    ];
    assert_eq!(reported(&world).await, expected);
    assert_eq!(world.staff.check().repair().await.unwrap(), 1);
    world.recover().await;
    let expected = [(FindingKind::Contested, "email_a@a.com".to_owned(), primary(2))];
    assert_eq!(reported(&world).await, expected);
    assert_eq!(world.staff.get(by_email("a@a.com")).await.unwrap().unwrap().id, 1);
    // Another value mends it.
    let path = Person::primary().department("Sales").id(2);
    world.staff.patch_at(path, Person::patch().email("d@a.com")).await.unwrap();
    world.recover().await;
    world.later(OutboxOptions::WRITE_DEADLINE);
    assert!(reported(&world).await.is_empty());
}
