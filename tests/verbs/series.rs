//! Tests series and long texts: the properties that they are stored as, patches, filters, copies.

use entable::{
    Client, Verb,
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use time::{Date, macros::date};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Messages",
    partition_key = "{employee:06}",
    row_key = "day_{day:%Y%m%d}",
    index(ByTotal, row_key = "total_{total:08}_{day:%Y%m%d}"),
    index(
        Totals,
        partition_key = "totals",
        row_key = "at_{employee:06}_{day:%Y%m%d}",
        only(total)
    )
)]
struct Day {
    employee: u32,
    day: Date,
    total: u32,
    #[table(series)]
    sent: [i32; 24],
    #[table(series("Mood{:03}"))]
    moods: [Option<String>; 12],
    #[table(split(3))]
    text: String,
    #[table(split(2), rename = "Extract")]
    extract: Option<Vec<u8>>,
    #[table(split(2), json)]
    tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Day)]
struct Plot {
    sent: [i32; 24],
    text: String,
    tags: Vec<String>,
}

/// A struct with a bag beside its series, so that rows are read by another way.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "open_{id:03}")]
struct Open {
    employee: u32,
    id: u32,
    #[table(series)]
    sent: [u8; 10],
    #[table(extra)]
    extra: Bag,
}

fn day() -> Day {
    let mut moods = [const { None }; 12];
    moods[3] = Some("fine".into());
    let mut sent = [0; 24];
    sent[13] = 7;
    Day {
        employee: 223,
        day: date!(2014 - 07 - 31),
        total: 7,
        sent,
        moods,
        text: "short".into(),
        extract: None,
        tags: vec!["a".into(), "b".into()],
    }
}

fn at() -> Point<Day> {
    Day::primary().employee(223).day(date!(2014 - 07 - 31))
}

async fn stored() -> (Client, Recorder, Table<Day>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let days = client.table::<Day>();
    days.create().await.unwrap();
    days.insert(&day()).await.unwrap().wait_for_copies().await.unwrap();
    recorder.clear();
    (client, recorder, days)
}

async fn row(client: &Client) -> Stored<DynamicEntity> {
    client.dynamic("Messages").get("000223", "day_20140731").await.unwrap().unwrap()
}

#[tokio::test]
async fn each_slot_is_a_property() {
    let (client, _, days) = stored().await;
    let row = row(&client).await;
    for slot in 0..24 {
        let sent = row.i32(&format!("Sent{slot:02}")).unwrap();
        assert_eq!(sent, if slot == 13 { 7 } else { 0 });
    }
    assert_eq!(row.get("Sent24"), None);
    assert_eq!(row.str("Mood003").unwrap(), "fine");
    assert_eq!(row.get("Mood002"), None, "an absent slot is not stored");
    let pieces = ["Text", "Text_2", "Text_3"].map(|name| row.str(name).unwrap().to_owned());
    assert_eq!(pieces, ["short", "", ""], "all pieces are always stored");
    assert_eq!(row.get("Extract"), None);
    assert_eq!(row.str("Tags").unwrap(), r#"["a","b"]"#);
    // 24 + 1 + 3 + 2 and the total and the type.
    assert_eq!(row.properties().len(), 32);
    assert_eq!(*days.get(at()).await.unwrap().unwrap(), day());
    assert_eq!(days.get_as::<Plot>(at()).await.unwrap().unwrap().sent, day().sent);
}

#[tokio::test]
async fn one_slot_is_one_merge_of_one_property() {
    let (client, recorder, days) = stored().await;
    let copied = Open { employee: 1, id: 1, sent: [1; 10], extra: Bag::new() };
    let open = client.table::<Open>();
    open.insert(&copied).await.unwrap();
    let point = || Open::primary().employee(1).id(1);
    recorder.clear();
    open.patch_at(point(), Open::patch().sent(9, 4)).await.unwrap();
    let requests = recorder.take();
    assert_eq!((requests.len(), requests[0].verbs()), (1, vec![Verb::Merge]));
    open.update(point(), |it| Ok(it.sent[3] += 1)).await.unwrap();
    assert_eq!(recorder.take()[1].verbs(), [Verb::Merge]);
    let found = open.get(point()).await.unwrap().unwrap();
    assert_eq!(found.sent, [1, 1, 1, 2, 1, 1, 1, 1, 1, 4]);

    // With a full copy, both rows get the slot.
    days.patch_at(at(), Day::patch().sent(0, 3).sent(23, 4).moods(3, "tired")).await.unwrap();
    let found = days.get(at()).await.unwrap().unwrap();
    assert_eq!((found.sent[0], found.sent[13], found.sent[23]), (3, 7, 4));
    assert_eq!(found.moods[3].as_deref(), Some("tired"));
    let copy = days.query(Day::by_total().employee(223)).collect().await.unwrap();
    assert_eq!(copy[0].sent, found.sent);
    days.patch_at(at(), Day::patch().remove_moods(3)).await.unwrap();
    assert_eq!(days.get(at()).await.unwrap().unwrap().moods[3], None);
    client.wait_for_copies().await;
    assert!(days.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_slot_out_of_range_is_returned_by_the_verb() {
    let (_, recorder, days) = stored().await;
    for patch in [Day::patch().sent(24, 1), Day::patch().sent(0, 1).remove_moods(12)] {
        let error = days.patch_at(at(), patch).await.unwrap_err();
        assert!(error.is_invalid());
        let text = error.to_string();
        assert!(
            text.contains("slot 24 of a series of 24")
                || text.contains("slot 12 of a series of 12")
        );
        let property = error.property().unwrap();
        assert!(["Sent00 .. Sent23", "Mood000 .. Mood011"].contains(&property), "{text}");
    }
    let path = Day::primary().employee(223);
    let error = days.query(path).filter(Day::SENT.at(99).ge(5)).collect().await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(error.property(), Some("Sent00 .. Sent23"), "{error}");
    assert_eq!(recorder.take().len(), 0, "nothing was sent");
}

#[tokio::test]
async fn slots_are_compared_one_by_one() {
    let (_, _, days) = stored().await;
    let path = || Day::primary().employee(223);
    let count = async |condition| days.query(path()).filter(condition).count().await.unwrap();
    assert_eq!(count(Day::SENT.at(13).ge(5)).await, 1);
    assert_eq!(count(Day::SENT.at(12).ge(5)).await, 0);
    assert_eq!(count(Day::MOODS.at(3).eq("fine") & Day::SENT.at(0).eq(0)).await, 1);
    assert_eq!(Day::SENT.at(7).name(), "Sent07");
    let plots = days.query(path()).select::<Plot>().collect().await.unwrap();
    assert_eq!(
        plots[0].clone().into_inner(),
        Plot { sent: day().sent, text: "short".into(), tags: vec!["a".into(), "b".into()] }
    );
}

#[tokio::test]
async fn rows_of_other_writers_may_lack_slots_but_no_pieces() {
    let (client, _, days) = stored().await;
    let mut raw = row(&client).await;
    raw.remove("Sent13");
    client.dynamic("Messages").replace(&raw).await.unwrap();
    assert_eq!(days.get(at()).await.unwrap().unwrap().sent, [0; 24]);
    let mut raw = row(&client).await;
    raw.remove("Text_2");
    client.dynamic("Messages").replace(&raw).await.unwrap();
    let error = days.get(at()).await.unwrap_err();
    assert!(error.is_decode());
    assert_eq!(error.property(), Some("Text_2"));
    let mut raw = row(&client).await;
    raw.set("Text_2", "");
    raw.set("Sent05", "many");
    client.dynamic("Messages").replace(&raw).await.unwrap();
    assert_eq!(days.get(at()).await.unwrap_err().property(), Some("Sent05"));
}

#[tokio::test]
async fn a_text_shrinks_and_grows_between_its_pieces() {
    let (client, _, days) = stored().await;
    // Two units of UTF-16 each: no piece ends inside a character.
    let long = "\u{1f600}".repeat(40_000) + "x";
    let mut stored = days.get(at()).await.unwrap().unwrap();
    stored.text = long.clone();
    stored.extract = Some(vec![7; 100_000]);
    let mut stored = days.replace(&stored).await.unwrap();
    let raw = row(&client).await;
    assert_eq!(raw.str("Text").unwrap().encode_utf16().count(), 32_768);
    assert_eq!(raw.str("Text_3").unwrap().encode_utf16().count(), 80_001 - 2 * 32_768);
    assert_eq!(*days.get(at()).await.unwrap().unwrap(), *stored);
    assert_eq!(stored.extract.as_ref().unwrap().len(), 100_000);

    days.patch_at(at(), Day::patch().text("y".repeat(32_768)).remove_extract()).await.unwrap();
    let found = days.get(at()).await.unwrap().unwrap();
    assert_eq!((found.text.len(), &found.extract), (32_768, &None));
    assert_eq!(row(&client).await.str("Text_2").unwrap(), "");

    stored.text = "x".repeat(3 * 32_768 + 1);
    let error = days.replace(&stored).await.unwrap_err();
    assert!(error.is_too_large());
    assert_eq!((error.property(), error.keys()), (Some("Text"), Some(("000223", "day_20140731"))));
    days.update(at(), |it| Ok(it.text = "x".repeat(3 * 32_768))).await.unwrap();
    assert_eq!(days.get(at()).await.unwrap().unwrap().text.len(), 3 * 32_768);
}
