//! Tests copies and lists of entities with dated tables: in the table of their entity, and in tables of
//! the same date.

use entable::{
    Client, Condition, Cursor, KeyScope, Keyring, RootKey,
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    maintain::FindingKind,
    prelude::*,
};
use time::{
    OffsetDateTime,
    macros::{date, datetime},
};

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);
const DAY: time::Duration = time::Duration::DAY;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Orders{at:%Y%m%d}",
    partition_key = "{shop}",
    row_key = "order_{id:06}",
    index(ByGuest, row_key = "guest_{guest}_{id:06}", unique),
    index(
        ByTown,
        table = "Towns{at:%Y%m%d}",
        partition_key = "town_{town}",
        row_key = "{shop}_{id:06}"
    ),
    list(OfGuest, row_key = "list_{guest}"),
    list(OfMail, partition_key = "mail_{guest}", row_key = "orders"),
    list(OfTown, table = "Towns{at:%Y%m%d}", partition_key = "list_{town}", row_key = "orders")
)]
struct Order {
    shop: String,
    id: u32,
    guest: String,
    town: String,
    at: OffsetDateTime,
}

fn order(day: i32, id: u32) -> Order {
    let town = if id.is_multiple_of(2) { "Kiel" } else { "Oslo" };
    let shop = format!("s{}", id % 2);
    Order { shop, id, guest: "don".into(), town: town.into(), at: NOON - DAY * day }
}

/// Three days with three orders each, their copies and lists written.
async fn filled() -> (Recorder, Client, Table<Order>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let orders: Table<Order> = client.table();
    for day in 0..3 {
        for id in 1..=3 {
            orders.insert(&order(day, id)).await.unwrap();
        }
    }
    client.wait_for_copies().await;
    client.worker().drain().await.unwrap();
    recorder.clear();
    (recorder, client, orders)
}

fn days(found: &[Stored<Order>]) -> Vec<(OffsetDateTime, u32)> {
    found.iter().map(|order| (order.at, order.id)).collect()
}

#[tokio::test]
async fn the_tables_of_copies_are_made_with_those_of_entities() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let orders: Table<Order> = client.table();
    orders.insert(&order(0, 1)).await.unwrap();
    client.wait_for_copies().await;
    let made: Vec<_> = recorder
        .take()
        .into_iter()
        .filter_map(|request| match request {
            Request::CreateTable(name) if name.starts_with(['O', 'T']) => Some(name),
            _ => None,
        })
        .collect();
    // Where the table of entities exists, that of copies does too.
    assert_eq!(made, ["Towns20140731", "Orders20140731"]);
    assert_eq!(orders.create_between(NOON + DAY..NOON + DAY * 2).await.unwrap(), 2);
    let tables = client.tables().await.unwrap();
    assert!(tables.contains(&"Towns20140802".to_owned()), "{tables:?}");
    assert_eq!(orders.create_between(NOON..NOON + DAY * 2).await.unwrap(), 0);
}

#[tokio::test]
async fn an_order_that_was_read_through_an_index_gives_the_path_to_its_table() {
    let (_, _, orders) = filled().await;
    let yesterday = NOON - DAY;
    let by_town = Order::by_town().at(yesterday).town("Oslo").shop("s1").id(3);
    let by_guest = Order::by_guest().at(yesterday).shop("s1").guest("don").id(3);
    for mut copy in [orders.get(by_town).await, orders.get(by_guest).await]
        .map(Result::unwrap)
        .map(Option::unwrap)
    {
        copy.at = NOON;
        let found = orders.get(copy.point()).await.unwrap().unwrap();
        assert_eq!((found.row_key(), found.at), ("order_000003", yesterday));
    }
}

#[tokio::test]
async fn copies_and_lists_are_read_by_a_time_and_by_a_window() {
    let (recorder, client, orders) = filled().await;
    let yesterday = NOON - DAY;
    let window = || datetime!(2014-07-30 0:00 UTC)..datetime!(2014-08-01 0:00 UTC);
    let by_town =
        orders.query(Order::by_town().at(yesterday).town("Oslo")).collect().await.unwrap();
    assert_eq!(days(&by_town), [(yesterday, 1), (yesterday, 3)]);
    let point = Order::by_town().at(yesterday).town("Oslo").shop("s1").id(3);
    assert_eq!(orders.get(point).await.unwrap().unwrap().id, 3);
    recorder.clear();
    let by_town = Order::by_town().at_between(window()).town("Oslo");
    let found = orders.query(by_town).collect().await.unwrap();
    assert_eq!(days(&found), [(yesterday, 1), (yesterday, 3), (NOON, 1), (NOON, 3)]);
    let read: Vec<_> = recorder
        .take()
        .into_iter()
        .filter_map(|request| match request {
            Request::Scan { table, .. } => Some(table),
            _ => None,
        })
        .collect();
    assert_eq!(read, ["Towns20140730", "Towns20140731"]);

    let local = || Order::of_guest().at_between(window()).shop("s1").guest("don");
    let found = orders.query(local()).collect().await.unwrap();
    assert_eq!(days(&found), [(yesterday, 1), (yesterday, 3), (NOON, 1), (NOON, 3)]);
    assert_eq!(orders.query(local()).count().await.unwrap(), 4);
    let one = Order::of_guest().at(NOON).shop("s1").guest("don");
    assert_eq!(days(&orders.query(one).collect().await.unwrap()), [(NOON, 1), (NOON, 3)]);
    let mail = Order::of_mail().at_between(window()).guest("don");
    assert_eq!(orders.query(mail).collect().await.unwrap().len(), 6);
    let town = Order::of_town().at_between(window()).town("Oslo");
    let found = orders.query(town).collect().await.unwrap();
    assert_eq!(days(&found), [(yesterday, 1), (yesterday, 3), (NOON, 1), (NOON, 3)]);
    let empty = Order::of_town().at_between(NOON..NOON).town("Oslo");
    assert!(orders.query(empty).collect().await.unwrap().is_empty());
    let none = Order::of_mail().at_between(NOON + DAY..NOON + DAY * 3).guest("don");
    assert!(orders.query(none).collect().await.unwrap().is_empty());
    assert!(
        orders
            .keys(Order::of_guest().at(NOON + DAY).shop("s1").guest("don"))
            .await
            .unwrap()
            .is_empty()
    );

    // The keys of a list say which table each entity is in.
    let keys = orders.keys(local()).await.unwrap();
    assert_eq!(keys.len(), 4);
    let mut times = Vec::new();
    for key in keys {
        times.push(orders.get(key).await.unwrap().unwrap().at);
    }
    assert_eq!(times, [yesterday, yesterday, NOON, NOON]);

    // A cursor goes from list to list, and over a table that is dropped meanwhile.
    let town =
        || orders.query(Order::of_town().at_between(NOON - DAY * 2..NOON + DAY).town("Oslo"));
    let (mut seen, mut cursor) = (0, None::<Cursor>);
    loop {
        let page = town().page(cursor).await.unwrap();
        seen += page.items.len();
        let Some(next) = page.next else { break };
        cursor = Some(next.to_string().parse().unwrap());
        for table in ["Orders20140730", "Towns20140730"] {
            client.delete_table_if_exists(table).await.unwrap();
        }
    }
    assert_eq!(seen, 4, "of the first and the last day");
}

#[tokio::test]
async fn writes_keep_the_copies_of_their_day() {
    let (_, client, orders) = filled().await;
    let mut one = orders.get(Order::primary().at(NOON).shop("s1").id(1)).await.unwrap().unwrap();
    one.town = "Bergen".into();
    let one = orders.replace(&one).await.unwrap();
    client.wait_for_copies().await;
    let oslo = || Order::by_town().at_between(NOON - DAY..NOON + DAY / 2).town("Oslo");
    let found = orders.query(oslo()).collect().await.unwrap();
    assert_eq!(days(&found), [(NOON - DAY, 1), (NOON - DAY, 3), (NOON, 3)]);
    let bergen = Order::of_town().at(NOON).town("Bergen");
    assert_eq!(orders.query(bergen.clone()).count().await.unwrap(), 1);
    orders.delete(&one).await.unwrap();
    client.wait_for_copies().await;
    assert_eq!(orders.query(bergen).count().await.unwrap(), 0);

    // A value is unique within the day's table.
    let taken = Order { id: 3, ..order(0, 3) };
    assert!(orders.insert(&taken).await.unwrap_err().is_conflict());
    // The keys do not hold the time: a move takes it along, and the copies and lists follow.
    let mut moved = orders.get(Order::primary().at(NOON).shop("s1").id(3)).await.unwrap().unwrap();
    moved.at += DAY;
    orders.move_to(&moved, &orders).await.unwrap().wait().await.unwrap();
    client.wait_for_copies().await;
    client.worker().drain().await.unwrap();
    let tomorrow = Order::by_town().at(NOON + DAY).town("Oslo");
    assert_eq!(orders.query(tomorrow).count().await.unwrap(), 1);
    assert_eq!(orders.query(Order::by_town().at(NOON).town("Oslo")).count().await.unwrap(), 0);
    tokio::time::pause();
    let report = orders.check().await.unwrap();
    assert!(report.is_clean(), "{report:#}");
}

#[tokio::test]
async fn a_check_compares_the_tables_of_copies_and_a_rebuild_makes_them() {
    let (_, client, orders) = filled().await;
    let towns = client.dynamic("Towns20140730");
    towns.delete("town_Oslo", "s1_000003", Condition::Any).await.unwrap();
    tokio::time::pause();
    let report = orders.check().await.unwrap();
    let kinds: Vec<_> = report.findings.iter().map(|one| (one.kind, one.table.as_str())).collect();
    assert_eq!(kinds, [(FindingKind::Missing, "Towns20140730")], "{report:#}");
    report.repair().await.unwrap();
    client.worker().drain().await.unwrap();
    assert!(orders.check().await.unwrap().is_clean());

    // A new index has no tables beside those that exist.
    for day in 29..=31 {
        client.delete_table(&format!("Towns201407{day}")).await.unwrap();
    }
    let report = orders.rebuild(Order::by_town()).await.unwrap();
    assert_eq!((report.primaries, report.written), (9, 9));
    client.worker().drain().await.unwrap();
    let kiel = Order::by_town().at_between(NOON - DAY * 2..NOON + DAY).town("Kiel");
    assert_eq!(orders.query(kiel).count().await.unwrap(), 3);
}

#[tokio::test]
async fn the_tables_of_copies_are_dropped_with_those_of_entities() {
    let (recorder, client, orders) = filled().await;
    client.create_table("Towns").await.unwrap();
    recorder.clear();
    let dropped = orders.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(
        dropped.dropped,
        ["Orders20140729", "Towns20140729", "Orders20140730", "Towns20140730"]
    );
    let deletions = recorder.requests().into_iter();
    let deletions = deletions.filter(|one| matches!(one, Request::DeleteTable(_))).count();
    assert_eq!(deletions, 4, "{recorder}");
    let tables = client.tables().await.unwrap();
    assert!(tables.contains(&"Towns".to_owned()) && tables.contains(&"Towns20140731".to_owned()));
    recorder.clear();
    assert!(orders.insert(&order(1, 7)).await.unwrap_err().is_not_found());
    assert!(!client.tables().await.unwrap().contains(&"Towns20140730".to_owned()));
    // A call that ended between the two left a table behind; the next call drops it.
    client.create_table("Towns20140729").await.unwrap();
    let dropped = orders.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(dropped.dropped, ["Towns20140729"]);
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
struct Ordered {
    id: u32,
}

/// The copies of a table that is kept for its open work are still what readers find.
#[tokio::test]
async fn a_table_that_is_kept_keeps_the_tables_of_its_copies() {
    let (_, client, orders) = filled().await;
    let mut egt = client.transaction();
    egt.insert(&order(1, 7)).unwrap().emit(&Ordered { id: 7 }).unwrap();
    egt.commit().await.unwrap().wait_for_copies().await.unwrap();
    let yesterday = || Order::by_town().at(NOON - DAY).town("Oslo");
    assert_eq!(orders.query(yesterday()).count().await.unwrap(), 3);

    let dropped = orders.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(dropped.dropped, ["Orders20140729", "Towns20140729"]);
    assert_eq!(dropped.kept, ["Orders20140730"]);
    assert_eq!(orders.query(yesterday()).count().await.unwrap(), 3, "the copies are gone");
    assert!(orders.check().await.unwrap().is_clean());

    let worker = client.worker().on(|_, _: Ordered| async { Ok(()) });
    worker.drain().await.unwrap();
    let dropped = orders.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(dropped.dropped, ["Orders20140730", "Towns20140730"]);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Letters{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "letter_{id:06}",
    index(
        ByKind,
        table = "Kinds{at:%Y%m%d}",
        partition_key = "{kind}",
        row_key = "{user}_{id:06}"
    )
)]
struct Letter {
    user: String,
    id: u32,
    kind: String,
    at: OffsetDateTime,
    #[table(encrypt)]
    text: String,
}

#[tokio::test]
async fn encrypted_copies_belong_to_all_tables_of_their_index() {
    let root = |byte| RootKey::from_bytes([byte; 32]);
    let scope = KeyScope::default_scope();
    let keys =
        Keyring::builder().primary(&scope, &root(1)).blind_token_key(&scope, 1, &root(2)).build();
    let memory = Recorder::around(Memory::new());
    let without_keys = Client::builder().backend(memory.clone()).build().unwrap();
    let client = Client::builder().backend(memory).keys(keys.unwrap()).build().unwrap();
    let letters: Table<Letter> = client.table();
    let letter = |day: i32| Letter {
        user: "don".into(),
        id: 7,
        kind: "a".into(),
        at: NOON - DAY * day,
        text: format!("secret {day}"),
    };
    for day in 0..2 {
        letters.insert(&letter(day)).await.unwrap();
    }
    client.wait_for_copies().await;
    let window = || Letter::by_kind().at_between(NOON - DAY..NOON + DAY).kind("a");
    let found = letters.query(window()).collect().await.unwrap();
    let texts: Vec<_> = found.iter().map(|letter| letter.text.as_str()).collect();
    assert_eq!(texts, ["secret 1", "secret 0"]);
    // As it is stored, the copy of another day opens in the table of this one.
    let (from, to) = (without_keys.dynamic("Kinds20140730"), without_keys.dynamic("Kinds20140731"));
    let raw = from.get("a", "don_000007").await.unwrap().unwrap();
    assert_ne!(raw.get("Text"), Some(&Value::from("secret 1")));
    to.delete("a", "don_000007", Condition::Any).await.unwrap();
    to.insert(&raw).await.unwrap();
    let copied = letters.get(Letter::by_kind().at(NOON).kind("a").user("don").id(7)).await.unwrap();
    assert_eq!(copied.unwrap().text, "secret 1");
}
