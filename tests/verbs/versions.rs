//! Tests copies of rows of older versions: checked, mended and rebuilt in the form of their
//! version.

use entable::{
    Condition,
    backend::{Memory, layer::Recorder},
    maintain::{Finding, FindingKind},
    prelude::*,
};

mod old {
    use entable::prelude::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Worker",
        index(ByMail, row_key = "email_{email}", unique, only(age)),
        index(ByName, row_key = "name_{name}_{id:06}"),
        list(ByAge, row_key = "age_{age}")
    )]
    pub struct WorkerV1 {
        pub department: String,
        pub id: u32,
        pub name: String,
        pub age: String,
        pub email: String,
    }
}

use old::WorkerV1;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 2,
    upgrade_from(WorkerV1),
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByName, row_key = "name_{name}_{id:06}"),
    list(ByName2, row_key = "both_{name}")
)]
pub struct Worker {
    pub department: String,
    pub id: u32,
    pub name: String,
    pub age: i32,
    pub email: String,
}

impl TryFrom<WorkerV1> for Worker {
    type Error = std::num::ParseIntError;

    fn try_from(old: WorkerV1) -> Result<Self, Self::Error> {
        let WorkerV1 { department, id, name, age, email } = old;
        Ok(Self { department, id, name, age: age.parse()?, email })
    }
}

fn first(id: u32) -> WorkerV1 {
    WorkerV1 {
        department: "Sales".into(),
        id,
        name: "Jones".into(),
        age: "34".into(),
        email: format!("j{id}@contoso.com"),
    }
}

fn second(id: u32) -> Worker {
    Worker { age: 34, ..Worker::try_from(first(id)).unwrap() }
}

/// Two entities of the version before, two of this one.
async fn staff() -> Table<Worker> {
    let client = Client::builder().backend(Recorder::around(Memory::new())).build().unwrap();
    let staff = client.table::<Worker>();
    staff.create().await.unwrap();
    let before = client.table::<WorkerV1>();
    for id in [1, 2] {
        before.insert(&first(id)).await.unwrap();
        staff.insert(&second(id + 2)).await.unwrap();
    }
    staff
}

type Found<'f> = (FindingKind, &'f str, &'f str, Option<&'f str>);

fn seen(findings: &[Finding]) -> Vec<Found<'_>> {
    findings.iter().map(|f| (f.kind, f.index, f.row_key.as_str(), f.primary.as_deref())).collect()
}

async fn markers(staff: &Table<Worker>) -> Vec<(String, String)> {
    let rows = staff.client().dynamic("Staff").query(Keys::partition("Sales")).collect().await;
    let marker = |row: &Stored<DynamicEntity>| {
        (row.row_key().to_owned(), row.entity_type().unwrap_or_default().to_owned())
    };
    rows.unwrap().iter().map(marker).collect()
}

#[tokio::test]
async fn rows_of_two_versions_are_clean_together() -> Result<(), Error> {
    let staff = staff().await;
    let report = staff.check().await?;
    assert_eq!(seen(&report.findings), []);
    assert_eq!(report.progress.primaries, 4, "those of the version before are among them");
    // The program of the version before sees only its own.
    let before = staff.client().table::<WorkerV1>().check().await?;
    assert_eq!((seen(&before.findings), before.progress.primaries), (vec![], 2));
    Ok(())
}

#[tokio::test]
async fn damage_to_older_rows_is_found_and_mended_in_their_form() -> Result<(), Error> {
    let staff = staff().await;
    let whole = markers(&staff).await;
    let rows = staff.client().dynamic("Staff");
    rows.delete("Sales", "email_j1@contoso.com", Condition::Any).await?;
    let mut name = rows.get("Sales", "name_Jones_000001").await?.unwrap();
    name.set("Age", "99");
    rows.replace(&name).await?;
    let mut list = rows.get("Sales", "age_34").await?.unwrap();
    list.set("Ids00", r#"["empid_000002","empid_000003"]"#);
    rows.replace(&list).await?;
    let mut orphan = DynamicEntity::new("Sales", "email_nobody@contoso.com");
    for (property, value) in
        [("EntityType", "Worker#ByMail"), ("Age", "1"), ("Email", "nobody@contoso.com")]
    {
        orphan.set(property, value);
    }
    orphan.set("Id", 7_i64);
    rows.insert(&orphan).await?;
    let report = staff.check().await?;
    assert_eq!(
        seen(&report.findings),
        [
            (FindingKind::Missing, "ByAge", "age_34", Some("empid_000001")),
            (FindingKind::Orphan, "ByAge", "age_34", Some("empid_000003")),
            (FindingKind::Missing, "ByMail", "email_j1@contoso.com", Some("empid_000001")),
            (FindingKind::Orphan, "ByMail", "email_nobody@contoso.com", None),
            (FindingKind::Stale, "ByName", "name_Jones_000001", Some("empid_000001")),
        ]
    );
    assert_eq!(report.repair().await?, 5);
    assert_eq!(seen(&staff.check().await?.findings), []);
    assert_eq!(markers(&staff).await, whole, "as the version before wrote them");
    let name = rows.get("Sales", "name_Jones_000001").await?.unwrap();
    assert_eq!(name.str("Age")?, "34");
    Ok(())
}

#[tokio::test]
async fn what_a_newer_program_wrote_is_left_alone() -> Result<(), Error> {
    let staff = staff().await;
    let rows = staff.client().dynamic("Staff");
    let newer = DynamicEntity::new("Sales", "empid_000009").with("EntityType", "Worker.v3");
    rows.insert(&newer).await?;
    let copy =
        DynamicEntity::new("Sales", "name_New_000009").with("EntityType", "Worker.v3#ByName");
    rows.insert(&copy).await?;
    let mut list = rows.get("Sales", "both_Jones").await?.unwrap();
    list.set("Ids00", r#"["empid_000003","empid_000004","empid_000009"]"#);
    rows.replace(&list).await?;
    let report = staff.check().await?;
    assert_eq!(seen(&report.findings), []);
    assert_eq!(staff.check().repair().await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_id_of_a_row_of_another_type_is_an_orphan() -> Result<(), Error> {
    let staff = staff().await;
    let rows = staff.client().dynamic("Staff");
    rows.insert(&DynamicEntity::new("Sales", "note").with("EntityType", "Note")).await?;
    let mut list = rows.get("Sales", "both_Jones").await?.unwrap();
    list.set("Ids00", r#"["empid_000003","note","empid_000004"]"#);
    rows.replace(&list).await?;
    let report = staff.check().await?;
    assert_eq!(
        seen(&report.findings),
        [(FindingKind::Orphan, "ByName2", "both_Jones", Some("note"))]
    );
    assert_eq!(report.repair().await?, 1);
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn rebuild_writes_older_rows_in_their_form() -> Result<(), Error> {
    let staff = staff().await;
    let whole = markers(&staff).await;
    let rows = staff.client().dynamic("Staff");
    for id in 1..=4 {
        rows.delete("Sales", &format!("name_Jones_00000{id}"), Condition::Any).await?;
    }
    let report = staff.rebuild(Worker::by_name()).await?;
    assert_eq!((report.primaries, report.written, report.older), (4, 4, 0));
    assert!(report.is_complete());
    assert_eq!(markers(&staff).await, whole);
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn an_index_that_older_rows_do_not_have_waits_for_their_upgrade() -> Result<(), Error> {
    let staff = staff().await;
    let rows = staff.client().dynamic("Staff");
    rows.delete("Sales", "email_j3@contoso.com", Condition::Any).await?;
    rows.delete("Sales", "both_Jones", Condition::Any).await?;
    let report = staff.rebuild(Worker::by_email()).await?;
    assert_eq!((report.written, report.older, report.findings.len()), (1, 2, 0), "{report:?}");
    assert!(!report.is_complete());
    let list = staff.rebuild(Worker::by_name2()).await?;
    assert_eq!((list.written, list.older), (2, 2));
    assert!(staff.check().await?.is_clean());
    staff.upgrade_all().await?.into_result()?;
    assert!(staff.check().await?.is_clean());
    let report = staff.rebuild(Worker::by_email()).await?;
    assert_eq!((report.written, report.older), (0, 0), "the upgrade wrote its copies");
    assert!(report.is_complete());
    Ok(())
}

#[tokio::test]
async fn a_violation_names_the_holder_of_an_older_version() -> Result<(), Error> {
    let staff = staff().await;
    let mut other = second(5);
    other.email = "J1@contoso.com".into();
    // The partial copy of the version before, of an index by another name.
    let error = staff.insert(&other).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.index(), Some("ByEmail"));
    assert_eq!(error.keys(), Some(("Sales", "email_j1@contoso.com")));
    assert_eq!(error.holder(), Some(("Sales", "empid_000001")));
    assert!(error.message().contains("`empid_000001`"), "{error}");
    assert!(!error.message().contains("orphan"), "{error}");
    Ok(())
}
