//! Tests copies and lists beside concurrent writers, and beside programs that do not know the
//! copies.

use entable::{Condition, maintain::FindingKind, prelude::*};

use crate::interleaved::Hooked;

fn is_adult(member: &Member) -> bool {
    member.age >= 18
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Club",
    partition_key = "{club}",
    row_key = "m_{id:04}",
    index(ByEmail, row_key = "e_{email:lower}", unique),
    index(ByNick, row_key = "n_{nick}", only(age)),
    index(Adult, row_key = "a_{id:04}", when = is_adult),
    list(ByTown, row_key = "t_{town}")
)]
pub struct Member {
    pub club: String,
    pub id: u32,
    pub email: String,
    pub nick: String,
    pub town: String,
    pub age: i32,
    pub note: Option<String>,
}

pub(crate) fn member(id: u32) -> Member {
    Member {
        club: "C".into(),
        id,
        email: format!("m{id}@x.com"),
        nick: format!("nick{id}"),
        town: "Rome".into(),
        age: 30,
        note: None,
    }
}

pub(crate) fn at(id: u32) -> Point<Member> {
    Member::primary().club("C").id(id)
}

pub(crate) async fn club() -> (Hooked, Table<Member>, Table<Member>) {
    let store = Hooked::default();
    let (table, other) = (store.client().table::<Member>(), store.other().table::<Member>());
    other.create().await.unwrap();
    (store, table, other)
}

async fn keys(table: &Table<Member>) -> Vec<String> {
    let rows = table.client().dynamic("Club").query(Keys::partition("C")).collect().await.unwrap();
    rows.iter().map(|row| row.row_key().to_owned()).collect()
}

async fn remove(table: &Table<Member>, row_key: &str) {
    let rows = table.client().dynamic("Club");
    rows.delete("C", row_key, Condition::Any).await.unwrap();
}

pub(crate) async fn assert_clean(table: &Table<Member>) {
    let report = table.check().await.unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[tokio::test]
async fn a_copy_that_was_missing_for_one_plan_is_deleted_by_the_next() {
    let (store, table, other) = club().await;
    let stored = other.insert(&member(1)).await.unwrap();
    remove(&other, "e_m1@x.com").await;
    // The first transaction finds the copy missing and leaves it out of the second. Before that is
    // sent another writer heals the copy and moves the primary, so that all is planned again.
    store.before("apply", 1, async move {
        let mut healed = stored;
        healed.age = 31;
        other.replace(&healed).await.unwrap();
    });
    assert!(table.delete_at(at(1)).await.unwrap());
    assert!(store.is_done());
    assert_eq!(keys(&table).await, [""; 0], "nothing of it is left");
}

#[tokio::test]
async fn a_copy_that_another_entity_takes_is_no_orphan() {
    let (store, table, other) = club().await;
    let first = other.insert(&member(1)).await.unwrap();
    let mut row = other.client().dynamic("Club").get("C", "e_m1@x.com").await.unwrap().unwrap();
    row.set("Age", 99);
    other.client().dynamic("Club").replace(&row).await.unwrap();
    // The check knows a copy that differs and who derives it; before it looks again, that entity
    // leaves the key and another one takes it.
    let writer = other.clone();
    store.before("read", 0, async move {
        let mut first = first;
        first.email = "new@x.com".into();
        writer.replace(&first).await.unwrap();
        let taking = Member { email: "M1@x.com".into(), ..member(2) };
        writer.insert(&taking).await.unwrap();
    });
    let mended = table.check().repair().await.unwrap();
    assert!(store.is_done());
    assert_eq!(mended, 0, "what the writers did is right");
    assert_clean(&other).await;
    let found = other.get(Member::by_email().club("C").email("m1@x.com")).await.unwrap();
    assert_eq!(found.map(|found| found.id), Some(2));
}

#[tokio::test]
async fn a_key_that_becomes_free_is_taken() {
    let (store, table, other) = club().await;
    let mut first = other.insert(&member(1)).await.unwrap();
    let wanted = Member { email: "m1@x.com".into(), ..member(2) };
    // Between the refusal and the look at who holds the key, its holder leaves it.
    store.before("read", 0, async {});
    let writer = other.clone();
    store.before("read", 1, async move {
        first.email = "new@x.com".into();
        writer.replace(&first).await.unwrap();
    });
    table.insert(&wanted).await.unwrap();
    assert!(store.is_done());
    assert_clean(&other).await;
}

#[tokio::test]
async fn a_holder_that_leaves_while_it_is_looked_up_is_no_orphan() {
    let (store, table, other) = club().await;
    let mut first = other.insert(&member(1)).await.unwrap();
    let wanted = Member { email: "m1@x.com".into(), ..member(2) };
    // Reads: the list, the copy in the way, its entity.
    let writer = other.clone();
    store.before("read", 2, async move {
        first.email = "new@x.com".into();
        writer.replace(&first).await.unwrap();
    });
    table.insert(&wanted).await.unwrap();
    assert!(store.is_done());
    assert_clean(&other).await;
}

#[tokio::test]
async fn what_a_merge_gives_back_is_what_is_stored() {
    let (_, table, _) = club().await;
    table.insert(&Member { note: Some("first".into()), ..member(1) }).await.unwrap();
    let merged = table.insert_or_merge(&Member { age: 50, ..member(1) }).await.unwrap();
    assert_eq!((merged.age, merged.note.as_deref()), (50, Some("first")));
    let read = table.get(at(1)).await.unwrap().unwrap();
    assert_eq!((&*read, read.etag()), (&*merged, merged.etag()));
    // And it is as good a token as one that was read.
    let mut merged = merged;
    merged.town = "Oslo".into();
    table.replace(&merged).await.unwrap();
    assert_eq!(table.get(at(1)).await.unwrap().unwrap().note.as_deref(), Some("first"));
    assert_clean(&table).await;
}

#[tokio::test]
async fn keys_go_round_in_one_transaction() {
    let (_, table, _) = club().await;
    let mut members = Vec::new();
    for id in 1..=4 {
        members.push(table.insert(&member(id)).await.unwrap());
    }
    // Each takes the email and the nick of the next; the last one leaves, and its id is taken over.
    let mut egt = table.transaction();
    for (at, member) in members.iter_mut().take(3).enumerate() {
        member.email = format!("m{}@x.com", at + 2);
        member.nick = format!("nick{}", at + 2);
        member.town = if at == 0 { "Oslo" } else { "Rome" }.into();
        egt.replace(&*member).unwrap();
    }
    egt.delete(&members[3]).unwrap();
    let taker = Member { email: "m1@x.com".into(), nick: "nick1".into(), ..member(9) };
    egt.insert(&taker).unwrap();
    egt.commit().await.unwrap();
    assert_clean(&table).await;
    for (email, id) in [("m2@x.com", 1), ("m3@x.com", 2), ("m4@x.com", 3), ("m1@x.com", 9)] {
        let found = table.get(Member::by_email().club("C").email(email)).await.unwrap();
        assert_eq!(found.unwrap().id, id, "{email}");
    }
    let rome = table.keys(Member::by_town().club("C").town("Rome")).await.unwrap();
    let rome: Vec<&str> = rome.iter().map(Point::row_key).collect();
    assert_eq!(rome, ["m_0002", "m_0003", "m_0009"]);
}

#[tokio::test]
async fn an_entity_moves_to_a_key_that_another_leaves() {
    let (_, table, _) = club().await;
    let mut first = table.insert(&member(1)).await.unwrap();
    let second = table.insert(&member(2)).await.unwrap();
    // The id of the one that is deleted: its row is written twice, which one transaction cannot.
    first.id = 2;
    let mut egt = table.transaction();
    egt.delete(&second).unwrap().replace(&first).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidDuplicateRow"), "{error}");
    assert_clean(&table).await;
    table.delete(&second).await.unwrap();
    let moved = table.replace(&first).await.unwrap();
    assert_eq!((moved.row_key(), moved.email.as_str()), ("m_0002", "m1@x.com"));
    assert_clean(&table).await;
}

#[tokio::test]
async fn hostile_texts_stay_apart() {
    let (_, table, _) = club().await;
    let texts = [
        "a",
        "A/b",
        "a~2Fb",
        "a\\b",
        "a#b?",
        "~s0001",
        "t~s",
        "~e2_",
        "a b",
        "é",
        "日本",
        "\u{1f600}",
        "%2F",
        "'; drop",
        "\"quoted\"",
        "[\"m_0001\"]",
        "a\tb",
        "_",
        "e_m1@x.com",
        "İ",
        "ß",
        "x\u{7f}y",
    ];
    for (id, text) in (1..).zip(texts) {
        let hostile = Member {
            email: format!("{text}@{id}"),
            nick: text.into(),
            town: text.into(),
            note: Some(text.into()),
            ..member(id)
        };
        table.insert(&hostile).await.unwrap();
    }
    assert_clean(&table).await;
    for (id, text) in (1..).zip(texts) {
        let email = format!("{text}@{id}");
        let path = Member::by_email().club("C").email(email.to_uppercase().as_str());
        if email.to_uppercase().chars().flat_map(char::to_lowercase).eq(email.chars()) {
            let found = table.get(path).await.unwrap().unwrap();
            assert_eq!((found.id, found.note.as_deref()), (id, Some(text)), "{text:?}");
        }
        let town = table.query(Member::by_town().club("C").town(text)).collect().await.unwrap();
        assert_eq!(town.iter().map(|found| found.id).collect::<Vec<_>>(), [id], "{text:?}");
        // Taking the nick is refused, and the holder named, whatever it looks like.
        let error = table.insert(&Member { nick: text.into(), ..member(900) }).await.unwrap_err();
        assert_eq!(error.holder(), Some(("C", &*format!("m_{id:04}"))), "{text:?}: {error}");
    }
    let everyone = table.query(Member::primary().club("C")).collect().await.unwrap();
    for found in everyone {
        table.delete(&found).await.unwrap();
    }
    assert_eq!(keys(&table).await, [""; 0]);
}

#[tokio::test]
async fn a_long_hostile_list_is_exact() {
    let (_, table, _) = club().await;
    let report = table.bulk().insert_all((0..1_000).map(member)).await.unwrap();
    assert!(report.is_complete(), "{:?}", report.failed.first());
    let rome = Member::by_town().club("C").town("Rome");
    assert_eq!(table.keys(rome.clone()).await.unwrap().len(), 1_000);
    let odd = (0..1_000).filter(|id| id % 2 == 1).map(at);
    assert!(table.bulk().delete_all(odd).await.unwrap().is_complete());
    let left = table.query(rome).collect().await.unwrap();
    assert_eq!(left.len(), 500);
    assert!(left.iter().all(|member| member.id % 2 == 0));
    assert_clean(&table).await;
}

#[tokio::test]
async fn a_stale_copy_is_not_read_as_the_truth() {
    let (_, table, _) = club().await;
    table.insert(&member(1)).await.unwrap();
    let rows = table.client().dynamic("Club");
    // Another program moves the email in the copy, not its key.
    let mut copy = rows.get("C", "e_m1@x.com").await.unwrap().unwrap();
    copy.set("Email", "other@x.com");
    rows.replace(&copy).await.unwrap();
    let path = || Member::by_email().club("C").email("m1@x.com");
    let error = table.get(path()).await.unwrap_err();
    assert!(error.is_decode(), "{error}");
    assert!(error.message().contains("the copy's key does not match"), "{error}");
    let report = table.check().await.unwrap();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].kind, FindingKind::Stale);
    assert_eq!(report.repair().await.unwrap(), 1);
    // And one that moves the primary: the copy reads as it was, and writing through it is refused.
    let mut primary = rows.get("C", "m_0001").await.unwrap().unwrap();
    primary.set("Age", 77);
    rows.replace(&primary).await.unwrap();
    let stale = table.get(path()).await.unwrap().unwrap();
    assert!(table.replace(&stale).await.unwrap_err().is_precondition_failed());
    assert!(table.delete(&stale).await.unwrap_err().is_precondition_failed());
    assert_eq!(table.check().repair().await.unwrap(), 3, "every copy");
    assert_eq!(table.get(path()).await.unwrap().unwrap().age, 77);
    assert_clean(&table).await;
}

#[tokio::test]
async fn repair_gives_way_to_the_writer() {
    let (store, table, other) = club().await;
    let stored = other.insert(&member(1)).await.unwrap();
    for row_key in ["e_m1@x.com", "n_nick1", "t_Rome"] {
        remove(&other, row_key).await;
    }
    let report = table.check().await.unwrap();
    assert_eq!(report.findings.len(), 3);
    // The primary goes before the first mending is sent.
    store.before("apply", 0, async move {
        other.delete(&stored).await.unwrap();
    });
    assert_eq!(report.repair().await.unwrap(), 0);
    assert!(store.is_done());
    assert_eq!(keys(&table).await, [""; 0], "nothing is created for an entity that is gone");
}
