//! Comma separated values by RFC 4180, with positions of what does not parse.

use std::io::{BufRead, Read};

use crate::error::{Error, ErrorKind, Result};

/// The most bytes of a record. A row has at most 1 MiB, and even with every quote doubled its text stays far
/// below.
pub(crate) const LONGEST: u64 = 16 * 1024 * 1024;

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CsvField {
    pub(crate) text: String,
    /// Whether the field was quoted, which distinguishes an empty text from a missing value.
    pub(crate) is_quoted: bool,
}

/// One record of a file, which may take several lines.
#[derive(Debug, Default)]
pub(crate) struct CsvRecordText {
    /// The number of the record's first line, from 1.
    pub(crate) line: u64,
    /// The bytes of the record, with the line end.
    pub(crate) text: Vec<u8>,
}

/// Reads a file record by record.
#[derive(Debug)]
pub(crate) struct CsvRecordReader<R> {
    input: R,
    next_line: u64,
    /// The number of bytes of the input that were read.
    bytes: u64,
}

impl<R: BufRead> CsvRecordReader<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, next_line: 1, bytes: 0 }
    }

    /// Returns the length of the records that were read, in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads one record: a line and, if `is_quoting`, the lines after it while a quote is open. Returns `None`
    /// at the end of the input. A record longer than 16 MiB is cut there: the rest of its line is skipped, and
    /// the next record begins with the next line.
    pub(crate) fn next_record(
        &mut self,
        is_quoting: bool,
    ) -> std::io::Result<Option<CsvRecordText>> {
        let mut record = CsvRecordText { line: self.next_line, text: Vec::new() };
        let mut is_open = false;
        loop {
            let room = LONGEST.saturating_sub(u64::try_from(record.text.len()).unwrap_or(LONGEST));
            let before = record.text.len();
            let length = Read::take(&mut self.input, room).read_until(b'\n', &mut record.text)?;
            self.bytes += length as u64;
            if record.text.is_empty() {
                return Ok(None);
            }
            let added = record.text.get(before..).unwrap_or_default();
            if added.last() != Some(&b'\n') {
                // The end of the input, or of the room: what is left of the line is passed over.
                self.next_line += 1;
                self.bytes += skip_line(&mut self.input)?;
                return Ok(Some(record));
            }
            self.next_line += 1;
            // Count the quotes of this line only. An unclosed quote may span a million lines, and counting all of its
            // text would read it again for each line.
            let quotes = added.iter().filter(|byte| **byte == b'"').count();
            is_open ^= is_quoting && quotes % 2 == 1;
            if !is_open {
                return Ok(Some(record));
            }
        }
    }
}

/// Skips the input up to the next line end, and returns how many bytes that were.
fn skip_line(input: &mut impl BufRead) -> std::io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(skipped);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        input.consume(length);
        skipped += length as u64;
        if end.is_some() {
            return Ok(skipped);
        }
    }
}

/// Splits a record into its fields.
pub(crate) fn split_record(record: &[u8]) -> Result<Vec<CsvField>> {
    let text = std::str::from_utf8(record)
        .map_err(|error| invalid_record_error(error.valid_up_to(), "the text is not UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let at = text.len() - rest.len();
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)
                .ok_or_else(|| invalid_record_error(at, "a quote is not closed"))?,
            None => {
                let (field, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                if let Some(quote) = field.find('"') {
                    return Err(invalid_record_error(
                        at + quote,
                        "a field without quotes contains a quote",
                    ));
                }
                (CsvField { text: field.to_owned(), is_quoted: false }, after)
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(fields),
            None => {
                return Err(invalid_record_error(
                    text.len() - after.len(),
                    "expected a comma after the quote",
                ));
            }
        }
    }
}

/// Reads a quoted field from `rest`, which begins after the opening quote. Returns the field and the text
/// after the closing quote. Returns `None` if there is no closing quote.
fn quoted_field(mut rest: &str) -> Option<(CsvField, &str)> {
    let mut text = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        text.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                text.push('"');
                rest = after;
            }
            None => return Some((CsvField { text, is_quoted: true }, after)),
        }
    }
}

fn invalid_record_error(at: usize, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("column {}: {what}", at + 1))
}

/// Appends a field. Puts the field in quotes if it is empty, begins or ends with a space, or contains a quote,
/// a comma or a line break.
pub(crate) fn push_field(out: &mut Vec<u8>, text: &str) {
    let is_plain = !text.is_empty()
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'));
    if is_plain {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Puts an apostrophe before a text that a spreadsheet would run as a formula, or that already begins with
/// such an apostrophe. [`unescape_formula`] restores the text exactly.
pub(crate) fn escape_formula(text: &str) -> std::borrow::Cow<'_, str> {
    if is_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// Removes the apostrophe that [`escape_formula`] puts before a text that a spreadsheet would take for
/// a formula.
pub(crate) fn unescape_formula(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest,
        _ => text,
    }
}

fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records(text: &str) -> Vec<(u64, Vec<String>)> {
        let mut reader = CsvRecordReader::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(record) = reader.next_record(true).unwrap() {
            let fields = split_record(&record.text).unwrap();
            found.push((record.line, fields.into_iter().map(|field| field.text).collect()));
        }
        assert_eq!(reader.bytes(), text.len() as u64);
        found
    }

    #[test]
    fn quotes_hold_commas_quotes_and_lines() {
        let text = "a,\"b,\"\"c\"\"\nd\",\r\n,\"\"\nlast";
        let expected = [(1, vec!["a", "b,\"c\"\nd", ""]), (3, vec!["", ""]), (4, vec!["last"])];
        let found = records(text);
        assert_eq!(found.len(), 3);
        for ((line, fields), (expected_line, expected)) in found.iter().zip(expected) {
            assert_eq!(
                (*line, fields.iter().map(String::as_str).collect::<Vec<_>>()),
                (expected_line, expected)
            );
        }
    }

    #[test]
    fn mistakes_name_their_column() {
        for (text, expected) in [
            ("a,\"b", "column 3: a quote is not closed"),
            ("a,\"b\"c", "column 6: expected a comma after the quote"),
            ("a,b\"c", "column 4: a field without quotes contains a quote"),
        ] {
            let error = split_record(text.as_bytes()).unwrap_err();
            assert!(error.message().starts_with(expected), "{error}");
        }
        assert!(split_record(b"a,\xff").unwrap_err().message().contains("column 3"));
    }

    proptest! {
        #[test]
        fn fields_come_back(fields in prop::collection::vec(".*|[=+@'\t\r\n\",-]{0,4}", 1..5)) {
            let mut out = Vec::new();
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                push_field(&mut out, &escape_formula(field));
            }
            out.push(b'\n');
            let record = CsvRecordReader::new(&out[..]).next_record(true).unwrap().unwrap();
            prop_assert_eq!(&record.text, &out);
            let found = split_record(&record.text).unwrap();
            let found: Vec<_> = found.iter().map(|field| unescape_formula(&field.text)).collect();
            prop_assert_eq!(found, fields.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
