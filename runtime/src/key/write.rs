//! The way from parts to a key.

use super::{Part, Segment, Template, escape::escape_tail};
use crate::{
    edm::InvalidValue,
    error::{Error, ErrorKind, Result},
    limits::check_key,
};

/// Appends a part as it stands in the key: in its own form, escaped where its width varies.
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
    // A type that writes another width than it promised would make two keys one.
    let written = out.get(from..).map_or(0, |text| text.chars().count());
    if written == width {
        Ok(())
    } else {
        let message = format!("its key part has {width} characters, the value takes {written}");
        Err(InvalidValue::new(message))
    }
}

impl Template {
    /// The text of one part, ready to stand in the key: `index` counts the parts.
    ///
    /// # Errors
    ///
    /// A value that the part cannot hold.
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

/// Writes a key along its template.
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
    /// The next segment.
    next: usize,
    out: String,
}

impl KeyWriter {
    /// A writer for one key; `name` is `PartitionKey` or `RowKey`.
    pub fn new(template: &'static Template, name: &'static str) -> Self {
        Self { template, name, next: 0, out: String::with_capacity(template.text.len() + 16) }
    }

    fn literals(&mut self) {
        while let Some(Segment::Literal(text)) = self.template.segments.get(self.next) {
            self.out.push_str(text);
            self.next += 1;
        }
    }

    /// Writes the next part.
    ///
    /// # Errors
    ///
    /// `is_invalid`, naming the field, for a value that the part cannot hold; `is_invalid` where the
    /// template has no more parts.
    pub fn part(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Result<()> {
        self.literals();
        let Some(Segment::Part(part)) = self.template.segments.get(self.next) else {
            return Err(no_such_part(self.template).on_write(self.name));
        };
        let terminator = self.template.terminator(self.next);
        write_part(part, terminator, encode, &mut self.out)
            .map_err(|invalid| invalid.on_write(part.field))?;
        self.next += 1;
        Ok(())
    }

    /// The key.
    ///
    /// # Errors
    ///
    /// `is_too_large` and `is_invalid` for a key that the service refuses, `is_invalid` for one that
    /// lacks a part.
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
