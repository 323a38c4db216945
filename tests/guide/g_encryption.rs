//! G: encryption of table data.

use std::sync::{Arc, Mutex};

use entable::{
    BlindTokenKey, DataKey, EdmType, KeyId, KeyProvider, KeyScope, Keyring, Value,
    backend::layer::Request, prelude::*, seal::KeyFuture,
};

use crate::store::{Store, TestResult, on_both};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    #[table(encrypt)]
    email: String,
    #[table(encrypt)]
    salary: Option<f64>,
}

fn jones() -> Employee {
    Employee {
        department: "Sales".into(),
        id: 223,
        first_name: "Don".into(),
        email: "donh@contoso.com".into(),
        salary: Some(5000.0),
    }
}

fn point() -> Point<Employee> {
    Employee::primary().department("Sales").id(223)
}

/// Opens the store through a client with keys.
fn with_keys(store: &Store) -> Client {
    let keys = Keyring::from_bytes([7; 32]);
    Client::builder().backend(store.recorder.clone()).keys(keys).build().unwrap()
}

/// Returns the stored rows as a program without keys sees them.
async fn raw(store: &Store, partition_key: &str, row_key: &str) -> Stored<DynamicEntity> {
    store.other.dynamic("Staff").get(partition_key, row_key).await.unwrap().unwrap()
}

fn binary(row: &DynamicEntity, name: &str) -> Option<bool> {
    row.get(name).map(|value| value.edm_type() == EdmType::Binary)
}

#[tokio::test]
async fn g01_encrypted_by_insert_replace_and_insert_or_replace() -> TestResult {
    on_both(async |store| {
        let client = with_keys(&store);
        let staff = client.table::<Employee>();
        staff.create().await?;
        store.requests();
        let mut don = staff.insert(&jones()).await?;
        don.first_name = "Donald".into();
        let don = staff.replace(&don).await?;
        staff.insert_or_replace(&don).await?;
        assert_eq!(store.count(), 3, "encryption asks for nothing more");
        let row = raw(&store, "Sales", "empid_000223").await;
        assert_eq!(binary(&row, "Email"), Some(true));
        assert_eq!(staff.get(point()).await?.unwrap().email, "donh@contoso.com");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn g02_binary_on_the_wire_and_plain_text_nowhere() -> TestResult {
    on_both(async |store| {
        let client = with_keys(&store);
        let staff = client.table::<Employee>();
        staff.create().await?;
        staff.insert(&jones()).await?;
        let row = raw(&store, "Sales", "empid_000223").await;
        for (name, value) in row.properties().iter() {
            let text = format!("{value:?}");
            assert!(!text.contains("donh") && !text.contains("5000"), "{name}: {text}");
        }
        assert_eq!((binary(&row, "Email"), binary(&row, "FirstName")), (Some(true), Some(false)));
        if let Some(file) = &store.file {
            let bytes = std::fs::read(file)?;
            assert!(!bytes.windows(8).any(|text| text == b"donh@con"));
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn g03_text_comes_back_as_text() -> TestResult {
    on_both(async |store| {
        let client = with_keys(&store);
        let staff = client.table::<Employee>();
        staff.create().await?;
        for email in ["", "Z\u{fc}rich \u{1d11e}", &"\u{65e5}".repeat(32_000)] {
            let employee = Employee { email: email.into(), ..jones() };
            staff.insert_or_replace(&employee).await?;
            assert_eq!(*staff.get(point()).await?.unwrap(), employee);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn g04_any_property_type_can_be_encrypted() -> TestResult {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "r")]
    struct Every {
        #[table(encrypt)]
        yes: bool,
        #[table(encrypt)]
        small: i32,
        #[table(encrypt)]
        large: u64,
        #[table(encrypt)]
        real: f64,
        #[table(encrypt)]
        text: String,
        #[table(encrypt)]
        bytes: Vec<u8>,
        #[table(encrypt)]
        id: uuid::Uuid,
        #[table(encrypt)]
        at: time::OffsetDateTime,
        #[table(encrypt)]
        none: Option<i64>,
        #[table(json, encrypt)]
        json: Vec<String>,
    }
    on_both(async |store| {
        let client = with_keys(&store);
        let table = client.table::<Every>();
        table.create().await?;
        let every = Every {
            yes: true,
            small: -1,
            large: 1 << 60,
            real: 0.5,
            text: "t".into(),
            bytes: vec![0xae, 0x7e],
            id: uuid::Uuid::from_u128(7),
            at: time::OffsetDateTime::UNIX_EPOCH,
            none: None,
            json: vec!["a".into()],
        };
        table.insert(&every).await?;
        assert_eq!(*table.get(Every::primary()).await?.unwrap(), every);
        let row = raw(&store, "p", "r").await;
        let sealed = row.properties().iter().filter(|(_, v)| v.edm_type() == EdmType::Binary);
        assert_eq!(sealed.count(), 9);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn g05_without_keys_nothing_is_written_in_the_clear() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let error = staff.insert(&jones()).await.unwrap_err();
        assert!(error.is_key_unavailable(), "{error}");
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

/// Table 37: if the department is HR, A is encrypted, else A and B.
#[tokio::test]
async fn g07_g08_g09_a_resolver_chooses_and_readers_need_keys_alone() -> TestResult {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "{pk}", row_key = "r")]
    struct Pair {
        pk: String,
        a: String,
        b: String,
    }
    on_both(async |store| {
        let choosing = Client::builder()
            .backend(store.recorder.clone())
            .keys(Keyring::from_bytes([7; 32]))
            .encrypt_if(|pk, _, property| match property {
                "A" => true,
                "B" => pk != "HR",
                _ => false,
            })
            .build()?;
        let pairs = choosing.table::<Pair>();
        pairs.create().await?;
        for (pk, b_is_sealed) in [("HR", false), ("IT", true)] {
            let pair = Pair { pk: pk.into(), a: "a".into(), b: "b".into() };
            pairs.insert(&pair).await?;
            let row = raw(&store, pk, "r").await;
            assert_eq!((binary(&row, "A"), binary(&row, "B")), (Some(true), Some(b_is_sealed)));
            let reader = with_keys(&store);
            assert_eq!(*reader.table::<Pair>().get(Pair::primary().pk(pk)).await?.unwrap(), pair);
            let dynamic = reader.dynamic("Staff").get(pk, "r").await?.unwrap();
            assert_eq!((dynamic.str("A")?, dynamic.str("B")?), ("a", "b"));
        }
        let entity = DynamicEntity::new("IT", "dynamic").with("A", "a").with("C", "c");
        choosing.dynamic("Staff").insert(&entity).await?;
        let row = raw(&store, "IT", "dynamic").await;
        assert_eq!((binary(&row, "A"), binary(&row, "C")), (Some(true), Some(false)));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn g10_g11_a_merge_is_safe_and_needs_no_older_value() -> TestResult {
    on_both(async |store| {
        let client = with_keys(&store);
        let staff = client.table::<Employee>();
        staff.create().await?;
        staff.insert(&jones()).await?;
        // Another key in the meantime: each value says itself which key it needs.
        let scope = KeyScope::default_scope();
        let keys = Keyring::builder()
            .primary(&scope, &entable::RootKey::from_bytes([8; 32]))
            .decrypt_only(&scope, &entable::RootKey::from_bytes([7; 32]))
            .build()?;
        let later = Client::builder().backend(store.recorder.clone()).keys(keys).build()?;
        store.requests();
        later.table().patch_at(point(), Employee::patch().email("new@contoso.com")).await?;
        // One read, and not for the sake of the merge: a secret must not change while its entity moves.
        let requests = store.requests();
        let reads =
            requests.iter().filter(|request| matches!(request, Request::Read { .. })).count();
        assert_eq!((requests.len(), reads), (2, 1), "{requests:?}");
        // A merge that sets no secret is a write alone.
        later.table().patch_at(point(), Employee::patch().first_name("Ken")).await?;
        let requests = store.requests();
        assert!(matches!(requests.as_slice(), [Request::Apply { .. }]), "{requests:?}");
        let don = later.table().get(point()).await?.unwrap();
        assert_eq!((don.email.as_str(), don.salary), ("new@contoso.com", Some(5000.0)));
        let raw = raw(&store, "Sales", "empid_000223").await;
        let ids = ["Email", "Salary"].map(|name| {
            entable::seal::key_id_of(raw.get(name).and_then(Value::as_bytes).unwrap()).unwrap()
        });
        assert_ne!(ids[0], ids[1]);
        Ok(())
    })
    .await
}

/// Keys from somewhere else, with the ids that were asked for.
#[derive(Debug)]
struct Elsewhere(Keyring, Arc<Mutex<Vec<KeyId>>>);

impl KeyProvider for Elsewhere {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        self.0.scope_of(partition_key)
    }
    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.0.primary_key(scope)
        })
    }
    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        self.1.lock().unwrap().push(id);
        Box::pin(async move { self.0.data_key(scope, id) })
    }
    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        self.0.fetch_blind_token_key(scope, version)
    }
}

#[tokio::test]
async fn g12_keys_come_from_a_trait_and_are_read_by_their_ids() -> TestResult {
    on_both(async |store| {
        let (scope, asked) = (KeyScope::default_scope(), Arc::<Mutex<Vec<KeyId>>>::default());
        let [first, second] = [7, 8].map(|byte| entable::RootKey::from_bytes([byte; 32]));
        let client = |ring: Keyring| {
            let keys = entable::CachedKeys::new(Elsewhere(ring, asked.clone()));
            Client::builder().backend(store.recorder.clone()).keys(keys).build()
        };
        let before = client(Keyring::builder().primary(&scope, &first).build()?)?;
        before.table::<Employee>().create().await?;
        before.table().insert(&jones()).await?;
        let ring = Keyring::builder().primary(&scope, &second).decrypt_only(&scope, &first);
        let after = client(ring.build()?)?;
        let staff = after.table::<Employee>();
        asked.lock().unwrap().clear();
        assert_eq!(*staff.get(point()).await?.unwrap(), jones());
        staff.insert(&Employee { id: 224, ..jones() }).await?;

        let key_of = async |row_key| {
            let row = raw(&store, "Sales", row_key).await;
            let sealed = row.get("Email").and_then(Value::as_bytes).unwrap().to_vec();
            entable::seal::key_id_of(&sealed).unwrap().unwrap()
        };
        let ids = [key_of("empid_000223").await, key_of("empid_000224").await];
        assert_ne!(ids[0], ids[1], "new values are sealed under the new key");
        // The value names the key that opens it; the cache asks the provider for it once.
        assert_eq!(*asked.lock().unwrap(), [ids[0]]);
        let without = client(Keyring::builder().primary(&scope, &second).build()?)?;
        let error = without.table::<Employee>().get(point()).await.unwrap_err();
        assert!(error.is_decrypt() && error.to_string().contains(&ids[0].to_string()), "{error}");
        Ok(())
    })
    .await
}
