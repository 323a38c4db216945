//! Tests unique violations: each names both rows, and an orphan is recognised.
#![allow(clippy::duplicated_attributes, reason = "`unique` belongs to the index around it")]

use entable::{Condition, prelude::*};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{hired:%Y%m%d}_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByBadge, row_key = "badge_{badge}", unique, only(name)),
    index(ByDesk, row_key = "desk_{desk}", except(name)),
    index(ByPlate, row_key = "plate_{plate}", except(id))
)]
struct Employee {
    department: String,
    hired: time::Date,
    id: u32,
    name: String,
    email: String,
    badge: u16,
    desk: String,
    plate: String,
}

fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales/North".into(),
        hired: time::macros::date!(2014 - 08 - 22),
        id,
        name: "Don".into(),
        email: format!("don{id}@contoso.com"),
        badge: u16::try_from(id).unwrap(),
        desk: format!("d{id}"),
        plate: format!("p{id}"),
    }
}

const PARTITION: &str = "Sales~2FNorth";
const FIRST: (&str, &str) = (PARTITION, "20140822_000001");

async fn staff() -> Table<Employee> {
    let staff = Client::memory().table::<Employee>();
    staff.create().await.unwrap();
    staff.insert(&employee(1)).await.unwrap();
    staff
}

async fn rows(staff: &Table<Employee>) -> usize {
    let rows = staff.client().dynamic("Staff").query(Keys::partition(PARTITION));
    rows.collect().await.unwrap().len()
}

fn assert_held(error: &Error, index: &str, row_key: &str) {
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.index(), Some(index), "{error}");
    assert_eq!(error.keys(), Some((PARTITION, row_key)), "{error}");
    assert_eq!(error.holder(), Some(FIRST), "{error}");
    assert!(!error.message().contains("orphan"), "{error}");
}

type Clash = (&'static str, &'static str, fn(&mut Employee));

/// One for a full unique copy, a partial one, and one that is not declared unique.
const CLASHES: [Clash; 3] = [
    ("ByEmail", "email_don1@contoso.com", |e| e.email = "DON1@contoso.com".into()),
    ("ByBadge", "badge_00001", |e| e.badge = 1),
    ("ByDesk", "desk_d1", |e| e.desk = "d1".into()),
];

#[tokio::test]
async fn the_holder_is_named_by_every_verb() -> Result<(), Error> {
    let staff = staff().await;
    let second = staff.insert(&employee(2)).await?;
    let point = || Employee::primary().department("Sales/North").hired(second.hired).id(2);
    let before = rows(&staff).await;
    for (index, row_key, clash) in CLASHES {
        let mut third = employee(3);
        clash(&mut third);
        assert_held(&staff.insert(&third).await.unwrap_err(), index, row_key);
        assert_held(&staff.insert_or_replace(&third).await.unwrap_err(), index, row_key);
        assert_held(&staff.insert_or_merge(&third).await.unwrap_err(), index, row_key);
        let mut changed = second.clone();
        clash(&mut changed);
        assert_held(&staff.replace(&changed).await.unwrap_err(), index, row_key);
        assert_held(&staff.replace_any(&changed).await.unwrap_err(), index, row_key);
        let updated = staff.update(point(), |e| {
            clash(e);
            Ok(())
        });
        let updated = updated.await;
        assert_held(&updated.unwrap_err(), index, row_key);
        let mut egt = staff.transaction();
        egt.insert(&employee(4))?.replace(&changed)?.insert(&employee(5))?;
        let error = egt.commit().await.unwrap_err();
        assert_held(&error, index, row_key);
        assert_eq!(error.failed_index(), Some(1));
        assert_eq!(rows(&staff).await, before, "nothing is written");
    }
    let error = staff.patch_at(point(), Employee::patch().badge(1_u16)).await.unwrap_err();
    assert_held(&error, "ByBadge", "badge_00001");
    Ok(())
}

#[tokio::test]
async fn bulk_names_the_holder_of_each() -> Result<(), Error> {
    let staff = staff().await;
    let mut all: Vec<Employee> = (2..40).map(employee).collect();
    for (at, (.., clash)) in [5, 17, 30].into_iter().zip(CLASHES) {
        clash(&mut all[at]);
    }
    let report = staff.bulk().insert_all(&all).await?;
    assert_eq!((report.done, report.failed.len()), (35, 3), "{report:?}");
    for ((failure, at), (index, row_key, _)) in report.failed.iter().zip([5, 17, 30]).zip(CLASHES) {
        assert_eq!(failure.index, at);
        assert_held(&failure.error, index, row_key);
    }
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn two_of_one_transaction_name_each_other() -> Result<(), Error> {
    let staff = staff().await;
    for (index, _, clash) in CLASHES {
        let (mut second, mut third) = (employee(2), employee(3));
        (second.badge, second.desk) = (900, "d900".into());
        clash(&mut second);
        clash(&mut third);
        // The key is free: who had it goes in the same transaction.
        let first = staff.query(Employee::primary().department("Sales/North")).first().await?;
        let mut egt = staff.transaction();
        egt.insert(&second)?.delete(&first.unwrap())?.insert(&third)?;
        let error = egt.commit().await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!((error.index(), error.failed_index()), (Some(index), Some(2)));
        assert_eq!(error.holder(), Some((PARTITION, "20140822_000002")), "{error}");
        assert_eq!(rows(&staff).await, 5, "nothing is written");
    }
    Ok(())
}

#[tokio::test]
async fn an_orphan_is_called_one() -> Result<(), Error> {
    let staff = staff().await;
    let dynamic = staff.client().dynamic("Staff");
    dynamic.delete(PARTITION, FIRST.1, Condition::Any).await?;
    for (index, row_key, clash) in CLASHES {
        let mut second = employee(2);
        clash(&mut second);
        let error = staff.insert(&second).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!((error.index(), error.holder()), (Some(index), None));
        assert_eq!(error.keys(), Some((PARTITION, row_key)));
        assert!(error.message().contains("orphan"), "{error}");
        assert!(error.message().contains("`20140822_000001`"), "{error}");
    }
    // Its entity is there, and has another email by now.
    let first = employee(1);
    assert!(staff.insert(&first).await.unwrap_err().message().contains("orphan"));
    assert_eq!(staff.check().repair().await?, 4);
    staff.insert(&first).await?;
    let mut row = dynamic.get(PARTITION, FIRST.1).await?.unwrap();
    row.set("Email", "else@contoso.com");
    dynamic.replace(&row).await?;
    let mut second = employee(2);
    second.email = "don1@contoso.com".into();
    let error = staff.insert(&second).await.unwrap_err();
    assert!(error.holder().is_none() && error.message().contains("orphan"), "{error}");
    staff.check().repair().await?;
    staff.insert(&second).await?;
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn a_row_that_does_not_say_whose_it_is_is_named_alone() -> Result<(), Error> {
    let staff = staff().await;
    let mut second = employee(2);
    second.plate = "p1".into();
    let error = staff.insert(&second).await.unwrap_err();
    assert_eq!((error.index(), error.holder()), (Some("ByPlate"), None));
    assert_eq!(error.keys(), Some((PARTITION, "plate_p1")));
    assert!(error.message().contains("a row of `Employee#ByPlate`"), "{error}");
    // A row of another program, and a copy that cannot be read.
    let dynamic = staff.client().dynamic("Staff");
    dynamic.insert(&DynamicEntity::new(PARTITION, "desk_d7").with("EntityType", "Note")).await?;
    dynamic.insert(&DynamicEntity::new(PARTITION, "desk_d8")).await?;
    let broken = DynamicEntity::new(PARTITION, "desk_d9").with("EntityType", "Employee#ByDesk");
    dynamic.insert(&broken).await?;
    for (desk, text) in
        [("d7", "a row of `Note`"), ("d8", "does not say its type"), ("d9", "`Employee#ByDesk`")]
    {
        let mut third = employee(3);
        third.desk = desk.into();
        let error = staff.insert(&third).await.unwrap_err();
        assert!(error.is_unique_violation() && error.holder().is_none(), "{error}");
        assert!(error.message().contains(text), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_partial_copy_says_whose_it_is() -> Result<(), Error> {
    #[derive(Debug, PartialEq, Projection)]
    #[table(of = Employee)]
    struct Whose {
        department: String,
        hired: time::Date,
        id: u32,
        badge: u16,
    }
    let staff = staff().await;
    let path = Employee::by_badge().department("Sales/North").badge(1);
    let whose = staff.get_as::<Whose>(path).await?.unwrap();
    let first = employee(1);
    let expected = Whose {
        department: first.department,
        hired: first.hired,
        id: first.id,
        badge: first.badge,
    };
    assert_eq!(*whose, expected);
    Ok(())
}
