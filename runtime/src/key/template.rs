//! A key's template: literal text and parts.

use crate::edm::{InvalidValue, ValueRef};

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
    /// `{f:hmac}`: a token of a secret value, which only the holder of a key can make.
    Hmac,
}

impl Form {
    /// Whether the part may give its field back: a date form does so where it is as fine as the
    /// field ([`Resolution::covers`](super::Resolution::covers)). The family lists the fields that
    /// its keys do give back.
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

impl Part {
    /// A part of a template that is only taken apart: no value is written by it.
    pub const fn new(field: &'static str, form: Form, width: Option<usize>) -> Self {
        Self {
            field,
            form,
            width,
            encode: |_, _| Err(InvalidValue::new("the part writes no values")),
        }
    }
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
    /// The table of its rows, where it is not the primary's.
    pub table: Option<&'static str>,
    /// Whether its rows are in another partition or table than the primary.
    pub elsewhere: bool,
    /// Whether it is kept in blobs, not rows.
    pub in_blob: bool,
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
        for (template, key) in [(&self.partition, partition_key), (&self.row, row_key)] {
            let at =
                template.parts().position(|part| part.field == field && part.form.is_reversible());
            if let Some(at) = at {
                return Ok(template.parts().nth(at).zip(template.part_text(key, at)?));
            }
        }
        Ok(None)
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

    /// Whether every part of variable width is followed by a literal or the end, so that a key can
    /// be taken apart again. A literal that begins with `~` separates nothing: it could be an
    /// escape.
    pub const fn is_separated(&self) -> bool {
        let mut rest = self.segments;
        while let [first, after @ ..] = rest {
            rest = after;
            let Segment::Part(Part { width: None, .. }) = first else { continue };
            match after {
                [] => {}
                [Segment::Literal(text), ..] => {
                    if matches!(text.as_bytes(), [] | [b'~', ..]) {
                        return false;
                    }
                }
                [Segment::Part(_), ..] => return false,
            }
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
    #[inline]
    pub(super) fn terminator(&self, segment: usize) -> Option<char> {
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
}
