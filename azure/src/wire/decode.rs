//! Decodes rows from the JSON of an answer.
//!
//! The members of one entity are collected in a list that borrows from the answer and is reused for the
//! next entity. A type annotation may come before or after its property. A `null` is an absent property.
//! A row that does not decode is an error at its place in the page.

use std::fmt;

use entable_core::{
    __runtime::{
        error::is_printable,
        row::json::{EntityMembers, NameSeed},
    },
    error::{Error, ErrorKind, Result},
    row::Row,
};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Decodes the answer to a point read.
pub(crate) fn decode_row(body: &[u8]) -> Result<Row> {
    let mut members = EntityMembers::default();
    let mut json = serde_json::Deserializer::from_slice(body);
    (&mut members).deserialize(&mut json).map_err(|error| unreadable_error(&error))?;
    json.end().map_err(|error| unreadable_error(&error))?;
    members.to_row()
}

/// Decodes the rows of a page.
pub(crate) fn decode_page(body: &[u8]) -> Result<Vec<Result<Row>>> {
    let mut rows = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(body);
    let page = PageSeed(RowsSeed(&mut rows)).deserialize(&mut json).and_then(|()| json.end());
    match page {
        Ok(()) => Ok(rows),
        Err(error) => decode_rows_apart(body).ok_or_else(|| unreadable_error(&error)),
    }
}

/// Decodes the rows of a page one by one. A row with malformed JSON, such as half a surrogate pair, then does not
/// affect the others. It is slower than decoding the page at once. Returns `None` if the body is not a page.
fn decode_rows_apart(body: &[u8]) -> Option<Vec<Result<Row>>> {
    #[derive(serde::Deserialize)]
    struct RawPage<'a> {
        #[serde(borrow)]
        value: Vec<&'a RawValue>,
    }
    let page: RawPage<'_> = serde_json::from_slice(body).ok()?;
    Some(page.value.iter().map(|row| decode_row(row.get().as_bytes())).collect())
}

/// Decodes the names of a page of tables.
pub(crate) fn decode_table_names(body: &[u8]) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Tables {
        value: Vec<Table>,
    }
    #[derive(serde::Deserialize)]
    struct Table {
        #[serde(rename = "TableName")]
        name: String,
    }
    let tables: Tables = serde_json::from_slice(body).map_err(|error| unreadable_error(&error))?;
    let names: Vec<String> = tables.value.into_iter().map(|table| table.name).collect();
    let is_name = |name: &String| name.len() <= TABLE_NAME_BYTES && name.chars().all(is_printable);
    if names.iter().all(is_name) {
        return Ok(names);
    }
    let message =
        "the answer contains a name that no table can have; check the endpoint and proxies";
    Err(Error::new(ErrorKind::Backend, message))
}

/// The most bytes of a table's name on any service; Cosmos DB permits 255 characters.
const TABLE_NAME_BYTES: usize = 1024;

fn unreadable_error(error: &serde_json::Error) -> Error {
    // Only the position: the text of serde_json's errors may quote a value.
    let message = format!(
        "the service's answer is not the expected JSON (line {}, column {}); check the endpoint and proxies",
        error.line(),
        error.column()
    );
    Error::new(ErrorKind::Backend, message)
}

/// Deserializes the object of a page, whose member `value` is the list of rows.
struct PageSeed<'r>(RowsSeed<'r>);

impl<'de> DeserializeSeed<'de> for PageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PageSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a page of entities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let RowsSeed(rows) = self.0;
        let mut is_page = false;
        while let Some(name) = map.next_key_seed(NameSeed)? {
            if name == "value" {
                if is_page {
                    return Err(serde::de::Error::duplicate_field("value"));
                }
                map.next_value_seed(RowsSeed(&mut *rows))?;
                is_page = true;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        // An empty page has an empty list. An object without a list is the answer of another
        // server.
        if is_page { Ok(()) } else { Err(serde::de::Error::missing_field("value")) }
    }
}

struct RowsSeed<'r>(&'r mut Vec<Result<Row>>);

impl<'de> DeserializeSeed<'de> for RowsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut members = EntityMembers::default();
        while seq.next_element_seed(&mut members)?.is_some() {
            self.0.push(members.to_row());
            members.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use entable_core::edm::{Value, ValueRef};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn annotations_come_before_or_after() {
        let row = decode_row(
            br#"{"odata.metadata":"x","odata.etag":"W/\"a b\"","L":"5","L@odata.type":"Edm.Int64",
            "PartitionKey":"p","RowKey":"r\u00e9","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-05-26T15:48:25.77957Z",
            "D@odata.type":"Edm.Double","D":"NaN","W":3.0,"I":7,"N":null,"G@odata.type":"Edm.Guid","G":"00000000-0000-0000-0000-00000000000A",
            "D2@odata.type":"Edm.Double","D2":4,"B@odata.type":"Edm.Binary","B":"AP8="}"#,
        )
        .unwrap();
        assert_eq!((row.partition_key(), row.row_key()), ("p", "r\u{e9}"));
        assert_eq!(row.etag().unwrap().to_string(), "W/\"a b\"");
        assert_eq!(row.timestamp().unwrap().to_string(), "2021-05-26T15:48:25.77957Z");
        assert_eq!(row.get("L").unwrap(), Some(ValueRef::Int64(5)));
        assert!(matches!(row.get("D").unwrap(), Some(ValueRef::Double(d)) if d.is_nan()));
        assert_eq!(row.get("W").unwrap(), Some(ValueRef::Double(3.0)));
        assert_eq!(row.get("D2").unwrap(), Some(ValueRef::Double(4.0)));
        assert_eq!(row.get("I").unwrap(), Some(ValueRef::Int32(7)));
        assert_eq!(row.get("N").unwrap(), None);
        assert_eq!(row.get("G").unwrap(), Some(ValueRef::Guid(Uuid::from_u128(10))));
        assert_eq!(row.get("B").unwrap().map(|v| v.to_value()), Some(Value::from(vec![0, 255])));
    }

    #[test]
    fn a_value_that_is_not_of_its_type_is_named() {
        for wrong in [
            r#""A":3000000000"#,
            r#""A@odata.type":"Edm.Int64","A":"x""#,
            r#""A@odata.type":"Edm.DateTime","A":"soon""#,
            r#""A@odata.type":"Edm.Unknown","A":"x""#,
            r#""A@odata.type":"Edm.Binary","A":"*""#,
        ] {
            let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{wrong}}}"#);
            let error = decode_row(body.as_bytes()).unwrap_err();
            assert!(error.is_decode(), "{wrong}");
            assert_eq!((error.property(), error.keys()), (Some("A"), Some(("p", "r"))));
            let good = r#"{"PartitionKey":"p","RowKey":"s"}"#;
            let page = decode_page(format!(r#"{{"value":[{good},{body},{good}]}}"#).as_bytes());
            let page = page.unwrap();
            assert!(page[1].as_ref().unwrap_err().is_decode());
            assert!(page.len() == 3 && page[0].is_ok() && page[2].is_ok());
        }
    }

    #[test]
    fn a_member_that_is_given_twice_is_an_error_at_the_place_of_its_row() {
        for twice in [
            r#""A":1,"A":2"#,
            r#""A":1,"\u0041":2"#,
            r#""A":1,"A":null"#,
            r#""A":null,"A":1"#,
            r#""A":null,"A":null"#,
            r#""A@odata.type":"Edm.Int64","A":"1","A@odata.type":"Edm.String""#,
            r#""A@odata.type":"Edm.Int64","A":"1","A@odata\u002etype":"Edm.String""#,
            r#""A@odata.type":7,"A":"1","A@odata.type":"Edm.String""#,
            r#""RowKey":"r""#,
            r#""PartitionKey":"q""#,
            r#""PartitionKey":null"#,
            r#""odata.etag":"a","odata.etag":"b""#,
            r#""odata.id":"a","odata.id":"b""#,
            r#""Timestamp":"2021-05-26T15:48:25Z","Timestamp":"2021-05-26T15:48:26Z""#,
        ] {
            let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{twice}}}"#);
            let error = decode_row(body.as_bytes()).unwrap_err();
            assert!(error.is_corrupt() && error.keys() == Some(("p", "r")), "{twice}: {error}");
            let good = r#"{"PartitionKey":"p","RowKey":"s","A":1}"#;
            let page = decode_page(format!(r#"{{"value":[{good},{body},{good}]}}"#).as_bytes());
            let page = page.unwrap();
            assert!(page[1].as_ref().unwrap_err().is_corrupt(), "{twice}");
            assert!(page.len() == 3 && page[0].is_ok() && page[2].is_ok(), "{twice}");
        }
        let many: String = (0..252).map(|n| format!(r#","P{n}":{n}"#)).collect();
        let body = |more: &str| format!(r#"{{"PartitionKey":"p","RowKey":"r"{many}{more}}}"#);
        assert_eq!(decode_row(body("").as_bytes()).unwrap().property_count().unwrap(), 252);
        assert!(decode_row(body(r#","P200":1"#).as_bytes()).unwrap_err().is_corrupt());
    }

    #[test]
    fn a_row_that_is_no_json_spoils_no_other_row() {
        for bad in [
            r#"{"PartitionKey":"p","RowKey":"r","A":"\ud800"}"#,
            r#"{"PartitionKey":"p","RowKey":"r","A":[1]}"#,
            r#"{"PartitionKey":"p","RowKey":"r","A":{"A":1}}"#,
            r#"{"PartitionKey":"p","RowKey":"r","A":1e999}"#,
            r#"{"PartitionKey":"p"}"#,
            r#"{"PartitionKey":"p","RowKey":7}"#,
            "7",
        ] {
            let good = r#"{"PartitionKey":"p","RowKey":"s","A":1}"#;
            let body = format!(r#"{{"value":[{good},{bad},{good}]}}"#);
            let page = decode_page(body.as_bytes()).unwrap();
            assert_eq!(
                page.iter().map(Result::is_ok).collect::<Vec<_>>(),
                [true, false, true],
                "{bad}"
            );
        }
    }

    #[test]
    fn what_is_no_page_is_an_error_that_quotes_nothing() {
        for body in [
            "",
            "secret",
            "{}",
            "{\"secret\":[]}",
            "{\"value\":[]} secret",
            "{\"value\":[],\"value\":[]}",
            "{\"value\":7}",
        ] {
            let error = decode_page(body.as_bytes()).unwrap_err();
            assert!(error.is_backend() && !format!("{error:?}").contains("secret"), "{body}");
        }
        assert!(decode_page(b"{\"odata.metadata\":\"x\",\"value\":[]}").unwrap().is_empty());
    }
}
