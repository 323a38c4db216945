//! Tests rows that claim an older version, which holds plain what the current one encrypts. Whoever can
//! write the table can make such a row, and no reader may take its plain value into the encrypted field.

use entable::{
    PlaintextPolicy, SealFault,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

use crate::fixture::{all_stored, client, keyring, put, stored, value, with};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Person",
    partition_key = "p",
    row_key = "{id:03}",
    index(ByName, row_key = "name_{name}_{id:03}")
)]
struct PersonV1 {
    id: u16,
    name: String,
    social: String,
}

/// The version that encrypts the number, under another name.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Person",
    version = 2,
    upgrade_from(PersonV1),
    partition_key = "p",
    row_key = "{id:03}",
    index(ByName, row_key = "name_{name}_{id:03}")
)]
struct Person {
    id: u16,
    name: String,
    #[table(encrypt)]
    ssn: String,
}

impl From<PersonV1> for Person {
    fn from(old: PersonV1) -> Self {
        Self { id: old.id, name: old.name, ssn: old.social }
    }
}

#[derive(Debug, Clone, Projection)]
#[table(of = Person)]
struct Named {
    #[allow(dead_code, reason = "read alone")]
    name: String,
}

#[derive(Debug, EntitySet)]
#[allow(dead_code, reason = "only errors are looked at")]
enum Rows {
    Person(Person),
}

fn forged(id: u16) -> PersonV1 {
    PersonV1 { id, name: format!("n{id}"), social: "forged".into() }
}

fn point(id: u16) -> Point<Person> {
    Person::primary().id(id)
}

/// A client without keys, which writes what it likes.
fn stranger(recorder: &Recorder) -> Client {
    Client::builder().backend(recorder.clone()).build().unwrap()
}

fn with_policy(recorder: &Recorder, policy: PlaintextPolicy) -> Client {
    let builder = Client::builder().backend(recorder.clone()).keys(keyring(1));
    builder.plaintext(policy).build().unwrap()
}

/// Asserts that the error refuses a plain value of `property`, and does not show it.
#[track_caller]
fn is_refused(error: &Error, property: &str) {
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted), "{error:?}");
    assert_eq!(error.property(), Some(property), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("forged"), "{error:?}");
}

#[tokio::test]
async fn every_verb_refuses_a_version_that_holds_the_value_plain() {
    let (client, recorder) = client().await;
    stranger(&recorder).table::<PersonV1>().insert(&forged(1)).await.unwrap();
    let before = all_stored(&client).await;
    let people = client.table::<Person>();
    let person = Person { id: 1, name: "new".into(), ssn: "123".into() };

    let mut refused = vec![
        people.get(point(1)).await.unwrap_err(),
        people.get(Person::by_name().name("n1").id(1)).await.unwrap_err(),
        people.query(Person::primary()).collect().await.unwrap_err(),
        people.query(Person::by_name()).collect().await.unwrap_err(),
        people.query(Person::primary()).select::<Named>().collect().await.unwrap_err(),
        people.get_many([point(1)]).await.unwrap_err(),
        people.update(point(1), |one| Ok(one.name = "x".into())).await.unwrap_err(),
        people.patch_at(point(1), Person::patch().name("x")).await.unwrap_err(),
        people.patch_at(point(1), Person::patch().ssn("x")).await.unwrap_err(),
        people.insert_or_merge(&person).await.unwrap_err(),
        people.check().await.unwrap_err(),
    ];
    let set = client.set::<Rows>("Staff");
    refused.push(set.query(Keys::partition("p")).collect().await.unwrap_err());
    refused.push(set.get(Keys::point("p", "001")).await.unwrap_err());
    let mut transaction = client.transaction();
    transaction.patch_at::<Person>(point(1), Person::patch().name("x")).unwrap();
    refused.push(transaction.commit().await.unwrap_err());
    for error in &refused {
        is_refused(error, "Ssn");
    }

    for report in [
        people.upgrade_all().await,
        client
            .bulk()
            .update_all(people.query(Person::primary().id_range(0..=9)), |one: &mut Person| {
                Ok(one.name = "x".into())
            })
            .await,
    ] {
        match report {
            Ok(report) => {
                assert!(report.done == 0 && !report.failed.is_empty(), "{report:?}");
                report.failed.iter().for_each(|failed| is_refused(&failed.error, "Ssn"));
            }
            Err(error) => is_refused(&error, "Ssn"),
        }
    }
    assert_eq!(all_stored(&client).await, before, "nothing of the forged row was written");
}

#[tokio::test]
async fn a_migration_reads_them_under_allow_and_ends_with_sealed_rows() {
    let (client, recorder) = client().await;
    for id in 1..4 {
        let old = PersonV1 { social: format!("s{id}"), ..forged(id) };
        stranger(&recorder).table::<PersonV1>().insert(&old).await.unwrap();
    }
    let migrating = with_policy(&recorder, PlaintextPolicy::Allow).table::<Person>();
    assert_eq!(migrating.get(point(1)).await.unwrap().unwrap().ssn, "s1");
    migrating.update(point(2), |one| Ok(one.name = "two".into())).await.unwrap();
    assert!(migrating.upgrade_all().await.unwrap().is_complete());

    let people = client.table::<Person>();
    for id in 1..4 {
        assert_eq!(people.get(point(id)).await.unwrap().unwrap().ssn, format!("s{id}"));
    }
    for row in all_stored(&client).await {
        assert!(
            value(&row, "Ssn").unwrap().as_bytes().is_some() && value(&row, "Social").is_none()
        );
    }
    assert!(people.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_row_of_the_current_version_gets_nothing_by_another_claim() {
    let (client, _) = client().await;
    let people = client.table::<Person>();
    people.insert(&Person { id: 1, name: "n1".into(), ssn: "123".into() }).await.unwrap();
    let row = stored(&client, "p", "001").await;
    // The attacker keeps the sealed value, and has the upgrade take a plain one.
    let claimed = with(&row, "EntityType", Some("Person".into()));
    put(&client, with(&claimed, "Social", Some("forged".into()))).await;
    let one = people.get(point(1)).await.unwrap_err();
    is_refused(&one, "Ssn");
}

#[tokio::test]
async fn one_forged_row_spoils_no_other_row() {
    let (client, recorder) = client().await;
    let people = client.table::<Person>();
    for id in [1, 3] {
        people.insert(&Person { id, name: "n".into(), ssn: "123".into() }).await.unwrap();
    }
    stranger(&recorder).table::<PersonV1>().insert(&forged(2)).await.unwrap();
    // The range leaves copies out, which do not open either.
    let query = people.query(Person::primary().id_range(0..=9));
    let rows = query.clone().results().collect().await.unwrap();
    let opened: Vec<bool> = rows.iter().map(|row| row.is_ok()).collect();
    assert_eq!(opened, [true, false, true]);
    assert_eq!(query.count().await.unwrap(), 3, "no value is read");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Case", partition_key = "p", row_key = "{id:03}")]
struct CaseV1 {
    id: u16,
    title: String,
    is_closed: bool,
    #[table(encrypt)]
    text: Option<String>,
    #[table(encrypt)]
    is_secret: bool,
}

/// A version that renames an encrypted field, adds some, and derives others from plain fields.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Case",
    version = 2,
    upgrade_from(CaseV1),
    partition_key = "p",
    row_key = "{id:03}"
)]
struct Case {
    id: u16,
    title: String,
    #[table(encrypt)]
    body: Option<String>,
    #[table(encrypt)]
    hidden: bool,
    #[table(encrypt)]
    words: Option<String>,
    #[table(encrypt)]
    closed: Option<bool>,
    #[table(encrypt, default)]
    visits: i64,
    #[table(series, encrypt)]
    marks: [i32; 3],
}

impl From<CaseV1> for Case {
    fn from(old: CaseV1) -> Self {
        Self {
            id: old.id,
            words: old.title.contains("index").then(|| old.title.to_lowercase()),
            closed: old.is_closed.then_some(true),
            // A title stands for a text that is not there.
            body: old.text.or_else(|| old.title.strip_prefix("use ").map(str::to_owned)),
            title: old.title,
            hidden: old.is_secret,
            visits: 0,
            marks: [0; 3],
        }
    }
}

fn case(title: &str) -> CaseV1 {
    let text = Some("secret".to_owned());
    CaseV1 { id: 1, title: title.into(), is_closed: false, text, is_secret: true }
}

#[tokio::test]
async fn renamed_and_added_fields_of_an_older_version_are_read() {
    let (client, recorder) = client().await;
    client.table::<CaseV1>().insert(&case("t")).await.unwrap();
    let cases = client.table::<Case>();
    let read = cases.get(Case::primary().id(1)).await.unwrap().unwrap().into_inner();
    assert_eq!((read.body.as_deref(), read.hidden), (Some("secret"), true));
    assert_eq!((read.words, read.closed, read.visits, read.marks), (None, None, 0, [0; 3]));
    drop(recorder);
    assert!(cases.upgrade_all().await.unwrap().is_complete());
    assert_eq!(
        &*cases.get(Case::primary().id(1)).await.unwrap().unwrap().body.clone().unwrap(),
        "secret"
    );
}

#[tokio::test]
async fn values_that_an_upgrade_derives_from_plain_ones_are_refused() {
    let (client, _) = client().await;
    let cases = client.table::<Case>();
    let written = client.table::<CaseV1>();
    written.insert(&case("t")).await.unwrap();
    let row = stored(&client, "p", "001").await;
    let at = || Case::primary().id(1);
    // A plain value that the new version keeps, from which it makes an encrypted one.
    put(&client, with(&row, "Title", Some("forged index".into()))).await;
    is_refused(&cases.get(at()).await.unwrap_err(), "Words");
    // The sealed text is taken away, and a plain one stands for it.
    let without = with(&row, "Text", None);
    put(&client, with(&without, "Title", Some("use forged".into()))).await;
    is_refused(&cases.get(at()).await.unwrap_err(), "Body");
    // A value that equals a sealed one of the row: that one proves a single property.
    put(&client, with(&row, "IsClosed", Some(true.into()))).await;
    let error = cases.get(at()).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted), "{error:?}");
    assert!(matches!(error.property(), Some("Closed" | "Hidden")), "{error:?}");
    put(&client, row).await;
    assert!(cases.get(at()).await.unwrap().is_some());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Paper", partition_key = "p", row_key = "{id:03}", wide)]
struct PaperV1 {
    id: u16,
    #[table(encrypt)]
    title: Option<String>,
    #[table(part = 2)]
    remark: Option<String>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Paper",
    version = 2,
    upgrade_from(PaperV1),
    partition_key = "p",
    row_key = "{id:03}",
    wide
)]
struct Paper {
    id: u16,
    #[table(encrypt)]
    title: Option<String>,
    #[table(part = 2, encrypt)]
    note: Option<String>,
}

impl From<PaperV1> for Paper {
    fn from(old: PaperV1) -> Self {
        Self { id: old.id, title: old.title, note: old.remark }
    }
}

#[derive(Debug, EntitySet)]
#[allow(dead_code, reason = "only errors are looked at")]
enum Papers {
    Paper(Paper),
}

#[tokio::test]
async fn a_wide_entity_is_judged_with_all_its_parts() {
    let (client, recorder) = client().await;
    let old = client.table::<PaperV1>();
    let title = Some("sealed".to_owned());
    old.insert(&PaperV1 { id: 1, title: title.clone(), remark: None }).await.unwrap();
    old.insert(&PaperV1 { id: 2, title, remark: Some("forged".into()) }).await.unwrap();
    let papers = client.table::<Paper>();
    let at = |id| Paper::primary().id(id);
    assert_eq!(papers.get(at(1)).await.unwrap().unwrap().title.as_deref(), Some("sealed"));
    let set = client.set::<Papers>("Staff");
    for error in [
        papers.get(at(2)).await.unwrap_err(),
        papers.query(Paper::primary()).collect().await.unwrap_err(),
        papers.update(at(2), |one| Ok(one.title = None)).await.unwrap_err(),
        papers.check().await.unwrap_err(),
        set.query(Keys::partition("p")).collect().await.unwrap_err(),
        set.get(Keys::point("p", "002_01")).await.unwrap_err(),
    ] {
        is_refused(&error, "Note");
        assert_eq!(error.keys(), Some(("p", "002_01")), "{error}");
    }
    let migrating = with_policy(&recorder, PlaintextPolicy::Allow).table::<Paper>();
    assert!(migrating.upgrade_all().await.unwrap().is_complete());
    assert_eq!(papers.get(at(2)).await.unwrap().unwrap().note.as_deref(), Some("forged"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Chosen", partition_key = "p", row_key = "{id:03}")]
struct ChosenV1 {
    id: u16,
    plain: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Chosen",
    version = 2,
    upgrade_from(ChosenV1),
    partition_key = "p",
    row_key = "{id:03}"
)]
struct Chosen {
    id: u16,
    picked: String,
}

impl From<ChosenV1> for Chosen {
    fn from(old: ChosenV1) -> Self {
        Self { id: old.id, picked: old.plain }
    }
}

#[tokio::test]
async fn a_property_that_the_client_chooses_is_protected_as_a_declared_one() {
    let recorder = Recorder::around(Memory::new());
    let choosing = |policy| {
        let builder = Client::builder().backend(recorder.clone()).keys(keyring(1));
        let builder = builder.encrypt_if(|_, _, name| name == "Picked").plaintext(policy);
        builder.build().unwrap().table::<Chosen>()
    };
    let chosen = choosing(PlaintextPolicy::Reject);
    chosen.create().await.unwrap();
    let old = ChosenV1 { id: 1, plain: "forged".into() };
    stranger(&recorder).table::<ChosenV1>().insert(&old).await.unwrap();
    is_refused(&chosen.get(Chosen::primary().id(1)).await.unwrap_err(), "Picked");
    assert!(choosing(PlaintextPolicy::Allow).upgrade_all().await.unwrap().is_complete());
    assert_eq!(chosen.get(Chosen::primary().id(1)).await.unwrap().unwrap().picked, "forged");
}

/// A version whose key holds the value in the clear.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Keyed", partition_key = "p", row_key = "mail_{mail}")]
struct KeyedV1 {
    mail: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Keyed",
    version = 2,
    upgrade_from(KeyedV1),
    partition_key = "p",
    row_key = "token_{mail:hmac}"
)]
struct Keyed {
    #[table(encrypt)]
    mail: String,
}

impl From<KeyedV1> for Keyed {
    fn from(old: KeyedV1) -> Self {
        Self { mail: old.mail }
    }
}

#[tokio::test]
async fn a_value_of_a_plain_key_does_not_become_an_encrypted_one() {
    let (client, recorder) = client().await;
    let old = KeyedV1 { mail: "forged@example.com".into() };
    stranger(&recorder).table::<KeyedV1>().insert(&old).await.unwrap();
    let keyed = client.table::<Keyed>();
    let error = keyed.query(Keyed::scan()).allow_scan().collect().await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted), "{error:?}");
    let migrating = with_policy(&recorder, PlaintextPolicy::Allow).table::<Keyed>();
    assert!(migrating.upgrade_all().await.unwrap().is_complete());
    let found = keyed.get(Keyed::primary().mail("forged@example.com")).await.unwrap();
    assert_eq!(found.unwrap().mail, "forged@example.com");
}
