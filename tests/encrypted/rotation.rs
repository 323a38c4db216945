//! Tests `reencrypt`: rows of a retired key are found and sealed again.

use std::sync::{Arc, Mutex};

use entable::{
    Error, KeyScope, Keyring, PlaintextPolicy, SealFault, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
    seal::key_id_of,
};

use crate::fixture::{
    Employee, all_stored, client, employee, key, keyring, point, put, root, stored, value, with,
};

/// Keys with `primary` in use, and `other` to read with.
fn both(primary: u8, other: u8) -> Keyring {
    let scope = KeyScope::default_scope();
    let builder =
        Keyring::builder().primary(&scope, &root(primary)).decrypt_only(&scope, &root(other));
    builder.blind_token_key(&scope, 1, &root(100)).build().unwrap()
}

fn open(recorder: &Recorder, keys: Keyring) -> Client {
    Client::builder().backend(recorder.clone()).keys(keys).build().unwrap()
}

async fn ids(client: &Client) -> Vec<u8> {
    let mut ids = Vec::new();
    for row in all_stored(client).await {
        for (_, value) in row.to_bag().unwrap().iter() {
            if let Some(Ok(Some(id))) = value.as_bytes().map(key_id_of) {
                ids.push((1..9).find(|byte| key(*byte).id() == id).unwrap());
            }
        }
    }
    ids
}

#[tokio::test]
async fn rows_and_copies_of_a_retired_key_are_sealed_again() {
    let (before, recorder) = client().await;
    before.bulk().insert_all((0..120).map(employee)).await.unwrap();
    let after = open(&recorder, both(2, 1));
    let staff = after.table::<Employee>();
    staff.insert_or_replace(&employee(500)).await.unwrap();
    recorder.clear();
    let report = staff.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    // Primary, full copy and partial copy of each; the one of the new key is not even read.
    assert_eq!((report.rows, report.rewritten, report.is_complete()), (360, 360, true));
    assert!(recorder.count() <= 6, "{}", recorder.count());
    assert!(ids(&after).await.iter().all(|id| *id == 2));
    let report = staff.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    assert_eq!(report.rows, 0);
    assert_eq!(staff.reencrypt().await.unwrap().rewritten, 0);
    let alone = open(&recorder, keyring(2)).table::<Employee>();
    assert_eq!(alone.query(Employee::scan()).collect().await.unwrap().len(), 121);
    assert!(alone.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn it_goes_on_where_it_stopped_and_beside_writers() {
    let (before, recorder) = client().await;
    before.bulk().insert_all((0..60).map(employee)).await.unwrap();
    let after = open(&recorder, both(2, 1));
    let staff = after.table::<Employee>();
    let cursors = Arc::new(Mutex::new(Vec::new()));
    let seen = cursors.clone();
    let writer = {
        let staff = staff.clone();
        tokio::spawn(async move {
            for round in 0..40_u32 {
                let id = round % 60;
                staff
                    .update(point(id), |e| {
                        e.bonus = Some(i64::from(round));
                        Ok(())
                    })
                    .await
                    .unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    let report = staff
        .reencrypt()
        .page_size(50)
        .on_progress(move |p| seen.lock().unwrap().push(p.clone()))
        .await
        .unwrap();
    writer.await.unwrap();
    assert!(report.is_complete());
    let recorded = cursors.lock().unwrap().clone();
    assert!(recorded.len() >= 3 && recorded.last().unwrap().cursor.is_none());
    let report =
        staff.reencrypt().page_size(50).resume(recorded[1].cursor.clone().unwrap()).await.unwrap();
    assert!(report.rows < 120, "{report:?}");
    let error = staff
        .reencrypt()
        .encrypted_with(key(1).id())
        .resume(recorded[1].cursor.clone().unwrap())
        .await
        .unwrap_err();
    assert!(error.is_invalid_cursor());
    assert_eq!(staff.reencrypt().await.unwrap().rewritten, 0);
    assert!(ids(&after).await.iter().all(|id| *id == 2));
    let bonus = staff.get(point(39)).await.unwrap().unwrap().bonus;
    assert_eq!(bonus, Some(39));
    assert!(staff.check().await.unwrap().is_clean());
}

/// A row of a table that was deleted is no row that another writer was first to delete.
#[tokio::test]
async fn a_table_that_is_deleted_meanwhile_ends_it() {
    let fault = FaultInjector::around(Memory::new());
    let open = |keys| Client::builder().backend(fault.clone()).keys(keys).build().unwrap();
    let before = open(keyring(1));
    before.create_table("Staff").await.unwrap();
    before.bulk().insert_all((0..3).map(employee)).await.unwrap();
    let staff = open(both(2, 1)).table::<Employee>();
    for code in [ServiceCode::TableNotFound, ServiceCode::TableBeingDeleted] {
        let gone = Error::service(code.clone(), "the table is gone");
        fault.inject(RequestKind::Apply, 0, InjectedFault::Before(gone));
        let error = staff.reencrypt().await.unwrap_err();
        assert_eq!(error.service_code(), Some(&code));
    }
    assert_eq!(staff.reencrypt().await.unwrap().rewritten, 9);
}

#[tokio::test]
async fn rows_that_do_not_open_are_told_and_left() {
    let (before, recorder) = client().await;
    let staff = before.table::<Employee>();
    for id in [1, 2] {
        staff.insert(&employee(id)).await.unwrap();
    }
    let one = stored(&before, "Sales", "empid_000001").await;
    let two = stored(&before, "Sales", "empid_000002").await;
    put(&before, with(&one, "Ssn", value(&two, "Ssn"))).await;
    let report = open(&recorder, both(2, 1)).table::<Employee>().reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.failed.len()), (5, 1));
    assert_eq!(report.failed[0].error.seal_fault(), Some(SealFault::Authentication));
    assert_eq!(report.failed[0].row_key, "empid_000001");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Person",
    partition_key = "p",
    row_key = "{id:03}",
    index(Again, row_key = "z_{id:03}")
)]
struct Plain {
    id: u16,
    ssn: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Person",
    partition_key = "p",
    row_key = "{id:03}",
    index(Again, row_key = "z_{id:03}")
)]
struct Person {
    id: u16,
    #[table(encrypt, blind)]
    ssn: String,
}

#[tokio::test]
async fn rows_from_before_the_encryption_are_sealed_under_allow() {
    let recorder = Recorder::around(Memory::new());
    let client = |policy| {
        Client::builder()
            .backend(recorder.clone())
            .keys(keyring(1))
            .plaintext(policy)
            .build()
            .unwrap()
    };
    let strict = client(PlaintextPolicy::Reject);
    strict.create_table("Staff").await.unwrap();
    for id in 0..5 {
        strict.table::<Plain>().insert(&Plain { id, ssn: "s".into() }).await.unwrap();
    }
    let report = strict.table::<Person>().reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.failed.len()), (0, 10));
    let report = client(PlaintextPolicy::Allow).table::<Person>().reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (10, true));
    let people = strict.table::<Person>();
    let found =
        people.query(Person::primary()).filter(Person::SSN.eq("s")).collect().await.unwrap();
    assert_eq!(found.len(), 5);
    assert!(people.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn sealed_entities_are_sealed_again_as_wholes() {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}", seal)]
    struct Contract {
        id: u16,
        amount: i32,
        #[table(encrypt(hide_none))]
        secret: Option<String>,
    }
    let (before, recorder) = client().await;
    for id in 0..3 {
        before.table::<Contract>().insert(&Contract { id, amount: 1, secret: None }).await.unwrap();
    }
    let after = open(&recorder, both(2, 1)).table::<Contract>();
    let report = after.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    assert_eq!((report.rows, report.rewritten), (3, 3));
    let alone = open(&recorder, keyring(2)).table::<Contract>();
    assert_eq!(alone.query(Contract::primary()).collect().await.unwrap().len(), 3);
    assert_eq!(alone.reencrypt().encrypted_with(key(1).id()).await.unwrap().rows, 0);
}

#[tokio::test]
async fn a_row_that_is_too_large_when_sealed_is_told_and_stops_nothing() {
    let recorder = Recorder::around(Memory::new());
    let builder = || Client::builder().backend(recorder.clone()).keys(keyring(1));
    let strict = builder().build().unwrap();
    strict.create_table("Staff").await.unwrap();
    for id in 0..6 {
        let ssn = if id == 2 { "\u{4e2d}".repeat(32_760) } else { "s".into() };
        strict.table::<Text>().insert(&Text { id, ssn }).await.unwrap();
    }
    let allowing = builder().plaintext(PlaintextPolicy::Allow).build().unwrap();
    let report = allowing.table::<Secret>().reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.failed.len()), (5, 1));
    assert!(report.failed[0].error.is_too_large() && report.failed[0].row_key == "002");
    let rows = strict.table::<Secret>().query(Secret::primary()).results().collect().await.unwrap();
    assert_eq!(rows.iter().filter(|row| row.is_ok()).count(), 5);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Text", partition_key = "p", row_key = "{id:03}")]
struct Text {
    id: u16,
    ssn: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Text", partition_key = "p", row_key = "{id:03}")]
struct Secret {
    id: u16,
    #[table(encrypt)]
    ssn: String,
}

#[tokio::test]
async fn a_length_that_a_dynamic_writer_showed_is_hidden_again() {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Padded {
        id: u16,
        #[table(encrypt(pad = 256))]
        note: String,
        #[table(encrypt(hide_none))]
        bonus: Option<i64>,
        age: i32,
    }
    let (client, _) = client().await;
    let padded = client.table::<Padded>();
    padded.insert(&Padded { id: 1, note: "n".into(), bonus: None, age: 1 }).await.unwrap();
    padded.insert(&Padded { id: 2, note: "n".into(), bonus: Some(7), age: 1 }).await.unwrap();
    let lengths = || async {
        let mut lengths = Vec::new();
        for row in all_stored(&client).await {
            for name in ["Note", "Bonus"] {
                let bytes = value(&row, name).unwrap();
                lengths.push(bytes.as_bytes().unwrap().len() - 51);
            }
        }
        lengths
    };
    // An absent value is as long as one that is there.
    assert_eq!(lengths().await, [256, 32, 256, 32]);
    let dynamic = client.dynamic("Staff");
    let mut one = dynamic.get("p", "001").await.unwrap().unwrap();
    one.set("Age", 2);
    dynamic.replace(&one).await.unwrap();
    assert_ne!(lengths().await, [256, 32, 256, 32]);
    assert_eq!(padded.reencrypt().await.unwrap().rewritten, 1);
    assert_eq!(lengths().await, [256, 32, 256, 32]);
    assert_eq!(padded.reencrypt().await.unwrap().rewritten, 0);
}
