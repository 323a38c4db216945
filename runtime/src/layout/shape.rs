//! Holds the layout of one version of an entity type as owned text, from a schema or from a file, and
//! writes it as lines of the file.

use std::fmt;

use crate::{
    edm::EdmType,
    entity::{ColumnSchema, Discriminator, Schema},
    key::{FamilyKind, Form, RowFamily, Segment, Template},
};

/// The layout of one version of an entity type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntityShape {
    pub(super) entity_type: String,
    pub(super) version: u32,
    pub(super) table: String,
    /// The number of rows that an entity is stored as: 1 unless it is wide.
    pub(super) parts: usize,
    /// The time property that chooses a row's dated table. `None` if the entity has no dated tables.
    pub(super) dated_by: Option<String>,
    /// The property that contains the type of a row, or `None` if the form of the row's keys determines the type.
    pub(super) discriminator: Option<String>,
    /// Whether a property of each row authenticates all others.
    pub(super) is_sealed: bool,
    /// The property with the time at which a row expires.
    pub(super) expires: Option<String>,
    pub(super) rows: Vec<RowsShape>,
    /// The fields that only the primary's keys hold.
    pub(super) key_fields: Vec<KeyFieldShape>,
    pub(super) properties: Vec<PropertyShape>,
    pub(super) series: Vec<SeriesShape>,
    pub(super) blobs: Vec<BlobFieldShape>,
}

/// The layout of a row family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowsShape {
    pub(super) kind: FamilyKind,
    pub(super) name: String,
    /// The table, if it is not the primaries'.
    pub(super) table: Option<String>,
    pub(super) is_remote: bool,
    pub(super) in_blob: bool,
    pub(super) is_unique: bool,
    pub(super) is_conditional: bool,
    pub(super) partition: KeyTemplateShape,
    pub(super) row: KeyTemplateShape,
    /// The properties that a partial copy lacks.
    pub(super) left_out: Vec<String>,
}

/// The template of a key, in the names of the stored properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyTemplateShape {
    pub(super) template: String,
    /// The width of each part of the template in characters, or `None` for a part without a fixed width.
    pub(super) widths: Vec<Option<usize>>,
}

/// A field that only the primary's keys hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyFieldShape {
    /// The field's name in key templates and in the properties of copies.
    pub(super) name: String,
    pub(super) stored_type: StoredTypeShape,
}

/// The stored type of a field, and which of its values the field's Rust type reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredTypeShape {
    pub(super) edm: String,
    /// The values that the field reads: empty for all, else as [`EdmValue::VALUES`](crate::EdmValue) says it,
    /// or [`JSON`].
    pub(super) values: String,
}

/// The values of a String that holds JSON.
pub(super) const JSON: &str = "json";

/// The layout of a stored property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PropertyShape {
    pub(super) name: String,
    pub(super) stored_type: StoredTypeShape,
    pub(super) is_optional: bool,
    pub(super) has_default: bool,
    /// The prefix of the innermost flattened `Option` that the property belongs to: a row may lack all of
    /// its properties together.
    pub(super) within: Option<String>,
    /// The part of a wide entity that stores the property, counted from 1.
    pub(super) part: usize,
    pub(super) encryption: Option<PropertyEncryptionShape>,
}

/// How the values of a property are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PropertyEncryptionShape {
    pub(super) pad: u32,
    pub(super) hides_none: bool,
    /// The name of the property with the blind token, and the length of the token in characters.
    pub(super) blind: Option<(String, u32)>,
}

/// The layout of a series or of a split field, which is stored as several properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeriesShape {
    pub(super) field: String,
    pub(super) is_split: bool,
    pub(super) slots: usize,
    pub(super) last: String,
    /// The shape of the property that stores the field's first slot or piece. The other properties differ from
    /// it in name and, in a wide entity, may be in another part.
    pub(super) first: PropertyShape,
}

/// A property that a series or a split field stores.
pub(super) struct SlotOrPiece<'s> {
    pub(super) series: &'s SeriesShape,
    /// The index of the slot in the series, or of the piece in the split field, from 0.
    pub(super) at: usize,
}

/// The layout of a field whose bytes are in a blob: the properties that say where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlobFieldShape {
    /// The property that holds the blob's name.
    pub(super) name: String,
    pub(super) is_optional: bool,
    /// Other properties of the row that describe the blob, such as its length.
    pub(super) others: Vec<String>,
}

/// Number of further properties that describe a blob which is not encrypted: its length, hash and content
/// type. An encrypted blob also has a key.
const PROPERTIES_OF_PLAIN_BLOB: usize = 3;

impl EntityShape {
    /// Iterates over the names of encrypted properties, including properties that name encrypted blobs. A series
    /// or split field contributes only its first property.
    pub(super) fn encrypted_names(&self) -> impl Iterator<Item = &str> {
        let series = self.series.iter().map(|series| &series.first);
        let encrypted =
            self.properties.iter().chain(series).filter(|property| property.encryption.is_some());
        let blobs = self.blobs.iter().filter(|blob| blob.others.len() > PROPERTIES_OF_PLAIN_BLOB);
        encrypted.map(|property| &*property.name).chain(blobs.map(|blob| &*blob.name))
    }

    pub(super) fn shape_of_entity(schema: &'static Schema) -> Self {
        let mut columns = Vec::new();
        push_columns("", None, schema.columns, &mut columns);
        let mut series = Vec::new();
        for declared in schema.series {
            let Some(at) = columns.iter().position(|column| column.name == declared.first) else {
                continue;
            };
            // The slots of a series are columns that follow one another.
            let end = (at + declared.slots).min(columns.len());
            let slots: Vec<PropertyShape> = columns.drain(at..end).collect();
            if let (Some(first), Some(last)) = (slots.first(), slots.last()) {
                // Each piece may be absent from a row, but a field that is not an `Option` needs all of them.
                let is_optional = declared.is_optional;
                series.push(SeriesShape {
                    field: declared.field.to_owned(),
                    is_split: declared.is_split,
                    slots: declared.slots,
                    last: last.name.clone(),
                    first: PropertyShape { is_optional, ..first.clone() },
                });
            }
        }
        let blobs = schema.blobs.iter().filter_map(|names| {
            let at = columns.iter().position(|column| column.name == names.name)?;
            // The properties of a blob field change together, so they are compared as one field.
            let is_optional = columns.remove(at).is_optional;
            columns.retain(|column| names.other_names().all(|other| other != column.name));
            let others = names.other_names().map(str::to_owned).collect();
            Some(BlobFieldShape { name: names.name.to_owned(), is_optional, others })
        });
        let blobs = blobs.collect();
        Self {
            entity_type: schema.entity_type.to_owned(),
            version: schema.version,
            table: schema.table.to_owned(),
            parts: schema.parts.len().max(1),
            dated_by: schema.dated.map(|dated| dated.property.to_owned()),
            discriminator: match schema.discriminator {
                Discriminator::Property(name) => Some(name.to_owned()),
                Discriminator::RowKey => None,
            },
            is_sealed: schema.sealed,
            expires: schema.expires.map(str::to_owned),
            rows: schema.families.iter().map(RowsShape::shape_of_rows).collect(),
            key_fields: schema.columns.iter().filter_map(shape_of_key_field).collect(),
            properties: columns,
            series,
            blobs,
        }
    }

    /// Returns the discriminator's value of the type's primaries. The value of a copy adds `#` and
    /// the index's name.
    pub(super) fn primary_discriminator_value(&self) -> String {
        match self.version {
            1 => self.entity_type.clone(),
            version => format!("{}.v{version}", self.entity_type),
        }
    }

    /// Returns whether a property outside of series and blobs has this name.
    pub(super) fn has_property(&self, name: &str) -> bool {
        self.properties.iter().any(|property| property.name == name)
    }

    /// Returns whether a property outside of series and blobs, or a field in a key, has this name.
    pub(super) fn has_property_or_key_field(&self, name: &str) -> bool {
        let parts = self.rows.iter().flat_map(|rows| [&rows.partition, &rows.row]);
        self.has_property(name)
            || parts.into_iter().any(|key| key.template_parts().any(|(field, _)| field == name))
    }
}

impl BlobFieldShape {
    /// Returns whether the field stores a property of this name.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.name == name || self.others.iter().any(|other| other == name)
    }

    /// Returns whether the blob is encrypted. Only then it has a fifth property, with its key.
    pub(super) fn is_encrypted(&self) -> bool {
        self.others.len() > 3
    }
}

impl RowsShape {
    fn shape_of_rows(family: &RowFamily) -> Self {
        Self {
            kind: family.kind,
            name: family.name.to_owned(),
            table: family.table.map(str::to_owned),
            is_remote: family.is_remote,
            in_blob: family.in_blob,
            is_unique: family.unique,
            is_conditional: family.conditional,
            partition: KeyTemplateShape::shape_of_key(&family.partition),
            row: KeyTemplateShape::shape_of_key(&family.row),
            left_out: family.left_out.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

impl KeyTemplateShape {
    fn shape_of_key(template: &Template) -> Self {
        Self {
            template: template_text(template),
            widths: template.parts().map(|part| part.width).collect(),
        }
    }

    /// Returns the field and the form of each of the template's parts, in order.
    pub(super) fn template_parts(&self) -> impl Iterator<Item = (&str, &str)> {
        split_template(&self.template).filter_map(|piece| match piece {
            TemplatePiece::Part { field, form } => Some((field, form)),
            TemplatePiece::Literal(_) => None,
        })
    }
}

impl EntityShape {
    /// Returns whether an entity is stored as several rows.
    pub(super) fn is_wide(&self) -> bool {
        self.parts > 1
    }

    /// Returns whether the type has indexes with copies of its entities.
    pub(super) fn has_copies(&self) -> bool {
        self.rows.iter().any(|rows| rows.kind == FamilyKind::Copy)
    }

    /// Returns whether a series, a split field or a blob field stores a property of this name.
    pub(super) fn has_slot_or_blob_property(&self, name: &str) -> bool {
        self.find_slot(name).is_some() || self.blobs.iter().any(|blob| blob.holds(name))
    }

    /// Returns whether primaries store a property of this name, for any field.
    pub(super) fn stores_property(&self, name: &str) -> bool {
        self.has_property(name) || self.has_slot_or_blob_property(name)
    }

    /// Finds the slot or piece that is stored as the property `name`.
    pub(super) fn find_slot(&self, name: &str) -> Option<SlotOrPiece<'_>> {
        self.series.iter().find_map(|series| {
            let at = series.property_names().position(|slot| slot == name)?;
            Some(SlotOrPiece { series, at })
        })
    }

    /// Finds the field that another layout describes as `earlier`: the series or split field of that name, or
    /// otherwise one of the same kind whose first property has the same name.
    pub(super) fn find_series_counterpart(&self, earlier: &SeriesShape) -> Option<&SeriesShape> {
        let named = self.series.iter().find(|series| series.field == earlier.field);
        named.or_else(|| {
            self.series.iter().find(|series| {
                series.first.name == earlier.first.name && series.is_split == earlier.is_split
            })
        })
    }

    /// Returns the type of a field that a key template names.
    pub(super) fn type_of_key_part(&self, field: &str) -> Option<&StoredTypeShape> {
        let properties = self.properties.iter().map(|one| (&one.name, &one.stored_type));
        let keys = self.key_fields.iter().map(|one| (&one.name, &one.stored_type));
        properties.chain(keys).find(|(name, _)| *name == field).map(|(_, found)| found)
    }
}

impl PropertyShape {
    /// Returns whether an absent value is stored encrypted, so the row always has the property.
    pub(super) fn hides_absence(&self) -> bool {
        self.encryption.as_ref().is_some_and(|encryption| encryption.hides_none)
    }

    /// Returns whether the property belongs to the flattened `Option` with this prefix, or to one nested in it.
    /// A nested prefix begins with the outer one.
    pub(super) fn is_within(&self, prefix: &str) -> bool {
        self.within.as_ref().is_some_and(|innermost| innermost.starts_with(prefix))
    }

    /// Returns whether a row may lack the property.
    pub(super) fn may_be_absent(&self) -> bool {
        self.is_optional || self.has_default
    }
}

/// The maximum number of slots of a series in a layout file. It is above the number of properties that an entity can
/// have.
const MAX_SLOTS: usize = 30_000;

/// The maximum number of slots of one series that a part of a wide entity stores.
const MAX_SLOTS_OF_PART: usize = 200;

impl SeriesShape {
    /// Returns the part that stores a slot, counted from 0, in a wide entity. The derives cut a series into
    /// nearly equal pieces, longer ones first: 365 slots become 183 and 182. A split field is never cut.
    pub(super) fn part_of_slot(&self, slot: usize) -> usize {
        if self.is_split {
            return self.first.part;
        }
        let pieces = self.slots.div_ceil(MAX_SLOTS_OF_PART).max(1);
        let (least, longer) = (self.slots / pieces, self.slots % pieces);
        let offset = match slot.checked_sub(longer * (least + 1)) {
            None => slot / (least + 1),
            Some(rest) => longer + rest / least.max(1),
        };
        self.first.part + offset
    }

    /// Returns the name of the property of a slot or piece, counted from 0.
    pub(super) fn property_name(&self, at: usize) -> String {
        let (first, last) = (&self.first.name, &self.last);
        if at == 0 {
            return first.clone();
        }
        if self.is_split {
            return format!("{first}_{}", at + 1);
        }
        // The names of the first and the last slot differ in the number alone, which both pad to one width.
        let end = self.slots.saturating_sub(1);
        let widths = end.to_string().len()..=9;
        let candidates = widths.flat_map(|width| {
            let zero = format!("{:0width$}", 0);
            let found: Vec<usize> = first.match_indices(&zero).map(|(from, _)| from).collect();
            found.into_iter().map(move |from| (from, width))
        });
        let name_at = |(from, width): (usize, usize), slot: usize| {
            let (before, after) = (first.get(..from)?, first.get(from + width..)?);
            Some(format!("{before}{slot:0width$}{after}"))
        };
        let mut candidates = candidates;
        candidates
            .find(|place| name_at(*place, end).as_ref() == Some(last))
            .and_then(|place| name_at(place, at))
            .unwrap_or_default()
    }

    /// Returns the names of all properties of the field.
    pub(super) fn property_names(&self) -> impl Iterator<Item = String> {
        // A file may claim any number of slots.
        (0..self.slots.min(MAX_SLOTS)).map(|at| self.property_name(at))
    }
}

/// A piece of a template's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplatePiece<'t> {
    Literal(&'t str),
    Part { field: &'t str, form: &'t str },
}

/// Splits a template's text into literals and parts. Takes every text in braces for a part, also in
/// a literal: keys are not expected to contain braces.
pub(super) fn split_template(template: &str) -> impl Iterator<Item = TemplatePiece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if let Some((part, after)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            rest = after;
            let (field, form) = part.split_once(':').unwrap_or((part, ""));
            return Some(TemplatePiece::Part { field, form });
        }
        let end =
            rest.char_indices().skip(1).find(|(_, c)| *c == '{').map_or(rest.len(), |(at, _)| at);
        let (literal, after) = rest.split_at(end);
        rest = after;
        (!literal.is_empty()).then_some(TemplatePiece::Literal(literal))
    })
}

/// Returns the text of a template in the names of stored properties.
pub(super) fn template_text(template: &Template) -> String {
    let mut text = String::new();
    for segment in template.segments {
        match segment {
            Segment::Literal(literal) => text.push_str(literal),
            Segment::Part(part) => {
                let form = match part.form {
                    Form::Plain => String::new(),
                    Form::Width(width) => format!(":0{width}"),
                    Form::Descending => ":desc".to_owned(),
                    Form::Date(form) => format!(":{form}"),
                    Form::Lower => ":lower".to_owned(),
                    Form::Bucket(count) => format!(":bucket({count})"),
                    Form::Hmac => ":hmac".to_owned(),
                };
                text.extend(["{", part.field, &form, "}"]);
            }
        }
    }
    text
}

/// Returns the shape of a field that only keys hold, or `None` for another column.
fn shape_of_key_field(column: &ColumnSchema) -> Option<KeyFieldShape> {
    let edm = column.edm.filter(|_| !column.stored)?;
    Some(KeyFieldShape {
        name: column.name.to_owned(),
        stored_type: StoredTypeShape::shape_of_type(edm, column.values),
    })
}

fn push_columns(
    prefix: &str,
    within: Option<&str>,
    columns: &[ColumnSchema],
    into: &mut Vec<PropertyShape>,
) {
    for column in columns.iter().filter(|column| column.stored) {
        let name = [prefix, column.name].concat();
        match column.edm {
            None => {
                let within = if column.optional { Some(&*name) } else { within };
                push_columns(&name, within, column.nested, into);
            }
            Some(edm) => into.push(PropertyShape {
                name,
                stored_type: StoredTypeShape::shape_of_type(edm, column.values),
                is_optional: column.optional,
                has_default: column.has_default,
                within: within.map(str::to_owned),
                part: column.part_number(),
                encryption: column.sealed.map(|sealed| PropertyEncryptionShape {
                    pad: sealed.pad,
                    hides_none: sealed.hide_none,
                    blind: sealed.blind.map(|token| ([prefix, token.name].concat(), token.chars)),
                }),
            }),
        }
    }
}

impl StoredTypeShape {
    fn shape_of_type(edm: EdmType, values: &str) -> Self {
        let name = edm.name();
        let edm = name.strip_prefix("Edm.").unwrap_or(name).to_owned();
        Self { edm, values: values.to_owned() }
    }
}

impl fmt::Display for EntityShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "entity \"{}\" version {}", self.entity_type, self.version)?;
        match &self.dated_by {
            Some(property) => writeln!(f, "  table {} by {property}", self.table)?,
            None => writeln!(f, "  table {}", self.table)?,
        }
        match &self.discriminator {
            Some(property) => writeln!(f, "  discriminator property {property}")?,
            None => writeln!(f, "  discriminator row_key")?,
        }
        if self.parts > 1 {
            writeln!(f, "  wide {}", self.parts)?;
        }
        if self.is_sealed {
            writeln!(f, "  sealed")?;
        }
        if let Some(property) = &self.expires {
            writeln!(f, "  expires {property}")?;
        }
        self.rows.iter().try_for_each(|rows| rows.fmt(f))?;
        let mut keys = self.key_fields.iter();
        keys.try_for_each(|key| writeln!(f, "  key {} {}", key.name, key.stored_type))?;
        self.properties.iter().try_for_each(|property| writeln!(f, "  property {property}"))?;
        self.series.iter().try_for_each(|series| writeln!(f, "  {series}"))?;
        self.blobs.iter().try_for_each(|blob| writeln!(f, "  {blob}"))
    }
}

impl fmt::Display for RowsShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FamilyKind::Primary => f.write_str("  primary")?,
            FamilyKind::Copy => write!(f, "  index {}", self.name)?,
            FamilyKind::List => write!(f, "  list {}", self.name)?,
        }
        if self.kind != FamilyKind::Primary {
            f.write_str(if self.is_remote { " remote" } else { " local" })?;
        }
        for (word, is_set) in [
            (" blob", self.in_blob),
            (" unique", self.is_unique),
            (" conditional", self.is_conditional),
        ] {
            f.write_str(if is_set { word } else { "" })?;
        }
        if let Some(table) = &self.table {
            write!(f, " table {table}")?;
        }
        writeln!(f)?;
        writeln!(f, "    partition {}", self.partition)?;
        writeln!(f, "    row {}", self.row)?;
        if self.left_out.is_empty() {
            Ok(())
        } else {
            writeln!(f, "    without {}", self.left_out.join(" "))
        }
    }
}

impl fmt::Display for KeyTemplateShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.template)?;
        self.widths.iter().try_for_each(|width| match width {
            Some(width) => write!(f, " {width}"),
            None => f.write_str(" -"),
        })
    }
}

impl fmt::Display for StoredTypeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.edm)?;
        match self.values.as_str() {
            "" => Ok(()),
            values => write!(f, " as {values}"),
        }
    }
}

impl fmt::Display for PropertyShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.stored_type)?;
        for (word, is_set) in [(" optional", self.is_optional), (" default", self.has_default)] {
            f.write_str(if is_set { word } else { "" })?;
        }
        match self.within.as_deref() {
            Some("") => f.write_str(" within -")?,
            Some(prefix) => write!(f, " within {prefix}")?,
            None => {}
        }
        if self.part > 1 {
            write!(f, " part {}", self.part)?;
        }
        let Some(encryption) = &self.encryption else { return Ok(()) };
        f.write_str(" encrypted")?;
        if encryption.pad > 0 {
            write!(f, " pad {}", encryption.pad)?;
        }
        f.write_str(if encryption.hides_none { " hide_none" } else { "" })?;
        match &encryption.blind {
            Some((name, chars)) => write!(f, " blind {name} {chars}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for SeriesShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_split { "split" } else { "series" };
        write!(f, "{kind} {} {} to {} first {}", self.field, self.slots, self.last, self.first)
    }
}

impl fmt::Display for BlobFieldShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = if self.is_optional { " optional" } else { "" };
        write!(f, "blob {}{optional} with {}", self.name, self.others.join(" "))
    }
}
