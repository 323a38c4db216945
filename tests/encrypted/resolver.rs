//! `encrypt_if`: what is encrypted beside what is declared.

use entable::{EdmType, backend::Memory, prelude::*};

use crate::fixture::{keyring, stored, value};

/// If the department is HR, A is encrypted, else A and B.
async fn client() -> Client {
    let client = Client::builder()
        .backend(Memory::new())
        .keys(keyring(1))
        .encrypt_if(|partition_key, _, property| {
            property == "A" || property == "B" && partition_key != "HR"
        })
        .build()
        .unwrap();
    client.create_table("Staff").await.unwrap();
    client
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{pk}",
    row_key = "{id:03}",
    index(Again, row_key = "z_{id:03}")
)]
struct Thing {
    pk: String,
    id: u16,
    a: String,
    b: Option<i32>,
}

#[tokio::test]
async fn entities_of_one_type_end_with_different_encrypted_sets_and_one_reader_reads_both() {
    let writer = client().await;
    let table = writer.table::<Thing>();
    let thing = |pk: &str| Thing { pk: pk.into(), id: 1, a: "x".into(), b: Some(2) };
    for pk in ["HR", "IT"] {
        table.insert(&thing(pk)).await.unwrap();
        for row_key in ["001", "z_001"] {
            let row = stored(&writer, pk, row_key).await;
            assert_eq!(value(&row, "A").unwrap().edm_type(), EdmType::Binary);
            let b = if pk == "HR" { EdmType::Int32 } else { EdmType::Binary };
            assert_eq!(value(&row, "B").unwrap().edm_type(), b);
            assert_eq!(value(&row, "EntityType").unwrap().edm_type(), EdmType::String);
        }
    }
    // The reader has keys, and neither attributes nor a resolver.
    let reader =
        Client::builder().backend(writer.backend().clone()).keys(keyring(1)).build().unwrap();
    for pk in ["HR", "IT"] {
        let read =
            reader.table::<Thing>().get(Thing::primary().pk(pk).id(1)).await.unwrap().unwrap();
        assert_eq!(*read, thing(pk));
        let dynamic = reader.dynamic("Staff").get(pk, "001").await.unwrap().unwrap();
        assert_eq!((dynamic.str("A").unwrap(), dynamic.i32("B").unwrap()), ("x", 2));
    }
    // And what the reader writes back stays encrypted, in copies too.
    let mut read =
        reader.table::<Thing>().get(Thing::primary().pk("IT").id(1)).await.unwrap().unwrap();
    read.b = Some(3);
    reader.table::<Thing>().replace(&read).await.unwrap();
    for row_key in ["001", "z_001"] {
        let row = stored(&reader, "IT", row_key).await;
        assert_eq!(value(&row, "A").unwrap().edm_type(), EdmType::Binary, "{row_key}");
        assert_eq!(value(&row, "B").unwrap().edm_type(), EdmType::Binary, "{row_key}");
    }
    assert!(reader.table::<Thing>().check().await.unwrap().is_clean());
}

#[tokio::test]
async fn dynamic_entities_are_encrypted_by_the_resolver() {
    let client = client().await;
    let staff = client.dynamic("Staff");
    staff
        .insert(&DynamicEntity::new("IT", "1").with("A", "a").with("B", 2).with("C", 3))
        .await
        .unwrap();
    let row = stored(&client, "IT", "1").await;
    let types = ["A", "B", "C"].map(|name| value(&row, name).unwrap().edm_type());
    assert_eq!(types, [EdmType::Binary, EdmType::Binary, EdmType::Int32]);
    assert_eq!(staff.get("IT", "1").await.unwrap().unwrap().i32("B").unwrap(), 2);
    // A filter on what is known to be encrypted would silently match nothing.
    let filter = Filter::eq("PartitionKey", "IT") & Filter::eq("A", "a");
    let error = staff.query(filter).collect().await.unwrap_err();
    assert_eq!((error.is_invalid(), error.property()), (true, Some("A")));
}
