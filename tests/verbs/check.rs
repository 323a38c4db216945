//! Tests that rows which another program changed are found and mended.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use entable::{
    Condition, Value,
    maintain::{Finding, FindingKind},
    prelude::*,
};

use super::copies::{Person, person};

/// Entities without a property that says their type.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Plain",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    discriminator = row_key,
    index(ByEmail, row_key = "email_{email:lower}", unique),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
struct Plain {
    department: String,
    id: u32,
    last_name: String,
    email: String,
}

fn plain(id: u32, last_name: &str) -> Plain {
    Plain {
        department: "Sales".into(),
        id,
        last_name: last_name.into(),
        email: format!("{last_name}{id}@contoso.com"),
    }
}

async fn staff() -> Table<Person> {
    let staff = Client::memory().table::<Person>();
    staff.create().await.unwrap();
    for id in 1..=8 {
        staff.insert(&person(id, if id % 2 == 0 { "Jones" } else { "Smith" })).await.unwrap();
    }
    staff
}

type Found<'f> = (FindingKind, &'f str, &'f str, Option<&'f str>);

fn seen(findings: &[Finding]) -> Vec<Found<'_>> {
    let mut seen: Vec<Found<'_>> = findings
        .iter()
        .map(|f| (f.kind, f.index, f.row_key.as_str(), f.primary.as_deref()))
        .collect();
    seen.sort_by_key(|found| (found.2, found.3));
    seen
}

async fn edit(staff: &Table<Person>, row_key: &str, property: &str, value: impl Into<Value>) {
    let rows = staff.client().dynamic("Staff");
    let mut row = rows.get("Sales", row_key).await.unwrap().unwrap();
    row.set(property, value);
    rows.replace(&row).await.unwrap();
}

async fn remove(staff: &Table<Person>, row_key: &str) {
    let rows = staff.client().dynamic("Staff");
    rows.delete("Sales", row_key, Condition::Any).await.unwrap();
}

/// Damages of every kind.
async fn damage(staff: &Table<Person>) {
    let rows = staff.client().dynamic("Staff");
    remove(staff, "email_smith1@contoso.com").await;
    edit(staff, "adult_000002", "Age", 99).await;
    edit(staff, "name_Smith_000003", "FirstName", "Dan").await;
    // The name of a primary changes, and nothing else.
    edit(staff, "empid_000004", "LastName", "Brown").await;
    // A primary goes, its copies stay.
    remove(staff, "empid_000005").await;
    let ids = r#"["empid_000002","empid_000004","empid_000006","empid_000099"]"#;
    edit(staff, "lastname_Jones", "Ids00", ids).await;
    let mut orphan = rows.get("Sales", "email_smith7@contoso.com").await.unwrap().unwrap();
    orphan = {
        let mut copy = DynamicEntity::new("Sales", "email_nobody@contoso.com");
        for (name, value) in orphan.properties().iter() {
            copy.set(name, value.clone());
        }
        rows.insert(&copy).await.unwrap()
    };
    assert_eq!(orphan.row_key(), "email_nobody@contoso.com");
}

const DAMAGE: [Found<'static>; 13] = [
    (FindingKind::Stale, "Adult", "adult_000002", Some("empid_000002")),
    (FindingKind::Stale, "Adult", "adult_000004", Some("empid_000004")),
    (FindingKind::Orphan, "Adult", "adult_000005", None),
    (FindingKind::Stale, "ByEmail", "email_jones4@contoso.com", Some("empid_000004")),
    (FindingKind::Orphan, "ByEmail", "email_nobody@contoso.com", None),
    (FindingKind::Missing, "ByEmail", "email_smith1@contoso.com", Some("empid_000001")),
    (FindingKind::Orphan, "ByEmail", "email_smith5@contoso.com", None),
    (FindingKind::Missing, "ByLastName", "lastname_Brown", Some("empid_000004")),
    (FindingKind::Orphan, "ByLastName", "lastname_Jones", Some("empid_000004")),
    (FindingKind::Missing, "ByLastName", "lastname_Jones", Some("empid_000008")),
    (FindingKind::Orphan, "ByLastName", "lastname_Jones", Some("empid_000099")),
    (FindingKind::Orphan, "ByLastName", "lastname_Smith", Some("empid_000005")),
    (FindingKind::Missing, "ByName", "name_Brown_000004", Some("empid_000004")),
];

const DAMAGE_BY_NAME: [Found<'static>; 3] = [
    (FindingKind::Orphan, "ByName", "name_Jones_000004", None),
    (FindingKind::Stale, "ByName", "name_Smith_000003", Some("empid_000003")),
    (FindingKind::Orphan, "ByName", "name_Smith_000005", None),
];

fn damages() -> Vec<Found<'static>> {
    DAMAGE.into_iter().chain(DAMAGE_BY_NAME).collect()
}

#[tokio::test]
async fn a_clean_table_has_no_findings() -> Result<(), Error> {
    let staff = staff().await;
    let report = staff.check().await?;
    assert!(report.is_clean(), "{:?}", report.findings);
    // 8 primaries with an email, a name and an adult copy each, and two lists.
    assert_eq!((report.progress.rows, report.progress.primaries), (34, 8));
    assert_eq!(report.progress.partitions, 1);
    assert_eq!(report.repair().await?, 0);
    Ok(())
}

#[tokio::test]
async fn every_damage_is_found_and_mended() -> Result<(), Error> {
    let staff = staff().await;
    damage(&staff).await;
    let report = staff.check().await?;
    assert_eq!(seen(&report.findings), damages());
    assert_eq!(report.repair().await?, 16);
    let again = staff.check().await?;
    assert!(again.is_clean(), "{:?}", again.findings);
    let brown = staff.keys(Person::by_last_name().department("Sales").last_name("Brown")).await?;
    assert_eq!(brown.iter().map(Point::row_key).collect::<Vec<_>>(), ["empid_000004"]);
    Ok(())
}

#[tokio::test]
async fn repair_mends_as_it_goes() -> Result<(), Error> {
    let staff = staff().await;
    damage(&staff).await;
    assert_eq!(staff.check().repair().await?, 16);
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn a_large_partition_is_read_in_windows() -> Result<(), Error> {
    let staff = staff().await;
    damage(&staff).await;
    let report = staff.check().max_unmatched_rows(2).await?;
    assert_eq!(seen(&report.findings), damages(), "each once, whichever window it is in");
    assert_eq!(staff.check().max_unmatched_rows(1).repair().await?, 16);
    assert!(staff.check().max_unmatched_rows(1).await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn rows_without_a_type_are_known_by_their_keys() -> Result<(), Error> {
    let staff = Client::memory().table::<Plain>();
    staff.create().await?;
    for id in 1..=4 {
        staff.insert(&plain(id, "Jones")).await?;
    }
    assert!(staff.check().await?.is_clean());
    let rows = staff.client().dynamic("Plain");
    rows.delete("Sales", "email_jones1@contoso.com", Condition::Any).await?;
    rows.delete("Sales", "empid_000002", Condition::Any).await?;
    rows.delete("Sales", "lastname_Jones", Condition::Any).await?;
    let report = staff.check().await?;
    let expected = [
        (FindingKind::Missing, "ByEmail", "email_jones1@contoso.com", Some("empid_000001")),
        (FindingKind::Orphan, "ByEmail", "email_jones2@contoso.com", None),
        (FindingKind::Missing, "ByLastName", "lastname_Jones", Some("empid_000001")),
        (FindingKind::Missing, "ByLastName", "lastname_Jones", Some("empid_000003")),
        (FindingKind::Missing, "ByLastName", "lastname_Jones", Some("empid_000004")),
    ];
    assert_eq!(seen(&report.findings), expected);
    assert_eq!(report.repair().await?, 5);
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn a_copy_of_two_primaries_is_contested() -> Result<(), Error> {
    let staff = staff().await;
    edit(&staff, "empid_000002", "Email", "Smith1@contoso.com").await;
    let report = staff.check().await?;
    let contested =
        (FindingKind::Contested, "ByEmail", "email_smith1@contoso.com", Some("empid_000002"));
    assert!(seen(&report.findings).contains(&contested), "{:?}", report.findings);
    report.repair().await?;
    let again = staff.check().await?;
    assert_eq!(seen(&again.findings), [contested], "the rest is mended");
    Ok(())
}

#[tokio::test]
async fn order_of_properties_and_rows_of_others_do_not_matter() -> Result<(), Error> {
    let staff = staff().await;
    let rows = staff.client().dynamic("Staff");
    rows.insert(&DynamicEntity::new("Sales", "note").with("EntityType", "Note")).await?;
    rows.insert(&DynamicEntity::new("Other", "unmarked")).await?;
    let copy = rows.get("Sales", "adult_000002").await?.unwrap();
    let mut turned = DynamicEntity::new("Sales", "adult_000002");
    let properties: Vec<_> = copy.properties().iter().collect();
    for (name, value) in properties.into_iter().rev() {
        turned.set(name, value.clone());
    }
    rows.insert_or_replace(&turned).await?;
    let report = staff.check().await?;
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.progress.partitions, 2);
    Ok(())
}

#[tokio::test]
async fn progress_is_told_for_every_page() -> Result<(), Error> {
    let staff = Client::memory().table::<Person>();
    staff.create().await?;
    staff.bulk().insert_all((0..700).map(|id| person(id, "Jones"))).await?.into_result()?;
    let pages = Arc::new(AtomicU64::new(0));
    let counter = pages.clone();
    let found = Arc::new(AtomicU64::new(0));
    let count = found.clone();
    remove(&staff, "email_jones1@contoso.com").await;
    let check = staff.check().on_progress(move |progress| {
        assert!(progress.rows > 0);
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let progress = check
        .for_each(|_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .await?;
    assert_eq!((progress.rows, progress.primaries), (4 * 700, 700));
    assert_eq!((pages.load(Ordering::Relaxed), found.load(Ordering::Relaxed)), (3, 1));
    Ok(())
}

#[tokio::test]
async fn a_copy_that_follows_from_other_fields_is_not_read() -> Result<(), Error> {
    let staff = staff().await;
    edit(&staff, "email_smith1@contoso.com", "Email", "x@contoso.com").await;
    let path = Person::by_email().department("Sales").email("smith1@contoso.com");
    let error = staff.get(path).await.unwrap_err();
    assert!(error.is_decode(), "{error}");
    assert!(error.to_string().contains("check()"), "{error}");
    assert_eq!(staff.check().repair().await?, 1);
    Ok(())
}
