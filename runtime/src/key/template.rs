//! A key's template: literal text and parts.

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
    /// Whether the part gives its field back whatever its type; a date form does so where it is as
    /// fine as the field ([`Resolution::covers`](super::Resolution::covers)).
    pub const fn is_reversible(&self) -> bool {
        matches!(self, Self::Plain | Self::Width(_) | Self::Descending)
    }
}

/// One part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The field's property name.
    pub field: &'static str,
    /// How the field is written.
    pub form: Form,
    /// Characters that it takes, if always as many.
    pub width: Option<usize>,
}

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Text that every key has at this place.
    Literal(&'static str),
    /// A field.
    Part(Part),
}

/// The template of a PartitionKey or RowKey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// One kind of row that an entity writes: its keys' templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// `Primary`, or the name of the index.
    pub name: &'static str,
    /// What kind of rows these are.
    pub kind: FamilyKind,
    /// The template of the PartitionKey.
    pub partition: Template,
    /// The template of the RowKey.
    pub row: Template,
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
    pub(super) fn terminator(&self, segment: usize) -> Option<char> {
        match self.segments.get(segment + 1) {
            Some(Segment::Literal(text)) => text.chars().next(),
            _ => None,
        }
    }
}
