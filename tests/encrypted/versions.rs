//! Tests blind token keys of several versions at once: a change is rolled out process by process.

use std::sync::Arc;

use entable::{KeyScope, Keyring, backend::Memory, prelude::*};

use crate::fixture::root;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "e_{id:04}",
    index(BySsn, row_key = "ssn_{ssn:hmac}")
)]
struct Person {
    department: String,
    id: u32,
    #[table(encrypt)]
    ssn: String,
}

fn person(id: u32) -> Person {
    Person { department: "Sales".into(), id, ssn: format!("123-45-{id:04}") }
}

/// A client that uses one version, and knows the two beside it.
fn client(memory: &Arc<Memory>, current: u32) -> Client {
    let scope = KeyScope::default_scope();
    let mut keys = Keyring::builder().primary(&scope, &root(1));
    for version in current.saturating_sub(1).max(1)..=current + 1 {
        let root = root(100 + u8::try_from(version).unwrap());
        keys = if version == current {
            keys.blind_token_key(&scope, version, &root)
        } else {
            keys.blind_token_key_for_lookups(&scope, version, &root)
        };
    }
    Client::builder().backend(memory.clone()).keys(keys.build().unwrap()).build().unwrap()
}

#[tokio::test]
async fn processes_before_and_after_the_change_read_each_other() {
    for current in 1..6 {
        let memory = Arc::new(Memory::new());
        let (before, after) = (client(&memory, current), client(&memory, current + 1));
        before.create_table("Staff").await.unwrap();
        before.table::<Person>().insert(&person(1)).await.unwrap();
        after.table::<Person>().insert(&person(2)).await.unwrap();
        for reader in [&before, &after] {
            let copies = reader.table::<Person>().query(Person::by_ssn().department("Sales"));
            assert_eq!(copies.collect().await.unwrap().len(), 2, "{current}");
        }
    }
}

#[tokio::test]
async fn a_set_makes_the_tokens_of_its_rows_again() {
    #[derive(Debug, Clone, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "mail_{email:hmac}")]
    struct Mail {
        #[table(plaintext)]
        email: String,
    }
    #[derive(Debug, EntitySet)]
    enum Rows {
        #[allow(dead_code)]
        Mail(Mail),
    }
    let memory = Arc::new(Memory::new());
    let client = client(&memory, 1);
    client.create_table("Staff").await.unwrap();
    for email in ["ada@example.com", "bob@example.com"] {
        client.table::<Mail>().insert(&Mail { email: email.into() }).await.unwrap();
    }
    let rows = client.set::<Rows>("Staff").query(Keys::partition("p"));
    let all = rows.collect().await.unwrap();
    assert_eq!(all.len(), 2);
    // Another program puts another value behind a token.
    let raw = client.dynamic("Staff");
    let mut one = raw.get("p", all[0].row_key()).await.unwrap().unwrap();
    one.set("Email", "eve@example.com");
    raw.replace(&one).await.unwrap();
    let results = rows.results().collect().await.unwrap();
    assert_eq!(results.iter().filter(|row| row.is_ok()).count(), 1);
    assert!(results.iter().filter_map(|row| row.as_ref().err()).all(Error::is_decode));
}
