//! Tests an entity without copies: one request per verb.

use entable::{
    ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Address {
    pub city: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub age: i32,
    pub salary: Option<f64>,
    #[table(json)]
    pub tags: Vec<String>,
    #[table(flatten(prefix = "Home"))]
    pub home: Address,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Contact {
    id: u32,
    first_name: String,
}

fn employee(id: u32, age: i32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: "Don".into(),
        age,
        salary: None,
        tags: vec!["a".into()],
        home: Address { city: "Berlin".into() },
    }
}

async fn staff() -> (Recorder, Table<Employee>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create_if_not_exists().await.unwrap();
    recorder.clear();
    (recorder, staff)
}

#[tokio::test]
async fn an_entity_moves_to_another_row_key_in_one_request() -> Result<(), Error> {
    let (recorder, staff) = staff().await;
    let mut don = staff.insert(&employee(1, 34)).await?;
    recorder.clear();
    don.id = 2;
    let moved = staff.replace(&don).await?;
    // The answer is that of the new row. That of the old one, a deletion, has no ETag.
    assert_eq!(recorder.count(), 1, "{recorder}");
    let at = |id| Employee::primary().department("Sales").id(id);
    assert_eq!(staff.get(at(2)).await?.map(|found| found.etag()), Some(moved.etag()));
    assert!(staff.get(at(1)).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn every_verb_is_one_request() -> Result<(), Error> {
    let (recorder, staff) = staff().await;
    let requests = |expected: usize| {
        assert_eq!(recorder.count(), expected, "{recorder}");
        recorder.clear();
    };
    let point = || Employee::primary().department("Sales").id(223);
    let mut don = staff.insert(&employee(223, 34)).await?;
    requests(1);
    don.age = 36;
    let old = don.clone();
    let don = staff.replace(&don).await?;
    requests(1);
    assert_eq!(don.age, 36);
    assert!(staff.replace(&old).await.unwrap_err().is_precondition_failed());
    requests(1);
    let read = staff.get(point()).await?.unwrap();
    requests(1);
    assert_eq!((&*read, read.etag()), (&*don, don.etag()));
    staff.patch_at(point(), Employee::patch().age(35).salary(10.5)).await?;
    requests(1);
    staff.patch_at(point(), Employee::patch().remove_salary()).await?;
    requests(2);
    let don = staff
        .update(point(), |e| {
            e.age += 1;
            Ok(())
        })
        .await?;
    requests(2);
    assert_eq!((don.age, don.salary), (36, None));
    assert_eq!(staff.get_as::<Contact>(point()).await?.unwrap().id, 223);
    requests(1);
    staff.insert_or_replace(&employee(224, 1)).await?;
    staff.insert_or_merge(&employee(225, 1)).await?;
    staff.replace_any(&employee(225, 2)).await?;
    staff.delete(&don).await?;
    assert!(!staff.delete_at(point()).await?);
    requests(5);
    Ok(())
}

/// Three partitions, so that groups end in any order, and each form of input: what fails is found in the input.
#[tokio::test]
async fn a_failure_indexes_the_input() -> Result<(), Error> {
    const TAKEN: [u32; 4] = [3, 104, 205, 340];
    let of = |id| Employee { department: format!("d{}", id % 3), ..employee(id, 1) };
    let input: Vec<Employee> = (1..=350).map(of).collect();
    let found = |report: &BulkReport| {
        assert_eq!(report.done, 346, "{report:?}");
        report.failed.iter().map(|failure| input[failure.index].id).collect::<Vec<_>>()
    };
    let with_taken = async || {
        let (_, staff) = staff().await;
        for id in TAKEN {
            staff.insert(&of(id)).await.unwrap();
        }
        staff
    };
    let bulk = async || with_taken().await.bulk().concurrency(8);
    assert_eq!(found(&bulk().await.insert_all(&input).await?), TAKEN, "a reference");
    assert_eq!(found(&bulk().await.insert_all(&input[..]).await?), TAKEN, "a slice");
    assert_eq!(found(&bulk().await.insert_all(input.clone()).await?), TAKEN, "values");
    assert_eq!(found(&bulk().await.insert_all(input.iter()).await?), TAKEN, "an iterator");
    let stream = futures_util::stream::iter(input.clone());
    assert_eq!(found(&bulk().await.insert_stream(stream).await?), TAKEN, "a stream");

    let (_, staff) = staff().await;
    let stored = staff.bulk().insert_all(&input).await?;
    assert!(stored.is_complete());
    let mut read = Vec::new();
    for one in &input {
        read.push(staff.get(one.point()).await?.unwrap());
    }
    for id in TAKEN {
        let point = Employee::primary().department(format!("d{}", id % 3)).id(id);
        staff.patch_at(point, Employee::patch().age(9)).await?;
    }
    let report = staff.bulk().concurrency(8).delete_all(read).await?;
    assert_eq!(found(&report), TAKEN, "stored entities under stale ETags");
    assert!(report.failed.iter().all(|failure| failure.error.is_precondition_failed()));
    let error = report.into_result().unwrap_err();
    assert_eq!(error.failed_index().map(|index| input[index].id), Some(TAKEN[0]));
    Ok(())
}

/// The service sends a transaction of one change as a request without positions.
#[tokio::test]
async fn a_refused_change_has_its_position_also_alone() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let staff = Client::builder().backend(faults.clone()).build()?.table::<Employee>();
    staff.create().await?;
    let refused = || Error::service(ServiceCode::EntityAlreadyExists, "the row exists");
    for (count, position) in [(1, Some(0)), (2, None)] {
        let mut transaction = staff.transaction();
        (0..count).try_for_each(|id| transaction.insert(&employee(id, 34)).map(drop))?;
        faults.inject(RequestKind::Apply, 0, InjectedFault::Before(refused()));
        let error = transaction.commit().await.unwrap_err();
        assert_eq!((error.is_conflict(), error.failed_index()), (true, position), "{error}");
    }
    faults.inject(RequestKind::Apply, 0, InjectedFault::Before(refused()));
    let error = staff.insert(&employee(1, 34)).await.unwrap_err();
    assert_eq!(error.failed_index(), None, "a verb has no positions");
    Ok(())
}

#[tokio::test]
async fn bulk_says_what_failed() -> Result<(), Error> {
    let (recorder, staff) = staff().await;
    staff.insert(&employee(223, 0)).await?;
    recorder.clear();
    let rows = (1..=250).map(|id| employee(id, 1));
    let report = staff.bulk().concurrency(4).insert_all(rows).await?;
    assert_eq!((report.done, report.failed.len(), report.failed[0].index), (249, 1, 222));
    assert_eq!(recorder.count(), 4, "three transactions, one of them again without the conflict");
    let paged = staff.query(Employee::primary().department("Sales")).page_size(50).take(120);
    recorder.clear();
    assert_eq!(paged.collect().await?.len(), 120);
    assert_eq!(recorder.count(), 3);
    Ok(())
}

#[tokio::test]
async fn a_key_field_is_filtered_by_its_key() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.bulk().insert_all((1..=250).map(|id| employee(id, 1))).await?;
    let all = staff.query(Employee::scan()).filter(Employee::ID.ge(240)).select::<Contact>();
    assert_eq!(all.explain().filter, "(EntityType eq 'Employee') and (RowKey ge 'empid_000240')");
    assert_eq!(all.collect().await?.len(), 11);
    Ok(())
}
