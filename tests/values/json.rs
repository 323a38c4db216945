//! Tests that no verb writes JSON that its own type does not read.

use entable::{KeyScope, Keyring, RootKey, backend::Memory, prelude::*};
use serde::{Deserialize, Serialize};

/// A member that serde leaves out and then misses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Half {
    #[serde(skip_serializing)]
    lost: u32,
}

/// A value that serde writes to any depth and reads to 128 levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Nest(Vec<Nest>);

fn nest(depth: u32) -> Nest {
    Nest(if depth == 0 { Vec::new() } else { vec![nest(depth - 1)] })
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Extent {
    #[table(json)]
    bounds: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Models",
    partition_key = "{team}",
    row_key = "model_{id:04}",
    index(ByName, row_key = "name_{name}"),
    index(ByTeam, partition_key = "all", row_key = "team_{team}_{id:04}")
)]
struct Model {
    team: String,
    id: u32,
    name: String,
    #[table(json)]
    weights: Vec<f64>,
    #[table(json)]
    nest: Nest,
    #[table(json, default)]
    half: Option<Half>,
    #[table(split(2), json)]
    history: Vec<f64>,
    #[table(flatten(prefix = "Size"))]
    size: Extent,
}

fn model(id: u32) -> Model {
    Model {
        team: "red".into(),
        id,
        name: format!("m{id}"),
        weights: vec![0.5],
        nest: nest(3),
        half: None,
        history: vec![1.5],
        size: Extent { bounds: vec![2.5] },
    }
}

/// One model for each field that does not read back, with the property that the error names.
fn unreadable() -> Vec<(Model, &'static str)> {
    let nan = || vec![f64::NAN];
    vec![
        (Model { weights: nan(), ..model(1) }, "Weights"),
        (Model { nest: nest(200), ..model(1) }, "Nest"),
        (Model { half: Some(Half::default()), ..model(1) }, "Half"),
        (Model { history: nan(), ..model(1) }, "History"),
        (Model { size: Extent { bounds: nan() }, ..model(1) }, "SizeBounds"),
    ]
}

fn point() -> Point<Model> {
    Model::primary().team("red").id(1)
}

async fn models() -> Table<Model> {
    let models = Client::memory().table::<Model>();
    models.create().await.unwrap();
    models
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, property: &str, verb: &str) {
    let error = result.unwrap_err();
    assert!(error.is_invalid(), "{verb}: {error}");
    assert_eq!(error.property(), Some(property), "{verb}: {error}");
    assert!(error.to_string().contains("read"), "{verb}: {error}");
}

#[tokio::test]
async fn a_new_entity_whose_json_does_not_read_back_is_refused() {
    let models = models().await;
    for (model, property) in unreadable() {
        assert_refused(models.insert(&model).await, property, "insert");
        assert_refused(models.insert_or_replace(&model).await, property, "insert_or_replace");
        assert_refused(models.insert_or_merge(&model).await, property, "insert_or_merge");
        let mut transaction = models.transaction();
        assert_refused(transaction.insert(&model).map(drop), property, "transaction");
        let report = models.client().bulk().insert_all([model.clone()]).await.unwrap();
        assert_refused(report.into_result(), property, "bulk");
    }
    let rows = models.client().dynamic("Models").query(Keys::partition("red"));
    assert_eq!(rows.collect().await.unwrap().len(), 0, "nothing was written");
}

#[tokio::test]
async fn a_change_to_json_that_does_not_read_back_is_refused() {
    let models = models().await;
    let stored = models.insert(&model(1)).await.unwrap();
    for (model, property) in unreadable() {
        let mut changed = stored.clone();
        *changed = model.clone();
        assert_refused(models.replace(&changed).await, property, "replace");
        assert_refused(models.replace_any(&model).await, property, "replace_any");
        let update = models.update(point(), |stored| {
            *stored = model.clone();
            Ok(())
        });
        assert_refused(update.await, property, "update");
        let report = models.client().bulk().update_all(
            models.query(Model::primary().team("red")),
            |stored: &mut Model| {
                *stored = model.clone();
                Ok(())
            },
        );
        assert_refused(report.await.unwrap().into_result(), property, "update_all");
    }
    assert_eq!(models.get(point()).await.unwrap(), Some(stored));
}

#[tokio::test]
async fn a_patch_with_json_that_does_not_read_back_is_refused() {
    type MakePatch = fn() -> <Model as TableEntity>::Patch;

    let models = models().await;
    let stored = models.insert(&model(1)).await.unwrap();
    let nan = || vec![f64::NAN];
    let patches: [(MakePatch, &str); 4] = [
        (|| Model::patch().weights(vec![f64::NAN]), "Weights"),
        (|| Model::patch().half(Some(Half::default())), "Half"),
        (|| Model::patch().history(vec![f64::NAN]), "History"),
        (|| Model::patch().size(Extent { bounds: vec![f64::NAN] }), "SizeBounds"),
    ];
    for (patch, property) in patches {
        assert_refused(models.patch(&stored, patch()).await, property, "patch");
        assert_refused(models.patch_at(point(), patch()).await, property, "patch_at");
    }
    let patch = entable::Patch::<Model>::new().set_json("Weights", &nan());
    assert_refused(patch.into_changes(), "Weights", "set_json");
    assert_eq!(models.get(point()).await.unwrap(), Some(stored));
}

#[derive(Debug, Serialize, Deserialize, Message)]
struct Trained {
    loss: f64,
}

#[tokio::test]
async fn a_message_that_no_handler_could_read_is_refused() {
    let client = Client::memory();
    let models = client.table::<Model>();
    models.create().await.unwrap();
    let message = Trained { loss: f64::INFINITY };
    let mut transaction = models.transaction();
    let emitted = transaction.emit(&message).unwrap_err();
    let sent = client.queue("trained").send(&message).await.unwrap_err();
    for error in [emitted, sent] {
        assert!(error.is_invalid() && error.to_string().contains("`Trained`"), "{error}");
    }
    client.queue("trained").send(&Trained { loss: 0.5 }).await.unwrap();
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Patients", partition_key = "all", row_key = "patient_{id:04}")]
struct Patient {
    id: u32,
    #[table(json, encrypt)]
    notes: Secret,
    #[table(split(2), json, encrypt)]
    letters: Secret,
}

/// A value whose error in reading quotes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Secret(String);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        match text.len() {
            0..5 => Ok(Self(text)),
            _ => Err(serde::de::Error::custom(format!("`{text}` is too long"))),
        }
    }
}

#[tokio::test]
async fn the_refusal_of_a_secret_does_not_show_it() {
    let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    let keys = Keyring::builder().primary(&scope, &root).build().unwrap();
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    let patients = client.table::<Patient>();
    patients.create().await.unwrap();
    let secret = |text: &str| Secret(text.to_owned());
    let fine = Patient { id: 1, notes: secret("fine"), letters: secret("fine") };
    patients.insert(&fine).await.unwrap();
    let long = [
        Patient { id: 2, notes: secret("the patient limps"), ..fine.clone() },
        Patient { id: 2, letters: secret("the patient limps"), ..fine.clone() },
    ];
    let mut errors = Vec::new();
    for (patient, property) in long.iter().zip(["Notes", "Letters"]) {
        errors.push((patients.insert(patient).await.unwrap_err(), property));
    }
    let point = || Patient::primary().id(1);
    let patch = Patient::patch().notes(secret("the patient limps"));
    errors.push((patients.patch_at(point(), patch).await.unwrap_err(), "Notes"));
    let patch = Patient::patch().letters(secret("the patient limps"));
    errors.push((patients.patch_at(point(), patch).await.unwrap_err(), "Letters"));
    for (error, property) in errors {
        assert!(error.is_invalid(), "{error}");
        assert_eq!(error.property(), Some(property));
        assert!(!format!("{error} {error:?}").contains("limps"), "{error:?}");
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Counted",
    partition_key = "all",
    row_key = "counted_{id:04}",
    index(ByName, row_key = "name_{name}"),
    index(ByCity, partition_key = "city_{city}", row_key = "counted_{id:04}")
)]
struct Counted {
    id: u32,
    name: String,
    city: String,
    #[table(json)]
    value: Counter,
}

/// Counts how often it is read.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Counter(u32);

thread_local! {
    static READS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl<'de> Deserialize<'de> for Counter {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        READS.set(READS.get() + 1);
        u32::deserialize(input).map(Self)
    }
}

#[tokio::test]
async fn json_is_read_back_once_for_all_rows_of_an_entity() {
    let client = Client::memory();
    let counted = client.table::<Counted>();
    counted.create().await.unwrap();
    let entity =
        |id| Counted { id, name: format!("n{id}"), city: "Bern".into(), value: Counter(7) };
    READS.set(0);
    client.bulk().insert_all([entity(1)]).await.unwrap();
    assert_eq!(READS.take(), 1, "the primary, and neither of its copies");
    counted.insert(&entity(2)).await.unwrap();
    assert_eq!(READS.take(), 2, "once more for the value that the verb returns");
}
