//! Writes keys from the values of their parts.

use super::{Segment, Template, TemplatePart, escape::escape_from_offset};
use crate::{
    edm::InvalidValue,
    error::{Error, ErrorKind, Result},
    limits::check_key,
};

/// Finishes a key part, which begins at byte `from` of the key: escapes it if its width varies,
/// checks its width if it is fixed.
pub(super) fn finish_part(
    part: &TemplatePart,
    terminator: Option<char>,
    from: usize,
    out: &mut String,
) -> Result<(), InvalidValue> {
    // The width says where a text of fixed width ends, so it needs no escaped terminator.
    let Some(width) = part.width else {
        escape_from_offset(out, from, terminator);
        return Ok(());
    };
    // A value of another width than the part's would make two keys equal.
    let written = out.get(from..).map_or(0, |text| text.chars().count());
    if written == width {
        Ok(())
    } else {
        let message = format!("its key part has {width} characters, the value takes {written}");
        Err(InvalidValue::new(message))
    }
}

impl Template {
    /// Encodes one value as the text of part number `index`, escaped for use in the key.
    ///
    /// # Errors
    ///
    /// Fails if the part cannot hold the value, or if the template has no such part.
    pub fn encode_part(
        &self,
        index: usize,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Result<String, InvalidValue> {
        let part = self.parts().nth(index).ok_or_else(|| self.no_such_part_error())?;
        let mut out = String::new();
        encode(&mut out)?;
        finish_part(part, self.terminator_char_of_part(index), 0, &mut out)?;
        Ok(out)
    }

    pub(super) fn no_such_part_error(&self) -> InvalidValue {
        InvalidValue::new(format!("the template \"{}\" has no more parts", self.text))
    }
}

/// Writes one key by its template, part after part.
///
/// ```
/// # use entable_core::key::{FixedWidth, Form, KeyWriter, TemplatePart, Segment, Template};
/// const EMPLOYEE: Template = Template {
///     text: "empid_{id:06}",
///     segments: &[
///         Segment::Literal("empid_"),
///         Segment::Part(TemplatePart::new("Id", Form::Width(6), Some(6))),
///     ],
/// };
///
/// let mut key = KeyWriter::new(&EMPLOYEE, "RowKey");
/// key.write_part(|out| 223_u32.encode_zero_padded(6, out))?;
/// assert_eq!(key.finish()?, "empid_000223");
///
/// let mut key = KeyWriter::new(&EMPLOYEE, "RowKey");
/// assert!(key.write_part(|out| 1_000_000_u32.encode_zero_padded(6, out)).unwrap_err().is_invalid());
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug)]
pub struct KeyWriter {
    template: &'static Template,
    name: &'static str,
    /// Index of the next segment.
    next: usize,
    /// Length of the key before the part that is being written.
    from: usize,
    out: String,
    /// The first value that did not fit.
    fault: Option<Error>,
}

impl KeyWriter {
    /// Creates a writer for one key. `name`, either `PartitionKey` or `RowKey`, appears in error messages.
    pub fn new(template: &'static Template, name: &'static str) -> Self {
        let out = String::with_capacity(template.text.len() + 16);
        Self { template, name, next: 0, from: 0, out, fault: None }
    }

    fn write_literals(&mut self) {
        while let Some(Segment::Literal(text)) = self.template.segments.get(self.next) {
            self.out.push_str(text);
            self.next += 1;
        }
    }

    /// Appends the literals before the next part, then the part as `encode` writes it.
    ///
    /// # Errors
    ///
    /// `is_invalid`, naming the field, if the part cannot hold the value, and if the template has
    /// no more parts.
    pub fn write_part(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Result<()> {
        let encoded = encode(self.begin_part());
        self.end_part(encoded);
        self.fault.take().map_or(Ok(()), Err)
    }

    /// Writes the next part by the encoder of its form. An error is kept for
    /// [`finish`](Self::finish).
    #[doc(hidden)]
    #[inline]
    pub fn put<T>(&mut self, value: &T, encode: fn(&T, &mut String) -> Result<(), InvalidValue>) {
        let encoded = encode(value, self.begin_part());
        self.end_part(encoded);
    }

    /// Writes the next part, of the form `{field:06}`. An error is kept for
    /// [`finish`](Self::finish).
    #[doc(hidden)]
    #[inline]
    pub fn put_zero_padded<T>(
        &mut self,
        value: &T,
        width: usize,
        encode: fn(&T, usize, &mut String) -> Result<(), InvalidValue>,
    ) {
        let encoded = encode(value, width, self.begin_part());
        self.end_part(encoded);
    }

    /// Writes the next part, a text in lower case.
    #[doc(hidden)]
    pub fn put_lower(&mut self, text: &str) {
        super::lower(text, self.begin_part());
        self.end_part(Ok(()));
    }

    /// Writes the literals before the next part and returns the text buffer. The caller appends the part, then calls
    /// [`end_part`](Self::end_part). Generated code uses this instead of [`part`](Self::part) to avoid a closure for each part.
    #[doc(hidden)]
    pub fn begin_part(&mut self) -> &mut String {
        self.write_literals();
        self.from = self.out.len();
        &mut self.out
    }

    /// Ends the part that [`begin_part`](Self::begin_part) began. An error is kept for
    /// [`finish`](Self::finish).
    #[doc(hidden)]
    pub fn end_part(&mut self, encoded: Result<(), InvalidValue>) {
        // `next` stays at the part that failed, so it does not fit the parts after it any more.
        if self.fault.is_some() {
            return;
        }
        let Some(Segment::Part(part)) = self.template.segments.get(self.next) else {
            self.fault = Some(self.template.no_such_part_error().into_write_error(self.name));
            return;
        };
        let terminator = self.template.terminator_char_of_segment(self.next);
        let finished =
            encoded.and_then(|()| finish_part(part, terminator, self.from, &mut self.out));
        match finished {
            Ok(()) => self.next += 1,
            Err(invalid) => self.fault = Some(invalid.into_write_error(part.field)),
        }
    }

    /// Ends a part in the form `{f:bucket(n)}`: replaces the text that was appended since
    /// [`begin_part`](Self::begin_part) by the number of its bucket, a hash of that text below `count`.
    #[doc(hidden)]
    pub fn end_bucket_part(&mut self, encoded: Result<(), InvalidValue>, count: u32) {
        // If the encoding failed, this is the bucket of an incomplete text, and `end` keeps the
        // error.
        let bucket = super::bucket(self.out.get(self.from..).unwrap_or_default(), count);
        self.out.truncate(self.from);
        super::push_bucket(bucket, count, &mut self.out);
        self.end_part(encoded);
    }

    /// Appends the last literals and returns the key.
    ///
    /// # Errors
    ///
    /// `is_too_large` and `is_invalid` if the service refuses the key, and `is_invalid` if a part
    /// was not written.
    pub fn finish(mut self) -> Result<String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.write_literals();
        if let Some(Segment::Part(part)) = self.template.segments.get(self.next) {
            let message = format!("the {} ends before its part `{}`", self.name, part.field);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        check_key(self.name, &self.out)?;
        Ok(self.out)
    }
}
