//! Collects the JSON members of one entity and makes a row of them.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use uuid::Uuid;

use super::time;
use crate::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    row::{Row, RowBuilder},
};

/// A JSON value of a member.
#[derive(Debug)]
pub(super) enum JsonScalar<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
}

/// The members of one entity: properties, type annotations, keys, Timestamp and ETag.
#[derive(Debug, Default)]
pub(super) struct EntityMembers<'a> {
    properties: Vec<(Cow<'a, str>, JsonScalar<'a>)>,
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    partition_key: Cow<'a, str>,
    row_key: Cow<'a, str>,
    timestamp: Cow<'a, str>,
    etag: Cow<'a, str>,
}

const ANNOTATION: &str = "@odata.type";

impl<'a> EntityMembers<'a> {
    /// Removes all members, to collect those of the next entity.
    pub(super) fn clear(&mut self) {
        self.properties.clear();
        self.types.clear();
        self.partition_key = Cow::Borrowed("");
        self.row_key = Cow::Borrowed("");
        self.timestamp = Cow::Borrowed("");
        self.etag = Cow::Borrowed("");
    }

    /// Adds one member.
    pub(super) fn add(&mut self, name: Cow<'a, str>, value: JsonScalar<'a>) {
        match (&*name, value) {
            ("PartitionKey", JsonScalar::Text(text)) => self.partition_key = text,
            ("RowKey", JsonScalar::Text(text)) => self.row_key = text,
            ("Timestamp", JsonScalar::Text(text)) => self.timestamp = text,
            ("odata.etag", JsonScalar::Text(text)) => self.etag = text,
            (other, value) if other.contains('@') => {
                if let (Some(name), JsonScalar::Text(edm)) = (strip_annotation(&name), value) {
                    self.types.push((name, edm));
                }
            }
            (other, _) if other.starts_with("odata.") => {}
            ("Timestamp", _) | (_, JsonScalar::Null) => {}
            (_, value) => self.properties.push((name, value)),
        }
    }

    /// Makes a row of the members of a JSON object. Fails with `is_decode` if a value does not fit
    /// its type.
    pub(super) fn to_row(&self) -> Result<Row> {
        let name_row = |error: Error| error.at_keys(&self.partition_key, &self.row_key);
        let mut builder = Row::build(&self.partition_key, &self.row_key);
        let mut bytes = Vec::new();
        for (at, (name, value)) in self.properties.iter().enumerate() {
            put_property(&mut builder, &mut bytes, name, value, self.annotation(at, name))
                .map_err(|error| name_row(error).in_property(name))?;
        }
        let row = match time::parse_time(&self.timestamp) {
            Some(timestamp) => builder.finish_at(timestamp),
            None => builder.finish(),
        }
        .map_err(name_row)?;
        let derived = self.etag.is_empty() || time::is_etag_of(&self.etag, &self.timestamp);
        Ok(if derived { row } else { row.with_etag(time::parse_etag(&self.etag)) })
    }

    /// Returns the annotated type of a property. Annotations come in the order of their properties, so the
    /// search begins at the expected position.
    fn annotation(&self, at: usize, name: &str) -> Option<&str> {
        let from = at.min(self.types.len());
        let (before, after) = self.types.split_at_checked(from)?;
        after.iter().chain(before).find(|(found, _)| found == name).map(|(_, edm)| &**edm)
    }
}

fn strip_annotation<'a>(name: &Cow<'a, str>) -> Option<Cow<'a, str>> {
    match name {
        Cow::Borrowed(name) => name.strip_suffix(ANNOTATION).map(Cow::Borrowed),
        Cow::Owned(name) => name.strip_suffix(ANNOTATION).map(|name| Cow::Owned(name.to_owned())),
    }
}

fn put_property(
    builder: &mut RowBuilder,
    bytes: &mut Vec<u8>,
    name: &str,
    value: &JsonScalar<'_>,
    edm: Option<&str>,
) -> Result<()> {
    let edm = edm.unwrap_or(match value {
        JsonScalar::Null => return Ok(()),
        JsonScalar::Bool(_) => "Edm.Boolean",
        JsonScalar::Integer(_) => "Edm.Int32",
        JsonScalar::Number(_) => "Edm.Double",
        JsonScalar::Text(_) => "Edm.String",
    });
    let stored = match (edm, value) {
        ("Edm.String", JsonScalar::Text(text)) => Some(ValueRef::String(text)),
        ("Edm.Boolean", JsonScalar::Bool(v)) => Some(ValueRef::Boolean(*v)),
        ("Edm.Boolean", JsonScalar::Text(text)) => match &**text {
            "true" => Some(ValueRef::Boolean(true)),
            "false" => Some(ValueRef::Boolean(false)),
            _ => None,
        },
        ("Edm.Int32", JsonScalar::Integer(v)) => i32::try_from(*v).ok().map(ValueRef::Int32),
        ("Edm.Int32", JsonScalar::Text(text)) => text.parse().ok().map(ValueRef::Int32),
        ("Edm.Int64", JsonScalar::Integer(v)) => Some(ValueRef::Int64(*v)),
        ("Edm.Int64", JsonScalar::Text(text)) => text.parse().ok().map(ValueRef::Int64),
        ("Edm.Double", JsonScalar::Number(v)) => Some(ValueRef::Double(*v)),
        #[allow(clippy::cast_precision_loss, reason = "a Double is what the property is")]
        ("Edm.Double", JsonScalar::Integer(v)) => Some(ValueRef::Double(*v as f64)),
        ("Edm.Double", JsonScalar::Text(text)) => parse_double(text).map(ValueRef::Double),
        ("Edm.DateTime", JsonScalar::Text(text)) => time::parse_time(text).map(ValueRef::DateTime),
        ("Edm.Guid", JsonScalar::Text(text)) => Uuid::parse_str(text).ok().map(ValueRef::Guid),
        ("Edm.Binary", JsonScalar::Text(text)) => {
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

fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        text => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}
