//! Key templates, whose parts are fields, and the row families with such keys.

use std::ops::Range;

use proc_macro2::{Ident, Span};
use syn::{LitStr, Path};

use super::{Entity, Field};
use crate::{
    errors::Errors,
    names,
    template::{self, Fault, Fineness, Form, Piece},
};

/// A field in a key template, such as `{id:06}`.
#[derive(Debug, Clone)]
pub(crate) struct TemplatePart {
    /// Index of the field among the entity's fields.
    pub(crate) field: usize,
    pub(crate) form: Form,
    /// The range of characters in the template, including braces.
    pub(crate) place: Range<usize>,
}

/// A piece of a key template: literal text or a part.
#[derive(Debug, Clone)]
pub(crate) enum Segment {
    Literal(String, Range<usize>),
    Part(TemplatePart),
}

/// The template of a PartitionKey or a RowKey, with resolved fields.
#[derive(Debug, Clone)]
pub(crate) struct KeyTemplate {
    /// The string literal in the source. Faults of the template are reported at its span.
    pub(crate) literal: LitStr,
    pub(crate) text: String,
    pub(crate) segments: Vec<Segment>,
    /// Whether the template has no faults.
    pub(crate) is_sound: bool,
    /// Whether a part of the template is missing in `segments`, because it refers to an unknown field.
    pub(crate) has_lost_part: bool,
}

/// The maximum length of a key in UTF-16 units.
const MAX_KEY_UNITS: usize = 512;

/// The message for a part of variable width that is followed by another part.
const UNSEPARATED: &str = "a part of variable width must be followed by a literal, otherwise its end could not be found in the key: write a literal such as `_` here";

/// The kind of a row family's rows: primary rows, index copies or lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    /// The entity's own row: the primary entity.
    Primary,
    /// A copy of the entity under another key, declared by `index(..)`.
    Copy,
    /// A row with the ids of many entities, declared by `list(..)`.
    List,
}

/// A row family: one kind of row that an entity writes, and the templates of its keys.
#[derive(Debug)]
pub(crate) struct RowFamily {
    /// The index among the entity's row families. The primary is 0.
    pub(crate) index: usize,
    /// `Primary`, or the name at the beginning of `index(..)` or `list(..)`.
    pub(crate) name: Ident,
    pub(crate) kind: FamilyKind,
    pub(crate) partition: KeyTemplate,
    pub(crate) row: KeyTemplate,
    /// Whether the declaration of this row family has its PartitionKey. An index without one has the primary's.
    pub(crate) declares_partition: bool,
    /// The table of this row family's rows, or `None` if they are in the primary's table.
    pub(crate) table: Option<LitStr>,
    /// Whether its rows are in a different partition or table than the primary entity.
    pub(crate) is_remote: bool,
    /// Whether the row family is a list that is stored in blobs.
    pub(crate) in_blob: bool,
    /// One flag per field of the entity: whether rows contain it, in their keys or as properties.
    pub(crate) holds: Vec<bool>,
    pub(crate) unique: bool,
    /// The function of `when = path`. An entity has a row of this family only if the function returns `true`.
    pub(crate) when: Option<Path>,
}

impl KeyTemplate {
    /// Parses the template and resolves its fields. Reports every fault at the literal.
    pub(crate) fn new(literal: &LitStr, fields: &[Field], errors: &mut Errors) -> Self {
        let text = literal.value();
        let (pieces, mut faults) = template::parse(&text);
        let mut segments = Vec::new();
        let mut has_lost_part = false;
        for piece in pieces {
            match piece {
                Piece::Literal(text, place) => segments.push(Segment::Literal(text, place)),
                Piece::Part { field, form, place } => {
                    let found = field_named(&field, fields);
                    if let Err((_, message)) = &found {
                        faults.push(Fault::new(&place, message));
                    }
                    // A misspelt name counts as the field that it means.
                    match found.or_else(|(meant, _)| meant.ok_or(())) {
                        Ok(field) => {
                            segments.push(Segment::Part(TemplatePart { field, form, place }))
                        }
                        Err(()) => has_lost_part = true,
                    }
                }
                Piece::Lost => has_lost_part = true,
            }
        }
        literal_length(&segments, &mut faults);
        // Fields that could not be read are not unknown.
        if !errors.may_have_unread_fields(fields.len()) {
            for fault in &faults {
                errors.add_at(literal.span(), fault.message_with_carets(&text));
            }
        }
        let is_sound = faults.is_empty();
        Self { literal: literal.clone(), text, segments, is_sound, has_lost_part }
    }

    /// Returns a key without text and segments, for a template that is missing or could not be read. The key counts
    /// as faulty. `span` is where the fault was reported.
    pub(crate) fn unknown(span: Span) -> Self {
        let literal = LitStr::new("", span);
        Self {
            literal,
            text: String::new(),
            segments: Vec::new(),
            is_sound: false,
            has_lost_part: true,
        }
    }

    /// Returns the parts that are blind tokens.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &TemplatePart> {
        self.parts().filter(|part| part.is_token())
    }

    /// Returns the parts that are blind tokens, each with this key.
    pub(crate) fn tokens_with_key(&self) -> impl Iterator<Item = (&Self, &TemplatePart)> {
        self.tokens().map(move |token| (self, token))
    }

    /// Returns the parts, in the order of the template.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &TemplatePart> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Part(part) => Some(part),
            Segment::Literal(..) => None,
        })
    }

    /// Returns an error text with the template and a caret under `place`.
    pub(crate) fn template_error_text(
        &self,
        place: &Range<usize>,
        message: impl Into<String>,
    ) -> String {
        Fault::new(place, message).message_with_carets(&self.text)
    }

    /// Returns each segment that directly follows a part, and whether that part has a fixed width. `None` means
    /// that the type's name does not show the width.
    pub(crate) fn segment_after_each_part<'k>(
        &'k self,
        fields: &'k [Field],
    ) -> impl Iterator<Item = (&'k Segment, Option<bool>)> {
        let pairs = self.segments.iter().zip(self.segments.iter().skip(1));
        pairs.filter_map(|(first, second)| match first {
            Segment::Part(part) => Some((second, part.has_fixed_width(fields.get(part.field)?))),
            Segment::Literal(..) => None,
        })
    }

    /// Returns whether no key of this template can equal a key of the other: both begin with a literal, and the
    /// literals differ before one of them ends.
    pub(crate) fn starts_with_different_literal(&self, other: &Self) -> bool {
        match (self.segments.first(), other.segments.first()) {
            (Some(Segment::Literal(first, _)), Some(Segment::Literal(second, _))) => {
                // `zip` ends with the shorter literal. A literal that is a prefix of the other proves nothing,
                // because a part may continue it.
                first.bytes().zip(second.bytes()).any(|(first, second)| first != second)
            }
            _ => false,
        }
    }

    /// Returns the message that a part directly follows a part of variable width, without a literal in between.
    /// `second` is the later part.
    pub(crate) fn unseparated_message(&self, second: &TemplatePart) -> String {
        self.template_error_text(&second.place, UNSEPARATED)
    }

    /// Returns whether the template ends with this part, without a literal after it.
    pub(crate) fn is_last_segment(&self, part: &TemplatePart) -> bool {
        matches!(self.segments.last(), Some(Segment::Part(last)) if last.place == part.place)
    }
}

/// Adds a fault if the template's literals alone exceed the length of a key.
fn literal_length(segments: &[Segment], faults: &mut Vec<Fault>) {
    let mut units = 0;
    for segment in segments {
        let Segment::Literal(text, place) = segment else { continue };
        units += text.encode_utf16().count();
        if units > MAX_KEY_UNITS {
            let message = format!(
                "the literals of this key have more characters than a key can have ({MAX_KEY_UNITS})"
            );
            faults.push(Fault::new(&(place.start..place.start + 1), message));
            return;
        }
    }
}

/// Returns the index of the field called `name`. If there is no such field, returns the index of the field with the
/// nearest name, if any is near, and the error message.
fn field_named(name: &str, fields: &[Field]) -> Result<usize, (Option<usize>, String)> {
    let position = |name: &str| fields.iter().position(|field| field.name == name);
    position(name).ok_or_else(|| {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let meant = names::nearest_name(name, known.iter().copied()).and_then(position);
        (meant, names::unknown_name_message("field", name, &known))
    })
}

impl TemplatePart {
    /// Returns whether the part is a blind token of its field.
    pub(crate) fn is_token(&self) -> bool {
        self.form == Form::Hmac
    }

    /// Returns whether the part writes a period of its field, such as the day of a time, instead of the value.
    pub(crate) fn is_period(&self, fields: &[Field]) -> bool {
        matches!(self.form, Form::Date(_, finest) if finest < Fineness::Tick)
            && fields.get(self.field).is_some_and(|field| !self.is_read_back_exactly(field))
    }

    /// Returns whether the field can be read back from the part's text without loss.
    pub(crate) fn is_read_back_exactly(&self, field: &Field) -> bool {
        match &self.form {
            Form::Plain | Form::Width(_) | Form::Descending => true,
            Form::Date(_, finest) if field.is_date_without_time() => *finest >= Fineness::Day,
            Form::Date(_, finest) => *finest == Fineness::Tick,
            Form::Lower | Form::Bucket(_) | Form::Hmac => false,
        }
    }

    /// Returns whether the part always has the same number of characters. Returns `None` if the name of the field's
    /// type does not show it, in which case a const assertion decides.
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
            Form::Plain if names::is_named_one_of(&field.ty, &FIXED) => Some(true),
            Form::Plain => None,
            Form::Lower => Some(false),
            Form::Width(_) | Form::Descending | Form::Date(..) | Form::Bucket(_) | Form::Hmac => {
                Some(true)
            }
        }
    }
}

impl RowFamily {
    /// Returns whether both templates are free of faults.
    pub(crate) fn has_sound_templates(&self) -> bool {
        self.partition.is_sound && self.row.is_sound
    }

    /// Returns the PartitionKey and the RowKey.
    pub(crate) fn keys(&self) -> [&KeyTemplate; 2] {
        [&self.partition, &self.row]
    }

    /// Returns whether rows contain the field, in their keys or as properties.
    pub(crate) fn holds_field(&self, field: usize) -> bool {
        self.holds.get(field).copied().unwrap_or_default()
    }

    /// Returns the keys in this row family's own declaration. What is wrong with a PartitionKey that an index has from
    /// the primary is reported there.
    pub(crate) fn declared_keys(&self) -> impl Iterator<Item = &KeyTemplate> {
        self.declares_partition.then_some(&self.partition).into_iter().chain([&self.row])
    }

    /// Returns the parts of both keys, starting with the PartitionKey's.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &TemplatePart> {
        self.partition.parts().chain(self.row.parts())
    }

    /// Returns whether the keys contain a period of the field and, in another part, its value.
    pub(crate) fn has_period_and_value_of(&self, field: usize, fields: &[Field]) -> bool {
        let has = |is_met: &dyn Fn(&TemplatePart) -> bool| {
            self.parts().any(|part| part.field == field && is_met(part))
        };
        let value_of = fields.get(field);
        has(&|part| part.is_period(fields))
            && has(&|part| value_of.is_some_and(|field| part.is_read_back_exactly(field)))
    }

    /// Returns whether each partition contains the rows of one period, and no rows of the entity's other row families.
    pub(crate) fn has_partition_for_period(&self, entity: &Entity) -> bool {
        let table = |family: &Self| family.table.as_ref().map(LitStr::value);
        let shares = |other: &&Self| {
            other.index != self.index
                && table(other) == table(self)
                && other.partition.text == self.partition.text
        };
        self.partition.parts().any(|part| part.is_period(&entity.fields))
            && !entity.families.iter().any(|other| shares(&other))
    }

    /// Returns whether rows of the row family contain every field of the entity.
    pub(crate) fn has_every_field(&self) -> bool {
        self.holds.iter().all(|holds| *holds)
    }

    /// Returns whether this is the row family of the primary entity.
    pub(crate) fn is_primary(&self) -> bool {
        matches!(self.kind, FamilyKind::Primary)
    }

    /// Returns whether this is a row family of secondary-index copies.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.kind, FamilyKind::Copy)
    }

    /// Returns whether each row of the row family contains one entity, with all or some of its fields.
    pub(crate) fn is_primary_or_copy(&self) -> bool {
        match self.kind {
            FamilyKind::Primary | FamilyKind::Copy => true,
            FamilyKind::List => false,
        }
    }

    /// Returns the key part from which the field can be read: `true` for the RowKey or `false` for the
    /// PartitionKey, and the part's index in that key. Returns `None` if no part contains the field's exact value.
    pub(crate) fn exact_part_of_field(
        &self,
        field: usize,
        fields: &[Field],
    ) -> Option<(bool, usize)> {
        let gives = |part: &TemplatePart| {
            part.field == field
                && fields.get(field).is_some_and(|field| part.is_read_back_exactly(field))
        };
        let partition = self.partition.parts().position(gives).map(|at| (false, at));
        partition.or_else(|| self.row.parts().position(gives).map(|at| (true, at)))
    }
}
