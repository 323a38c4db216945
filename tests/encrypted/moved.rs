//! Tests moves: encrypted properties arrive encrypted for their new keys, sealed entities with a
//! new seal.

use entable::{
    EdmType,
    backend::{Memory, ReadRequest},
    prelude::*,
};

use crate::fixture::keyring;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Current",
    partition_key = "{clinic}",
    row_key = "patient_{id:04}",
    index(ByName, row_key = "name_{name}_{id:04}"),
    seal
)]
struct Patient {
    clinic: String,
    id: u32,
    name: String,
    #[table(encrypt)]
    diagnosis: String,
}

#[tokio::test]
async fn an_encrypted_entity_moves_and_opens_where_it_arrived() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    let current = client.table::<Patient>();
    let archive: Table<Patient> = client.table_named("Archive");
    for table in [&current, &archive] {
        table.create().await.unwrap();
    }
    let one = Patient {
        clinic: "north".into(),
        id: 7,
        name: "Ada".into(),
        diagnosis: "influenza".into(),
    };
    let mut stored = current.insert(&one).await.unwrap();
    stored.clinic = "south".into();
    current.move_to(&stored, &archive).await.unwrap().wait().await.unwrap();

    let left = current.query(Patient::scan()).collect().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    let by_name = Patient::by_name().clinic("south").name("Ada").id(7);
    let found = archive.get(Patient::primary().clinic("south").id(7)).await.unwrap().unwrap();
    assert_eq!((&*found.diagnosis, &*found.clinic), ("influenza", "south"));
    assert_eq!(&*archive.get(by_name).await.unwrap().unwrap().diagnosis, "influenza");
    for row_key in ["patient_0007", "name_Ada_0007"] {
        let read = ReadRequest { table: "Archive", partition_key: "south", row_key, select: None };
        let row = client.backend().read(read).await.unwrap().unwrap();
        let kind = row.get("Diagnosis").unwrap().map(|value| value.edm_type());
        assert_eq!(kind, Some(EdmType::Binary), "{row_key}");
    }
    assert!(archive.check().await.unwrap().is_clean());
}
