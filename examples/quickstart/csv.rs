//! Reads files of comma-separated values. Errors name file, line and column.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use csv::{Reader, ReaderBuilder, StringRecord};

use crate::line::{BadField, Line, Record};

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A field does not parse.
    #[error("{}, line {line}, column {column} ({name}): {reason}", file.display())]
    BadField {
        /// The file.
        file: PathBuf,
        /// The line, from 1; the heading is line 1.
        line: u64,
        /// The field of the line, from 1.
        column: usize,
        /// The column's name.
        name: String,
        /// The expected text, and the one that was found.
        reason: String,
    },
}

/// A file that is being read.
struct Source<'p> {
    file: &'p Path,
    reader: Reader<File>,
    heading: StringRecord,
}

/// Reads every record of a file.
pub fn read<T: Record>(file: &Path) -> Result<Vec<T>, CsvError> {
    let mut source = Source::open(file)?;
    let places = T::COLUMNS
        .iter()
        .map(|name| source.column_position(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut records = Vec::new();
    let mut fields = StringRecord::new();
    while source.next(&mut fields)? {
        let mut line = Line::new(&fields, &places);
        let record = T::read(&mut line).map_err(|bad| source.at(&fields, bad))?;
        records.push(record);
    }
    Ok(records)
}

impl<'p> Source<'p> {
    fn open(file: &'p Path) -> Result<Self, CsvError> {
        let opened = File::open(file)
            .map_err(|source| CsvError::Unreadable { file: file.to_owned(), source })?;
        // `flexible`: `next` reports lines of another length, because it knows their column.
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(opened);
        let heading = reader.headers().cloned();
        let mut source = Self { file, reader, heading: StringRecord::new() };
        source.heading = heading.map_err(|error| source.failed(error))?;
        Ok(source)
    }

    /// Returns the position of a column in the file.
    fn column_position(&self, name: &str) -> Result<usize, CsvError> {
        self.heading.iter().position(|found| found == name).ok_or_else(|| {
            let reason = format!("expected a column `{name}`, found none of that name");
            self.bad_field(1, BadField { column: self.heading.len(), reason })
        })
    }

    /// Reads the next line. Returns `false` at the end of the file.
    fn next(&mut self, fields: &mut StringRecord) -> Result<bool, CsvError> {
        if !self.reader.read_record(fields).map_err(|error| self.failed(error))? {
            return Ok(false);
        }
        let (expected, found) = (self.heading.len(), fields.len());
        if found == expected {
            return Ok(true);
        }
        let reason = format!("expected {expected} fields, found {found}");
        Err(self.at(fields, BadField { column: found.min(expected), reason }))
    }

    /// Returns the error of a field of the current line.
    fn at(&self, fields: &StringRecord, bad: BadField) -> CsvError {
        self.bad_field(fields.position().map_or(0, csv::Position::line), bad)
    }

    fn bad_field(&self, line: u64, BadField { column, reason }: BadField) -> CsvError {
        let name = self.heading.get(column).unwrap_or("no such column").to_owned();
        CsvError::BadField { file: self.file.to_owned(), line, column: column + 1, name, reason }
    }

    /// Converts an error of the reader: the disk's, or a line that is not UTF-8.
    fn failed(&self, error: csv::Error) -> CsvError {
        let line = error.position().map_or(0, csv::Position::line);
        match error.into_kind() {
            csv::ErrorKind::Utf8 { err, .. } => {
                let reason = "expected UTF-8, found other bytes".to_owned();
                self.bad_field(line, BadField { column: err.field(), reason })
            }
            csv::ErrorKind::Io(source) => {
                CsvError::Unreadable { file: self.file.to_owned(), source }
            }
            other => {
                let source = std::io::Error::other(format!("{other:?}"));
                CsvError::Unreadable { file: self.file.to_owned(), source }
            }
        }
    }
}
