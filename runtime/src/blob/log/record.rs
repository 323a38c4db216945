//! Defines [`LogRecord`], one line of a log, and writes and parses such lines.
//!
//! A line is a time and fields, separated by `;` and quoted as in CSV: a field with `;`, `"` or a line break
//! is enclosed in quotes, with its own quotes doubled. A quoted field may span several lines of text.

use std::{borrow::Cow, fmt, fmt::Write, str::from_utf8};

use time::OffsetDateTime;

use crate::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    limits::saturating_u64,
};

/// One record of a [`BlobLog`](crate::BlobLog): a time and fields of text.
///
/// The time is cut to 100 ns, as the service's times are.
///
/// ```
/// use entable::LogRecord;
/// use time::macros::datetime;
///
/// let record = LogRecord::new(datetime!(2014-07-31 18:05 UTC), ["error", "disk full"]);
/// assert_eq!(record.field(0), Some("error"));
/// assert_eq!(record.at(), datetime!(2014-07-31 18:05 UTC));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    at: OffsetDateTime,
    fields: Vec<String>,
}

impl LogRecord {
    /// Creates a log record from its time and its fields.
    ///
    /// ```
    /// use entable::LogRecord;
    /// use time::macros::datetime;
    ///
    /// let record = LogRecord::new(datetime!(2014-07-31 20:05:00.00000009 +2), ["error", "disk full"]);
    /// assert_eq!(record.fields(), ["error", "disk full"]);
    /// ```
    pub fn new<F: Into<String>>(
        at: impl Into<OffsetDateTime>,
        fields: impl IntoIterator<Item = F>,
    ) -> Self {
        let at = at.into();
        let at = Ticks::try_from(at).map_or(at, OffsetDateTime::from);
        Self { at, fields: fields.into_iter().map(Into::into).collect() }
    }

    /// Returns the record's time, in UTC.
    ///
    /// ```
    /// use entable::LogRecord;
    /// use time::macros::datetime;
    ///
    /// let record = LogRecord::new(datetime!(2014-07-31 20:05:00.00000009 +2), ["error", "disk full"]);
    /// assert_eq!(record.at(), datetime!(2014-07-31 18:05 UTC));
    /// ```
    pub fn at(&self) -> OffsetDateTime {
        self.at
    }

    /// Returns a field by its position, which counts from 0, or `None` if the record has fewer fields.
    ///
    /// ```
    /// use entable::LogRecord;
    /// use time::macros::datetime;
    ///
    /// let record = LogRecord::new(datetime!(2014-07-31 20:05:00.00000009 +2), ["error", "disk full"]);
    /// assert_eq!((record.field(0), record.field(2)), (Some("error"), None));
    /// ```
    pub fn field(&self, position: usize) -> Option<&str> {
        self.fields.get(position).map(String::as_str)
    }

    /// Returns all fields.
    ///
    /// ```
    /// use entable::LogRecord;
    /// use time::macros::datetime;
    ///
    /// let record = LogRecord::new(datetime!(2014-07-31 20:05:00.00000009 +2), ["error", "disk full"]);
    /// assert_eq!(record.fields().len(), 2);
    /// ```
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Returns the record's time in ticks.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a time outside of the years 1 to 9999.
    pub(super) fn ticks(&self) -> Result<Ticks> {
        Ticks::try_from(self.at).map_err(|error| {
            let message = "expected a log record with a time in the years 1 to 9999";
            Error::new(ErrorKind::Invalid, message).with_source(error)
        })
    }

    /// Appends the record's line to `text`, with the line break at its end.
    pub(super) fn append_line_to(&self, text: &mut String) {
        let at = self.at;
        // Always seven digits after the point, so lines also sort by their text.
        let written = write!(
            text,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.nanosecond() / 100
        );
        // Writing to a `String` cannot fail.
        debug_assert!(written.is_ok());
        for field in &self.fields {
            text.push(';');
            if field.contains([';', '"', '\n', '\r']) {
                text.push('"');
                text.push_str(&field.replace('"', "\"\""));
                text.push('"');
            } else {
                text.push_str(field);
            }
        }
        text.push('\n');
    }
}

/// The reason why a line is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFault {
    /// The line has no line break at its end: the blob ends within it.
    Unfinished,
    /// An unquoted field contains a quote or a carriage return, or text follows a closing quote.
    Quoting,
    /// The first field is not a time.
    Time,
    /// The bytes are not UTF-8.
    Encoding,
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfinished => "expected a line break at the end of the line, found the end of the blob",
            Self::Quoting => {
                "expected quotes around each field that contains a quote or a carriage return, found one without"
            }
            Self::Time => "expected a time such as 2014-07-31T18:05:00.0000000Z in the first field",
            Self::Encoding => "expected UTF-8, found other bytes",
        })
    }
}

/// Reads the records of a text in order. An invalid line is returned as an error and ends the iteration: after
/// a lost quote, the start of the next record is unknown.
pub(super) struct RecordsInText<'t> {
    rest: &'t [u8],
    /// The number of the line where `rest` begins, from 1.
    line: u64,
}

impl<'t> RecordsInText<'t> {
    pub(super) const fn new(text: &'t [u8]) -> Self {
        Self { rest: text, line: 1 }
    }

    /// Reads one field and the byte that ends the field: `;` or a line break. Fails with `Unfinished` if the
    /// text ends first, and with `Quoting` or `Encoding` for a damaged field.
    fn read_field(&mut self) -> Result<(Cow<'t, str>, u8), LineFault> {
        let Some(quoted) = self.rest.strip_prefix(b"\"") else {
            let is_end = |byte: &u8| b";\n\"\r".contains(byte);
            let end = self.rest.iter().position(is_end).ok_or(LineFault::Unfinished)?;
            let (field, rest) = self.rest.split_at_checked(end).ok_or(LineFault::Unfinished)?;
            let (&ending, rest) = rest.split_first().ok_or(LineFault::Unfinished)?;
            if !b";\n".contains(&ending) {
                return Err(LineFault::Quoting);
            }
            self.rest = rest;
            return Ok((Cow::Borrowed(from_utf8(field).map_err(|_| LineFault::Encoding)?), ending));
        };
        let mut field = Vec::new();
        let mut rest = quoted;
        loop {
            let end = rest.iter().position(|byte| *byte == b'"').ok_or(LineFault::Unfinished)?;
            let (part, after) = rest.split_at_checked(end).ok_or(LineFault::Unfinished)?;
            field.extend_from_slice(part);
            match after.get(1..).and_then(<[u8]>::split_first) {
                Some((b'"', after)) => {
                    field.push(b'"');
                    rest = after;
                }
                Some((&ending, after)) if b";\n".contains(&ending) => {
                    self.rest = after;
                    let field = String::from_utf8(field).map_err(|_| LineFault::Encoding)?;
                    return Ok((Cow::Owned(field), ending));
                }
                Some(_) => return Err(LineFault::Quoting),
                None => return Err(LineFault::Unfinished),
            }
        }
    }

    fn read_record(&mut self) -> Result<LogRecord, LineFault> {
        let (time, mut ending) = self.read_field()?;
        let at: Ticks = time.parse().map_err(|_| LineFault::Time)?;
        let mut fields = Vec::new();
        while ending == b';' {
            let (field, next) = self.read_field()?;
            fields.push(field.into_owned());
            ending = next;
        }
        Ok(LogRecord { at: at.into(), fields })
    }
}

impl Iterator for RecordsInText<'_> {
    /// A record with its time, or the number of the line that is none.
    type Item = Result<(Ticks, LogRecord), (u64, LineFault)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (before, line) = (self.rest, self.line);
        let parsed = self.read_record().and_then(|record| {
            let at = Ticks::try_from(record.at).map_err(|_| LineFault::Time)?;
            Ok((at, record))
        });
        if parsed.is_err() {
            self.rest = &[];
            return Some(parsed.map_err(|fault| (line, fault)));
        }
        let used = before.len() - self.rest.len();
        let breaks = before.iter().take(used).filter(|byte| **byte == b'\n').count();
        self.line += saturating_u64(breaks);
        Some(parsed.map_err(|fault| (line, fault)))
    }
}

/// Returns the time of the first record of a text that begins where a record begins. Returns `None` if the text
/// has no `;` and no line break, or no time before the first of them.
pub(super) fn time_of_first_record(text: &[u8]) -> Option<Ticks> {
    let end = text.iter().position(|byte| b";\n".contains(byte))?;
    from_utf8(text.get(..end)?).ok()?.parse().ok()
}

/// Returns the time of the last record of a text that ends with one, or `None` if its last line is
/// the only one or not a whole record.
///
/// If the last record has a line break in a quoted field, its last line contains the closing quote
/// of that field, but not the opening one. The number of quotes in that line is odd, so the line
/// never passes for a whole record.
pub(super) fn time_of_last_record(text: &[u8]) -> Option<Ticks> {
    let body = text.strip_suffix(b"\n")?;
    let before = body.iter().rposition(|byte| *byte == b'\n')?;
    let mut last = RecordsInText::new(text.get(before + 1..)?);
    let (at, _) = last.next()?.ok()?;
    last.rest.is_empty().then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    fn line(fields: &[&str]) -> String {
        let mut text = String::new();
        let at = datetime!(2014-07-31 18:05:12.25 UTC);
        LogRecord::new(at, fields.iter().copied()).append_line_to(&mut text);
        text
    }

    #[test]
    fn lines_are_as_documented() {
        assert_eq!(line(&["error", "disk full"]), "2014-07-31T18:05:12.2500000Z;error;disk full\n");
        assert_eq!(
            line(&["a;b", "say \"no\"", "", "two\nlines"]),
            "2014-07-31T18:05:12.2500000Z;\"a;b\";\"say \"\"no\"\"\";;\"two\nlines\"\n"
        );
        assert_eq!(line(&[]), "2014-07-31T18:05:12.2500000Z\n");
        assert_eq!(line(&[""]), "2014-07-31T18:05:12.2500000Z;\n");
    }

    #[test]
    fn a_damaged_line_is_named_by_its_number() {
        let good = line(&["two\nlines"]);
        for (bad, fault) in [
            ("2014-07-31T18:05:12Z;cut", LineFault::Unfinished),
            ("2014-07-31T18:05:12Z;\"cut", LineFault::Unfinished),
            ("2014-07-31T18:05:12Z;\"cut\"", LineFault::Unfinished),
            ("2014-07-31T18:05:12Z;a\"b\n", LineFault::Quoting),
            ("2014-07-31T18:05:12Z;\"a\"b\n", LineFault::Quoting),
            ("2014-07-31T18:05:12Z;a\r\n", LineFault::Quoting),
            ("\n", LineFault::Time),
            ("error;2014-07-31T18:05:12Z\n", LineFault::Time),
        ] {
            let text = format!("{good}{bad}{good}");
            let text = if bad.ends_with('\n') { text } else { format!("{good}{bad}") };
            let found: Vec<_> = RecordsInText::new(text.as_bytes()).collect();
            assert_eq!(found.len(), 2, "{bad}: nothing is read after a damaged line");
            assert_eq!(found[1], Err((3, fault)), "{bad}");
        }
        let found: Vec<_> = RecordsInText::new(b"2014-07-31T18:05:12Z;\xff\n").collect();
        assert_eq!(found, [Err((1, LineFault::Encoding))]);
    }

    #[test]
    fn a_field_that_pretends_to_be_the_last_line_does_not_hide_it() {
        let fake = [
            "x\n2099-01-01T00:00:00.0000000Z;y",
            "x\n2099-01-01T00:00:00Z\n",
            "\n2099-01-01T00:00:00Z;\"",
        ];
        for field in fake {
            let text = [line(&["first"]), line(&[field])].concat();
            assert_eq!(time_of_last_record(text.as_bytes()), None, "{field:?}");
        }
        let text = [line(&["first"]), line(&["a;\"b\""])].concat();
        let at = Ticks::try_from(datetime!(2014-07-31 18:05:12.25 UTC)).unwrap();
        assert_eq!(
            (time_of_first_record(text.as_bytes()), time_of_last_record(text.as_bytes())),
            (Some(at), Some(at))
        );
        assert_eq!(time_of_last_record(b"2014-07-31T18:05:12Z;cut"), None);
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            records in proptest::collection::vec(
                (0..=Ticks::MAX.get(), proptest::collection::vec("[a-z;\"\n\r \u{e4}]{0,6}", 0..4)), 0..6
            )
        ) {
            let records: Vec<LogRecord> = records.into_iter()
                .map(|(at, fields)| LogRecord::new(Ticks::new(at).unwrap(), fields)).collect();
            let mut text = String::new();
            for record in &records {
                record.append_line_to(&mut text);
            }
            let read: Vec<_> = RecordsInText::new(text.as_bytes()).map(|found| found.unwrap().1).collect();
            prop_assert_eq!(&read, &records);
            let first = records.first().map(|record| record.ticks().unwrap());
            prop_assert_eq!(time_of_first_record(text.as_bytes()), first);
            let last = records.last().map(|record| record.ticks().unwrap());
            prop_assert!(time_of_last_record(text.as_bytes()).is_none_or(|found| Some(found) == last));
        }

        #[test]
        fn no_bytes_make_the_reader_fail(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let damaged = RecordsInText::new(&text).filter(Result::is_err).count();
            prop_assert!(damaged <= 1);
        }

        /// Reads a log text that is cut at any byte: the records are the first ones of the whole
        /// text, and an error follows unless the cut is at the end of a record.
        #[test]
        fn a_cut_text_has_no_record_that_was_not_written(cut in 0usize..200) {
            let text = [line(&["first"]), line(&["a;\n\"b\""]), line(&[]), line(&["", ""])].concat();
            let all: Vec<_> = RecordsInText::new(text.as_bytes()).map(|found| found.unwrap()).collect();
            let cut = cut.min(text.len());
            let found: Vec<_> = RecordsInText::new(&text.as_bytes()[..cut]).collect();
            let good: Vec<_> = found.iter().filter_map(|found| found.clone().ok()).collect();
            prop_assert_eq!(&good[..], &all[..good.len()]);
            prop_assert_eq!(good.len() == found.len(), RecordsInText::new(&text.as_bytes()[..cut]).all(|f| f.is_ok()));
            let is_at_line = cut == 0 || text[..cut].ends_with('\n') && text[..cut].matches('"').count() % 2 == 0;
            prop_assert_eq!(found.iter().any(Result::is_err), !is_at_line);
        }
    }
}
