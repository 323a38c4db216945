//! JSON lines: one row a line, with the service's annotations of types.

use serde::de::DeserializeSeed;

use crate::{
    error::{Error, ErrorKind, Result},
    row::{
        Row,
        json::{EntityMembers, JsonRow},
    },
};

/// The format of exported rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// One JSON object per line, in the service's form with minimal metadata: `PartitionKey`, `RowKey` and the
    /// properties. `Name@odata.type` precedes a property whose type JSON does not show. Keeps all values and
    /// types, except the bits of a NaN.
    #[default]
    JsonLines,
    /// Comma separated values (RFC 4180) with a column for each property and type, such as
    /// `Age:Edm.Int32`. Keeps what JSON lines keep, except the order of properties.
    Csv,
}

/// Returns the row as a line of JSON, without a line end, Timestamp and ETag.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
///
/// ```
/// use entable::{Row, ValueRef, data::to_json_line};
///
/// let row = Row::build("Sales", "1").with("Hits", ValueRef::Int64(5))?.finish()?;
/// let line = r#"{"PartitionKey":"Sales","RowKey":"1","Hits@odata.type":"Edm.Int64","Hits":"5"}"#;
/// assert_eq!(to_json_line(&row)?, line);
/// # Ok::<(), entable::Error>(())
/// ```
pub fn to_json_line(row: &Row) -> Result<String> {
    serde_json::to_string(&JsonRow(row)).map_err(|_| damaged_error(row))
}

/// Appends the row as a line of JSON.
pub(crate) fn push_json_line(row: &Row, text: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(&mut *text, &JsonRow(row)).map_err(|_| damaged_error(row))?;
    text.push(b'\n');
    Ok(())
}

fn damaged_error(row: &Row) -> Error {
    let (partition_key, row_key) = row.keys();
    Error::new(ErrorKind::Corrupt, "the stored row is damaged").at_keys(partition_key, row_key)
}

/// Reads a row from a line of JSON. Timestamp, ETag and other metadata are left out.
pub(crate) fn read_json_line(line: &[u8]) -> Result<Row> {
    let mut members = EntityMembers::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    (&mut members)
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| unreadable_error(&error))?;
    if let Some(name) = members.repeated_name() {
        let message = "the line contains this property twice; keep one of them";
        return Err(Error::new(ErrorKind::Invalid, message).in_property(name));
    }
    if !members.has_keys() {
        let message = "the line lacks a PartitionKey or RowKey, or it is not text";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(members.to_row()?.without_timestamp_and_etag())
}

/// Returns the error for a line that is not a row. It shows the column but quotes nothing, because the line
/// may hold secrets.
fn unreadable_error(error: &serde_json::Error) -> Error {
    let what = match error.classify() {
        serde_json::error::Category::Eof if error.column() == 0 => "the line is empty",
        serde_json::error::Category::Eof => "the JSON ends too early",
        serde_json::error::Category::Data => {
            "expected a JSON object of strings, numbers and Booleans"
        }
        _ => "expected a JSON object",
    };
    // The parser gives no column for a value of another kind.
    let message = match error.column() {
        0 => what.to_owned(),
        column => format!("column {column}: {what}"),
    };
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::edm::{Ticks, ValueRef};

    #[test]
    fn every_value_of_every_type_comes_back() {
        let doubles = [0.0, -0.0, 0.1 + 0.2, f64::MIN_POSITIVE, 5e-324, f64::MAX, -1e300, 3.0]
            .map(ValueRef::Double);
        let others = [
            ValueRef::Double(f64::INFINITY),
            ValueRef::Double(f64::NEG_INFINITY),
            ValueRef::Int64(i64::MIN),
            ValueRef::Int64(i64::MAX),
            ValueRef::Int32(i32::MIN),
            ValueRef::Boolean(false),
            ValueRef::String(""),
            ValueRef::String("\u{0}\u{1f}\"\\/\n\r\t\u{7f}\u{feff}\u{1f600}"),
            ValueRef::Binary(&[]),
            ValueRef::Binary(&[0, 255, 10]),
            ValueRef::DateTime(Ticks::MIN_PROPERTY),
            ValueRef::DateTime(Ticks::MAX),
            ValueRef::Guid(Uuid::from_u128(u128::MAX - 1)),
        ];
        let mut row = Row::build("p\u{e9}", "r'\"");
        for (at, value) in doubles.iter().chain(&others).enumerate() {
            row.put(&format!("P{at}"), *value);
        }
        let row = row.finish().unwrap();
        let line = to_json_line(&row).unwrap();
        let read = read_json_line(line.as_bytes()).unwrap();
        assert_eq!(read.as_bytes(), row.as_bytes(), "{line}");
        assert_eq!(to_json_line(&read).unwrap(), line);
        let mut nan = Row::build("p", "r");
        nan.put("D", ValueRef::Double(f64::NAN));
        let line = to_json_line(&nan.finish().unwrap()).unwrap();
        let read = read_json_line(line.as_bytes()).unwrap();
        assert!(matches!(read.get("D").unwrap(), Some(ValueRef::Double(d)) if d.is_nan()));
    }

    #[test]
    fn a_line_of_another_program_is_refused_with_its_column() {
        for (line, says) in [
            ("hello", Some("column 1")),
            ("{\"PartitionKey\":\"p\"", Some("column 19")),
            ("{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A\":[1]}", Some("column")),
            ("{\"PartitionKey\":\"p\",\"RowKey\":\"r\"} secret", Some("column")),
            ("[]", Some("expected a JSON object")),
            ("{}", None),
            ("{\"PartitionKey\":\"p\",\"RowKey\":7}", None),
            ("{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A\":1,\"A\":2}", Some("`A`")),
            ("", Some("line is empty")),
        ] {
            let error = read_json_line(line.as_bytes()).unwrap_err();
            assert!(error.is_invalid(), "{line}: {error}");
            assert!(says.is_none_or(|says| error.to_string().contains(says)), "{line}: {error}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
