//! Tests rows that do not open, and writes that are refused: typed errors, one row each, never
//! plain text.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use entable::{
    BlindTokenKey, DataKey, KeyId, KeyProvider, KeyScope, Keyring, PlaintextPolicy, SealFault,
    backend::{Memory, layer::Recorder},
    prelude::*,
    seal::KeyFuture,
};
use futures_util::StreamExt;

use crate::fixture::{
    Employee, client, employee, key, keyring, point, put, ring, root, stored, value, with,
};

fn reader(client: &Client, keys: impl KeyProvider, policy: PlaintextPolicy) -> Client {
    Client::builder()
        .backend(client.backend().clone())
        .keys(keys)
        .plaintext(policy)
        .build()
        .unwrap()
}

#[tokio::test]
async fn without_keys_nothing_is_written_and_nothing_is_handed_out() {
    let (with_keys, recorder) = client().await;
    with_keys.table::<Employee>().insert(&employee(1)).await.unwrap();
    let keyless = Client::builder().backend(recorder.clone()).build().unwrap();
    recorder.clear();
    let staff = keyless.table::<Employee>();
    for error in [
        staff.insert_or_replace(&employee(2)).await.unwrap_err(),
        staff.patch_at(point(1), Employee::patch().ssn("9")).await.unwrap_err(),
        keyless
            .bulk()
            .insert_or_replace_all([employee(2)])
            .await
            .unwrap()
            .into_result()
            .unwrap_err(),
        staff.get(point(1)).await.unwrap_err(),
        staff.query(Employee::primary().department("Sales")).collect().await.unwrap_err(),
    ] {
        assert!(error.is_key_unavailable(), "{error}");
        assert_eq!(error.seal_fault(), Some(SealFault::KeyUnavailable { retryable: false }));
    }
    assert!(recorder.requests().iter().all(|request| !request.is_apply()));
    // A reader of no type is handed out the bytes as they are stored, and can write them back.
    let raw = keyless.dynamic("Staff").get("Sales", "empid_000001").await.unwrap().unwrap();
    assert!(raw.bytes("Ssn").is_ok());
    keyless.dynamic("Staff").replace(&raw).await.unwrap();
    assert_eq!(*with_keys.table::<Employee>().get(point(1)).await.unwrap().unwrap(), employee(1));
}

#[tokio::test]
async fn a_value_opens_at_its_own_place_only() {
    let (client, _) = client().await;
    let staff = client.table::<Employee>();
    for id in [1, 2] {
        staff.insert(&employee(id)).await.unwrap();
    }
    let (one, two) = (
        stored(&client, "Sales", "empid_000001").await,
        stored(&client, "Sales", "empid_000002").await,
    );
    let copy = stored(&client, "Sales", "email_jonesj1@contoso.com").await;
    let moved = [
        (value(&two, "Ssn"), "from another row"),
        (value(&one, "Salary"), "from another property"),
        (value(&copy, "Ssn"), "from its own copy"),
    ];
    for (bytes, from) in moved {
        put(&client, with(&one, "Ssn", bytes)).await;
        let error = staff.get(point(1)).await.unwrap_err();
        assert!(error.is_decrypt(), "{from}");
        assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{from}");
        assert_eq!(error.keys(), Some(("Sales", "empid_000001")));
        assert_eq!(error.property(), Some("Ssn"), "{from}");
    }
    // Another table of that name and these keys opens nothing either.
    #[derive(Debug, TableEntity)]
    #[table(
        name = "Others",
        entity_type = "Employee",
        partition_key = "{department}",
        row_key = "empid_{id:06}"
    )]
    struct Elsewhere {
        department: String,
        id: u32,
        #[table(encrypt)]
        ssn: String,
    }
    put(&client, one).await;
    let others = client.table_named::<Elsewhere>("Staff");
    let point = Elsewhere::primary().department("Sales").id(1);
    assert_eq!(others.get(point).await.unwrap_err().seal_fault(), Some(SealFault::Authentication));
}

#[tokio::test]
async fn swapped_copies_are_refused_and_mended() {
    let (client, _) = client().await;
    let staff = client.table::<Employee>();
    for id in [1, 2] {
        staff.insert(&employee(id)).await.unwrap();
    }
    let keys = ["email_jonesj1@contoso.com", "email_jonesj2@contoso.com"];
    let bob = stored(&client, "Sales", keys[1]).await;
    // The operator fills one index row with the contents of the other.
    let mut forged = entable::Row::build("Sales", keys[0]);
    for (name, value) in bob.to_bag().unwrap().iter() {
        forged.put(name, value.as_ref());
    }
    put(&client, forged.finish().unwrap()).await;
    let by_email = Employee::by_email().department("Sales").email("jonesj1@contoso.com");
    assert!(staff.get(by_email.clone()).await.unwrap_err().is_decrypt());
    let report = staff.check().await.unwrap();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.repair().await.unwrap(), 1);
    assert_eq!(*staff.get(by_email).await.unwrap().unwrap(), employee(1));
    assert!(staff.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_bad_row_spoils_no_other_row_of_its_page() {
    let (client, recorder) = client().await;
    let staff = client.table::<Employee>();
    client.bulk().insert_all((0..9).map(employee)).await.unwrap();
    let five = stored(&client, "Sales", "empid_000005").await;
    put(&client, with(&five, "Ssn", Some(Value::from("999-99-9999")))).await;
    recorder.clear();
    let query = staff.query(Employee::primary().department("Sales").id_range(0..9));
    let items: Vec<_> = query.stream().collect().await;
    assert_eq!((items.len(), recorder.count()), (9, 1));
    for (at, item) in items.iter().enumerate() {
        match item {
            Ok(read) => assert_eq!(**read, employee(u32::try_from(at).unwrap())),
            Err(error) => {
                assert_eq!((at, error.seal_fault()), (5, Some(SealFault::NotEncrypted)));
                assert!(!format!("{error:?} {error}").contains("999-99"));
            }
        }
    }
    assert_eq!(items.iter().filter(|item| item.is_err()).count(), 1);
    assert!(query.collect().await.unwrap_err().is_decrypt());
}

#[tokio::test]
async fn plain_values_are_read_during_a_migration_only() {
    let (client, _) = client().await;
    let staff = client.table::<Employee>();
    staff.insert(&employee(1)).await.unwrap();
    let row = stored(&client, "Sales", "empid_000001").await;
    for (name, plain) in [("Ssn", Value::from("plain")), ("Salary", Value::from(1.5))] {
        put(&client, with(&row, name, Some(plain))).await;
        assert_eq!(
            staff.get(point(1)).await.unwrap_err().seal_fault(),
            Some(SealFault::NotEncrypted)
        );
        let lenient = reader(&client, keyring(1), PlaintextPolicy::Allow);
        assert!(lenient.table::<Employee>().get(point(1)).await.is_ok(), "{name}");
    }
    // An absent value that is hidden elsewhere was taken away.
    put(&client, with(&row, "Bonus", None)).await;
    assert_eq!(staff.get(point(1)).await.unwrap_err().property(), Some("Bonus"));
    // Under `Allow` a value that is sealed has to open all the same.
    let two = with(&row, "Ssn", value(&row, "Salary"));
    put(&client, two).await;
    let lenient = reader(&client, keyring(1), PlaintextPolicy::Allow);
    assert!(lenient.table::<Employee>().get(point(1)).await.unwrap_err().is_decrypt());
}

#[tokio::test]
async fn an_older_version_does_not_bring_plain_values_in() {
    #[derive(Debug, TableEntity)]
    #[table(name = "Staff", entity_type = "Person", partition_key = "p", row_key = "{id:03}")]
    struct PersonV1 {
        id: u16,
        ssn: String,
    }
    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        entity_type = "Person",
        version = 2,
        upgrade_from(PersonV1),
        partition_key = "p",
        row_key = "{id:03}"
    )]
    struct Person {
        id: u16,
        #[table(encrypt)]
        ssn: String,
    }
    impl From<PersonV1> for Person {
        fn from(old: PersonV1) -> Self {
            Self { id: old.id, ssn: old.ssn }
        }
    }
    let (client, _) = client().await;
    client.table::<PersonV1>().insert(&PersonV1 { id: 1, ssn: "123".into() }).await.unwrap();
    let people = client.table::<Person>();
    let error = people.get(Person::primary().id(1)).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted));

    let migrating = reader(&client, keyring(1), PlaintextPolicy::Allow).table::<Person>();
    assert_eq!(migrating.get(Person::primary().id(1)).await.unwrap().unwrap().ssn, "123");
    assert!(migrating.upgrade_all().await.unwrap().is_complete());
    assert_eq!(people.get(Person::primary().id(1)).await.unwrap().unwrap().ssn, "123");
    let row = stored(&client, "p", "001").await;
    assert_eq!(value(&row, "Ssn").unwrap().edm_type(), entable::EdmType::Binary);
}

/// A key store that can be down for one scope, and counts what it is asked.
#[derive(Debug, Clone)]
struct Store {
    ring: Keyring,
    is_down: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Store {
    fn new(ring: Keyring) -> Self {
        Self { ring, is_down: Arc::default(), asked: Arc::default() }
    }
}

impl KeyProvider for Store {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        self.ring.scope_of(partition_key)
    }
    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        self.asked.fetch_add(1, SeqCst);
        self.ring.primary(scope)
    }
    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        self.asked.fetch_add(1, SeqCst);
        if self.is_down.load(SeqCst) && scope.name() == "it" {
            let fault = SealFault::KeyUnavailable { retryable: true };
            return Box::pin(
                async move { Err(Error::seal(fault, "the key store does not answer")) },
            );
        }
        self.ring.get(scope, id)
    }
    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        self.ring.fetch_blind_token_key(scope, version)
    }
}

fn scoped(scopes: &[(&str, u8)]) -> Keyring {
    let mut builder = Keyring::builder();
    for (name, byte) in scopes {
        builder = builder.primary(&KeyScope::named(name), &root(*byte));
    }
    builder.scopes(|partition_key| KeyScope::named(&partition_key.to_lowercase())).build().unwrap()
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{tenant}", row_key = "{id:03}")]
struct Note {
    tenant: String,
    id: u16,
    #[table(encrypt)]
    text: String,
}

#[tokio::test]
async fn a_page_needs_each_key_once_and_a_key_that_is_down_spoils_its_rows_only() {
    let recorder = Recorder::around(Memory::new());
    let store = Store::new(scoped(&[("hr", 1), ("it", 2)]));
    let client = Client::builder().backend(recorder.clone()).keys(store.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let notes = client.table::<Note>();
    let note = |tenant: &str, id| Note { tenant: tenant.into(), id, text: format!("{tenant}{id}") };
    let all: Vec<Note> = (0..50).flat_map(|id| [note("HR", id), note("IT", id)]).collect();
    client.bulk().insert_all(&all).await.unwrap();
    store.asked.store(0, SeqCst);
    recorder.clear();
    assert_eq!(notes.query(Note::scan()).collect().await.unwrap().len(), 100);
    assert_eq!((store.asked.load(SeqCst), recorder.count()), (2, 1));

    store.is_down.store(true, SeqCst);
    let items: Vec<_> = notes.query(Note::scan()).stream().collect().await;
    assert_eq!(items.iter().filter(|item| item.is_ok()).count(), 50);
    for error in items.into_iter().filter_map(Result::err) {
        assert!(error.is_key_unavailable() && error.keys().unwrap().0 == "IT", "{error}");
    }
}

#[tokio::test]
async fn partitions_of_one_scope_share_a_question() {
    let store = Store::new(keyring(1));
    let client = Client::builder().backend(Memory::new()).keys(store.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let note = |id: u16| Note { tenant: format!("t{id}"), id, text: "x".into() };
    client.bulk().insert_all((0..20).map(note)).await.unwrap();
    store.asked.store(0, SeqCst);
    let all = client.table::<Note>().query(Note::scan()).collect().await.unwrap();
    assert_eq!((all.len(), store.asked.load(SeqCst)), (20, 1));
}

#[tokio::test]
async fn destroying_the_keys_of_a_scope_destroys_its_values_and_no_others() {
    let memory = Recorder::around(Memory::new());
    let client =
        |keys: Keyring| Client::builder().backend(memory.clone()).keys(keys).build().unwrap();
    let before = client(scoped(&[("hr", 1), ("it", 2)]));
    before.create_table("Staff").await.unwrap();
    for tenant in ["HR", "IT"] {
        before
            .table::<Note>()
            .insert(&Note { tenant: tenant.into(), id: 1, text: "t".into() })
            .await
            .unwrap();
    }
    let after = client(scoped(&[("it", 2)])).table::<Note>();
    let error = after.get(Note::primary().tenant("HR").id(1)).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::KeyNotFound(*key(1).id().as_bytes())));
    assert!(
        after
            .insert(&Note { tenant: "HR".into(), id: 2, text: "t".into() })
            .await
            .unwrap_err()
            .is_key_unavailable()
    );
    assert!(after.get(Note::primary().tenant("IT").id(1)).await.unwrap().is_some());
    // A key of another scope opens nothing here, whatever its id is.
    let swapped = client(scoped(&[("hr", 2), ("it", 1)])).table::<Note>();
    assert!(swapped.get(Note::primary().tenant("IT").id(1)).await.unwrap_err().is_decrypt());
}

#[tokio::test]
async fn plain_bytes_that_look_sealed_are_not_written() {
    #[derive(Debug, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Blob {
        id: u16,
        data: Vec<u8>,
        #[table(encrypt)]
        secret: Vec<u8>,
    }
    let (client, recorder) = client().await;
    let table = client.table::<Blob>();
    let sealed = vec![0xae, 0x7e, 1, 2, 3];
    let error =
        table.insert(&Blob { id: 1, data: sealed.clone(), secret: vec![] }).await.unwrap_err();
    assert_eq!((error.is_invalid(), error.property(), recorder.count()), (true, Some("Data"), 0));
    table.insert(&Blob { id: 1, data: vec![1], secret: sealed.clone() }).await.unwrap();
    assert_eq!(table.get(Blob::primary().id(1)).await.unwrap().unwrap().secret, sealed);
    let _ = ring(1);
}

#[tokio::test]
async fn a_page_of_made_up_keys_costs_few_questions() {
    let store = Store::new(scoped(&[("hr", 1)]));
    let client = Client::builder().backend(Memory::new()).keys(store.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let notes = client.table::<Note>();
    notes.insert(&Note { tenant: "HR".into(), id: 0, text: "text".into() }).await.unwrap();
    let row = stored(&client, "HR", "000").await;
    let Some(Value::Binary(envelope)) = value(&row, "Text") else { panic!("{row:?}") };
    for id in 1..=500_u16 {
        let mut envelope = envelope.to_vec();
        envelope[3..5].copy_from_slice(&id.to_be_bytes());
        let mut forged = entable::Row::build("HR", &format!("{id:03}"));
        forged.put("EntityType", entable::ValueRef::String("Note"));
        forged.put("Text", entable::ValueRef::Binary(&envelope));
        put(&client, forged.finish().unwrap()).await;
    }
    store.asked.store(0, SeqCst);
    let path = Note::primary().tenant("HR");
    let items: Vec<_> = notes.query(path).stream().collect().await;
    assert_eq!((items.len(), items.iter().filter(|item| item.is_ok()).count()), (501, 1));
    assert!(store.asked.load(SeqCst) <= 48, "{}", store.asked.load(SeqCst));
    for error in items.into_iter().filter_map(Result::err) {
        assert!(matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_))), "{error}");
    }
}
