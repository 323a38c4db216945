//! Tests single rows of the design guide that sets, versions and projections answer.

use std::collections::BTreeSet;

use entable::{
    Bag,
    backend::{
        BoxFuture,
        layer::{FaultInjector, InjectedFault, Request, RequestKind},
    },
    prelude::*,
    table::Target,
};

use crate::fixture::*;

/// A summary that is read instead of the rows that it sums up.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "summary")]
pub struct Summary {
    pub department: String,
    pub employees: i32,
    pub ages: i64,
}

#[tokio::test]
async fn d05_a_summary_is_kept_in_the_same_transaction() -> Result<(), Error> {
    let (recorder, client) = client().await;
    let summaries = client.table::<Summary>();
    let empty = Summary { department: "Sales".into(), employees: 0, ages: 0 };
    let mut summary = summaries.insert(&empty).await?;
    for id in 1..=3 {
        summary.employees += 1;
        summary.ages += i64::from(employee(id).age);
        let mut egt = client.transaction();
        egt.insert(&employee(id))?.replace(&summary)?;
        egt.commit().await?;
        summary = summaries.get(Summary::primary().department("Sales")).await?.unwrap();
    }
    recorder.clear();
    let summary = summaries.get(Summary::primary().department("Sales")).await?.unwrap();
    assert_eq!((summary.employees, summary.ages / 3), (3, 34));
    assert_eq!(recorder.count(), 1);
    Ok(())
}

mod rekeyed {
    use super::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "e{id:04}",
        entity_type = "Worker"
    )]
    pub struct Old {
        pub department: String,
        pub id: u32,
    }

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "worker_{id:06}",
        entity_type = "Worker",
        version = 2,
        upgrade_from(Old)
    )]
    pub struct Worker {
        pub department: String,
        pub id: u32,
    }

    impl From<Old> for Worker {
        fn from(Old { department, id }: Old) -> Self {
            Self { department, id }
        }
    }

    /// A worker whose department is spread over four partitions.
    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}_{id:bucket(4)}",
        row_key = "e{id:04}",
        entity_type = "SpreadWorker"
    )]
    pub struct Spread {
        pub department: String,
        pub id: u32,
    }

    /// Takes workers over in the form with the other PartitionKey.
    pub struct Spreading(pub Table<Spread>);

    impl Target<Old> for Spreading {
        fn put<'a>(&'a self, old: &'a Stored<Old>) -> BoxFuture<'a, Result<(), BoxError>> {
            let spread = Spread { department: old.department.clone(), id: old.id };
            Box::pin(async move { Ok(self.0.insert_or_replace(&spread).await.map(drop)?) })
        }
    }
}

#[tokio::test]
async fn d12_changed_keys_are_migrated_within_their_partition() -> Result<(), Error> {
    let (_, client) = client().await;
    let rows = (1..=120).map(|id| rekeyed::Old { department: "Sales".into(), id });
    client.bulk().insert_all(rows).await?;
    let workers = client.table::<rekeyed::Worker>();
    let report = workers.upgrade_all().await?;
    assert_eq!((report.done, report.failed.len()), (120, 0), "{report:?}");
    let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
    assert_eq!(rows.len(), 120);
    assert!(rows.iter().all(|row| row.row_key().starts_with("worker_")));
    let one = workers.get(rekeyed::Worker::primary().department("Sales").id(120)).await?;
    assert_eq!(one.unwrap().id, 120);
    Ok(())
}

#[tokio::test]
async fn d12_a_changed_partition_key_is_migrated_entity_by_entity() -> Result<(), Error> {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build()?;
    let (old, spread) = (client.table::<rekeyed::Old>(), client.table::<rekeyed::Spread>());
    old.create().await?;
    let rows = (1..=120).map(|id| rekeyed::Old { department: "Sales".into(), id });
    client.bulk().insert_all(rows).await?;

    let migrate = async || {
        let target = rekeyed::Spreading(spread.clone());
        let sales = rekeyed::Old::primary().department("Sales");
        for row in old.query(sales).collect().await? {
            let point = rekeyed::Old::primary().department("Sales").id(row.id);
            old.transfer(point, &target).await?;
        }
        Ok::<(), Error>(())
    };
    // The program ends in the middle: one entity is in both places, none in neither.
    let lost = Error::new(ErrorKind::Backend, "connection lost");
    fault.inject(RequestKind::Apply, 101, InjectedFault::Before(lost));
    assert!(migrate().await.unwrap_err().is_backend());
    let keys = async |sales: Keys| client.dynamic("Staff").query(sales).collect().await;
    let ids = async || {
        let mut rows = keys(Keys::partition("Sales")).await?;
        for bucket in 0..4 {
            rows.extend(keys(Keys::partition(format!("Sales_{bucket}"))).await?);
        }
        Ok::<_, Error>(rows.iter().map(|row| row.row_key().to_owned()).collect::<Vec<_>>())
    };
    let between = ids().await?;
    let distinct: BTreeSet<&String> = between.iter().collect();
    assert_eq!((between.len(), distinct.len()), (121, 120));

    migrate().await?;
    assert_eq!(keys(Keys::partition("Sales")).await?.len(), 0);
    assert_eq!(ids().await?.len(), 120);
    let one = spread.get(rekeyed::Spread::primary().department("Sales").id(120)).await?;
    assert_eq!(one.unwrap().id, 120);
    Ok(())
}

#[tokio::test]
async fn v02_another_type_than_expected_is_an_error() -> Result<(), Error> {
    let (_, client) = client().await;
    let wrong = DynamicEntity::new("Sales", "empid_000001").with("EntityType", "Department");
    client.dynamic("Staff").insert(&wrong).await?;
    let get = client.table::<Employee>().get(Employee::primary().department("Sales").id(1)).await;
    let error = get.unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!(error.entity_type(), Some("Department"));
    Ok(())
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Age {
    id: u32,
    age: i32,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Department)]
struct Count {
    employee_count: i32,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Review)]
struct Rating {
    year: u32,
    rating: i32,
}

#[derive(Debug, PartialEq, EntitySet)]
enum Figures {
    Age(Age),
    Count(Count),
    Rating(Rating),
}

#[tokio::test]
async fn v18_a_selection_keeps_what_says_the_type() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).select::<Figures>();
    let expected =
        ["PartitionKey", "RowKey", "Timestamp", "EntityType", "Age", "EmployeeCount", "Rating"];
    assert_eq!(rows.explain().select, expected);
    let found = rows.collect().await?;
    let Some(Request::Scan { select: Some(select), .. }) = recorder.requests().first().cloned()
    else {
        panic!("{recorder}")
    };
    assert_eq!(select, expected);
    assert_eq!(*found[0], Figures::Count(Count { employee_count: 1 }));
    assert_eq!(*found[1], Figures::Age(Age { id: 223, age: 34 }));
    assert_eq!(*found[2], Figures::Rating(Rating { year: 2012, rating: 3 }));
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "open_{id:06}")]
pub struct Open {
    pub department: String,
    pub id: u32,
    pub age: i32,
    #[table(extra)]
    pub extra: Bag,
}

#[tokio::test]
async fn w06_a_replace_keeps_what_the_struct_does_not_know() -> Result<(), Error> {
    let (_, client) = client().await;
    let dynamic = client.dynamic("Staff");
    let richer = DynamicEntity::new("Sales", "open_000001")
        .with("EntityType", "Open")
        .with("Age", 34)
        .with("Badge", "gold")
        .with("Floor", 7_i64);
    dynamic.insert(&richer).await?;
    let table = client.table::<Open>();
    let mut open = table.get(Open::primary().department("Sales").id(1)).await?.unwrap();
    open.age = 35;
    open.extra.remove("Floor");
    table.replace(&open).await?;
    let row = dynamic.get("Sales", "open_000001").await?.unwrap();
    assert_eq!((row.i32("Age")?, row.str("Badge")?), (35, "gold"));
    assert_eq!(row.get("Floor"), None);
    Ok(())
}
