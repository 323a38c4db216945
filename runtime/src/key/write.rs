//! Writes keys from the values of their parts.

use super::{Part, Segment, Template, escape::escape_tail};
use crate::{
    edm::InvalidValue,
    error::{Error, ErrorKind, Result},
    limits::check_key,
};

/// Appends a part to `out` as the key needs it: escaped, unless the part has a fixed width.
fn write_part(
    part: &Part,
    terminator: Option<char>,
    encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let from = out.len();
    encode(out)?;
    let Some(width) = part.width else {
        escape_tail(out, from, terminator);
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
    /// Encodes one value as the text of part number `index`, ready to stand in the key.
    ///
    /// # Errors
    ///
    /// Fails if the part cannot hold the value, or if the template has no such part.
    pub fn encode_part(
        &self,
        index: usize,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Result<String, InvalidValue> {
        let part = self.parts().nth(index).ok_or_else(|| no_such_part(self))?;
        let mut out = String::new();
        write_part(part, self.terminator_of_part(index), encode, &mut out)?;
        Ok(out)
    }
}

fn no_such_part(template: &Template) -> InvalidValue {
    InvalidValue::new(format!("the template \"{}\" has no more parts", template.text))
}

/// Writes one key by its template, part after part.
///
/// ```
/// # use entable::key::{FixedWidth, Form, KeyWriter, Part, Segment, Template};
/// const EMPLOYEE: Template = Template {
///     text: "empid_{id:06}",
///     segments: &[
///         Segment::Literal("empid_"),
///         Segment::Part(Part::new("Id", Form::Width(6), Some(6))),
///     ],
/// };
///
/// let mut key = KeyWriter::new(&EMPLOYEE, "RowKey");
/// key.part(|out| 223_u32.encode_width(6, out))?;
/// assert_eq!(key.finish()?, "empid_000223");
///
/// let mut key = KeyWriter::new(&EMPLOYEE, "RowKey");
/// assert!(key.part(|out| 1_000_000_u32.encode_width(6, out)).unwrap_err().is_invalid());
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Debug)]
pub struct KeyWriter {
    template: &'static Template,
    name: &'static str,
    /// Index of the next segment.
    next: usize,
    out: String,
}

impl KeyWriter {
    /// Creates a writer for one key. `name` is `PartitionKey` or `RowKey` and stands in error
    /// messages.
    pub fn new(template: &'static Template, name: &'static str) -> Self {
        Self { template, name, next: 0, out: String::with_capacity(template.text.len() + 16) }
    }

    fn literals(&mut self) {
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
    pub fn part(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Result<()> {
        self.literals();
        let Some(Segment::Part(part)) = self.template.segments.get(self.next) else {
            return Err(no_such_part(self.template).into_write_error(self.name));
        };
        let terminator = self.template.terminator_of_segment(self.next);
        write_part(part, terminator, encode, &mut self.out)
            .map_err(|invalid| invalid.into_write_error(part.field))?;
        self.next += 1;
        Ok(())
    }

    /// Appends the last literals and returns the key.
    ///
    /// # Errors
    ///
    /// `is_too_large` and `is_invalid` if the service refuses the key, and `is_invalid` if a part
    /// was not written.
    pub fn finish(mut self) -> Result<String> {
        self.literals();
        if let Some(Segment::Part(part)) = self.template.segments.get(self.next) {
            let message = format!("the {} ends before its part `{}`", self.name, part.field);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        check_key(self.name, &self.out)?;
        Ok(self.out)
    }
}
