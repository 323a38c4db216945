//! Writes a row as JSON with the service's annotations of types.
//!
//! Types that JSON does not show are annotated. Doubles are always annotated, because some servers read
//! `3.0` as an Int32. Finite Doubles are written as numbers, others as text.

use std::{fmt, str::from_utf8};

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    Serialize, Serializer,
    ser::{Error, SerializeMap},
};

use crate::{edm::ValueRef, row::Row};

/// Serializes a row as the body of an insert or update: keys first, then the properties in their order.
#[derive(Debug, Clone, Copy)]
pub struct JsonRow<'a>(pub &'a Row);

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("PartitionKey", self.0.partition_key())?;
        map.serialize_entry("RowKey", self.0.row_key())?;
        // The Timestamp is left out: the service sets it, and ignores one in a request.
        let mut properties = self.0.properties();
        let damaged = |_| S::Error::custom("the row is damaged");
        while let Some((name, value)) = properties.next().map_err(damaged)? {
            let name = from_utf8(name).map_err(S::Error::custom)?;
            serialize_property(&mut map, name, value)?;
        }
        map.end()
    }
}

fn serialize_property<M: SerializeMap>(
    map: &mut M,
    name: &str,
    value: ValueRef<'_>,
) -> Result<(), M::Error> {
    if value.edm_type().needs_annotation() {
        map.serialize_key(&Text(format_args!("{name}@odata.type")))?;
        map.serialize_value(value.edm_type().name())?;
    }
    match value {
        ValueRef::Boolean(v) => map.serialize_entry(name, &v),
        ValueRef::Int32(v) => map.serialize_entry(name, &v),
        ValueRef::Int64(v) => map.serialize_entry(name, &Text(v)),
        ValueRef::Double(v) if v.is_finite() => map.serialize_entry(name, &v),
        ValueRef::Double(v) => map.serialize_entry(name, text_of_not_finite(v)),
        ValueRef::String(v) => map.serialize_entry(name, v),
        ValueRef::DateTime(v) => map.serialize_entry(name, &Text(v)),
        ValueRef::Guid(v) => map.serialize_entry(name, &Text(v.as_hyphenated())),
        ValueRef::Binary(v) => map.serialize_entry(name, &Text(Base64Display::new(v, &STANDARD))),
    }
}

/// Returns the service's text for a Double that JSON has no number for.
pub fn text_of_not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Serializes the printed form of a value as a JSON string.
struct Text<T>(T);

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{edm::Ticks, row::RowBuilder};

    fn json(fill: impl FnOnce(&mut RowBuilder)) -> String {
        let mut builder = Row::build("p", "r");
        fill(&mut builder);
        serde_json::to_string(&JsonRow(&builder.finish().unwrap())).unwrap()
    }

    #[test]
    fn every_type_has_its_wire_form() {
        let text = json(|row| {
            row.put("B", ValueRef::Boolean(true));
            row.put("I", ValueRef::Int32(-5));
            row.put("L", ValueRef::Int64(i64::MIN));
            row.put("D", ValueRef::Double(3.0));
            row.put("S", ValueRef::String("a\"b\\\u{1}é"));
            row.put("T", ValueRef::DateTime(Ticks::UNIX_EPOCH));
            row.put("G", ValueRef::Guid(Uuid::from_u128(1)));
            row.put("Y", ValueRef::Binary(&[0, 255, 1]));
        });
        assert_eq!(
            text,
            concat!(
                r#"{"PartitionKey":"p","RowKey":"r","B":true,"I":-5,"#,
                r#""L@odata.type":"Edm.Int64","L":"-9223372036854775808","#,
                r#""D@odata.type":"Edm.Double","D":3.0,"#,
                r#""S":"a\"b\\\u0001é","#,
                r#""T@odata.type":"Edm.DateTime","T":"1970-01-01T00:00:00Z","#,
                r#""G@odata.type":"Edm.Guid","G":"00000000-0000-0000-0000-000000000001","#,
                r#""Y@odata.type":"Edm.Binary","Y":"AP8B"}"#
            )
        );
    }

    #[test]
    fn doubles_that_are_no_numbers_are_text() {
        for (value, text) in
            [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")]
        {
            let found = json(|row| row.put("D", ValueRef::Double(value)));
            assert!(found.ends_with(&format!(r#""D@odata.type":"Edm.Double","D":"{text}"}}"#)));
        }
    }
}
