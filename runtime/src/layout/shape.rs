//! Holds the layout of one version of an entity type as owned text, from a schema or from a file.

use crate::key::FamilyKind;

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

impl KeyTemplateShape {
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
