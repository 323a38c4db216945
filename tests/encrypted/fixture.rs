//! Entities with encrypted fields, clients with keys, and rows as they are stored.

use entable::{
    DataKey, KeyScope, Keyring, KeyringBuilder, RootKey, Row, Value,
    backend::{Memory, ReadRequest, layer::Recorder},
    batch::Operation,
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}"),
    index(ByAge, row_key = "age_{age:03}_{id:06}", only(ssn)),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
pub(crate) struct Employee {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) email: String,
    pub(crate) last_name: String,
    pub(crate) age: u16,
    #[table(encrypt)]
    pub(crate) ssn: String,
    #[table(encrypt(pad = 64))]
    pub(crate) salary: Option<f64>,
    #[table(encrypt(hide_none))]
    pub(crate) bonus: Option<i64>,
    #[table(json, encrypt)]
    pub(crate) notes: Vec<String>,
}

pub(crate) fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        email: format!("JonesJ{id}@contoso.com"),
        last_name: "Jones".into(),
        age: 34,
        ssn: format!("123-45-{id:04}"),
        salary: Some(5000.5),
        bonus: None,
        notes: vec!["likes tea".into()],
    }
}

pub(crate) fn point(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

pub(crate) fn root(byte: u8) -> RootKey {
    RootKey::from_bytes([byte; 32])
}

pub(crate) fn key(byte: u8) -> DataKey {
    DataKey::from_root(&root(byte))
}

/// Keys with that one as the primary, and a blind token key.
pub(crate) fn ring(primary: u8) -> KeyringBuilder {
    let scope = KeyScope::default_scope();
    Keyring::builder().primary(&scope, &root(primary)).blind_token_key(&scope, 1, &root(100))
}

pub(crate) fn keyring(primary: u8) -> Keyring {
    ring(primary).build().unwrap()
}

/// A client with a key, and the recorder under it.
pub(crate) async fn client() -> (Client, Recorder) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    recorder.clear();
    (client, recorder)
}

/// A row as it is stored.
pub(crate) async fn stored(client: &Client, partition_key: &str, row_key: &str) -> Row {
    let read = ReadRequest { table: "Staff", partition_key, row_key, select: None };
    client.backend().read(read).await.unwrap().unwrap()
}

/// Every row of the table as it is stored.
pub(crate) async fn all_stored(client: &Client) -> Vec<Row> {
    let filter = Filter::Constant(true);
    let scan = entable::backend::ScanRequest {
        table: "Staff",
        filter: &filter,
        select: None,
        top: None,
        from: None,
    };
    client.backend().scan(scan).await.unwrap().into_rows().unwrap()
}

/// Puts a row in the store as somebody else would.
pub(crate) async fn put(client: &Client, row: Row) {
    let batch = entable::Batch::single("Staff", Operation::insert_or_replace(row)).unwrap();
    client.backend().apply(&batch).await.unwrap();
}

/// Returns the row with one property changed or removed.
pub(crate) fn with(row: &Row, name: &str, value: Option<Value>) -> Row {
    let mut bag = row.to_bag().unwrap();
    match value {
        Some(value) => {
            bag.set(name, value);
        }
        None => {
            bag.remove(name);
        }
    }
    let mut built = Row::build(row.partition_key(), row.row_key());
    for (name, value) in bag.iter() {
        built.put(name, value.as_ref());
    }
    built.finish().unwrap()
}

/// A value as it is stored.
pub(crate) fn value(row: &Row, name: &str) -> Option<Value> {
    row.get(name).unwrap().map(|value| value.to_value())
}
