//! Tests encrypted series and long texts: each slot and each piece is sealed alone.

use entable::{Verb, prelude::*};

use crate::fixture::{client, put, stored, with};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "hours_{id:06}",
    index(ByAge, row_key = "age_{age:03}_{id:06}")
)]
struct Hours {
    department: String,
    id: u32,
    age: u8,
    #[table(series, encrypt)]
    worked: [i32; 4],
    #[table(series, encrypt(hide_none))]
    paid: [Option<i64>; 3],
    #[table(split(3), encrypt(pad = 64))]
    notes: String,
}

fn hours() -> Hours {
    Hours {
        department: "Sales".into(),
        id: 1,
        age: 30,
        worked: [1, 2, 3, 4],
        paid: [None, Some(2), None],
        notes: "secret".into(),
    }
}

#[tokio::test]
async fn slots_and_pieces_are_sealed_one_by_one() {
    let (client, recorder) = client().await;
    let table = client.table::<Hours>();
    table.insert(&hours()).await.unwrap();
    let at = || Hours::primary().department("Sales").id(1);
    assert_eq!(*table.get(at()).await.unwrap().unwrap(), hours());
    let row = stored(&client, "Sales", "hours_000001").await;
    let names = ["Worked0", "Worked3", "Paid0", "Paid1", "Paid2", "Notes", "Notes_2", "Notes_3"];
    for name in names {
        let value = row.get(name).unwrap().unwrap().to_value();
        assert!(matches!(value, Value::Binary(_)), "{name}: {value:?}");
    }
    let copies = table.query(Hours::by_age().department("Sales")).collect().await.unwrap();
    assert_eq!(copies[0].clone().into_inner(), hours());
    recorder.clear();
    table.update(at(), |it| Ok(it.worked[2] += 10)).await.unwrap();
    assert_eq!(recorder.take()[1].verbs(), [Verb::Merge, Verb::InsertOrReplace]);
    table.patch_at(at(), Hours::patch().paid(0, 9_i64)).await.unwrap();
    let found = table.get(at()).await.unwrap().unwrap();
    assert_eq!((found.worked, found.paid), ([1, 2, 13, 4], [Some(9), Some(2), None]));

    // Characters of three bytes: a sealed piece takes fewer of them than a plain one.
    let long = "\u{20ac}".repeat(60_000);
    table.patch_at(at(), Hours::patch().notes(long.clone())).await.unwrap();
    assert_eq!(table.get(at()).await.unwrap().unwrap().notes, long);
    let error = table.patch_at(at(), Hours::patch().notes(long.repeat(2))).await.unwrap_err();
    assert!(error.is_too_large(), "{error}");
    // It shrinks again: the pieces that are not needed are sealed empty.
    table.update(at(), |it| Ok(it.notes = "short".into())).await.unwrap();
    assert_eq!(table.get(at()).await.unwrap().unwrap().notes, "short");
    let row = stored(&client, "Sales", "hours_000001").await;
    for name in ["Notes", "Notes_2", "Notes_3"] {
        let value = row.get(name).unwrap().unwrap().to_value();
        assert!(matches!(&value, Value::Binary(sealed) if sealed.len() < 1_000), "{name}");
    }
    table.patch_at(at(), Hours::patch().notes(long.clone())).await.unwrap();
    assert_eq!(table.get(at()).await.unwrap().unwrap().notes, long);
    assert!(table.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_sealed_slot_out_of_range_or_missing_is_told_without_its_values() {
    let (client, recorder) = client().await;
    let table = client.table::<Hours>();
    table.insert(&hours()).await.unwrap();
    let at = || Hours::primary().department("Sales").id(1);
    recorder.clear();
    for patch in [Hours::patch().worked(4, 987_654), Hours::patch().paid(3, 987_654_i64)] {
        let error = table.patch_at(at(), patch).await.unwrap_err();
        assert!(error.is_invalid(), "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("of a series of") && !text.contains("987"), "{text}");
    }
    assert_eq!(recorder.take().len(), 0, "nothing was sent");

    // Rows of an older declaration lack slots, and pieces of a text are never missing.
    let row = stored(&client, "Sales", "hours_000001").await;
    put(&client, with(&row, "Worked2", None)).await;
    assert_eq!(table.get(at()).await.unwrap().unwrap().worked, [1, 2, 0, 4]);
    put(&client, with(&row, "Notes_2", None)).await;
    let error = table.get(at()).await.unwrap_err();
    assert_eq!((error.is_decode(), error.property()), (true, Some("Notes_2")), "{error}");
}
