//! Tests versions of an entity whose encrypted fields are added, removed and renamed.

use entable::{KeyScope, Keyring, Row, Value, backend::layer::Recorder, prelude::*};

use crate::fixture::{all_stored, client, key, keyring, put, root, stored, value, with};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Note",
    partition_key = "p",
    row_key = "{id:04}",
    index(ByText, row_key = "t_{text:hmac}_{id:04}")
)]
struct NoteV1 {
    id: u32,
    #[table(encrypt, blind)]
    text: String,
    #[table(encrypt)]
    gone: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Note",
    version = 2,
    upgrade_from(NoteV1),
    partition_key = "p",
    row_key = "{id:04}",
    index(ByText, row_key = "t_{body:hmac}_{id:04}")
)]
struct Note {
    id: u32,
    #[table(encrypt, blind)]
    body: String,
    #[table(encrypt(pad = 64))]
    added: Option<String>,
}

impl From<NoteV1> for Note {
    fn from(old: NoteV1) -> Self {
        Self { id: old.id, body: old.text, added: None }
    }
}

fn names(row: &Row) -> Vec<String> {
    row.to_bag().unwrap().iter().map(|(name, _)| name.to_owned()).collect()
}

#[tokio::test]
async fn nothing_of_an_earlier_version_stays_on_the_row() {
    let (client, _) = client().await;
    for id in 1..4 {
        let old = NoteV1 { id, text: format!("t{id}"), gone: "secret".into() };
        client.table::<NoteV1>().insert(&old).await.unwrap();
    }
    let notes = client.table::<Note>();
    // Copies of both versions have the tokens of their own fields.
    assert!(notes.check().await.unwrap().is_clean());
    assert_eq!(notes.get(Note::primary().id(1)).await.unwrap().unwrap().body, "t1");
    notes.patch_at(Note::primary().id(2), Note::patch().added("new")).await.unwrap();
    assert!(notes.upgrade_all().await.unwrap().is_complete());
    for row in all_stored(&client).await {
        let added = row.row_key().ends_with("0002").then_some("Added");
        let wanted = ["EntityType", "Body", "BodyBlind"].into_iter().chain(added);
        let (mut names, mut wanted): (Vec<_>, Vec<_>) = (names(&row), wanted.collect());
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{}", row.row_key());
    }
    let found = notes.query(Note::primary()).filter(Note::BODY.eq("t3")).collect().await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(notes.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn an_absence_that_is_hidden_stays_so_where_nothing_is_declared() {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Hiding {
        id: u16,
        #[table(encrypt(hide_none))]
        bonus: Option<i64>,
        age: i32,
    }
    let (client, _) = client().await;
    let hiding = client.table::<Hiding>();
    hiding.insert(&Hiding { id: 1, bonus: None, age: 1 }).await.unwrap();
    let dynamic = client.dynamic("Staff");
    let mut one = dynamic.get("p", "001").await.unwrap().unwrap();
    one.set("Age", 2);
    dynamic.replace(&one).await.unwrap();
    assert!(value(&stored(&client, "p", "001").await, "Bonus").is_some());
    assert_eq!(hiding.get(Hiding::primary().id(1)).await.unwrap().unwrap().age, 2);
}

#[tokio::test]
async fn a_conversion_that_fails_quotes_no_value() {
    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        entity_type = "Note",
        version = 2,
        upgrade_from(NoteV1),
        partition_key = "p",
        row_key = "{id:04}"
    )]
    struct Strict {
        id: u32,
        #[table(encrypt)]
        text: String,
    }
    impl TryFrom<NoteV1> for Strict {
        type Error = String;
        fn try_from(old: NoteV1) -> Result<Self, String> {
            Err(format!("`{}` is too short", old.text))
        }
    }
    let (client, _) = client().await;
    let old = NoteV1 { id: 1, text: "canary".into(), gone: "x".into() };
    client.table::<NoteV1>().insert(&old).await.unwrap();
    let error = client.table::<Strict>().get(Strict::primary().id(1)).await.unwrap_err();
    assert!(error.is_decode() && !format!("{error:?} {error:#?}").contains("canary"), "{error:?}");
    let _ = |strict: Strict| (strict.id, strict.text);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Bonus", partition_key = "p", row_key = "{id:03}")]
struct BonusV1 {
    id: u16,
    #[table(encrypt)]
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Bonus",
    version = 2,
    upgrade_from(BonusV1),
    partition_key = "p",
    row_key = "{id:03}"
)]
struct Bonus {
    id: u16,
    #[table(encrypt)]
    sum: Option<i64>,
    age: i32,
}

impl From<BonusV1> for Bonus {
    fn from(old: BonusV1) -> Self {
        Self { id: old.id, sum: Some(old.amount), age: 1 }
    }
}

#[tokio::test]
async fn an_insert_or_merge_upgrades_an_older_version() {
    let (client, _) = client().await;
    client.table::<BonusV1>().insert(&BonusV1 { id: 1, amount: 7 }).await.unwrap();
    let bonuses = client.table::<Bonus>();
    bonuses.insert_or_merge(&Bonus { id: 1, sum: None, age: 2 }).await.unwrap();
    let read = bonuses.get(Bonus::primary().id(1)).await.unwrap().unwrap();
    assert_eq!((read.sum, read.age), (Some(7), 2));
}

/// A writer without keys chooses the version that a row claims.
#[tokio::test]
async fn a_plain_value_under_the_name_of_an_earlier_version_is_refused() {
    let (client, recorder) = client().await;
    let stranger = Client::builder().backend(recorder).build().unwrap().dynamic("Staff");
    let mut forged = DynamicEntity::new("p", "0009");
    forged.set("EntityType", "Note").set("Id", 9_i64).set("Text", "forged").set("Gone", "forged");
    stranger.insert(&forged).await.unwrap();
    let notes = client.table::<Note>();
    let error = notes.get(Note::primary().id(9)).await.unwrap_err();
    assert!(error.is_decrypt() && error.property() == Some("Text"), "{error:?}");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Word", partition_key = "p", row_key = "{id:04}")]
struct WordV1 {
    id: u32,
    #[table(encrypt)]
    text: String,
    #[table(encrypt(hide_none))]
    hint: Option<String>,
}

/// A version that no longer encrypts a field.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Word",
    version = 2,
    upgrade_from(WordV1),
    partition_key = "p",
    row_key = "{id:04}"
)]
struct Word {
    id: u32,
    text: String,
    #[table(encrypt)]
    other: Option<String>,
}

impl From<WordV1> for Word {
    fn from(old: WordV1) -> Self {
        Self { id: old.id, text: old.text, other: None }
    }
}

#[tokio::test]
async fn each_version_decides_which_of_its_values_are_encrypted() {
    let (client, _) = client().await;
    let words = client.table::<Word>();
    words.insert(&Word { id: 1, text: "plain".into(), other: None }).await.unwrap();
    let old = WordV1 { id: 2, text: "sealed".into(), hint: None };
    client.table::<WordV1>().insert(&old).await.unwrap();
    for (id, text) in [(1, "plain"), (2, "sealed")] {
        assert_eq!(words.get(Word::primary().id(id)).await.unwrap().unwrap().text, text);
    }
    let row = stored(&client, "p", "0002").await;
    put(&client, with(&row, "Text", Some("forged".into()))).await;
    let error = words.get(Word::primary().id(2)).await.unwrap_err();
    assert!(error.is_decrypt() && error.property() == Some("Text"), "{error:?}");
}

/// Rows that a program of version 2 writes for an entity of version 1.
#[tokio::test]
async fn what_is_written_for_an_earlier_version_is_encrypted_as_it_declares() {
    let (client, _) = client().await;
    let old = NoteV1 { id: 1, text: "t".into(), gone: "secret".into() };
    client.table::<NoteV1>().insert(&old).await.unwrap();
    let notes = client.table::<Note>();
    for row in all_stored(&client).await {
        if row.row_key() != "0001" {
            client
                .dynamic("Staff")
                .delete(row.partition_key(), row.row_key(), Condition::Any)
                .await
                .unwrap();
        }
    }
    assert_eq!(all_stored(&client).await.len(), 1);
    notes.check().await.unwrap().repair().await.unwrap();
    let rows = all_stored(&client).await;
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert!(value(row, "Text").unwrap().as_bytes().is_some(), "{:?}", row.to_bag().unwrap());
    }
    assert!(notes.check().await.unwrap().is_clean());
}

/// A client that writes with key 2, and reads what key 1 encrypted.
fn with_retired_key(recorder: &Recorder) -> Client {
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder().primary(&scope, &root(2)).decrypt_only(&scope, &root(1));
    let keys = keys.blind_token_key(&scope, 1, &root(100)).build().unwrap();
    Client::builder().backend(recorder.clone()).keys(keys).build().unwrap()
}

#[tokio::test]
async fn rows_of_an_earlier_version_under_a_retired_key_are_encrypted_again() {
    let (before, recorder) = client().await;
    for id in 1..4 {
        let old = NoteV1 { id, text: format!("t{id}"), gone: "secret".into() };
        before.table::<NoteV1>().insert(&old).await.unwrap();
    }
    let notes = with_retired_key(&recorder).table::<Note>();
    let report = notes.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    // Three primaries and their copies.
    assert_eq!((report.rewritten, report.is_complete()), (6, true), "{report:?}");
    assert_eq!(notes.reencrypt().encrypted_with(key(1).id()).await.unwrap().rows, 0);
    let alone = Client::builder().backend(recorder).keys(keyring(2)).build().unwrap();
    let found = alone.table::<Note>().query(Note::primary()).collect().await.unwrap();
    assert_eq!(found.iter().map(|note| &*note.body).collect::<Vec<_>>(), ["t1", "t2", "t3"]);
}

#[tokio::test]
async fn rows_of_an_unknown_version_are_not_encrypted_again_and_told() {
    let (before, recorder) = client().await;
    before.table::<Note>().insert(&Note { id: 1, body: "t".into(), added: None }).await.unwrap();
    let after = with_retired_key(&recorder).table::<NoteV1>();
    for retired in [None, Some(key(1).id())] {
        let job = after.reencrypt();
        let job = retired.into_iter().fold(job, |job, key| job.encrypted_with(key));
        let report = job.await.unwrap();
        // The primary and its copy.
        let told: Vec<_> =
            report.failed.iter().map(|row| row.error.is_unrecognized_entity()).collect();
        assert_eq!((told, report.is_complete()), (vec![true, true], false), "{report:?}");
        assert_eq!(report.rewritten, 0);
    }
}

#[tokio::test]
async fn rows_that_name_the_first_version_are_encrypted_again() {
    let (before, recorder) = client().await;
    let old = NoteV1 { id: 1, text: "t".into(), gone: "secret".into() };
    before.table::<NoteV1>().insert(&old).await.unwrap();
    for row in all_stored(&before).await {
        let marker = row.to_bag().unwrap().get("EntityType").unwrap().as_str().unwrap().to_owned();
        let marker = marker.replacen("Note", "Note.v1", 1);
        put(&before, with(&row, "EntityType", Some(Value::from(marker)))).await;
    }
    let after = with_retired_key(&recorder);
    let report = after.table::<NoteV1>().reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (2, true), "{report:?}");
    let alone = Client::builder().backend(recorder).keys(keyring(2)).build().unwrap();
    let read = alone.table::<NoteV1>().get(NoteV1::primary().id(1)).await.unwrap();
    assert_eq!(read.unwrap().text, "t");
}

/// `WordV1` hides that it has no hint, and `Word` has no hints.
#[tokio::test]
async fn a_hidden_absence_of_an_earlier_version_under_a_retired_key_is_encrypted_again() {
    let (before, recorder) = client().await;
    let old = WordV1 { id: 1, text: "t".into(), hint: None };
    before.table::<WordV1>().insert(&old).await.unwrap();
    let words = with_retired_key(&recorder).table::<Word>();
    let report = words.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (1, true), "{report:?}");
    assert!(value(&stored(&before, "p", "0001").await, "Hint").unwrap().as_bytes().is_some());
    assert_eq!(words.reencrypt().encrypted_with(key(1).id()).await.unwrap().rows, 0);
    let alone = Client::builder().backend(recorder).keys(keyring(2)).build().unwrap();
    assert_eq!(
        alone.table::<WordV1>().get(WordV1::primary().id(1)).await.unwrap().unwrap().hint,
        None
    );
    let read = alone.table::<Word>().get(Word::primary().id(1)).await.unwrap();
    assert_eq!(read.unwrap().text, "t");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Page", partition_key = "p", row_key = "{id:04}")]
struct PageV1 {
    id: u32,
    #[table(encrypt(pad = 256))]
    note: String,
    #[table(encrypt, blind)]
    author: String,
}

/// A version without the padded field and without the field with a blind token.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Page",
    version = 2,
    upgrade_from(PageV1),
    partition_key = "p",
    row_key = "{id:04}"
)]
struct Page {
    id: u32,
    #[table(encrypt)]
    title: Option<String>,
}

impl From<PageV1> for Page {
    fn from(old: PageV1) -> Self {
        Self { id: old.id, title: None }
    }
}

#[tokio::test]
async fn what_only_an_earlier_version_pads_stays_padded_under_a_new_key() {
    let (before, recorder) = client().await;
    let old = PageV1 { id: 1, note: "n".into(), author: "a".into() };
    before.table::<PageV1>().insert(&old).await.unwrap();
    let row = stored(&before, "p", "0001").await;
    let pages = with_retired_key(&recorder).table::<Page>();
    let report = pages.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (1, true), "{report:?}");
    let again = stored(&before, "p", "0001").await;
    let length = |row: &Row| value(row, "Note").unwrap().as_bytes().unwrap().len();
    assert!(length(&row) > 256);
    assert_eq!(
        (value(&row, "Note") == value(&again, "Note"), length(&again)),
        (false, length(&row))
    );
    assert_eq!(names(&again), names(&row));
    assert_eq!(pages.reencrypt().await.unwrap().rewritten, 0);

    // A client of the earlier version finds the row by its blind token, with the new key alone.
    let alone = Client::builder().backend(recorder).keys(keyring(2)).build().unwrap();
    let earlier = alone.table::<PageV1>();
    let found = earlier.query(PageV1::primary()).filter(PageV1::AUTHOR.eq("a")).collect().await;
    let found = found.unwrap();
    assert_eq!((found.len(), &*found[0].note), (1, "n"));

    // A length that a writer without the declaration showed is hidden again.
    let dynamic = alone.dynamic("Staff");
    let read = dynamic.get("p", "0001").await.unwrap().unwrap();
    dynamic.replace(&read).await.unwrap();
    assert_ne!(length(&stored(&alone, "p", "0001").await), length(&row));
    assert_eq!(pages.reencrypt().await.unwrap().rewritten, 1);
    assert_eq!(length(&stored(&alone, "p", "0001").await), length(&row));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Deed", partition_key = "p", row_key = "{id:04}", seal)]
struct DeedV1 {
    id: u32,
    amount: i32,
    #[table(encrypt)]
    owner: String,
}

/// A version without the seal.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Deed",
    version = 2,
    upgrade_from(DeedV1),
    partition_key = "p",
    row_key = "{id:04}"
)]
struct Deed {
    id: u32,
    amount: i32,
    #[table(encrypt)]
    owner: String,
}

impl From<DeedV1> for Deed {
    fn from(old: DeedV1) -> Self {
        Self { id: old.id, amount: old.amount, owner: old.owner }
    }
}

#[tokio::test]
async fn a_seal_that_only_an_earlier_version_declares_is_made_again() {
    let (before, recorder) = client().await;
    for id in 1..4 {
        let old = DeedV1 { id, amount: 7, owner: "o".into() };
        before.table::<DeedV1>().insert(&old).await.unwrap();
    }
    // A stranger changes the second row, and takes the seal of the third away.
    let row = stored(&before, "p", "0002").await;
    put(&before, with(&row, "Amount", Some(Value::from(8)))).await;
    let row = stored(&before, "p", "0003").await;
    let seal = names(&row).into_iter().find(|name| name.contains("Seal")).unwrap();
    put(&before, with(&row, &seal, None)).await;

    let deeds = with_retired_key(&recorder).table::<Deed>();
    let report = deeds.reencrypt().encrypted_with(key(1).id()).await.unwrap();
    assert_eq!((report.rewritten, report.failed.len()), (2, 1), "{report:?}");
    let failed = &report.failed[0];
    assert!(failed.row_key == "0002" && failed.error.is_decrypt(), "{failed:?}");
    assert_eq!(deeds.reencrypt().encrypted_with(key(1).id()).await.unwrap().rewritten, 0);

    let alone = Client::builder().backend(recorder).keys(keyring(2)).build().unwrap();
    let earlier = alone.table::<DeedV1>();
    assert_eq!(earlier.get(DeedV1::primary().id(1)).await.unwrap().unwrap().amount, 7);
    let error = earlier.get(DeedV1::primary().id(3)).await.unwrap_err();
    assert!(error.is_decrypt(), "no seal is made for a row without one: {error:?}");
}
