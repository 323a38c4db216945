//! Tests a new index over existing entities.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
};

use entable::{
    Cursor, ErrorKind, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    maintain::FindingKind,
    prelude::*,
};

use super::copies::{Person, person};

/// The entity of these rows in a program that knows no index yet.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Person"
)]
struct Old {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
}

fn old(person: &Person, department: &str) -> Old {
    Old {
        department: department.into(),
        id: person.id,
        first_name: person.first_name.clone(),
        last_name: person.last_name.clone(),
        age: person.age,
        email: person.email.clone(),
    }
}

/// Two partitions of 130 entities without copies.
async fn fill(client: &Client) {
    client.create_table("Staff").await.unwrap();
    let people = (0..260).map(|number| {
        let id = number % 130;
        let department = if number < 130 { "Marketing" } else { "Sales" };
        old(&person(id, if id % 3 == 0 { "Jones" } else { "Smith" }), department)
    });
    client.bulk().insert_all(people).await.unwrap().into_result().unwrap();
}

async fn rebuild_all(staff: &Table<Person>) -> Result<(), Error> {
    assert!(staff.rebuild(Person::by_email()).await?.is_complete());
    assert!(staff.rebuild(Person::by_name()).await?.is_complete());
    assert!(staff.rebuild(Person::adult()).await?.is_complete());
    assert!(staff.rebuild(Person::by_last_name()).await?.is_complete());
    Ok(())
}

#[tokio::test]
async fn old_data_gets_a_new_index() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    fill(&client).await;
    let staff = client.table::<Person>();
    recorder.clear();
    let report = staff.rebuild(Person::by_email()).await?;
    assert_eq!((report.primaries, report.written), (260, 260));
    let requests = recorder.take();
    let sent: usize = requests.iter().map(|request| request.operations()).sum();
    assert_eq!(sent, 2 * 260, "a guard and a copy each");
    assert_eq!(requests.iter().filter(|request| request.is_apply()).count(), 2 * 3);
    rebuild_all(&staff).await?;
    let check = staff.check().await?;
    assert!(check.is_clean(), "{:?}", check.findings);
    let again = staff.rebuild(Person::by_last_name()).await?;
    assert_eq!((again.primaries, again.written), (260, 0));
    let jones = Person::by_last_name().department("Sales").last_name("Jones");
    assert_eq!(staff.keys(jones).await?.len(), 44);
    Ok(())
}

#[tokio::test]
async fn a_rebuild_goes_on_where_it_was() -> Result<(), Error> {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build()?;
    fill(&client).await;
    let staff = client.table::<Person>();
    let saved: Arc<Mutex<Option<Cursor>>> = Arc::default();
    let mut failures = 0;
    for at in 0.. {
        // The answer of some later write is lost: it was carried out, and no page was reported.
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        fault.inject(RequestKind::Apply, at % 4, InjectedFault::After(lost));
        let cursor = saved.lock().unwrap().clone();
        let keep = saved.clone();
        let mut rebuild = staff
            .rebuild(Person::by_name())
            .page_size(70)
            .on_progress(move |progress| *keep.lock().unwrap() = progress.cursor.clone());
        if let Some(cursor) = cursor {
            rebuild = rebuild.from(cursor);
        }
        match rebuild.await {
            Ok(_) => break,
            Err(error) => assert!(error.is_backend(), "{error}"),
        }
        failures += 1;
    }
    fault.clear();
    assert!(failures > 2);
    rebuild_all(&staff).await?;
    assert!(staff.check().await?.is_clean());
    Ok(())
}

/// The deletion of a table takes some 40 seconds: no attempt of those that follow a lost race helps.
#[tokio::test]
async fn a_table_that_is_being_deleted_ends_a_rebuild() -> Result<(), Error> {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build()?;
    fill(&client).await;
    let staff = client.table::<Person>();
    let deleting =
        || Error::service(ServiceCode::TableBeingDeleted, "it is being deleted").at_operation(0);
    fault.inject(RequestKind::Apply, 0, InjectedFault::Before(deleting()));
    let error = staff.rebuild(Person::by_name()).await.unwrap_err();
    assert_eq!(error.service_code(), Some(&ServiceCode::TableBeingDeleted));
    fault.inject(RequestKind::Apply, 0, InjectedFault::Before(deleting()));
    let error = staff.rebuild(Person::by_last_name()).await.unwrap_err();
    assert_eq!(error.service_code(), Some(&ServiceCode::TableBeingDeleted));
    rebuild_all(&staff).await?;
    assert!(staff.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn a_cursor_is_for_its_index() -> Result<(), Error> {
    let client = Client::memory();
    fill(&client).await;
    let staff = client.table::<Person>();
    let saved: Arc<Mutex<Vec<Cursor>>> = Arc::default();
    let keep = saved.clone();
    let rebuild = staff.rebuild(Person::by_name()).page_size(100);
    rebuild
        .on_progress(move |progress| keep.lock().unwrap().extend(progress.cursor.clone()))
        .await?;
    let cursor = saved.lock().unwrap()[0].clone();
    let error = staff.rebuild(Person::by_email()).page_size(100).from(cursor).await.unwrap_err();
    assert!(error.is_invalid_cursor(), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_writer_works_on_beside_a_rebuild() -> Result<(), Error> {
    let client = Client::memory();
    fill(&client).await;
    let staff = client.table::<Person>();
    let writer = async {
        for round in 0..6 {
            for id in (round..130).step_by(7) {
                let point = Person::primary().department("Sales").id(id);
                tokio::task::yield_now().await;
                match id % 3 {
                    0 => drop(staff.delete_at(point).await?),
                    1 => drop(staff.patch_at(point, Person::patch().last_name("Brown")).await?),
                    _ => drop(staff.insert_or_replace(&person(id, "Miller")).await?),
                }
            }
        }
        Ok::<_, Error>(())
    };
    let rebuilds = async {
        tokio::try_join!(
            staff.rebuild(Person::by_email()).page_size(20).into_future(),
            staff.rebuild(Person::by_name()).page_size(30).into_future(),
            staff.rebuild(Person::by_last_name()).page_size(40).into_future(),
            staff.rebuild(Person::adult()).into_future(),
        )
    };
    let (written, rebuilt) = tokio::join!(writer, rebuilds);
    written?;
    let (by_email, by_name, by_last_name, adult) = rebuilt?;
    for report in [by_email, by_name, by_last_name, adult] {
        assert!(report.is_complete(), "{:?}", report.findings);
    }
    let check = staff.check().await?;
    assert!(check.is_clean(), "{:?}", check.findings);
    Ok(())
}

#[tokio::test]
async fn a_value_that_is_not_unique_is_told() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let staff = client.table_named::<Old>("Staff");
    staff.insert(&old(&person(1, "Jones"), "Sales")).await?;
    let mut other = person(2, "Jones");
    other.email = "JONES1@contoso.com".into();
    staff.insert(&old(&other, "Sales")).await?;
    let staff = client.table::<Person>();
    let report = staff.rebuild(Person::by_email()).await?;
    assert_eq!((report.written, report.findings.len()), (1, 1));
    assert_eq!(report.findings[0].primary.as_deref(), Some("empid_000002"));
    staff.check().repair().await?;
    let check = staff.check().await?;
    let kinds: Vec<FindingKind> = check.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::Contested]);
    Ok(())
}
