//! A key's template and the walk along it, forwards and backwards.

use super::escape::escape_tail;
use crate::{
    edm::{InvalidValue, ValueRef},
    error::{Error, ErrorKind},
};

/// How a part writes its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{f}`: the type's own form; integers at the full width of their type.
    Plain,
    /// `{f:06}`: decimal, zero padded.
    Width(usize),
    /// `{f:desc}`: newest or largest first.
    Descending,
    /// `{f:%Y%m%d}`: a date form whose order is the time's.
    Date(&'static str),
    /// `{f:lower}`: text in lower case, character by character.
    Lower,
    /// `{f:bucket(n)}`: a stable hash of the field, 0 to n - 1.
    Bucket(u32),
}

impl Form {
    /// Whether the part may give its field back. A date form does where it is as fine as its
    /// type; whether it is so is known to the family, which lists the fields its keys hold.
    pub const fn is_reversible(&self) -> bool {
        matches!(self, Self::Plain | Self::Width(_) | Self::Descending | Self::Date(_))
    }
}

/// How the value of a field becomes the text of a part.
pub type EncodeValue = fn(ValueRef<'_>, &mut String) -> Result<(), InvalidValue>;

/// One part of a template.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The field's property name.
    pub field: &'static str,
    /// How the field is written.
    pub form: Form,
    /// Characters that it takes, if always as many.
    pub width: Option<usize>,
    /// Writes a value of the field as the part, not yet escaped.
    pub encode: EncodeValue,
}

/// A piece of a template.
#[derive(Debug, Clone, Copy)]
pub enum Segment {
    /// Text that every key has at this place.
    Literal(&'static str),
    /// A field.
    Part(Part),
}

/// The template of a PartitionKey or RowKey.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// The template as it was written.
    pub text: &'static str,
    /// Its pieces.
    pub segments: &'static [Segment],
}

/// What kind of rows a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// The entity's own row.
    Primary,
    /// A secondary-index copy.
    Copy,
    /// An index entity: one row, many ids.
    List,
}

/// One kind of row that an entity writes: its keys' templates, and which fields it holds.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// `Primary`, or the name of the index.
    pub name: &'static str,
    /// Its place among the entity's families; the primary is 0.
    pub index: usize,
    /// What kind of rows these are.
    pub kind: FamilyKind,
    /// The EntityType of its rows: `Employee`, `Employee#ByEmail`.
    pub marker: &'static str,
    /// The template of the PartitionKey.
    pub partition: Template,
    /// The template of the RowKey.
    pub row: Template,
    /// Properties that its rows do not hold because their keys give them back.
    pub in_keys: &'static [&'static str],
    /// Properties that its rows do not hold at all: a partial copy's. A name that ends with `*`
    /// stands for all that begin so: a flattened struct's.
    pub left_out: &'static [&'static str],
    /// Whether a taken key is a mistake of the caller rather than of the declaration.
    pub unique: bool,
}

impl Family {
    /// Whether its rows do not hold that property, in their keys or otherwise.
    pub(crate) fn leaves_out(&self, property: &str) -> bool {
        self.left_out.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => property.starts_with(prefix),
            None => *name == property,
        })
    }

    /// The part of its keys that gives a field back, with the text that a row's keys have for it.
    pub(crate) fn part_of<'k>(
        &'static self,
        field: &str,
        partition_key: &'k str,
        row_key: &'k str,
    ) -> Result<Option<(&'static Part, &'k str)>, InvalidValue> {
        let mut found = None;
        for (template, key) in [(&self.partition, partition_key), (&self.row, row_key)] {
            template.walk(key, |part, text| {
                if found.is_none() && part.field == field && part.form.is_reversible() {
                    found = Some((part, text));
                }
            })?;
        }
        Ok(found)
    }
}

/// Whether a literal can end a part of variable width: its first character is found nowhere in the
/// part once it is escaped there, so it is ASCII and none of the digits that escapes are made of.
const fn ends_a_part(literal: &str) -> bool {
    match literal.as_bytes() {
        [first, ..] => first.is_ascii() && !matches!(first, b'0'..=b'9' | b'A'..=b'F'),
        [] => false,
    }
}

impl Template {
    /// The text before the first part.
    pub const fn literal_prefix(&self) -> &'static str {
        match self.segments {
            [Segment::Literal(text), ..] => text,
            _ => "",
        }
    }

    /// Whether every part of variable width is followed by a literal that can end it, or by the
    /// end, so that a key can be taken apart again.
    pub const fn is_separated(&self) -> bool {
        let mut rest = self.segments;
        while let [first, after @ ..] = rest {
            if let (Segment::Part(Part { width: None, .. }), [second, ..]) = (first, after) {
                match second {
                    Segment::Part(_) => return false,
                    Segment::Literal(text) if !ends_a_part(text) => return false,
                    Segment::Literal(_) => {}
                }
            }
            rest = after;
        }
        true
    }

    /// The parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = &'static Part> + use<> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Part(part) => Some(part),
            Segment::Literal(_) => None,
        })
    }

    /// Where a part stands among the segments; parts are counted from 0.
    pub(crate) fn segment_of_part(&self, part: usize) -> Option<usize> {
        let mut parts = self
            .segments
            .iter()
            .enumerate()
            .filter(|(_, segment)| matches!(segment, Segment::Part(_)));
        parts.nth(part).map(|(at, _)| at)
    }

    /// Whether nothing stands after that part.
    pub(crate) fn ends_with_part(&self, part: usize) -> bool {
        self.segment_of_part(part).is_some_and(|at| at + 1 == self.segments.len())
    }

    /// The character that ends a part.
    pub(crate) fn terminator_of_part(&self, part: usize) -> Option<char> {
        self.segment_of_part(part).and_then(|at| self.terminator(at))
    }

    /// The character that ends the part at that place: the first of the literal after it.
    fn terminator(&self, segment: usize) -> Option<char> {
        match self.segments.get(segment + 1) {
            Some(Segment::Literal(text)) => text.chars().next(),
            _ => None,
        }
    }

    /// The key up to a part and with it: the texts of the parts before, and its own; literals that
    /// end the key stand after it.
    pub(crate) fn prefix_with(&self, before: &[String], text: &str) -> String {
        let mut texts = before.iter().map(String::as_str).chain([text]);
        let mut key = String::new();
        for segment in self.segments {
            match segment {
                Segment::Literal(literal) => key.push_str(literal),
                Segment::Part(_) => match texts.next() {
                    Some(text) => key.push_str(text),
                    None => break,
                },
            }
        }
        key
    }

    /// Takes a key apart: the text of each part as it stands in the key.
    ///
    /// # Errors
    ///
    /// A key that the template cannot have written.
    pub fn split<'k, const PARTS: usize>(
        &self,
        key: &'k str,
    ) -> Result<[&'k str; PARTS], InvalidValue> {
        let mut parts = [""; PARTS];
        let mut slots = parts.iter_mut();
        self.walk(key, |_, text| {
            if let Some(slot) = slots.next() {
                *slot = text;
            }
        })?;
        Ok(parts)
    }

    /// Whether the template can have written that key.
    pub fn matches(&self, key: &str) -> bool {
        self.walk(key, |_, _| ()).is_ok()
    }

    fn walk<'k>(
        &self,
        key: &'k str,
        mut each: impl FnMut(&'static Part, &'k str),
    ) -> Result<(), InvalidValue> {
        let mismatch = || {
            let (key, text) = (key.escape_debug(), self.text);
            InvalidValue::new(format!("key `{key}` does not fit the template \"{text}\""))
        };
        let mut rest = key;
        for (at, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Literal(text) => rest = rest.strip_prefix(text).ok_or_else(mismatch)?,
                Segment::Part(part) => {
                    let length = match (part.width, self.terminator(at)) {
                        (Some(width), _) => length_of_chars(rest, width).ok_or_else(mismatch)?,
                        (None, Some(end)) => rest.find(end).ok_or_else(mismatch)?,
                        (None, None) => rest.len(),
                    };
                    let (text, after) = rest.split_at_checked(length).ok_or_else(mismatch)?;
                    each(part, text);
                    rest = after;
                }
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(mismatch()) }
    }

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
        let mut out = String::new();
        encode(&mut out)?;
        let part = self.parts().nth(index);
        if part.is_some_and(|part| part.width.is_none()) {
            escape_tail(&mut out, 0, self.terminator_of_part(index));
        }
        Ok(out)
    }
}

/// Bytes of the first `width` characters.
fn length_of_chars(text: &str, width: usize) -> Option<usize> {
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.nth(width)
}

/// Writes a key along its template.
#[derive(Debug)]
pub struct KeyWriter {
    template: &'static Template,
    name: &'static str,
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
    /// `is_invalid`, naming the field, for a value that the part cannot hold.
    pub fn part(
        &mut self,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Result<(), Error> {
        self.literals();
        let from = self.out.len();
        let Some(Segment::Part(part)) = self.template.segments.get(self.next) else {
            return Err(Error::new(ErrorKind::Invalid, "the template has no more parts"));
        };
        encode(&mut self.out).map_err(|invalid| invalid.on_write(part.field))?;
        if part.width.is_none() {
            escape_tail(&mut self.out, from, self.template.terminator(self.next));
        }
        self.next += 1;
        Ok(())
    }

    /// The key.
    ///
    /// # Errors
    ///
    /// `is_too_large` and `is_invalid` for a key that the service refuses.
    pub fn finish(mut self) -> Result<String, Error> {
        self.literals();
        crate::limits::check_key(self.name, &self.out)?;
        Ok(self.out)
    }
}
