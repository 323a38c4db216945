//! Tests writes under an ETag that a caller has from elsewhere, and updates that insert what is not there.

use entable::{
    Client, ErrorKind, Filter, KeyScope, Keyring, RootKey,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

macro_rules! employee {
    ($name:ident $(, $setting:meta)*) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = "Staff",
            entity_type = "Employee",
            partition_key = "{department}",
            row_key = "empid_{id:06}"
            $(, $setting)*
        )]
        struct $name {
            department: String,
            id: u32,
            age: i32,
            nickname: Option<String>,
        }

        impl $name {
            fn new(age: i32) -> Self {
                Self { department: "Sales".into(), id: 7, age, nickname: None }
            }
        }
    };
}

employee!(Plain);
employee!(Closed, drop_unknown);
employee!(Indexed, drop_unknown, index(ByAge, row_key = "age_{age:03}_{id:06}"));

fn plain(id: u32) -> Point<Plain> {
    Plain::primary().department("Sales").id(id)
}

/// A table with one entity, which holds a property that no struct declares.
async fn staff<E: TableEntity>(entity: &E) -> (Recorder, Table<E>, String) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<E>();
    staff.create().await.unwrap();
    let written = staff.insert(entity).await.unwrap();
    let mut row = client.dynamic("Staff").get("Sales", "empid_000007").await.unwrap().unwrap();
    row.set("Badge", "blue");
    let etag = client.dynamic("Staff").patch(&row).await.unwrap().etag().to_string();
    assert_ne!(written.etag().to_string(), etag);
    recorder.clear();
    (recorder, staff, etag)
}

async fn badge<E: TableEntity>(staff: &Table<E>) -> bool {
    let row = staff.client().dynamic("Staff").get("Sales", "empid_000007").await.unwrap().unwrap();
    row.row().get("Badge").unwrap().is_some()
}

#[tokio::test]
async fn a_replacement_under_an_etag_is_one_request_where_nothing_has_to_be_kept() {
    let (recorder, staff, etag) = staff(&Closed::new(30)).await;
    let written = staff.replace(&Stored::under(Closed::new(31), etag.as_str())).await.unwrap();
    assert_eq!((recorder.take().len(), written.age), (1, 31));
    assert!(!badge(&staff).await);
    let next = Stored::under(Closed::new(32), written.etag());
    assert_eq!(staff.replace(&next).await.unwrap().age, 32);
    recorder.clear();
    let late = staff.replace(&next).await.unwrap_err();
    assert!(late.is_precondition_failed(), "{late}");
    assert_eq!(recorder.take().len(), 1);
    assert_eq!(staff.get(Closed::new(0).point()).await.unwrap().unwrap().age, 32);
}

#[tokio::test]
async fn a_replacement_under_an_etag_keeps_what_the_struct_does_not_declare() {
    let (recorder, staff, etag) = staff(&Plain::new(30)).await;
    let written = staff.replace(&Stored::under(Plain::new(31), etag.as_str())).await.unwrap();
    assert_eq!((recorder.take().len(), written.age), (2, 31));
    assert!(badge(&staff).await);
    let late = staff.replace(&Stored::under(Plain::new(32), etag.as_str())).await.unwrap_err();
    assert!(late.is_precondition_failed(), "{late}");
    assert_eq!(recorder.take().iter().filter(|request| request.is_apply()).count(), 0);
    assert_eq!(staff.get(plain(7)).await.unwrap().unwrap().age, 31);
}

#[tokio::test]
async fn writes_under_an_etag_keep_copies_exact() {
    let (recorder, staff, etag) = staff(&Indexed::new(30)).await;
    let written = staff.replace(&Stored::under(Indexed::new(31), etag.as_str())).await.unwrap();
    assert_eq!(recorder.take().len(), 2);
    assert!(staff.check().await.unwrap().is_clean());
    let ages = staff.query(Indexed::by_age().department("Sales")).collect().await.unwrap();
    assert_eq!(ages.iter().map(|one| one.age).collect::<Vec<_>>(), [31]);

    // The value says another age than the store: its copy goes all the same.
    staff.delete(&Stored::under(Indexed::new(99), written.etag())).await.unwrap();
    let dynamic = staff.client().dynamic("Staff");
    let rows = dynamic.query(Filter::Constant(true)).allow_scan().collect().await.unwrap();
    assert!(rows.is_empty(), "{rows:?}");
}

#[tokio::test]
async fn a_deletion_under_an_etag_is_one_request() {
    let (recorder, staff, etag) = staff(&Plain::new(30)).await;
    let old = Stored::under(Plain::new(30), "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"");
    assert!(staff.delete(&old).await.unwrap_err().is_precondition_failed());
    staff.delete(&Stored::under(Plain::new(30), etag.as_str())).await.unwrap();
    assert_eq!(recorder.take().len(), 2);
    assert!(staff.get(plain(7)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_patch_under_an_etag_removes_from_what_is_stored() {
    let stored = Plain { nickname: Some("Jo".into()), ..Plain::new(30) };
    let (_, staff, etag) = staff(&stored).await;
    let under = Stored::under(Plain::new(0), etag.as_str());
    staff.patch(&under, Plain::patch().remove_nickname()).await.unwrap();
    assert_eq!(staff.get(plain(7)).await.unwrap().unwrap().into_inner(), Plain::new(30));
    assert!(badge(&staff).await);
    let late = staff.patch(&under, Plain::patch().age(31)).await.unwrap_err();
    assert!(late.is_precondition_failed(), "{late}");
}

#[tokio::test]
async fn what_is_no_etag_of_a_version_writes_nothing() {
    let (recorder, staff, etag) = staff(&Closed::new(30)).await;
    let any = staff.replace(&Stored::under(Closed::new(31), "*")).await.unwrap_err();
    assert_eq!(any.kind(), ErrorKind::Invalid, "{any}");
    assert_eq!(recorder.take().len(), 0);
    let strong = etag.trim_start_matches("W/");
    let strong = staff.replace(&Stored::under(Closed::new(31), strong)).await.unwrap_err();
    assert!(strong.is_precondition_failed(), "{strong}");

    let invalid = Closed { id: 1_000_000, ..Closed::new(31) };
    let invalid = Stored::under(invalid, etag.as_str());
    assert!(staff.replace(&invalid).await.unwrap_err().is_invalid());
    assert!(staff.delete(&invalid).await.unwrap_err().is_invalid());
    let gone = Stored::under(Closed { id: 8, ..Closed::new(31) }, etag.as_str());
    assert!(staff.replace(&gone).await.unwrap_err().is_not_found());
    assert_eq!(staff.get(Closed::new(0).point()).await.unwrap().unwrap().age, 30);
}

#[tokio::test]
async fn what_is_not_there_is_inserted_as_it_is() {
    let (recorder, staff, _) = staff(&Plain::new(30)).await;
    let new = Plain { id: 8, ..Plain::new(1) };
    let older = |one: &mut Plain| -> Result<(), BoxError> {
        one.age += 1;
        Ok(())
    };
    let inserted = staff.update_or_insert(plain(8), new.clone(), older).await.unwrap();
    assert_eq!((recorder.take().len(), inserted.age), (2, 1));
    let updated = staff.update_or_insert(plain(8), new.clone(), older).await.unwrap();
    assert_eq!((recorder.take().len(), updated.age), (2, 2));

    let other = staff.update_or_insert(plain(9), new, older).await.unwrap_err();
    assert!(other.is_invalid(), "{other}");
    assert_eq!(recorder.take().len(), 0);
}

#[tokio::test]
async fn writers_who_insert_at_once_lose_no_update() {
    let (_, staff, _) = staff(&Plain::new(30)).await;
    let count = |one: &mut Plain| -> Result<(), BoxError> {
        one.age += 1;
        Ok(())
    };
    let all =
        (0..8).map(|_| {
            // A client of its own each: they do not take turns.
            let staff = Client::builder()
                .backend(staff.client().backend().clone())
                .build()
                .unwrap()
                .table::<Plain>();
            async move {
                staff.update_or_insert(plain(8), Plain { id: 8, ..Plain::new(1) }, count).await
            }
        });
    for written in futures_util::future::join_all(all).await {
        written.unwrap();
    }
    assert_eq!(staff.get(plain(8)).await.unwrap().unwrap().age, 8);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Patients", partition_key = "{ssn:hmac}", row_key = "is", drop_unknown)]
struct Patient {
    #[table(encrypt)]
    ssn: String,
    visits: i32,
}

#[tokio::test]
async fn a_value_under_an_etag_has_the_blind_tokens_of_its_keys() {
    let recorder = Recorder::around(Memory::new());
    let root = RootKey::from_bytes([7; 32]);
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder()
        .primary(&scope, &root)
        .blind_token_key(&scope, 1, &root)
        .build()
        .unwrap();
    let client = Client::builder().backend(recorder.clone()).keys(keys).build().unwrap();
    let patients = client.table::<Patient>();
    patients.create().await.unwrap();
    let patient = |visits| Patient { ssn: "078-05-1120".into(), visits };
    let first = patients.insert(&patient(1)).await.unwrap().etag();

    let under = Stored::under(patient(2), first);
    assert_eq!(patients.get(under.point()).await.unwrap().unwrap().visits, 1);
    recorder.clear();
    let written = patients.replace(&under).await.unwrap();
    assert_eq!((recorder.take().len(), written.visits), (2, 2), "it is read first");
    assert!(patients.replace(&under).await.unwrap_err().is_precondition_failed());
    let same = patients.update_or_insert(patient(0).point(), patient(9), |one| {
        one.visits += 1;
        Ok(())
    });
    assert_eq!(same.await.unwrap().visits, 3);
    let etag = patients.get(patient(0).point()).await.unwrap().unwrap().etag();
    patients.delete(&Stored::under(patient(0), etag)).await.unwrap();
    assert!(patients.get(patient(0).point()).await.unwrap().is_none());
}
