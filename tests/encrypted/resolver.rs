//! Tests `encrypt_if`: properties that are encrypted beside the declared ones.

use entable::{EdmType, PlaintextPolicy, SealFault, backend::Memory, prelude::*};

use crate::fixture::{all_stored, keyring, stored, value};

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

#[tokio::test]
async fn a_typed_condition_on_what_is_chosen_is_refused() {
    let client = client().await;
    let things = client.table::<Thing>();
    let thing = |id| Thing { pk: "HR".into(), id, a: "x".into(), b: Some(2) };
    for id in 1..3 {
        things.insert(&thing(id)).await.unwrap();
    }
    let all = things.query(Thing::primary().pk("HR"));
    let error = all.clone().filter(Thing::A.eq("x")).collect().await.unwrap_err();
    assert_eq!((error.is_invalid(), error.property()), (true, Some("A")));
    // The rule leaves B of this department alone, and keys are never encrypted.
    let found = all.filter(Thing::B.eq(2) & Thing::ID.ge(2)).collect().await.unwrap();
    assert_eq!(found.iter().map(|thing| thing.id).collect::<Vec<_>>(), [2]);
}

/// An entity with copies of every kind.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{pk}",
    row_key = "{id:03}",
    index(ByC, row_key = "c_{c}_{id:03}"),
    index(Some, row_key = "s_{id:03}", only(a)),
    index(Away, partition_key = "away_{pk}", row_key = "w_{id:03}")
)]
struct Copied {
    pk: String,
    id: u16,
    a: String,
    b: Option<i32>,
    c: String,
}

fn copied(id: u16) -> Copied {
    Copied { pk: "IT".into(), id, a: "x".into(), b: Some(2), c: "c".into() }
}

fn at(id: u16) -> Point<Copied> {
    Copied::primary().pk("IT").id(id)
}

/// Keys and names of the chosen properties that are stored in plain.
async fn plain(client: &Client) -> Vec<String> {
    client.wait_for_copies().await;
    let mut plain = Vec::new();
    for row in all_stored(client).await {
        for name in ["A", "B"] {
            if value(&row, name).is_some_and(|value| value.edm_type() != EdmType::Binary) {
                plain.push(format!("{} {} {name}", row.partition_key(), row.row_key()));
            }
        }
    }
    plain
}

async fn reader_of(client: &Client, policy: PlaintextPolicy) -> Client {
    let backend = client.backend().clone();
    Client::builder().backend(backend).keys(keyring(1)).plaintext(policy).build().unwrap()
}

#[tokio::test]
async fn what_was_chosen_stays_encrypted_whatever_another_client_does() {
    let writer = client().await;
    for id in 1..5 {
        writer.table::<Copied>().insert(&copied(id)).await.unwrap();
    }
    assert!(plain(&writer).await.is_empty());
    let other = reader_of(&writer, PlaintextPolicy::Reject).await;
    let table = other.table::<Copied>();
    let renamed = |row: &mut Copied| {
        row.c = "d".into();
        Ok(())
    };
    table.update(at(1), renamed).await.unwrap();
    table.patch_at(at(1), Copied::patch().c("e")).await.unwrap();
    let all = table.query(Copied::primary().pk("IT"));
    let changed = other.bulk().update_all(all, |row| {
        row.b = Some(7);
        Ok(())
    });
    changed.await.unwrap().into_result().unwrap();
    assert_eq!(plain(&other).await, [""; 0]);

    for row_key in ["c_c_003", "s_003"] {
        assert!(other.dynamic("Staff").delete_at("IT", row_key).await.unwrap());
    }
    table.check().await.unwrap().repair().await.unwrap();
    assert!(other.dynamic("Staff").delete_at("IT", "c_c_004").await.unwrap());
    assert_eq!(table.rebuild(Copied::by_c()).await.unwrap().written, 1);
    assert_eq!(plain(&other).await, [""; 0]);

    let mut moved = table.get(at(2)).await.unwrap().unwrap();
    moved.pk = "HR".into();
    table.move_to(&moved, &table).await.unwrap().wait().await.unwrap();
    assert_eq!(plain(&other).await, [""; 0]);
    let copies = table.query(Copied::away().pk("HR")).collect().await.unwrap();
    assert_eq!((copies.len(), copies[0].b), (1, Some(7)));
}

#[tokio::test]
async fn what_is_chosen_later_is_encrypted_by_reencrypt_and_read_strictly() {
    let strict = client().await;
    let before = reader_of(&strict, PlaintextPolicy::Reject).await;
    before.table::<Copied>().insert(&copied(1)).await.unwrap();
    assert_eq!(plain(&before).await.len(), 7);
    // Somebody could have put the values there.
    let error = strict.table::<Copied>().get(at(1)).await.unwrap_err();
    assert_eq!((error.seal_fault(), error.property()), (Some(SealFault::NotEncrypted), Some("A")));
    assert_eq!(strict.table::<Copied>().reencrypt().await.unwrap().failed.len(), 4);

    let migrating = Client::builder()
        .backend(strict.backend().clone())
        .keys(keyring(1))
        .plaintext(PlaintextPolicy::Allow)
        .encrypt_if(|_, _, property| property == "A" || property == "B")
        .build()
        .unwrap();
    let report = migrating.table::<Copied>().reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (4, true));
    assert_eq!(plain(&strict).await, [""; 0]);
    assert_eq!(migrating.table::<Copied>().reencrypt().await.unwrap().rewritten, 0);
    assert_eq!(*strict.table::<Copied>().get(at(1)).await.unwrap().unwrap(), copied(1));
    assert!(strict.table::<Copied>().check().await.unwrap().is_clean());
}
