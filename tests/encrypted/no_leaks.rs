//! Tests that no message, no Debug and no recorded request shows a value that is encrypted or
//! behind a token.

use std::fmt::{Debug, Display};

use entable::{
    EdmCow, EdmType, EdmValue, InvalidValue, ValueRef,
    backend::{Memory, layer::Recorder},
    key::KeyPart,
    prelude::*,
};

use crate::fixture::{keyring, put, stored, with};

const CANARY: &str = "canary-4711";

/// A text that cannot be stored or read where it begins with the canary, and says so aloud.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Loud(String);

fn loud(text: &str) -> Result<(), InvalidValue> {
    if text.starts_with(CANARY) {
        Err(InvalidValue::new(format!("`{text}` does not fit")))
    } else {
        Ok(())
    }
}

impl EdmValue for Loud {
    const EDM: EdmType = EdmType::String;
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        loud(&self.0)?;
        self.0.to_edm()
    }
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        let text = String::from_edm(value)?;
        loud(&text)?;
        Ok(Self(text))
    }
}

impl KeyPart for Loud {
    const WIDTH: Option<usize> = None;
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        self.0.encode(out)
    }
    fn decode(text: &str) -> Result<Self, InvalidValue> {
        String::decode(text).map(Self)
    }
}

impl TryFrom<String> for Loud {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with(CANARY) { Err(format!("bad text {text}")) } else { Ok(Self(text)) }
    }
}

impl From<Loud> for String {
    fn from(loud: Loud) -> Self {
        loud.0
    }
}

#[derive(Debug, Clone, Default, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "p",
    row_key = "{id:03}",
    index(BySsn, row_key = "s_{ssn:hmac}")
)]
struct Person {
    id: u16,
    #[table(encrypt)]
    ssn: Loud,
    #[table(encrypt, blind)]
    pin: Loud,
    #[table(encrypt, json)]
    notes: Vec<Loud>,
    #[table(encrypt)]
    size: String,
}

/// The row with its text in another type.
#[derive(Debug, Clone, TableEntity)]
#[table(name = "Staff", entity_type = "Person", partition_key = "p", row_key = "{id:03}")]
struct Quiet {
    id: u16,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt)]
    pin: String,
    #[table(encrypt)]
    notes: String,
    #[table(encrypt)]
    size: String,
}

/// Everything that was shown.
#[derive(Default)]
struct Shown(Vec<String>);

impl Shown {
    fn debug(&mut self, shown: &impl Debug) {
        self.0.push(format!("{shown:?} {shown:#?}"));
    }

    fn error(&mut self, error: &Error) {
        self.debug(error);
        self.0.push(error.to_string());
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            self.0.push(format!("{cause} {cause:?}"));
            source = cause.source();
        }
    }

    fn display(&mut self, shown: &impl Display) {
        self.0.push(shown.to_string());
    }
}

fn secret() -> Loud {
    Loud(CANARY.into())
}

fn fine(id: u16) -> Person {
    Person {
        id,
        ssn: Loud(format!("x{CANARY}{id}")),
        pin: Loud(format!("y{CANARY}")),
        ..Person::default()
    }
}

fn at() -> Point<Person> {
    Person::primary().id(1)
}

async fn values_that_cannot_be_stored(client: &Client, shown: &mut Shown) {
    let people = client.table::<Person>();
    let bad = [
        Person { ssn: secret(), ..fine(1) },
        Person { pin: secret(), ..fine(1) },
        Person { size: CANARY.repeat(9000), ..fine(1) },
    ];
    for bad in &bad {
        shown.error(&people.insert(bad).await.unwrap_err());
        shown.error(&people.insert_or_merge(bad).await.unwrap_err());
        let mut egt = client.transaction();
        match egt.insert(bad).map(drop) {
            Err(error) => shown.error(&error),
            Ok(()) => shown.error(&egt.commit().await.unwrap_err()),
        }
        let report = client.bulk().insert_all([bad]).await.unwrap();
        shown.debug(&report);
        shown.error(&report.into_result().unwrap_err());
    }
    for patch in [Person::patch().ssn(secret()), Person::patch().pin(secret())] {
        shown.debug(&patch);
        shown.error(&people.patch_at(at(), patch).await.unwrap_err());
    }
}

async fn paths_and_filters(client: &Client, shown: &mut Shown) {
    let people = client.table::<Person>();
    let path = Person::by_ssn().ssn(secret());
    shown.debug(&path);
    shown.error(&people.get(path).await.unwrap_err());
    let path = Person::by_ssn().ssn(Loud(format!("x{CANARY}1")));
    shown.debug(&path);
    shown.debug(&path.keys());
    let query = people.query(path);
    shown.debug(&query);
    shown.display(&query.explain());
    let condition = Person::PIN.eq(Loud(format!("y{CANARY}")));
    shown.debug(&condition);
    let filter = condition.clone().into_filter().unwrap();
    shown.debug(&filter);
    shown.display(&filter);
    let query = people.query(Person::primary()).filter(!condition.clone() | condition);
    shown.debug(&query);
    shown.display(&query.explain());
    let refused = people.query(Person::primary()).filter(Person::PIN.eq(secret()));
    shown.debug(&refused);
    shown.error(&refused.collect().await.unwrap_err());
}

async fn values_that_are_written(client: &Client, recorder: &Recorder, shown: &mut Shown) {
    let people = client.table::<Person>();
    let condition = Person::PIN.eq(Loud(format!("y{CANARY}")));
    let query = people.query(Person::primary()).filter(!condition.clone() | condition);
    recorder.clear();
    people.insert(&fine(1)).await.unwrap();
    people.patch_at(at(), Person::patch().pin(Loud(format!("z{CANARY}")))).await.unwrap();
    assert_eq!(query.collect().await.unwrap().len(), 1);
    shown.error(&people.insert(&fine(1)).await.unwrap_err());
    shown.error(&people.insert(&Person { ssn: fine(1).ssn, ..fine(2) }).await.unwrap_err());
    let page = people.query(Person::primary()).page_size(1).page(None).await.unwrap();
    shown.debug(&page.next);
    shown.debug(&page.items[0].row());
    let mut dynamic = client.dynamic("Staff").get("p", "001").await.unwrap().unwrap();
    assert!(dynamic.str("Ssn").unwrap().contains(CANARY));
    shown.debug(&dynamic);
    dynamic.set("Plain", 1);
    let mut egt = client.dynamic("Staff").transaction();
    egt.replace(&dynamic).unwrap();
    shown.debug(&egt);
    egt.commit().await.unwrap();
    shown.debug(&people.reencrypt().await.unwrap());
    shown.debug(&people.check().await.unwrap().findings);
    shown.debug(&recorder.requests());
    shown.debug(&client);
}

async fn values_that_cannot_be_read(client: &Client, shown: &mut Shown) {
    let people = client.table::<Person>();
    let quiet = client.table::<Quiet>();
    let hidden = || CANARY.to_owned();
    let wrong = Quiet {
        id: 2,
        ssn: hidden(),
        pin: hidden(),
        notes: format!("[\"{CANARY}\"]"),
        size: hidden(),
    };
    quiet.insert(&wrong).await.unwrap();
    for name in ["Ssn", "Pin", "Notes"] {
        let fine =
            Quiet { id: 2, ssn: "a".into(), pin: "b".into(), notes: "[]".into(), size: "c".into() };
        let one = match name {
            "Ssn" => Quiet { ssn: hidden(), ..fine },
            "Pin" => Quiet { pin: hidden(), ..fine },
            _ => Quiet { notes: format!("[\"{CANARY}\"]"), ..fine },
        };
        quiet.insert_or_replace(&one).await.unwrap();
        let error = people.get(Person::primary().id(2)).await.unwrap_err();
        assert_eq!((error.is_decode(), error.property()), (true, Some(name)), "{error}");
        shown.error(&error);
    }
    // Plain text where it should not be.
    let row = stored(client, "p", "002").await;
    put(client, with(&row, "Ssn", Some(CANARY.into()))).await;
    shown.error(&people.get(Person::primary().id(2)).await.unwrap_err());
}

#[tokio::test]
async fn nothing_that_is_shown_holds_a_secret() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).keys(keyring(1)).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let mut shown = Shown::default();
    values_that_cannot_be_stored(&client, &mut shown).await;
    paths_and_filters(&client, &mut shown).await;
    values_that_are_written(&client, &recorder, &mut shown).await;
    values_that_cannot_be_read(&client, &mut shown).await;

    assert!(shown.0.len() > 40, "{}", shown.0.len());
    for text in shown.0 {
        assert!(!text.contains("canary") && !text.contains("4711"), "{text}");
    }
}
