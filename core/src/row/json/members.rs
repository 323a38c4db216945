//! Collects the JSON members of one entity and makes a row of them.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use uuid::Uuid;

use super::time;
use crate::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    row::{
        Row, RowBuilder,
        check::{name_bit, repeated_property_error},
    },
};

/// A JSON value of a member.
#[derive(Debug)]
pub(crate) enum JsonScalar<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
}

/// The members of one entity: properties, type annotations, keys, Timestamp and ETag.
#[derive(Debug, Default)]
pub struct EntityMembers<'a> {
    properties: Vec<(Cow<'a, str>, JsonScalar<'a>)>,
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    partition_key: Option<Cow<'a, str>>,
    row_key: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    etag: Option<Cow<'a, str>>,
    /// The names of members that make no property: nulls, and annotations that say nothing about a type.
    ignored: Vec<Cow<'a, str>>,
    /// A bit for each name so far, which spares most names the comparison with those before them.
    seen: u128,
    /// The first name that was given twice.
    repeated: Option<String>,
    /// Whether a key has a value that is neither text nor null.
    has_other_key: bool,
}

const ANNOTATION: &str = "@odata.type";
/// The most characters of a type's name in an error; the longest name of a type has 12.
const TYPE_CHARACTERS: usize = 40;

impl<'a> EntityMembers<'a> {
    /// Removes all members before collecting those of the next entity.
    pub fn clear(&mut self) {
        self.properties.clear();
        self.types.clear();
        self.ignored.clear();
        (self.partition_key, self.row_key, self.timestamp, self.etag) = (None, None, None, None);
        (self.seen, self.repeated, self.has_other_key) = (0, None, false);
    }

    /// Adds one member. If the name was already added, drops the value and keeps the first such name as
    /// `repeated`. Ignores `null`, a key or Timestamp that is not text, and annotations other than the ETag and
    /// property types.
    pub(crate) fn add_member(&mut self, name: Cow<'a, str>, value: JsonScalar<'a>) {
        let bit = name_bit(name.as_bytes());
        if self.seen & bit != 0 && self.has_member(&name) {
            self.repeated.get_or_insert_with(|| name.clone().into_owned());
            return;
        }
        self.seen |= bit;
        match (&*name, value) {
            ("PartitionKey", JsonScalar::Text(text)) => self.partition_key = Some(text),
            ("RowKey", JsonScalar::Text(text)) => self.row_key = Some(text),
            ("Timestamp", JsonScalar::Text(text)) => self.timestamp = Some(text),
            ("odata.etag", JsonScalar::Text(text)) => self.etag = Some(text),
            (other, value) if other.contains('@') => match (strip_annotation(&name), value) {
                (Some(name), JsonScalar::Text(edm)) => self.types.push((name, edm)),
                _ => self.ignored.push(name),
            },
            // For a selected property that the row does not have, the service returns `null`.
            (_, JsonScalar::Null) | ("Timestamp", _) => self.ignored.push(name),
            ("PartitionKey" | "RowKey", _) => {
                self.has_other_key = true;
                self.ignored.push(name);
            }
            (other, _) if other.starts_with("odata.") => self.ignored.push(name),
            (_, value) => self.properties.push((name, value)),
        }
    }

    /// Returns whether a member of that name was added.
    fn has_member(&self, name: &str) -> bool {
        let annotated = name.strip_suffix(ANNOTATION);
        let single = match name {
            "PartitionKey" => &self.partition_key,
            "RowKey" => &self.row_key,
            "Timestamp" => &self.timestamp,
            "odata.etag" => &self.etag,
            _ => &None,
        };
        single.is_some()
            || self.properties.iter().any(|(found, _)| found == name)
            || self.types.iter().any(|(found, _)| Some(&**found) == annotated)
            || self.ignored.iter().any(|found| found == name)
    }

    /// Sets the keys, in place of keys that were added.
    pub fn with_keys(self, partition_key: &'a str, row_key: &'a str) -> Self {
        let (partition_key, row_key) = (Some(partition_key.into()), Some(row_key.into()));
        Self { partition_key, row_key, ..self }
    }

    /// Returns whether PartitionKey and RowKey were added.
    pub fn has_keys(&self) -> bool {
        self.partition_key.is_some() && self.row_key.is_some()
    }

    /// Returns whether a key is given as anything but text, by its value or by its annotation.
    pub fn has_key_of_other_type(&self) -> bool {
        let is_key = |name: &str| matches!(name, "PartitionKey" | "RowKey");
        self.has_other_key
            || self.types.iter().any(|(name, edm)| is_key(name) && edm != "Edm.String")
    }

    /// Returns the first name that was given twice.
    pub fn repeated_name(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// Makes a row of the members.
    ///
    /// # Errors
    ///
    /// `is_decode` if a value does not fit its type, `is_corrupt` if a member was given twice, and
    /// `is_backend` if a key is missing.
    pub fn to_row(&self) -> Result<Row> {
        let partition_key = self.partition_key.as_deref().unwrap_or_default();
        let row_key = self.row_key.as_deref().unwrap_or_default();
        let name_row = |error: Error| error.at_keys(partition_key, row_key);
        if let Some(name) = &self.repeated {
            return Err(name_row(repeated_property_error(name)));
        }
        if !self.has_keys() {
            let message = "the answer lacks a PartitionKey or RowKey, so it is not a requested row; check proxies \
                           between this program and the service";
            return Err(name_row(Error::new(ErrorKind::Backend, message)));
        }
        let mut builder = Row::build(partition_key, row_key);
        let mut bytes = Vec::new();
        for (at, (name, value)) in self.properties.iter().enumerate() {
            put_property(&mut builder, &mut bytes, name, value, self.annotated_type(at, name))
                .map_err(|error| name_row(error).in_property(name))?;
        }
        // A row that was read with `$select` has a Timestamp only if that is among the selected.
        let timestamp = self.timestamp.as_deref().unwrap_or_default();
        let row = match time::parse_time(timestamp) {
            Some(timestamp) => builder.finish_at(timestamp),
            None => builder.finish(),
        }
        .map_err(name_row)?;
        Ok(match &self.etag {
            Some(etag) if !etag.is_empty() && !time::is_etag_of_timestamp(etag, timestamp) => {
                row.with_etag(time::parse_etag(etag))
            }
            _ => row,
        })
    }

    /// Returns the annotated type of a property. Annotations come in the order of their properties, so the
    /// search begins at the expected position.
    fn annotated_type(&self, at: usize, name: &str) -> Option<&str> {
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
        // Spreadsheets write `TRUE`.
        ("Edm.Boolean", JsonScalar::Text(text)) => {
            let is = |word: &str| text.eq_ignore_ascii_case(word);
            (is("true") || is("false")).then(|| ValueRef::Boolean(is("true")))
        }
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
            let edm = edm.chars().take(TYPE_CHARACTERS).collect::<String>();
            let message =
                format!("the value does not have its declared type {}", edm.escape_debug());
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
