//! Reads rows from a file, one line or record after the other.

use std::io::BufRead;

use base64::{Engine, engine::general_purpose::STANDARD};
use uuid::Uuid;

use super::{
    csv::{CsvField, CsvRecordReader, CsvRecordText, LONGEST, split_record, unescape_formula},
    framework::is_outbox_row,
    lines::{Format, read_json_line},
};
use crate::{
    edm::{EdmType, Ticks, Value},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// The mark of UTF-8 that some programs write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line, or one record of CSV, with the row that it holds. If it holds no row, `row` is the
/// error.
pub(crate) struct LineRow {
    /// The number of the line in the file, counted from 1.
    pub(crate) line: u64,
    pub(crate) text: Vec<u8>,
    pub(crate) row: Result<Row>,
}

/// Reads the rows of a file in a format.
pub(crate) struct RowReader<R> {
    records: CsvRecordReader<R>,
    format: Format,
    /// The columns of a CSV file, once its header is read.
    columns: Vec<Column>,
}

impl<R: BufRead> RowReader<R> {
    pub(crate) fn new(input: R, format: Format) -> Self {
        Self { records: CsvRecordReader::new(input), format, columns: Vec::new() }
    }

    /// Returns how much of the input was read, in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.records.bytes()
    }

    /// Reads the header of a CSV file, which has to come first. Returns its text.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a header that names no keys, or a type that does not exist.
    pub(crate) fn read_csv_header(&mut self) -> Result<Vec<u8>> {
        if self.format != Format::Csv {
            return Ok(Vec::new());
        }
        let header = self.next_record()?;
        let Some(header) = header else {
            return Err(Error::new(ErrorKind::Invalid, "line 1: expected a header of columns"));
        };
        let columns =
            split_record(&header.text).and_then(|read_fields| parse_columns(&read_fields));
        self.columns = columns.map_err(|error| error_at_line(&error, header.line))?;
        Ok(header.text)
    }

    /// Reads the next row; lines without text are passed over. Returns `None` at the end.
    pub(crate) fn next_row(&mut self) -> Result<Option<LineRow>> {
        loop {
            let Some(record) = self.next_record()? else { return Ok(None) };
            if record.text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let row = self.read_row(&record).and_then(refuse_outbox_row);
            let row = row.map_err(|error| error_at_line(&error, record.line));
            return Ok(Some(LineRow { line: record.line, text: record.text, row }));
        }
    }

    fn next_record(&mut self) -> Result<Option<CsvRecordText>> {
        let record = self.records.next_record(self.format == Format::Csv).map_err(|error| {
            Error::new(ErrorKind::Backend, "reading the input failed").with_source(error)
        })?;
        Ok(record.map(|mut record| {
            if record.line == 1 && record.text.starts_with(BYTE_ORDER_MARK) {
                record.text.drain(..BYTE_ORDER_MARK.len());
            }
            record
        }))
    }

    fn read_row(&self, record: &CsvRecordText) -> Result<Row> {
        // A record of this length was cut when it was read.
        if u64::try_from(record.text.len()).unwrap_or(LONGEST) >= LONGEST {
            let message =
                format!("the line has {LONGEST} bytes or more, which is longer than any row");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        match self.format {
            Format::JsonLines => read_json_line(&record.text),
            Format::Csv => csv_row(&self.columns, &split_record(&record.text)?),
        }
    }
}

/// Returns the error with its line in front, and the keys and the property that it names.
pub(crate) fn error_at_line(error: &Error, line: u64) -> Error {
    let message = format!("line {line}: {}", error.message());
    let mut placed = Error::new(error.kind(), message);
    if let Some((partition_key, row_key)) = error.keys() {
        placed = placed.at_keys(partition_key, row_key);
    }
    if let Some(property) = error.property() {
        placed = placed.in_property(property);
    }
    if let Some(table) = error.table() {
        placed = placed.in_table(table);
    }
    placed.with_source(error.clone())
}

fn refuse_outbox_row(row: Row) -> Result<Row> {
    if !is_outbox_row(&row) {
        return Ok(row);
    }
    let message = "RowKeys that begin with `~e` belong to the outbox, whose rows are valid only in their own store";
    let (partition_key, row_key) = row.keys();
    Err(Error::new(ErrorKind::Invalid, message).at_keys(partition_key, row_key))
}

/// Content of a column of a CSV file.
#[derive(Debug, PartialEq)]
enum Column {
    PartitionKey,
    RowKey,
    /// Timestamp, ETag, or a column that holds the types of another column.
    Ignored,
    Property {
        name: String,
        kind: ColumnType,
    },
}

/// Where the type of a column's values comes from.
#[derive(Debug, PartialEq)]
enum ColumnType {
    /// The header, as `Age:Edm.Int32`.
    Header(EdmType),
    /// The column with that position, whose header is `Age@type`.
    Beside(usize),
    /// Each value by itself.
    Inferred,
}

fn parse_columns(header: &[CsvField]) -> Result<Vec<Column>> {
    let type_column =
        |name: &str| header.iter().position(|field| field.text.strip_suffix("@type") == Some(name));
    let columns: Vec<Column> = header
        .iter()
        .map(|field| match field.text.as_str() {
            "PartitionKey" | "PartitionKey:Edm.String" => Ok(Column::PartitionKey),
            "RowKey" | "RowKey:Edm.String" => Ok(Column::RowKey),
            "Timestamp" | "ETag" | "etag" | "odata.etag" => Ok(Column::Ignored),
            text if text.ends_with("@type") => Ok(Column::Ignored),
            text => match text.split_once(':') {
                Some((name, edm)) => {
                    let edm = edm_type(edm).ok_or_else(|| unknown_type(text))?;
                    Ok(Column::Property { name: name.to_owned(), kind: ColumnType::Header(edm) })
                }
                None => {
                    let kind = type_column(text).map_or(ColumnType::Inferred, ColumnType::Beside);
                    Ok(Column::Property { name: text.to_owned(), kind })
                }
            },
        })
        .collect::<Result<_>>()?;
    for key in [Column::PartitionKey, Column::RowKey] {
        if columns.iter().filter(|column| **column == key).count() != 1 {
            let message = format!("expected one column {key:?} in the header");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(columns)
}

fn edm_type(name: &str) -> Option<EdmType> {
    EDM_TYPES.into_iter().find(|edm| edm.name() == name)
}

const EDM_TYPES: [EdmType; 8] = [
    EdmType::Binary,
    EdmType::Boolean,
    EdmType::DateTime,
    EdmType::Double,
    EdmType::Guid,
    EdmType::Int32,
    EdmType::Int64,
    EdmType::String,
];

fn unknown_type(text: &str) -> Error {
    let message = format!("`{}` is not a type such as `Edm.Int32`", text.escape_debug());
    Error::new(ErrorKind::Invalid, message)
}

fn csv_row(columns: &[Column], fields: &[CsvField]) -> Result<Row> {
    if fields.len() != columns.len() {
        let message = format!("expected {} fields, found {}", columns.len(), fields.len());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let key = |wanted: &Column| {
        let found = columns.iter().position(|column| column == wanted);
        found.and_then(|at| fields.get(at)).map_or("", |field| unescape_formula(&field.text))
    };
    let (partition_key, row_key) = (key(&Column::PartitionKey), key(&Column::RowKey));
    let mut row = Row::build(partition_key, row_key);
    let mut names: Vec<&str> = Vec::new();
    for (column, field) in columns.iter().zip(fields) {
        let Column::Property { name, kind } = column else { continue };
        if field.text.is_empty() && !field.is_quoted {
            continue;
        }
        let value = match kind {
            ColumnType::Header(edm) => parse(*edm, &field.text),
            ColumnType::Inferred => Some(infer_value(field)),
            ColumnType::Beside(at) => {
                let named = fields.get(*at).map_or("", |field| field.text.as_str());
                let edm = if named.is_empty() { Some(EdmType::String) } else { edm_type(named) };
                parse(edm.ok_or_else(|| unknown_type(named))?, &field.text)
            }
        };
        let value = value.ok_or_else(|| {
            let message = "the text is not a value of its column's type";
            Error::new(ErrorKind::Invalid, message)
                .at_keys(partition_key, row_key)
                .in_property(name)
        })?;
        if names.contains(&name.as_str()) {
            let message = "the row has values in two columns of the same property";
            let error = Error::new(ErrorKind::Invalid, message);
            return Err(error.at_keys(partition_key, row_key).in_property(name));
        }
        names.push(name);
        row.put(name, value.as_ref());
    }
    row.finish()
}

/// Parses the text of a CSV value of type `edm`, as an export writes it or in a similar form such as
/// `TRUE`. Returns `None` for another text.
fn parse(edm: EdmType, text: &str) -> Option<Value> {
    Some(match edm {
        EdmType::String => Value::String(unescape_formula(text).to_owned()),
        EdmType::Boolean => Value::Boolean(text.to_ascii_lowercase().parse().ok()?),
        EdmType::Int32 => Value::Int32(text.parse().ok()?),
        EdmType::Int64 => Value::Int64(text.parse().ok()?),
        EdmType::Double => Value::Double(match text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            // Rust also reads other spellings of infinity and NaN, and takes a number that is too
            // large for infinity.
            text => text.parse().ok().filter(|value: &f64| value.is_finite())?,
        }),
        EdmType::DateTime => Value::DateTime(text.parse::<Ticks>().ok()?),
        EdmType::Guid => Value::Guid(Uuid::parse_str(text).ok()?),
        EdmType::Binary => Value::Binary(STANDARD.decode(text).ok()?.into()),
    })
}

/// Chooses the type of a CSV value whose column declares no type. A field in quotes is text. A text such as
/// `007` is text too, because a number would be printed in another way: `7`.
fn infer_value(field: &CsvField) -> Value {
    let text = field.text.as_str();
    let string = || Value::String(unescape_formula(text).to_owned());
    if field.is_quoted {
        return string();
    }
    let number = |edm| parse(edm, text).filter(|value| csv_text_of_value(value.as_ref()) == text);
    let is_double = text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    // A UUID can be read without its dashes as well, but 32 digits may be any other id.
    let is_guid = text.len() == 36;
    let is_time = text.len() >= 20 && text.ends_with('Z');
    match text {
        "true" | "false" => parse(EdmType::Boolean, text),
        _ => number(EdmType::Int32)
            .or_else(|| number(EdmType::Int64))
            .or_else(|| {
                parse(EdmType::Double, text).filter(|_| is_double && text.contains(['.', 'e', 'E']))
            })
            .or_else(|| parse(EdmType::Guid, text).filter(|_| is_guid))
            .or_else(|| parse(EdmType::DateTime, text).filter(|_| is_time)),
    }
    .unwrap_or_else(string)
}

/// Returns the text of a value in a column of its type. A String is not quoted.
pub(crate) fn csv_text_of_value(value: crate::edm::ValueRef<'_>) -> String {
    use crate::edm::ValueRef;
    match value {
        ValueRef::Boolean(v) => v.to_string(),
        ValueRef::Int32(v) => v.to_string(),
        ValueRef::Int64(v) => v.to_string(),
        ValueRef::Double(v) if v.is_nan() => "NaN".to_owned(),
        ValueRef::Double(v) if v.is_finite() => format!("{v:?}"),
        ValueRef::Double(v) => if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        ValueRef::String(v) => v.to_owned(),
        ValueRef::DateTime(v) => v.to_string(),
        ValueRef::Guid(v) => v.as_hyphenated().to_string(),
        ValueRef::Binary(v) => STANDARD.encode(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: Format) -> Vec<LineRow> {
        let mut reader = RowReader::new(text.as_bytes(), format);
        reader.read_csv_header().unwrap();
        std::iter::from_fn(|| reader.next_row().unwrap()).collect()
    }

    #[test]
    fn types_come_from_the_header_from_beside_or_from_the_value() {
        let text = "PartitionKey,RowKey,Timestamp,A:Edm.Int64,B,B@type,C\n\
                    p,1,2020-01-01T00:00:00Z,5,6,Edm.String,7\n\
                    p,2,,,,,\"7\"\n\
                    p,3,,,,,007\n\
                    p,4,,,,,2.50\n\
                    p,5,,,,,true\n\
                    p,6,,,,,2021-05-26T15:48:25Z\n\
                    p,7,,,,,\"\"\n\
                    p,8,,,,,'=1\n";
        let rows = read(text, Format::Csv);
        let value = |at: usize, name: &str| {
            rows[at].row.as_ref().unwrap().get(name).unwrap().map(|value| value.to_value())
        };
        assert_eq!(value(0, "A"), Some(Value::Int64(5)));
        assert_eq!(value(0, "B"), Some(Value::String("6".into())));
        assert_eq!(value(0, "C"), Some(Value::Int32(7)));
        assert_eq!((value(1, "A"), value(1, "C")), (None, Some(Value::String("7".into()))));
        assert_eq!(value(2, "C"), Some(Value::String("007".into())));
        assert_eq!(value(3, "C"), Some(Value::Double(2.5)));
        assert_eq!(value(4, "C"), Some(Value::Boolean(true)));
        assert_eq!(value(5, "C"), Some(Value::DateTime("2021-05-26T15:48:25Z".parse().unwrap())));
        assert_eq!(value(6, "C"), Some(Value::String(String::new())));
        assert_eq!(value(7, "C"), Some(Value::String("=1".into())));
    }

    #[test]
    fn a_line_that_is_no_row_names_its_line() {
        let text =
            "\u{feff}PartitionKey,RowKey,A:Edm.Int32\np,1,x\np,2\n\n\"p\nq\",3,4\np,~e2_x,1\n";
        let rows = read(text, Format::Csv);
        let error = |at: usize| rows[at].row.as_ref().unwrap_err();
        assert!(error(0).message().starts_with("line 2: "), "{}", error(0));
        assert_eq!((error(0).property(), error(0).keys()), (Some("A"), Some(("p", "1"))));
        assert_eq!(error(1).message(), "line 3: expected 3 fields, found 2");
        assert_eq!((rows[2].line, rows[2].row.is_ok()), (5, true));
        assert!(error(3).message().starts_with("line 7: RowKeys that begin with `~e`"));
        let rows = read("{}\n\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\nx", Format::JsonLines);
        assert!(rows[0].row.as_ref().unwrap_err().message().starts_with("line 1: "));
        assert!(rows[1].row.is_ok() && rows[1].line == 3);
        assert_eq!(
            rows[2].row.as_ref().unwrap_err().message(),
            "line 4: column 1: expected a JSON object"
        );
    }

    #[test]
    fn a_header_has_both_keys_and_known_types() {
        for header in [
            "",
            "PartitionKey,A\n",
            "PartitionKey,RowKey,RowKey\n",
            "PartitionKey,RowKey,A:Edm.X\n",
        ] {
            let mut reader = RowReader::new(header.as_bytes(), Format::Csv);
            let error = reader.read_csv_header().unwrap_err();
            assert!(error.is_invalid() && error.message().starts_with("line 1: "), "{error}");
        }
    }
}
