//! An entity with encrypted fields, clients with keys, and rows as they are stored.

use entable::{
    DataKey, Keyring, Row, RootKey, Value,
    backend::{Memory, Read, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}")
)]
pub(crate) struct Employee {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) email: String,
    pub(crate) age: i32,
    #[table(encrypt)]
    pub(crate) ssn: String,
    #[table(encrypt(pad = 64))]
    pub(crate) salary: Option<f64>,
    #[table(encrypt(hide_none))]
    pub(crate) bonus: Option<i64>,
    #[table(json, encrypt)]
    pub(crate) notes: Vec<String>,
}

pub(crate) fn jones() -> Employee {
    Employee {
        department: "Sales".into(),
        id: 223,
        email: "JonesJ@contoso.com".into(),
        age: 34,
        ssn: "123-45-6789".into(),
        salary: Some(5000.5),
        bonus: None,
        notes: vec!["likes tea".into()],
    }
}

pub(crate) fn key(byte: u8) -> DataKey {
    DataKey::from_root(&RootKey::from_bytes([byte; 32]))
}

pub(crate) fn keyring() -> Keyring {
    Keyring::new(key(1))
}

/// A client with a key, the recorder under it, and the table.
pub(crate) async fn client() -> (Client, Recorder) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).keys(keyring()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    recorder.clear();
    (client, recorder)
}

/// A row as it is stored.
pub(crate) async fn stored(client: &Client, partition_key: &str, row_key: &str) -> Row {
    let read = Read { table: "Staff", partition_key, row_key, select: None };
    client.backend().read(read).await.unwrap().unwrap()
}

/// A value as it is stored.
pub(crate) fn value(row: &Row, name: &str) -> Option<Value> {
    row.get(name).unwrap().map(|value| value.to_value())
}
