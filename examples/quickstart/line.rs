//! Parses the fields of one line, one after another.

use std::str::FromStr;

use csv::StringRecord;

/// A value that is read from one line.
pub trait Record: Sized {
    /// The columns, in the order in which `read` takes them.
    const COLUMNS: &'static [&'static str];

    /// Reads the record of a line.
    fn read(line: &mut Line<'_>) -> Result<Self, BadField>;
}

/// A field that does not parse.
#[derive(Debug)]
pub struct BadField {
    /// The field of the line, from 0.
    pub column: usize,
    /// The expected text, and the one that was found.
    pub reason: String,
}

/// The fields of one line, taken one after another.
#[derive(Debug)]
pub struct Line<'a> {
    fields: &'a StringRecord,
    /// The position of each of the record's columns in the file.
    places: &'a [usize],
    next: usize,
}

impl<'a> Line<'a> {
    /// Makes a line that begins with the record's first column.
    pub fn new(fields: &'a StringRecord, places: &'a [usize]) -> Self {
        Self { fields, places, next: 0 }
    }

    fn field(&mut self) -> (usize, &'a str) {
        let column = self.places.get(self.next).copied().unwrap_or(usize::MAX);
        self.next += 1;
        (column, self.fields.get(column).unwrap_or_default())
    }

    /// Returns the next column as text. Fails if it is empty or `NA`.
    pub fn text(&mut self) -> Result<String, BadField> {
        let (column, field) = self.field();
        match known(field) {
            Some(text) => Ok(text.to_owned()),
            None => Err(bad(column, "a text", field)),
        }
    }

    /// Returns the next column as text, or `None` if it is empty or `NA`.
    pub fn optional_text(&mut self) -> Result<Option<String>, BadField> {
        Ok(known(self.field().1).map(ToOwned::to_owned))
    }

    /// Parses the next column as a value such as a number.
    pub fn value<T: FromStr>(&mut self, expected: &str) -> Result<T, BadField> {
        let (column, field) = self.field();
        field.parse().map_err(|_| bad(column, expected, field))
    }

    /// Parses the next column as a value, or returns `None` if it is empty or `NA`.
    pub fn optional<T: FromStr>(&mut self, expected: &str) -> Result<Option<T>, BadField> {
        let (column, field) = self.field();
        known(field).map(|text| text.parse().map_err(|_| bad(column, expected, field))).transpose()
    }

    /// Returns an error at the column that was read last.
    pub fn reject(&self, reason: impl Into<String>) -> BadField {
        let taken = self.next.saturating_sub(1);
        let column = self.places.get(taken).copied().unwrap_or_default();
        BadField { column, reason: reason.into() }
    }
}

/// Returns the text unless it is empty or `NA`, which stands for a missing value in these files.
fn known(field: &str) -> Option<&str> {
    (!field.is_empty() && field != "NA").then_some(field)
}

fn bad(column: usize, expected: &str, found: &str) -> BadField {
    BadField { column, reason: format!("expected {expected}, found `{}`", found.escape_debug()) }
}
