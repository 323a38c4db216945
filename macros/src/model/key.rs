//! Keys: templates whose parts are fields, and the families of rows that have them.

use std::ops::Range;

use proc_macro2::Ident;
use syn::{LitStr, Path};

use super::Field;
use crate::{
    errors::Errors,
    names,
    template::{self, Fault, Fineness, Form, Piece},
};

/// A part of a key.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Which of the entity's fields.
    pub(crate) field: usize,
    pub(crate) form: Form,
    /// Where it stands in the template.
    pub(crate) place: Range<usize>,
}

/// A piece of a key.
#[derive(Debug, Clone)]
pub(crate) enum Segment {
    Literal(String, Range<usize>),
    Part(Part),
}

/// The template of a PartitionKey or a RowKey.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The template as it was written: where its faults are shown.
    pub(crate) literal: LitStr,
    pub(crate) text: String,
    pub(crate) segments: Vec<Segment>,
    /// Whether the template has no faults: otherwise pieces are missing.
    is_sound: bool,
}

/// What kind of rows a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    /// The entity's own row.
    Primary,
    /// A secondary-index copy.
    Copy,
    /// An index entity.
    List,
}

/// One kind of row that an entity writes.
#[derive(Debug)]
pub(crate) struct Family {
    /// `Primary`, or the index as it was named.
    pub(crate) name: Ident,
    pub(crate) kind: FamilyKind,
    pub(crate) partition: Key,
    pub(crate) row: Key,
    /// The table, where it is not the primary's.
    pub(crate) table: Option<LitStr>,
    /// Whether its rows are in another partition or table than the primary.
    pub(crate) is_elsewhere: bool,
    /// Whether it is kept in blobs.
    pub(crate) in_blob: bool,
    /// Which fields its rows hold, in their keys or as properties.
    pub(crate) holds: Vec<bool>,
    pub(crate) unique: bool,
    /// The condition under which an entity has the row.
    pub(crate) when: Option<Path>,
}

impl Key {
    /// The template's pieces with their fields.
    pub(crate) fn new(literal: &LitStr, fields: &[Field], errors: &mut Errors) -> Self {
        let text = literal.value();
        let (pieces, mut faults) = template::parse(&text);
        let mut segments = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Literal(text, place) => segments.push(Segment::Literal(text, place)),
                Piece::Part { field, form, place } => match find(&field, fields) {
                    Ok(field) => segments.push(Segment::Part(Part { field, form, place })),
                    Err(message) => faults.push(Fault::new(&place, message)),
                },
            }
        }
        for fault in &faults {
            errors.at(literal.span(), fault.render(&text));
        }
        Self { literal: literal.clone(), text, segments, is_sound: faults.is_empty() }
    }

    /// The parts, in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Part(part) => Some(part),
            Segment::Literal(..) => None,
        })
    }

    /// A fault as the text of an error.
    pub(crate) fn fault(&self, place: &Range<usize>, message: impl Into<String>) -> String {
        Fault::new(place, message).render(&self.text)
    }

    /// Whether nothing stands after that part.
    pub(crate) fn ends_with(&self, part: &Part) -> bool {
        matches!(self.segments.last(), Some(Segment::Part(last)) if last.place == part.place)
    }
}

fn find(name: &str, fields: &[Field]) -> Result<usize, String> {
    fields.iter().position(|field| field.name == name).ok_or_else(|| {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        names::unknown("field", name, &known)
    })
}

impl Part {
    /// Whether the part gives its field back.
    pub(crate) fn is_exact(&self, field: &Field) -> bool {
        match &self.form {
            Form::Plain | Form::Width(_) | Form::Descending => true,
            Form::Date(_, finest) if field.is_date() => *finest >= Fineness::Day,
            Form::Date(_, finest) => *finest == Fineness::Tick,
            Form::Lower | Form::Bucket(_) | Form::Hmac => false,
        }
    }

    /// Whether the part is as wide as its text, as far as the names of types tell; `None`: only
    /// the type knows.
    pub(crate) fn has_fixed_width(&self, field: &Field) -> Option<bool> {
        const FIXED: [&str; 14] = [
            "u8",
            "u16",
            "u32",
            "u64",
            "i8",
            "i16",
            "i32",
            "i64",
            "bool",
            "Uuid",
            "OffsetDateTime",
            "DateTime",
            "Date",
            "NaiveDate",
        ];
        match self.form {
            Form::Plain if field.is_text() => Some(false),
            Form::Plain if names::is_named(&field.ty, &FIXED) => Some(true),
            Form::Plain => None,
            Form::Lower => Some(false),
            Form::Width(_) | Form::Descending | Form::Date(..) | Form::Bucket(_) | Form::Hmac => {
                Some(true)
            }
        }
    }
}

impl Family {
    /// Whether both templates are without faults.
    pub(crate) fn is_sound(&self) -> bool {
        self.partition.is_sound && self.row.is_sound
    }

    /// The parts of both keys, the PartitionKey's first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.partition.parts().chain(self.row.parts())
    }

    /// Whether its rows hold every field.
    pub(crate) fn is_full(&self) -> bool {
        self.holds.iter().all(|holds| *holds)
    }

    /// Where its name stands, for an index.
    pub(crate) fn is_primary(&self) -> bool {
        self.kind == FamilyKind::Primary
    }

    /// The key that gives a field back: `true` for the RowKey, and which of its parts.
    pub(crate) fn source_of(&self, field: usize, fields: &[Field]) -> Option<(bool, usize)> {
        let gives = |part: &Part| {
            part.field == field && fields.get(field).is_some_and(|field| part.is_exact(field))
        };
        let partition = self.partition.parts().position(gives).map(|at| (false, at));
        partition.or_else(|| self.row.parts().position(gives).map(|at| (true, at)))
    }
}
