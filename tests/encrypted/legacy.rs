//! Tests the migration of rows that earlier storage libraries encrypted.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use entable::{
    EdmType, Row, SealFault, ValueRef,
    backend::{Memory, layer::Recorder},
    prelude::*,
    seal::legacy::{LegacyKeyUnwrap, LegacyKeys, UnwrapFuture, WrappedKey, Zeroizing},
};
use serde_json::Value as Json;

use crate::fixture::{keyring, put, stored, value, with};

fn keys() -> LegacyKeys {
    LegacyKeys::new()
        .aes("local:test-aes-kek-1", std::array::from_fn(|at| u8::try_from(at).unwrap()))
}

/// A row as one of the libraries wrote it.
fn row(vector: &str) -> Row {
    use base64::Engine;
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("vectors/legacy-encryption/{vector}.json"));
    let vector: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let stored = vector["stored_row"].as_object().unwrap();
    let text = |name: &str| stored[name].as_str().unwrap();
    let mut row = Row::build(text("PartitionKey"), text("RowKey"));
    for (name, value) in stored {
        if ["PartitionKey", "RowKey", "Timestamp"].contains(&&**name) || name.contains("odata.") {
            continue;
        }
        let edm = stored.get(&format!("{name}@odata.type")).and_then(Json::as_str);
        match (edm, value.as_str()) {
            (Some("Edm.Binary"), Some(v)) => {
                row.put(
                    name,
                    ValueRef::Binary(&base64::prelude::BASE64_STANDARD.decode(v).unwrap()),
                );
            }
            (Some("Edm.Int64"), Some(v)) => row.put(name, ValueRef::Int64(v.parse().unwrap())),
            (_, Some(v)) => row.put(name, ValueRef::String(v)),
            (_, None) => {
                row.put(name, ValueRef::Int32(i32::try_from(value.as_i64().unwrap()).unwrap()))
            }
        }
    }
    row.finish().unwrap()
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:05}",
    index(ByEmail, row_key = "email_{email}")
)]
struct Person {
    department: String,
    id: u32,
    #[table(encrypt)]
    first_name: String,
    // Encrypted by the old program, and not declared so.
    last_name: String,
    email: String,
    age: i64,
}

/// An entity without a copy, so that a patch is a merge without a read.
#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:05}")]
struct Alone {
    department: String,
    id: u32,
    #[table(encrypt)]
    first_name: String,
}

#[tokio::test]
async fn legacy_rows_become_modern_ones_under_if_match() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let legacy = row("v1-01-simple");
    put(&client, legacy.clone()).await;
    put(&client, with(&row("v1-02-unicode"), "EntityType", Some("Other".into()))).await;
    let people = client.table::<Person>();

    // Onto a row of the old format nothing is merged.
    let dynamic = client.dynamic("Staff");
    let mut read = dynamic.get("Sales", "00001").await.unwrap().unwrap();
    read.set("Age", 1_i64);
    recorder.clear();
    let error = dynamic.patch(&read).await.unwrap_err();
    assert_eq!((error.is_unsupported(), recorder.count()), (true, 0));

    // A value that was merged in the meantime by a program of this crate is kept.
    let point = Alone::primary().department("Sales").id(1);
    let patch = Alone::patch().first_name("Augusta");
    client.table::<Alone>().patch_at(point, patch).await.unwrap();

    let before = stored(&client, "Sales", "00001").await;
    let report = people.migrate_legacy(keys()).dry_run().await.unwrap();
    assert_eq!((report.rewritten, report.remaining, report.failed.len()), (0, 2, 1), "{report:?}");
    assert!(!report.is_complete());
    assert_eq!(stored(&client, "Sales", "00001").await, before);

    let report = people.migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.remaining), (1, 1), "{report:?}");
    // The row of another type is still in the old format.
    let [left] = &report.failed[..] else { panic!("{report:?}") };
    assert!(left.error.is_unrecognized_entity() && !report.is_complete(), "{report:?}");
    let person = people.get(Person::primary().department("Sales").id(1)).await.unwrap().unwrap();
    assert_eq!(
        (person.first_name.as_str(), person.last_name.as_str(), person.age),
        ("Augusta", "Lovelace", 36)
    );
    let row = stored(&client, "Sales", "00001").await;
    assert_eq!(value(&row, "_ClientEncryptionMetadata1"), None);
    assert_eq!(value(&row, "_ClientEncryptionMetadata2"), None);
    for name in ["FirstName", "LastName"] {
        assert_eq!(value(&row, name).unwrap().edm_type(), EdmType::Binary, "{name}");
    }
    assert_eq!(value(&row, "Email").unwrap().edm_type(), EdmType::String);
    people.rebuild(Person::by_email()).await.unwrap();
    let by_email = Person::by_email().department("Sales").email("ada@example.com");
    assert!(people.get(by_email).await.unwrap().is_some());
    assert!(people.check().await.unwrap().is_clean());
    assert_eq!(people.migrate_legacy(keys()).await.unwrap().rewritten, 0);
}

#[tokio::test]
async fn a_row_that_does_not_decrypt_stays_as_it_is() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let legacy = row("v1-01-simple");
    let torn = with(&legacy, "FirstName", Some(bytes::Bytes::from_static(&[7; 16]).into()));
    put(&client, torn.clone()).await;
    let report = client.table::<Person>().migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.failed.len()), (0, 1));
    assert_eq!(report.failed[0].error.seal_fault(), Some(SealFault::Authentication));
    assert_eq!(
        value(&stored(&client, "Sales", "00001").await, "FirstName"),
        value(&torn, "FirstName")
    );
    // And so does one that does not fit the entity.
    put(&client, with(&legacy, "Age", Some("old".into()))).await;
    let report = client.table::<Person>().migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.failed.len()), (0, 1));
    assert!(report.failed[0].error.is_decode());
}

#[tokio::test]
async fn a_row_of_the_old_format_that_is_not_of_the_entity_is_listed() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let legacy = row("v1-01-simple");
    put(&client, legacy.clone()).await;
    let mut strange = Row::build("Sales", "~00001");
    let mut properties = legacy.properties();
    while let Some((name, value)) = properties.next().unwrap() {
        strange.put(std::str::from_utf8(name).unwrap(), value);
    }
    put(&client, strange.finish().unwrap()).await;
    let report = client.table::<Person>().migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (1, false), "{report:?}");
    let [left] = &report.failed[..] else { panic!("{report:?}") };
    assert_eq!((left.row_key.as_str(), left.error.is_unrecognized_entity()), ("~00001", true));
}

#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{owner}", row_key = "{title}")]
struct Note {
    owner: String,
    title: String,
    #[table(encrypt)]
    secret: String,
    plain: String,
}

#[tokio::test]
async fn a_row_key_with_unescaped_signs_is_escaped() {
    let (owner, title) = ("O'Brien & Söhne + 100% =:;,@!", "a'b''c (x) $ ~ %2F");
    let legacy = row("v1-07-special-keys");
    assert_eq!(legacy.keys(), (owner, title));
    // Rows of the old libraries name no type; a program may have written one beside its properties.
    for named in [None, Some("Note".into())] {
        let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
        client.create_table("Staff").await.unwrap();
        put(&client, with(&legacy, "EntityType", named)).await;
        let notes = client.table::<Note>();
        let report = notes.migrate_legacy(keys()).dry_run().await.unwrap();
        assert_eq!((report.remaining, report.failed.len()), (1, 0), "{report:?}");
        let report = notes.migrate_legacy(keys()).await.unwrap();
        assert_eq!((report.rewritten, report.is_complete()), (1, true), "{report:?}");
        let note = notes.get(Note::primary().owner(owner).title(title)).await.unwrap().unwrap();
        assert_eq!(note.row_key(), "a'b''c (x) $ ~7E %2F");
        assert_eq!((&*note.title, &*note.secret, &*note.plain), (title, "it's", "p"));
        let row = stored(&client, owner, note.row_key()).await;
        assert_eq!(value(&row, "Secret").unwrap().edm_type(), EdmType::Binary);
        // The old row is gone.
        assert_eq!(notes.query(Note::scan()).collect().await.unwrap().len(), 1);
        assert_eq!(notes.migrate_legacy(keys()).await.unwrap().rows, 0);
    }
}

#[tokio::test]
async fn a_row_key_that_is_taken_in_its_escaped_form_is_listed() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let legacy = row("v1-07-special-keys");
    let (owner, title) = legacy.keys();
    put(&client, legacy.clone()).await;
    let notes = client.table::<Note>();
    let [secret, plain] = ["newer", "n"].map(str::to_owned);
    let newer = Note { owner: owner.into(), title: title.into(), secret, plain };
    notes.insert(&newer).await.unwrap();
    let report = notes.migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.remaining), (0, 1), "{report:?}");
    let [left] = &report.failed[..] else { panic!("{report:?}") };
    assert_eq!((left.row_key.as_str(), left.error.is_conflict()), (title, true), "{report:?}");
    assert!(left.error.to_string().contains("`~7E`"), "{report:?}");
    let kept = stored(&client, owner, title).await;
    assert_eq!(value(&kept, "Secret"), value(&legacy, "Secret"));
    let note = notes.get(Note::primary().owner(owner).title(title)).await.unwrap().unwrap();
    assert_eq!(note.secret, "newer");
}

/// An entity that encrypts nothing: its legacy rows decrypt under any keys.
#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{title}")]
struct Poster {
    department: String,
    title: String,
}

/// Two operations for each row: a page has more than a transaction takes.
#[tokio::test]
async fn a_page_of_row_keys_to_escape_takes_several_transactions() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    // Java wrote no list of names where nothing was encrypted.
    let java = row("v1-j08-none-encrypted");
    let metadata = value(&java, "_ClientEncryptionMetadata1").unwrap();
    for number in 0..90 {
        let mut row = Row::build("Sales", &format!("{number:02}~"));
        row.put("_ClientEncryptionMetadata1", metadata.as_ref());
        put(&client, row.finish().unwrap()).await;
    }
    let posters = client.table::<Poster>();
    let report = posters.migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (90, true), "{report:?}");
    let titles = posters.query(Poster::scan()).collect().await.unwrap();
    assert!(titles.len() == 90 && titles.iter().all(|poster| poster.title.ends_with('~')));
}

/// A key store that is asked over the network, and that answers or not.
struct KeyStore {
    content_key: Vec<u8>,
    is_up: AtomicBool,
}

impl LegacyKeyUnwrap for KeyStore {
    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> UnwrapFuture<'a> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert_eq!(wrapped.algorithm, "A256KW");
            if !self.is_up.load(Ordering::SeqCst) {
                let fault = SealFault::KeyUnavailable { retryable: true };
                return Err(Error::seal(fault, "the key store does not answer").into());
            }
            Ok(Some(Zeroizing::new(self.content_key.clone())))
        })
    }
}

#[tokio::test]
async fn a_key_store_is_awaited_and_may_be_down() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    put(&client, row("v1-01-simple")).await;
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/legacy-encryption/v1-01-simple.json");
    let vector: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let content_key = vector["intermediate"]["cek_hex"].as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&content_key[2 * at..2 * at + 2], 16).unwrap();
    let content_key = (0..32).map(byte).collect();
    let key_store = Arc::new(KeyStore { content_key, is_up: AtomicBool::new(false) });
    let keys = || LegacyKeys::new().unwrapper(key_store.clone());
    let people = client.table::<Person>();
    let report = people.migrate_legacy(keys()).await.unwrap();
    let [left] = &report.failed[..] else { panic!("{report:?}") };
    let fault = Some(SealFault::KeyUnavailable { retryable: true });
    assert_eq!((left.error.seal_fault(), report.remaining), (fault, 1));
    key_store.is_up.store(true, Ordering::SeqCst);
    let report = people.migrate_legacy(keys()).await.unwrap();
    assert_eq!((report.rewritten, report.remaining), (1, 0), "{report:?}");
}
