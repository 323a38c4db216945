//! Rows from the JSON of an answer, without a map in between.
//!
//! The properties of one row are gathered in a list that borrows from the answer and is used again
//! for the next row; annotations may come before or after their property. A `null` is an absent
//! property.

use std::{borrow::Cow, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use uuid::Uuid;

use crate::{
    edm::{Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    row::{ETag, Row, RowBuilder},
};

/// One row, from the answer to a point read.
pub(in crate::backend::azure) fn row(body: &[u8]) -> Result<Row> {
    let mut members = Members::default();
    let mut json = serde_json::Deserializer::from_slice(body);
    (&mut members).deserialize(&mut json).map_err(|error| unreadable(&error))?;
    members.to_row()
}

/// The rows of a page.
pub(in crate::backend::azure) fn page(body: &[u8]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut failed = None;
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = Value(Rows { rows: &mut rows, failed: &mut failed });
    value.deserialize(&mut json).map_err(|error| unreadable(&error))?;
    failed.map_or(Ok(rows), Err)
}

/// The names of a page of tables.
pub(in crate::backend::azure) fn table_names(body: &[u8]) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Tables {
        value: Vec<Table>,
    }
    #[derive(serde::Deserialize)]
    struct Table {
        #[serde(rename = "TableName")]
        name: String,
    }
    let tables: Tables = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    Ok(tables.value.into_iter().map(|table| table.name).collect())
}

fn unreadable(error: &serde_json::Error) -> Error {
    // The position only: the text of serde_json's errors may quote a value.
    let message = format!(
        "the service's answer is not the JSON that was asked for (line {}, column {})",
        error.line(),
        error.column()
    );
    Error::new(ErrorKind::Backend, message)
}

/// A member's value as JSON has it.
#[derive(Debug)]
enum Scalar<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
}

/// The members of one object.
#[derive(Debug, Default)]
struct Members<'a> {
    properties: Vec<(Cow<'a, str>, Scalar<'a>)>,
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    partition_key: Cow<'a, str>,
    row_key: Cow<'a, str>,
    timestamp: Cow<'a, str>,
    etag: Cow<'a, str>,
}

const ANNOTATION: &str = "@odata.type";

impl<'a> Members<'a> {
    fn clear(&mut self) {
        self.properties.clear();
        self.types.clear();
        self.partition_key = Cow::Borrowed("");
        self.row_key = Cow::Borrowed("");
        self.timestamp = Cow::Borrowed("");
        self.etag = Cow::Borrowed("");
    }

    fn add(&mut self, name: Cow<'a, str>, value: Scalar<'a>) {
        match (&*name, value) {
            ("PartitionKey", Scalar::Text(text)) => self.partition_key = text,
            ("RowKey", Scalar::Text(text)) => self.row_key = text,
            ("Timestamp", Scalar::Text(text)) => self.timestamp = text,
            ("odata.etag", Scalar::Text(text)) => self.etag = text,
            (other, value) if other.contains('@') => {
                if let (Some(name), Scalar::Text(edm)) = (strip(&name), value) {
                    self.types.push((name, edm));
                }
            }
            (other, _) if other.starts_with("odata.") => {}
            ("Timestamp", _) | (_, Scalar::Null) => {}
            (_, value) => self.properties.push((name, value)),
        }
    }

    fn to_row(&self) -> Result<Row> {
        let place = |error: Error| error.at_keys(&self.partition_key, &self.row_key);
        let mut builder = Row::build(&self.partition_key, &self.row_key);
        let mut bytes = Vec::new();
        for (at, (name, value)) in self.properties.iter().enumerate() {
            put(&mut builder, &mut bytes, name, value, self.annotation(at, name))
                .map_err(|error| place(error).in_property(name))?;
        }
        let row = match self.timestamp.parse::<Ticks>() {
            Ok(timestamp) => builder.finish_at(timestamp),
            Err(_) => builder.finish(),
        }
        .map_err(place)?;
        Ok(if self.etag.is_empty() { row } else { row.with_etag(ETag::from(&*self.etag)) })
    }

    /// The type that the answer gives for a property. Annotations come in the order of their
    /// properties, so the search begins where that order would put it.
    fn annotation(&self, at: usize, name: &str) -> Option<&str> {
        let from = at.min(self.types.len());
        let (before, after) = self.types.split_at_checked(from)?;
        after.iter().chain(before).find(|(found, _)| found == name).map(|(_, edm)| &**edm)
    }
}

fn strip<'a>(name: &Cow<'a, str>) -> Option<Cow<'a, str>> {
    match name {
        Cow::Borrowed(name) => name.strip_suffix(ANNOTATION).map(Cow::Borrowed),
        Cow::Owned(name) => name.strip_suffix(ANNOTATION).map(|name| Cow::Owned(name.to_owned())),
    }
}

fn put(
    builder: &mut RowBuilder,
    bytes: &mut Vec<u8>,
    name: &str,
    value: &Scalar<'_>,
    edm: Option<&str>,
) -> Result<()> {
    let edm = edm.unwrap_or(match value {
        Scalar::Null => return Ok(()),
        Scalar::Bool(_) => "Edm.Boolean",
        Scalar::Integer(_) => "Edm.Int32",
        Scalar::Number(_) => "Edm.Double",
        Scalar::Text(_) => "Edm.String",
    });
    let stored = match (edm, value) {
        ("Edm.String", Scalar::Text(text)) => Some(ValueRef::String(text)),
        ("Edm.Boolean", Scalar::Bool(v)) => Some(ValueRef::Boolean(*v)),
        ("Edm.Boolean", Scalar::Text(text)) => match &**text {
            "true" => Some(ValueRef::Boolean(true)),
            "false" => Some(ValueRef::Boolean(false)),
            _ => None,
        },
        ("Edm.Int32", Scalar::Integer(v)) => i32::try_from(*v).ok().map(ValueRef::Int32),
        ("Edm.Int32", Scalar::Text(text)) => text.parse().ok().map(ValueRef::Int32),
        ("Edm.Int64", Scalar::Integer(v)) => Some(ValueRef::Int64(*v)),
        ("Edm.Int64", Scalar::Text(text)) => text.parse().ok().map(ValueRef::Int64),
        ("Edm.Double", Scalar::Number(v)) => Some(ValueRef::Double(*v)),
        #[allow(clippy::cast_precision_loss, reason = "a Double is what the property is")]
        ("Edm.Double", Scalar::Integer(v)) => Some(ValueRef::Double(*v as f64)),
        ("Edm.Double", Scalar::Text(text)) => double(text).map(ValueRef::Double),
        ("Edm.DateTime", Scalar::Text(text)) => text.parse().ok().map(ValueRef::DateTime),
        ("Edm.Guid", Scalar::Text(text)) => Uuid::parse_str(text).ok().map(ValueRef::Guid),
        ("Edm.Binary", Scalar::Text(text)) => {
            bytes.clear();
            STANDARD.decode_vec(text.as_bytes(), bytes).ok().map(|()| ValueRef::Binary(bytes))
        }
        _ => None,
    };
    match stored {
        Some(value) => builder.put(name, value),
        None => {
            let message = format!("the service's value is not of the type {edm} that it names");
            return Err(Error::new(ErrorKind::Decode, message));
        }
    }
    Ok(())
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        text => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

impl<'de> DeserializeSeed<'de> for &mut Members<'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Members<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name)? {
            self.add(name, map.next_value_seed(Member)?);
        }
        Ok(())
    }
}

/// A member's name, borrowed where the answer has it without escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct Member;

impl<'de> DeserializeSeed<'de> for Member {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Member {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property's value")
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Integer(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "beyond Int64 only a Double is left")]
    fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
        Ok(i64::try_from(value).map_or(Scalar::Number(value as f64), Scalar::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
}

/// The object around a page; its `value` is the list of rows.
struct Value<'r>(Rows<'r>);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a page of entities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Rows { rows, failed } = self.0;
        while let Some(name) = map.next_key_seed(Name)? {
            if name == "value" {
                map.next_value_seed(Rows { rows: &mut *rows, failed: &mut *failed })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Rows<'r> {
    rows: &'r mut Vec<Row>,
    failed: &'r mut Option<Error>,
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut members = Members::default();
        while seq.next_element_seed(&mut members)?.is_some() {
            match members.to_row() {
                Ok(row) => self.rows.push(row),
                Err(error) => {
                    self.failed.get_or_insert(error);
                }
            }
            members.clear();
        }
        Ok(())
    }
}
