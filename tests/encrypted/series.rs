//! Tests encrypted series and long texts: each slot and each piece is sealed alone.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entable::{PlaintextPolicy, SealFault, Verb, prelude::*};
use sha2::{Digest, Sha256};

use crate::fixture::{all_stored, client, keyring, put, stored, value, with};

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

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "p",
    row_key = "note_{id:03}",
    index(ByTitle, row_key = "title_{title}_{id:03}")
)]
struct Long {
    id: u16,
    title: String,
    #[table(split(2), encrypt)]
    text: String,
    #[table(split(3), encrypt)]
    bytes: Option<Vec<u8>>,
    #[table(split(2), json, encrypt(pad = 32))]
    list: Vec<u16>,
}

fn long(byte: u8) -> Long {
    let letter = char::from(byte).to_string();
    Long {
        id: 1,
        title: "t".into(),
        text: letter.repeat(40_000),
        bytes: Some(vec![byte; 140_000]),
        list: vec![u16::from(byte); 20_000],
    }
}

/// A set that takes rows which do not fit their type as they are.
#[derive(Debug, EntitySet)]
enum AnyRow {
    Long(Long),
    #[table(other)]
    Other(DynamicEntity),
}

/// Each piece is genuine and at its place, but they are of two values that the row had.
#[tokio::test]
async fn pieces_of_two_values_do_not_pass_for_one() {
    let (client, _) = client().await;
    let table = client.table::<Long>();
    let at = || Long::primary().id(1);
    table.insert(&long(b'a')).await.unwrap();
    let old = stored(&client, "p", "note_001").await;
    table.update(at(), |it| Ok(*it = long(b'b'))).await.unwrap();
    let new = stored(&client, "p", "note_001").await;
    let groups: [&[&str]; 3] =
        [&["Text", "Text_2"], &["Bytes", "Bytes_2", "Bytes_3"], &["List", "List_2"]];
    for names in groups {
        for name in names {
            put(&client, with(&new, name, value(&old, name))).await;
            for error in [
                table.get(at()).await.unwrap_err(),
                client.set::<AnyRow>("Staff").get(("p", "note_001")).await.unwrap_err(),
                table.update(at(), |it| Ok(it.title = "x".into())).await.unwrap_err(),
                table.check().await.unwrap_err(),
            ] {
                let found = (error.seal_fault(), error.property());
                assert_eq!(found, (Some(SealFault::Authentication), Some(names[0])), "{error}");
            }
        }
        // A whole old value may come back: nothing that is stored can tell.
        let back = names.iter().fold(new.clone(), |row, name| with(&row, name, value(&old, name)));
        put(&client, back).await;
        assert!(table.get(at()).await.unwrap().is_some());
    }
    put(&client, new).await;
    assert_eq!(*table.get(at()).await.unwrap().unwrap(), long(b'b'));
    assert!(table.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_value_that_changes_in_one_piece_stays_whole() {
    let (client, recorder) = client().await;
    let table = client.table::<Long>();
    let at = || Long::primary().id(1);
    table.insert(&long(b'a')).await.unwrap();
    let mut wanted = long(b'a');
    wanted.text.push('z');
    recorder.clear();
    table.update(at(), |it| Ok(it.text.push('z'))).await.unwrap();
    assert_eq!(recorder.take()[1].verbs()[0], Verb::Merge);
    assert_eq!(*table.get(at()).await.unwrap().unwrap(), wanted);
    table.patch_at(at(), Long::patch().text("").remove_bytes().list(vec![])).await.unwrap();
    (wanted.text, wanted.bytes, wanted.list) = (String::new(), None, Vec::new());
    assert_eq!(*table.get(at()).await.unwrap().unwrap(), wanted);
    assert_eq!(table.reencrypt().await.unwrap().rewritten, 0);
    assert!(table.check().await.unwrap().is_clean());
    // The hash takes room in the first piece: a piece has 65,536 bytes, of which 512 are for the seal.
    let full = vec![1; 3 * (65_536 - 512) - 16];
    table.patch_at(at(), Long::patch().bytes(full.clone())).await.unwrap();
    assert_eq!(table.get(at()).await.unwrap().unwrap().bytes.as_ref(), Some(&full));
    let error = table.patch_at(at(), Long::patch().bytes([&full[..], &[1]].concat()));
    let error = error.await.unwrap_err();
    assert!(error.is_too_large() && error.to_string().contains("hash"), "{error}");
}

/// The form that `docs/envelope.md` describes.
#[tokio::test]
async fn the_first_piece_begins_with_the_hash_of_the_value() {
    let (client, _) = client().await;
    client.table::<Long>().insert(&long(b'a')).await.unwrap();
    let row = client.dynamic("Staff").get("p", "note_001").await.unwrap().unwrap();
    let hash = |value: &[u8]| Sha256::digest(value)[..16].to_vec();
    let text = row.str("Text").unwrap();
    assert_eq!(text[..22], URL_SAFE_NO_PAD.encode(hash(&[b'a'; 40_000])));
    assert_eq!(text.len() + row.str("Text_2").unwrap().len(), 40_022);
    assert_eq!(row.bytes("Bytes").unwrap()[..16], hash(&[b'a'; 140_000]));
}

/// The entity before its values were encrypted.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Long",
    partition_key = "p",
    row_key = "note_{id:03}",
    index(ByTitle, row_key = "title_{title}_{id:03}")
)]
struct PlainLong {
    id: u16,
    title: String,
    #[table(split(2))]
    text: String,
    #[table(split(3))]
    bytes: Option<Vec<u8>>,
    #[table(split(2), json)]
    list: Vec<u16>,
}

#[tokio::test]
async fn split_values_that_are_stored_plain_are_encrypted_by_each_way_of_a_migration() {
    let (client, recorder) = client().await;
    let plain = client.table::<PlainLong>();
    for id in 1..=3 {
        let bytes = Some(vec![7; 60_000]);
        let one = PlainLong { id, title: "t".into(), text: "text".into(), bytes, list: vec![1] };
        plain.insert(&one).await.unwrap();
    }
    let builder = Client::builder().backend(recorder.clone()).keys(keyring(1));
    let allowing = builder.plaintext(PlaintextPolicy::Allow).build().unwrap().table::<Long>();
    let at = |id| Long::primary().id(id);
    assert_eq!(allowing.get(at(1)).await.unwrap().unwrap().text, "text");
    let read = allowing.get(at(1)).await.unwrap().unwrap();
    allowing.replace(&read).await.unwrap();
    allowing.update(at(2), |it| Ok(it.text.push('!'))).await.unwrap();
    assert!(allowing.reencrypt().await.unwrap().is_complete());
    assert!(allowing.check().await.unwrap().is_clean());

    let strict = client.table::<Long>();
    for (id, text) in [(1, "text"), (2, "text!"), (3, "text")] {
        let read = strict.get(at(id)).await.unwrap().unwrap();
        assert_eq!((&*read.text, read.bytes.as_ref().unwrap().len()), (text, 60_000));
        assert_eq!(read.list, [1]);
    }
    assert_eq!(all_stored(&client).await.len(), 6);
    assert!(strict.check().await.unwrap().is_clean());
}
