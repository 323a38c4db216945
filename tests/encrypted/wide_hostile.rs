//! Tests wide entities, series and long texts at their limits and with hostile values, all encrypted.

use std::sync::Arc;

use entable::{
    EdmType,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

use crate::fixture::{all_stored, client, keyring, stored, value};

/// A row of 252 properties: 243 slots, four values with a token each, and the type.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "full_{id:06}",
    index(Away, partition_key = "away", row_key = "at_{department}_{id:06}", only(email))
)]
struct Full {
    department: String,
    id: u32,
    #[table(series, encrypt)]
    days: [u8; 243],
    #[table(encrypt, blind)]
    ssn: String,
    #[table(encrypt, blind)]
    email: String,
    #[table(encrypt, blind)]
    phone: String,
    #[table(encrypt, blind)]
    street: Option<String>,
}

/// Two parts of 252 properties each, two of which are the library's own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "both_{name}",
    wide,
    index(Away, partition_key = "ssn_{ssn}", row_key = "at_{department}_{name}", only(first))
)]
struct Both {
    department: String,
    name: String,
    ssn: String,
    #[table(series, encrypt)]
    first: [Option<i64>; 125],
    #[table(series, encrypt)]
    second: [String; 124],
    #[table(part = 2, series, encrypt)]
    third: [Option<f64>; 200],
    #[table(part = 2, series, encrypt)]
    fourth: [u8; 46],
    #[table(part = 2, split(2), encrypt)]
    text: String,
    #[table(part = 2, split(2), encrypt)]
    bytes: Option<Vec<u8>>,
}

fn full(department: &str, id: u32) -> Full {
    Full {
        department: department.into(),
        id,
        days: std::array::from_fn(|slot| u8::try_from(slot).unwrap()),
        ssn: format!("123-45-{id:04}"),
        email: "don@contoso.com".into(),
        phone: String::new(),
        street: Some("Elm".into()),
    }
}

fn both(name: &str) -> Both {
    Both {
        department: "Sales".into(),
        name: name.into(),
        ssn: "1".into(),
        first: std::array::from_fn(|slot| Some(i64::MIN + i64::try_from(slot).unwrap())),
        second: std::array::from_fn(|slot| format!("{slot}\u{0}\u{fffe}\u{1f600}'%_")),
        third: [Some(f64::NEG_INFINITY); 200],
        fourth: [255; 46],
        text: "\u{1f600}".repeat(20_000),
        bytes: Some(vec![0; 100_000]),
    }
}

fn both_at(name: &str) -> Point<Both> {
    Both::primary().department("Sales").name(name)
}

#[tokio::test(start_paused = true)]
async fn a_full_row_goes_through_every_verb() -> Result<(), Error> {
    let (client, _) = client().await;
    let table = client.table::<Full>();
    let at = |id| Full::primary().department("Sales").id(id);
    table.insert(&full("Sales", 1)).await?;
    let row = stored(&client, "Sales", "full_000001").await;
    assert_eq!(row.property_count()?, 252);
    let mut one = table.get(at(1)).await?.unwrap();
    assert_eq!(*one, full("Sales", 1));
    one.days[7] = 99;
    one.ssn = "new".into();
    let one = table.replace(&one).await?;
    let one = table.patch(&one, Full::patch().days(8, 1).remove_street()).await?;
    table.patch_at(at(1), Full::patch().street("Oak").days(242, 0)).await?;
    let one = table.update(at(1), |it| Ok(it.days[9] = 100)).await.map(|_| one)?;
    drop(one);
    client.wait_for_copies().await;
    let report = table.check().await?;
    assert!(report.is_clean(), "{:?}", report.findings);
    // The mark of a move is one property more than there is room for; nothing is locked.
    let mut one = table.get(at(1)).await?.unwrap();
    one.department = "Law".into();
    let error = table.move_to(&one, &table).await.map(drop).unwrap_err();
    assert!(error.is_too_large() && error.message().contains("adds one property"), "{error}");
    // What it says to do follows.
    assert!(error.message().contains("write the entity with fewer or shorter values"), "{error}");
    let mut one = table.get(at(1)).await?.unwrap();
    assert_eq!((one.days[7], one.days[8], one.days[9], one.days[242]), (99, 1, 100, 0));
    assert_eq!((&*one.ssn, one.street.as_deref()), ("new", Some("Oak")));
    one.street = None;
    let mut one = table.replace(&one).await?;
    one.department = "Law".into();
    table.move_to(&one, &table).await?.wait().await?;
    let there = || Full::primary().department("Law").id(1);
    assert_eq!(*table.get(there()).await?.unwrap(), *one);
    let mut one = table.get(there()).await?.unwrap();
    one.street = Some("Ash".into());
    let one = table.replace(&one).await?;
    assert_eq!(*table.get(there()).await?.unwrap(), *one, "a full row again");
    client.wait_for_copies().await;
    assert!(table.check().await?.is_clean());
    let report = client.bulk().insert_all((2..=9).map(|id| full("Sales", id))).await?;
    assert_eq!((report.done, report.failed.len()), (8, 0));
    let sales = table.query(Full::primary().department("Sales"));
    assert_eq!(sales.clone().filter(Full::SSN.eq("123-45-0004")).count().await?, 1);
    let report = client.bulk().update_all(sales.clone(), |it| Ok(it.days[0] = 7)).await?;
    assert_eq!((report.done, report.failed.len()), (8, 0), "{:?}", report.failed);
    let four = sales.clone().filter(Full::SSN.eq("123-45-0004"));
    assert_eq!(four.delete_all().await?.done, 1);
    assert_eq!(sales.count().await?, 7);
    client.wait_for_copies().await;
    assert!(table.check().await?.is_clean());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn full_parts_with_hostile_keys_and_values_go_through_every_verb() -> Result<(), Error> {
    let (client, _) = client().await;
    let table = client.table::<Both>();
    const ODD: &str = "a/b\\c#?%\u{0}\u{7f}\u{1f600}' or 1";
    let names = ["a", "a_02", ODD];
    for name in names {
        table.insert(&both(name)).await?;
    }
    for name in names {
        assert_eq!(*table.get(both_at(name)).await?.unwrap(), both(name), "{name:?}");
        let change = |it: &mut Both| {
            it.first[3] = None;
            it.second[0] = "\u{7f}\u{80}\r\n".into();
            it.third[199] = Some(f64::MAX);
            it.text.clear();
            Ok(())
        };
        table.update(both_at(name), change).await?;
        let patch = Both::patch().fourth(45, 0).remove_bytes().remove_third(0).ssn("2");
        table.patch_at(both_at(name), patch).await?;
        let mut now = both(name);
        change(&mut now).unwrap();
        (now.fourth[45], now.bytes, now.third[0], now.ssn) = (0, None, None, "2".into());
        assert_eq!(*table.get(both_at(name)).await?.unwrap(), now, "{name:?}");
    }
    for row in all_stored(&client).await {
        assert!(row.property_count()? <= 252);
    }
    client.wait_for_copies().await;
    let report = table.check().await?;
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(
        table.query(Both::primary().department("Sales")).collect().await?.len(),
        names.len()
    );
    assert_eq!(table.query(Both::primary().department("Sales")).count().await?, names.len() as u64);
    for prefix in ["a", "a_", "a/", "_"] {
        let found =
            table.query(Both::primary().department("Sales").name_prefix(prefix)).collect().await?;
        let expected = names.iter().filter(|name| name.starts_with(prefix)).count();
        assert_eq!(found.len(), expected, "{prefix}");
    }
    // A part without room for the mark of a move stops it, and nothing is locked.
    let mut one = table.insert_or_replace(&both("a")).await?;
    one.department = "Law".into();
    let error = table.move_to(&one, &table).await.map(drop).unwrap_err();
    assert!(error.is_too_large() && error.message().contains("adds one property"), "{error}");
    table.patch_at(both_at("a"), Both::patch().remove_first(7)).await?;
    let mut one = table.get(both_at("a")).await?.unwrap();
    one.department = "Law".into();
    table.move_to(&one, &table).await?.wait().await?;
    let there = Both::primary().department("Law").name("a");
    assert_eq!(*table.get(there).await?.unwrap(), *one);
    client.wait_for_copies().await;
    assert!(table.check().await?.is_clean());

    let mut tx = client.transaction();
    let (mut left, right) =
        (table.get(both_at("a_02")).await?.unwrap(), table.get(both_at(ODD)).await?.unwrap());
    left.fourth[0] = 1;
    tx.replace(&left)?.delete(&right)?.insert(&both("a"))?;
    tx.commit().await?;
    assert_eq!(table.get(both_at("a_02")).await?.unwrap().fourth[0], 1);
    assert!(table.get(both_at(ODD)).await?.is_none());
    client.wait_for_copies().await;
    assert!(table.check().await?.is_clean());
    let all = table.query(Both::primary().department("Sales"));
    assert_eq!(all.delete_all().await?.done, names.len() as u64 - 1);
    client.wait_for_copies().await;
    assert_eq!(table.query(Both::scan()).count().await?, 1);
    Ok(())
}

/// Two programs change different parts, and the entity whole, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn programs_that_write_different_parts_lose_nothing() -> Result<(), Error> {
    let memory = Arc::new(Memory::new());
    let open = || Client::builder().backend(memory.clone()).keys(keyring(1)).build().unwrap();
    open().create_table("Staff").await?;
    let clients = [open(), open()];
    let first = [Some(0); 125];
    clients[0].table::<Both>().insert(&Both { first, ..both("a") }).await?;
    let mut tasks = Vec::new();
    for (at, client) in clients.iter().enumerate() {
        for task in 0..3 {
            let table = client.table::<Both>();
            tasks.push(tokio::spawn(async move {
                for round in 0..4_u8 {
                    match task {
                        0 => loop {
                            let change = |it: &mut Both| {
                                it.first[at] = it.first[at].map(|count| count + 1);
                                Ok(())
                            };
                            match table.update(both_at("a"), change).await {
                                Err(error) if error.is_contended() => {}
                                other => break drop(other.unwrap()),
                            }
                        },
                        1 => {
                            let slot = 10 + at;
                            let patch = Both::patch().third(slot, f64::from(round));
                            table.patch_at(both_at("a"), patch).await.unwrap();
                        }
                        _ => loop {
                            let mut one = table.get(both_at("a")).await.unwrap().unwrap();
                            one.second[at] = format!("round {round}");
                            one.fourth[at] = round;
                            match table.replace(&one).await {
                                Err(error) if error.is_precondition_failed() => {}
                                other => break drop(other.unwrap()),
                            }
                        },
                    }
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let end = clients[1].table::<Both>().get(both_at("a")).await?.unwrap();
    for at in 0..2 {
        assert_eq!((end.first[at], end.third[10 + at]), (Some(4), Some(3.0)));
        assert_eq!((&*end.second[at], end.fourth[at]), ("round 3", 3));
    }
    for client in &clients {
        client.wait_for_copies().await;
        client.worker().with::<Both>().drain().await?;
    }
    assert!(clients[0].table::<Both>().check().await?.is_clean());
    Ok(())
}

/// The entity of an older program: a newer one has further encrypted fields in both parts.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "note_{id:06}",
    entity_type = "Note",
    wide,
    index(Away, partition_key = "away", row_key = "at_{department}_{id:06}", only(title))
)]
struct Note {
    department: String,
    id: u32,
    title: String,
    #[table(part = 2, encrypt)]
    body: Option<String>,
}

/// The entity as a newer program stores it.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "note_{id:06}",
    entity_type = "Note",
    wide,
    index(Away, partition_key = "away", row_key = "at_{department}_{id:06}", only(title))
)]
struct NewNote {
    department: String,
    id: u32,
    title: String,
    #[table(encrypt, blind)]
    owner: String,
    #[table(part = 2, encrypt)]
    body: Option<String>,
    #[table(part = 2, series, encrypt)]
    marks: [i32; 5],
    #[table(part = 2, split(2), encrypt)]
    more: String,
}

#[tokio::test(start_paused = true)]
async fn unknown_encrypted_properties_stay_in_their_parts() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let open = |keys: bool| {
        let builder = Client::builder().backend(recorder.clone());
        if keys { builder.keys(keyring(1)).build().unwrap() } else { builder.build().unwrap() }
    };
    let client = open(true);
    client.create_table("Staff").await?;
    let (old, new) = (client.table::<Note>(), client.table::<NewNote>());
    let note = |id| NewNote {
        department: "Sales".into(),
        id,
        title: "t".into(),
        owner: "don".into(),
        body: Some("b".into()),
        marks: [1, 2, 3, 4, 5],
        more: "\u{20ac}".repeat(30_000),
    };
    new.insert(&note(1)).await?;
    let old_at = |id| Note::primary().department("Sales").id(id);
    let new_at = |id| NewNote::primary().department("Sales").id(id);
    let mut now = note(1);
    let mut one = old.get(old_at(1)).await?.unwrap();
    one.body = None;
    old.replace(&one).await?;
    now.body = None;
    assert_eq!(*new.get(new_at(1)).await?.unwrap(), now);
    old.update(old_at(1), |it| Ok((it.title, it.body) = ("u".into(), Some("c".into()))))
        .await
        .map(drop)?;
    (now.title, now.body) = ("u".into(), Some("c".into()));
    assert_eq!(*new.get(new_at(1)).await?.unwrap(), now);
    old.patch_at(old_at(1), Note::patch().title("v").remove_body()).await?;
    (now.title, now.body) = ("v".into(), None);
    assert_eq!(*new.get(new_at(1)).await?.unwrap(), now);
    let one = old.get(old_at(1)).await?.unwrap();
    old.patch(&one, Note::patch().body("d")).await?;
    now.body = Some("d".into());
    assert_eq!(*new.get(new_at(1)).await?.unwrap(), now);
    // A changed key takes it along, sealed anew for its keys.
    let mut one = old.get(old_at(1)).await?.unwrap();
    one.id = 2;
    let one = old.replace(&one).await?;
    now.id = 2;
    assert_eq!(*new.get(new_at(2)).await?.unwrap(), now);
    let owned = new.query(NewNote::primary().department("Sales")).filter(NewNote::OWNER.eq("don"));
    assert_eq!(owned.clone().count().await?, 1);
    let mut moved = one;
    moved.department = "Law".into();
    old.move_to(&moved, &old).await?.wait().await?;
    now.department = "Law".into();
    assert_eq!(*new.get(NewNote::primary().department("Law").id(2)).await?.unwrap(), now);
    client.wait_for_copies().await;
    assert!(old.check().await?.is_clean());
    // An untyped read opens the part with the keys, and shows what is stored without them.
    for (client, edm) in [(&client, EdmType::String), (&open(false), EdmType::Binary)] {
        let row = client.dynamic("Staff").get("Law", "note_000002_02").await?.unwrap();
        assert_eq!(row.get("Body").map(|value| value.edm_type()), Some(edm));
        assert_eq!(row.get("More_2").map(|value| value.edm_type()), Some(edm));
    }
    old.replace_any(&Note { department: "Law".into(), id: 2, title: "w".into(), body: None })
        .await?;
    let row = stored(&client, "Law", "note_000002_02").await;
    assert!(value(&row, "Marks0").is_none() && value(&row, "More").is_none());
    Ok(())
}
