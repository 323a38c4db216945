//! Defines key templates, the row families that they describe, and lookups in them.

use std::borrow::Cow;

use crate::edm::{InvalidValue, Value, ValueRef};

/// How a part writes its field into the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{f}`: the plain form of the field's type. Integers take the full width of their type.
    Plain,
    /// `{f:06}`: decimal digits, zero padded to this width.
    Width(usize),
    /// `{f:desc}`: the descending form, largest or newest first.
    Descending,
    /// `{f:%Y%m%d}`: a date form, whose texts sort as the times do.
    Date(&'static str),
    /// `{f:lower}`: text in lower case, character by character.
    Lower,
    /// `{f:bucket(n)}`: a stable hash of the field, from 0 to n - 1.
    Bucket(u32),
    /// `{f:hmac}`: a blind token of a secret value, which only the holder of the blind token key can
    /// make.
    Hmac,
}

impl Form {
    /// Returns whether a part of this form can restore its field. A date form does so only if it is
    /// as fine as the field ([`Resolution::covers`](super::Resolution::covers));
    /// [`RowFamily::in_keys`] lists the properties that a row family's keys do restore.
    pub const fn is_reversible(&self) -> bool {
        matches!(self, Self::Plain | Self::Width(_) | Self::Descending | Self::Date(_))
    }
}

/// Appends the value of a field in the form of a part, not yet escaped.
pub type EncodeValue = fn(Form, ValueRef<'_>, &mut String) -> Result<(), InvalidValue>;

/// Reads the value of a field from the text of a part, as it is in the key.
pub type DecodeText = fn(Form, &str) -> Result<Value, InvalidValue>;

/// Converts values of a field to the texts of a part, and back.
#[derive(Debug, Clone, Copy)]
pub struct PartCodec {
    /// Appends a value of the field as the part writes it, not yet escaped.
    pub encode: EncodeValue,
    /// Reads the field's value from the part's text. Fails for a part that does not restore its field.
    pub decode: DecodeText,
}

/// One part of a template: a field and how it is written.
#[derive(Debug, Clone, Copy)]
pub struct TemplatePart {
    /// The property name of the field.
    pub field: &'static str,
    /// How the part writes its field into the key.
    pub form: Form,
    /// Number of characters of the part if every value takes equally many, else `None`.
    pub width: Option<usize>,
    /// Converts values of the field to texts of the part, and back.
    pub codec: PartCodec,
    /// Whether the part's text restores the exact value of the field. A date form that is coarser
    /// than the field restores only the beginning of a period.
    pub is_exact: bool,
}

impl TemplatePart {
    /// Creates a part for splitting keys. Its `codec` always fails, so code that also writes keys must set the field
    /// `codec`. A date form is assumed to be as fine as the field; for a coarser one, set `is_exact` to `false`.
    pub const fn new(field: &'static str, form: Form, width: Option<usize>) -> Self {
        Self {
            field,
            form,
            width,
            codec: PartCodec {
                encode: |_, _, _| Err(InvalidValue::new("the part writes no values")),
                decode: |_, _| Err(InvalidValue::new("the part reads no values")),
            },
            is_exact: form.is_reversible(),
        }
    }

    /// Returns whether the part writes the period that contains the time in `field`, rather than the time itself. Such
    /// parts sort in the order of the times.
    #[doc(hidden)]
    pub fn is_period_of(&self, field: &str) -> bool {
        self.field == field && !self.is_exact && matches!(self.form, Form::Date(_))
    }
}

/// A piece of a template.
#[derive(Debug, Clone, Copy)]
pub enum Segment {
    /// Text that every key of the template has here.
    Literal(&'static str),
    /// A part, filled from a field.
    Part(TemplatePart),
}

/// The template of a PartitionKey or RowKey.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// The template as the declaration has it.
    pub text: &'static str,
    /// The template's literals and parts, in order.
    pub segments: &'static [Segment],
}

/// The kind of rows that a row family consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// Primary rows: the entity's own row.
    Primary,
    /// Secondary-index copies.
    Copy,
    /// Lists (index entities): one row with the ids of many entities.
    List,
}

/// A flattened struct that a partial copy leaves out.
#[derive(Debug, Clone, Copy)]
pub struct LeftOutStruct {
    /// The text before the names of the struct's properties.
    pub prefix: &'static str,
    /// Returns whether the struct has the property, whose name is given without the prefix.
    pub has_property: fn(&str) -> bool,
}

/// A row family: one kind of row that an entity is stored as, with the templates of its keys and
/// the properties it holds.
#[derive(Debug, Clone, Copy)]
pub struct RowFamily {
    /// `Primary`, or the name of the index.
    pub name: &'static str,
    /// Index among the entity's row families. The primary is 0.
    pub index: usize,
    /// The kind of the row family's rows.
    pub kind: FamilyKind,
    /// The EntityType of the row family's rows, such as `Employee` or `Employee#ByEmail`.
    pub marker: &'static str,
    /// The template of the PartitionKey.
    pub partition: Template,
    /// The template of the RowKey.
    pub row: Template,
    /// Properties that the rows do not store because their keys restore them.
    pub in_keys: &'static [&'static str],
    /// Properties that a partial copy lacks, neither stored nor in the keys. A name that ends with `*` stands for the
    /// properties of a flattened struct, whose names begin with the text before the `*`. `left_out_structs` lists them.
    pub left_out: &'static [&'static str],
    /// Flattened structs that a partial copy lacks.
    pub left_out_structs: &'static [LeftOutStruct],
    /// Whether the index is declared `unique`. If so, a taken key is a unique violation.
    pub unique: bool,
    /// The table of the row family's rows, if it is not the primary's.
    pub table: Option<&'static str>,
    /// Whether the row family is remote: its rows are in another partition or table than the primary, or
    /// its lists are blobs.
    pub is_remote: bool,
    /// Whether the row family's lists are kept in blobs instead of rows.
    pub in_blob: bool,
    /// Whether a `when` condition decides which entities have a copy.
    pub conditional: bool,
}

/// Returns the table of an index or list whose primaries are in `primary_table`. `declared` is the
/// table that the index or list declares; without one, the rows are in `primary_table` too. If
/// `declared` is a template, such as `Towns{at:%Y%m%d}`, the table's name ends with the digits that
/// end the name of the primaries' table. If `primary_table` is a template too, returns `declared`.
pub fn table_given_primary_table<'t>(
    declared: Option<&'t str>,
    primary_table: &'t str,
) -> Cow<'t, str> {
    let Some(declared) = declared else { return Cow::Borrowed(primary_table) };
    match declared.split_once('{') {
        // The template of primaries covers all of their tables, and the template of their copies does too.
        Some((prefix, _)) if !primary_table.contains('{') => {
            // The derive refuses a name with a digit right before the date, so all digits at the end belong to the
            // date.
            let letters = primary_table.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let digits = primary_table.get(letters..).unwrap_or_default();
            Cow::Owned([prefix, digits].concat())
        }
        _ => Cow::Borrowed(declared),
    }
}

impl RowFamily {
    /// Returns the table that holds the row family's rows if their primaries are in `primary_table`.
    #[doc(hidden)]
    pub fn table_given_primary_table<'t>(&self, primary_table: &'t str) -> Cow<'t, str> {
        table_given_primary_table(self.table, primary_table)
    }

    /// Returns whether the row family has dated tables of its own: one for each dated table of the
    /// primaries.
    #[doc(hidden)]
    pub fn has_dated_tables(&self) -> bool {
        self.table.is_some_and(|table| table.contains('{'))
    }

    /// A row family without keys, whose rows hold every field.
    const NONE: Self = Self {
        name: "",
        index: 0,
        kind: FamilyKind::Primary,
        marker: "",
        partition: Template { text: "", segments: &[] },
        row: Template { text: "", segments: &[] },
        in_keys: &[],
        left_out: &[],
        left_out_structs: &[],
        unique: false,
        table: None,
        is_remote: false,
        in_blob: false,
        conditional: false,
    };

    /// Creates the row family of an entity's primary rows, without keys.
    #[doc(hidden)]
    pub const fn of_primary(name: &'static str, index: usize, marker: &'static str) -> Self {
        Self { name, index, marker, ..Self::NONE }
    }

    /// Creates the row family of an index's copies, without keys.
    #[doc(hidden)]
    pub const fn of_copy(name: &'static str, index: usize, marker: &'static str) -> Self {
        Self { name, index, kind: FamilyKind::Copy, marker, ..Self::NONE }
    }

    /// Creates the row family of a list, without keys.
    #[doc(hidden)]
    pub const fn of_list(name: &'static str, index: usize, marker: &'static str) -> Self {
        Self { name, index, kind: FamilyKind::List, marker, ..Self::NONE }
    }

    /// Returns whether the rows are primaries.
    pub const fn is_primary(&self) -> bool {
        match self.kind {
            FamilyKind::Primary => true,
            FamilyKind::Copy | FamilyKind::List => false,
        }
    }

    /// Returns whether the rows are secondary-index copies.
    pub const fn is_copy(&self) -> bool {
        match self.kind {
            FamilyKind::Copy => true,
            FamilyKind::Primary | FamilyKind::List => false,
        }
    }

    /// Returns whether the rows belong to a list.
    pub const fn is_list(&self) -> bool {
        match self.kind {
            FamilyKind::List => true,
            FamilyKind::Primary | FamilyKind::Copy => false,
        }
    }

    /// Returns whether each row holds one entity, all of its properties or some.
    pub const fn is_primary_or_copy(&self) -> bool {
        match self.kind {
            FamilyKind::Primary | FamilyKind::Copy => true,
            FamilyKind::List => false,
        }
    }

    /// Returns whether the row family's rows lack the property, both as a property and in their
    /// keys.
    #[doc(hidden)]
    pub fn leaves_out(&self, property: &str) -> bool {
        // Names of other fields may begin with the struct's prefix too.
        let is_in_struct = |left_out: &LeftOutStruct| {
            property.strip_prefix(left_out.prefix).is_some_and(left_out.has_property)
        };
        self.left_out.contains(&property) || self.left_out_structs.iter().any(is_in_struct)
    }

    /// Finds the part of the row family's keys that restores `field`, with its text in the given
    /// keys. Returns `None` if no part restores it.
    #[doc(hidden)]
    pub fn part_restoring<'k>(
        &'static self,
        field: &str,
        partition_key: &'k str,
        row_key: &'k str,
    ) -> Result<Option<(&'static TemplatePart, &'k str)>, InvalidValue> {
        for (template, key) in [(&self.partition, partition_key), (&self.row, row_key)] {
            let at = template.parts().position(|part| part.field == field && part.is_exact);
            if let Some(at) = at {
                return Ok(template.parts().nth(at).zip(template.part_text(key, at)?));
            }
        }
        Ok(None)
    }
}

impl Template {
    /// Returns the literal text before the first part.
    pub const fn literal_prefix(&self) -> &'static str {
        match self.segments {
            [Segment::Literal(text), ..] => text,
            _ => "",
        }
    }

    /// Returns whether a key can be split into its parts again. Each part of variable width has to
    /// be the end of the key or be followed by a literal. The literal must not begin with `~`,
    /// which could also be an escape in the part.
    pub const fn can_be_split(&self) -> bool {
        let mut rest = self.segments;
        while let [first, after @ ..] = rest {
            rest = after;
            let Segment::Part(TemplatePart { width: None, .. }) = first else { continue };
            match after {
                [] => {}
                [Segment::Literal(text), ..] => {
                    if matches!(text.as_bytes(), [] | [b'~', ..]) {
                        return false;
                    }
                }
                // Nothing would say where the text ends and the next part begins.
                [Segment::Part(_), ..] => return false,
            }
        }
        true
    }

    /// Iterates over the parts in template order.
    pub fn parts(&self) -> impl Iterator<Item = &'static TemplatePart> + use<> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Part(part) => Some(part),
            Segment::Literal(_) => None,
        })
    }

    /// Returns the index of part number `part` in the list of all segments, which contains literals
    /// and parts.
    pub(crate) fn segment_index(&self, part: usize) -> Option<usize> {
        let mut parts = self
            .segments
            .iter()
            .enumerate()
            .filter(|(_, segment)| matches!(segment, Segment::Part(_)));
        parts.nth(part).map(|(at, _)| at)
    }

    /// Returns whether part number `part` ends the key.
    #[doc(hidden)]
    pub fn is_last_segment(&self, part: usize) -> bool {
        self.segment_index(part).is_some_and(|at| at + 1 == self.segments.len())
    }

    /// Returns the character that ends part number `part`: the first of the literal after it.
    #[doc(hidden)]
    pub fn terminator_char_of_part(&self, part: usize) -> Option<char> {
        self.segment_index(part).and_then(|at| self.terminator_char_of_segment(at))
    }

    /// Returns the character that ends the part at index `segment`: the first of the literal after
    /// it.
    #[inline]
    pub(super) fn terminator_char_of_segment(&self, segment: usize) -> Option<char> {
        match self.segments.get(segment + 1) {
            Some(Segment::Literal(text)) => text.chars().next(),
            _ => None,
        }
    }

    /// Returns the start of a key, up to the part that follows those with the texts `before`.
    #[doc(hidden)]
    pub fn key_prefix_before(&self, before: &[String]) -> String {
        match before.split_last() {
            Some((last, before)) => self.key_prefix_through(before, last),
            None => self.literal_prefix().to_owned(),
        }
    }

    /// Returns the start of a key, from the texts of its first parts: `before`, and `text` as the
    /// last one. Ends with the literal that follows the last one, if there is one.
    #[doc(hidden)]
    pub fn key_prefix_through(&self, before: &[String], text: &str) -> String {
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
