//! Tests that codecs other than JSON give back what went in, and that a verb refuses what they do not.

use entable::{EdmCow, EdmType, EdmValue, InvalidValue, ValueRef, key::KeyPart, prelude::*};

/// Writes every number, and reads those below 100.
#[derive(Debug, Clone, PartialEq)]
struct Percent(i32);

impl EdmValue for Percent {
    const EDM: EdmType = EdmType::Int32;

    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(ValueRef::Int32(self.0).into())
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        match i32::from_edm(value)? {
            number @ 0..=100 => Ok(Self(number)),
            other => Err(InvalidValue::new(format!("expected 0 to 100, found {other}"))),
        }
    }
}

impl KeyPart for Percent {
    const WIDTH: Option<usize> = None;

    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        out.push_str(&self.0.to_string());
        Ok(())
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        let number = text.parse().map_err(|_| InvalidValue::new("expected a number"))?;
        Self::from_edm(ValueRef::Int32(number))
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Loads", partition_key = "all", row_key = "load_{id:04}")]
struct Load {
    id: u32,
    share: Percent,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Loads",
    partition_key = "all",
    row_key = "share_{share}",
    index(ByName, row_key = "name_{name}")
)]
struct LoadByShare {
    share: Percent,
    name: String,
}

#[tokio::test]
async fn a_verb_refuses_a_value_that_its_row_would_not_give_back() {
    let client = Client::memory();
    let loads = client.table::<Load>();
    loads.create().await.unwrap();
    let stored = loads.insert(&Load { id: 1, share: Percent(50) }).await.unwrap();
    let over = Load { id: 1, share: Percent(101) };
    let mut changed = stored.clone();
    *changed = over.clone();
    let mut errors = vec![
        loads.insert(&Load { id: 2, ..over.clone() }).await.unwrap_err(),
        loads.insert_or_replace(&over).await.unwrap_err(),
        loads.insert_or_merge(&over).await.unwrap_err(),
        loads.replace(&changed).await.unwrap_err(),
        loads.replace_any(&over).await.unwrap_err(),
    ];
    let update = loads.update(Load::primary().id(1), |load| {
        load.share = Percent(101);
        Ok(())
    });
    errors.push(update.await.unwrap_err());
    for error in errors {
        assert!(error.is_invalid(), "{error}");
        assert_eq!(error.property(), Some("Share"), "{error}");
        assert!(error.keys().is_some() && error.table() == Some("Loads"), "{error}");
    }
    assert_eq!(loads.get(Load::primary().id(1)).await.unwrap(), Some(stored));
    assert_eq!(loads.get(Load::primary().id(2)).await.unwrap(), None);

    let loads = client.table::<LoadByShare>();
    let over = LoadByShare { share: Percent(101), name: "night".into() };
    for error in [
        loads.insert(&over).await.unwrap_err(),
        loads.insert_or_replace(&over).await.unwrap_err(),
        loads.insert_or_merge(&over).await.unwrap_err(),
        loads.replace_any(&over).await.unwrap_err(),
    ] {
        assert!(error.is_invalid(), "{error}");
        assert_eq!(error.property(), Some("Share"), "{error}");
    }
    let rows = client.dynamic("Loads").query(Keys::partition("all"));
    assert_eq!(rows.collect().await.unwrap().len(), 1);
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Address {
    city: Option<String>,
    zip: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Sites", partition_key = "all", row_key = "site_{id:04}")]
struct Site {
    id: u32,
    #[table(flatten)]
    home: Option<Address>,
    #[table(series)]
    levels: [Option<i32>; 3],
    #[table(split(2))]
    text: Option<String>,
    #[table(json)]
    words: Option<Vec<String>>,
    ratio: f64,
}

/// What a verb returns is what the next read returns, also where the stored form of two values is one.
#[tokio::test]
async fn a_verb_returns_the_value_that_is_read_later() {
    let sites = Client::memory().table::<Site>();
    sites.create().await.unwrap();
    let bare = Site {
        id: 1,
        home: Some(Address { city: None, zip: None }),
        levels: [None, Some(0), None],
        text: Some(String::new()),
        words: Some(Vec::new()),
        ratio: f64::NEG_INFINITY,
    };
    let written = sites.insert(&bare).await.unwrap();
    let read = sites.get(Site::primary().id(1)).await.unwrap().unwrap();
    assert_eq!(*written, *read);
    // A struct whose fields are all absent is absent itself. Everything else comes out as it went in.
    assert_eq!(read.into_inner(), Site { home: None, ..bare });
}
