//! Layouts. A layout holds the property names and types that many rows share, so the file stores them only once.

use std::{collections::HashMap, str::from_utf8};

use entable_core::{edm::EdmType, row::PropertyHead};

use crate::{
    column_set::{ColumnSet, MAX_COLUMNS},
    row_properties::{ENTITY_TYPE, Property, RowProperties},
};

/// The version of the format of a layout.
const VERSION: u8 = 1;
/// The type of the column whose text the layout has for all rows.
const CONSTANT: u8 = 9;

/// Which rows share layouts with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'k> {
    /// The rows with this text as their `EntityType`, in all tables. Their layouts have it for them.
    EntityType(&'k str),
    /// The rows of the table with this name that have no `EntityType`, or one that is stored in each row like any other
    /// property.
    Table(&'k str),
}

impl<'k> Kind<'k> {
    const fn tag_and_text(self) -> (u8, &'k str) {
        match self {
            Self::EntityType(text) => (1, text),
            Self::Table(name) => (2, name),
        }
    }

    fn from_tag(tag: u8, text: &'k str) -> Option<Self> {
        match tag {
            1 => Some(Self::EntityType(text)),
            2 => Some(Self::Table(text)),
            _ => None,
        }
    }

    /// Returns the text that the layouts have for their rows.
    const fn constant(self) -> Option<&'k str> {
        match self {
            Self::EntityType(text) => Some(text),
            Self::Table(_) => None,
        }
    }
}

/// Where the value of a column is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValuePlace {
    /// Among the values of fixed length, in this number of bytes.
    Fixed(usize),
    /// Among the texts and bytes, with its end.
    Variable,
    /// In the layout, which holds the text for all its rows.
    Constant(Box<str>),
}

/// A property that rows of a layout may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) head: PropertyHead,
    pub(crate) place: ValuePlace,
}

impl Column {
    /// Returns the column of a property of a row. Returns `None` for a name that is not UTF-8.
    pub(crate) fn of_property(property: &Property<'_>, kind: Kind<'_>) -> Option<Self> {
        let constant = kind.constant().filter(|_| property.is_entity_type());
        Self::new(from_utf8(property.name).ok()?, property.edm, constant)
    }

    fn new(name: &str, edm: EdmType, constant: Option<&str>) -> Option<Self> {
        let place = match (constant, edm.fixed_width()) {
            (Some(text), _) => ValuePlace::Constant(text.into()),
            (None, Some(width)) => ValuePlace::Fixed(width),
            (None, None) => ValuePlace::Variable,
        };
        Some(Self { head: PropertyHead::new(name, edm)?, place })
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.head.name()
    }

    /// Returns whether two columns have the values of the same property.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.head == other.head
    }

    fn is_of_property(&self, property: &Property<'_>) -> bool {
        self.head.edm() == property.edm && self.name() == property.name
    }

    const fn is_constant(&self) -> bool {
        matches!(self.place, ValuePlace::Constant(_))
    }

    fn put_bytes(&self, out: &mut Vec<u8>) {
        out.push(if self.is_constant() { CONSTANT } else { self.head.edm() as u8 });
        put_text(self.name(), out);
    }

    fn decode(kind: Kind<'_>, rest: &mut &[u8]) -> Option<Self> {
        let ([tag], after) = rest.split_first_chunk()?;
        *rest = after;
        let name = take_text(rest)?;
        if *tag == CONSTANT {
            let constant = kind.constant().filter(|_| name.as_bytes() == ENTITY_TYPE)?;
            return Self::new(name, EdmType::String, Some(constant));
        }
        Self::new(name, EdmType::from_tag(*tag)?, None)
    }
}

/// Writes the length of a text, then the text. It is a name of a property or table, or an `EntityType`, which all fit a
/// `u16`.
fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    out.extend_from_slice(text);
}

fn take_text<'b>(rest: &mut &'b [u8]) -> Option<&'b str> {
    let (length, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(u16::from_le_bytes(*length).into())?;
    *rest = after;
    from_utf8(text).ok()
}

/// The columns of many rows. A layout never changes.
#[derive(Debug)]
pub(crate) struct RowLayout {
    pub(crate) id: u32,
    /// The checksum of the layout. The checksums of its rows depend on it.
    pub(crate) checksum: u32,
    /// The layout as the file has it, with its checksum.
    pub(crate) bytes: Box<[u8]>,
    pub(crate) columns: Box<[Column]>,
    /// The set of all columns.
    pub(crate) all: ColumnSet,
    /// For each name with several types, its columns. A row has one of them at most.
    same_names: Box<[ColumnSet]>,
    /// The bytes of the values of fixed length of a row that has all properties.
    pub(crate) fixed_bytes: usize,
    /// The number of columns of type String and Binary.
    pub(crate) variable_count: usize,
    /// The bytes that a row in memory with all properties takes for everything but the values that the stored row has.
    pub(crate) described_bytes: usize,
}

impl RowLayout {
    /// Makes a layout. Returns `None` if it has too many columns, one of them twice, or not its kind's text exactly once.
    pub(crate) fn new(id: u32, kind: Kind<'_>, columns: Vec<Column>) -> Option<Self> {
        let constants = columns.iter().filter(|column| column.is_constant()).count();
        if columns.len() > MAX_COLUMNS || constants != usize::from(kind.constant().is_some()) {
            return None;
        }
        let body = encode_body(kind, &columns);
        let checksum = checksum(id, &body);
        let mut layout = Self {
            id,
            checksum,
            bytes: [&*body, &checksum.to_le_bytes()].concat().into(),
            all: ColumnSet::first(columns.len()),
            same_names: same_names(&columns)?,
            fixed_bytes: 0,
            variable_count: 0,
            described_bytes: 0,
            columns: columns.into(),
        };
        for Column { head, place } in &layout.columns {
            let own = match place {
                ValuePlace::Fixed(width) => (*width, 0, 0),
                ValuePlace::Variable => (0, 1, 0),
                ValuePlace::Constant(text) => (0, 0, text.len()),
            };
            let (fixed_bytes, variable_count, constant_bytes) = own;
            layout.fixed_bytes += fixed_bytes;
            layout.variable_count += variable_count;
            layout.described_bytes += head.bytes_with_value(constant_bytes);
        }
        Some(layout)
    }

    /// Reads the layout with the id `id` from its bytes, and returns it with its kind. Returns `None` if the bytes are
    /// damaged, or belong to another id.
    pub(crate) fn decode(id: u32, bytes: &[u8]) -> Option<(Self, Kind<'_>)> {
        let (body, found) = bytes.split_last_chunk()?;
        if checksum(id, body) != u32::from_le_bytes(*found) {
            return None;
        }
        Self::decode_body(id, body)
    }

    /// Reads a layout from the bytes in front of its checksum.
    pub(crate) fn decode_body(id: u32, body: &[u8]) -> Option<(Self, Kind<'_>)> {
        let ([VERSION, tag], mut rest) = body.split_first_chunk()? else { return None };
        let kind = Kind::from_tag(*tag, take_text(&mut rest)?)?;
        let (count, mut rest) = rest.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes(*count));
        if count > MAX_COLUMNS {
            return None;
        }
        let columns = (0..count).map(|_| Column::decode(kind, &mut rest));
        let layout = Self::new(id, kind, columns.collect::<Option<Vec<_>>>()?)?;
        rest.is_empty().then_some((layout, kind))
    }

    /// Returns the number of bytes of a layout whose columns have names of these lengths.
    pub(crate) fn bytes_of(kind: Kind<'_>, names: impl Iterator<Item = usize>) -> usize {
        let (_, text) = kind.tag_and_text();
        let columns = names.map(|name| 1 + 2 + name).sum::<usize>();
        1 + 1 + (2 + text.len()) + 2 + columns + size_of::<u32>()
    }

    /// Returns whether a row can have exactly these columns.
    pub(crate) fn allows(&self, present: ColumnSet) -> bool {
        let is_single = |columns: &ColumnSet| present.intersection(*columns).len() <= 1;
        present.is_subset_of(self.all) && self.same_names.iter().all(is_single)
    }

    /// Returns the positions of the columns with a name: one for each of its types.
    pub(crate) fn positions_of_name(&self, name: &[u8]) -> impl Iterator<Item = usize> {
        let columns = self.columns.iter().enumerate();
        columns.filter(move |(_, column)| column.name() == name).map(|(position, _)| position)
    }

    /// Returns the position of the column of a property. Most lookups follow the order of the columns, so the search
    /// begins at the position `from`.
    fn find(&self, property: &Property<'_>, from: usize) -> Option<usize> {
        let (before, after) = self.columns.split_at_checked(from)?;
        let found = after.iter().position(|column| column.is_of_property(property));
        let found = found.map(|position| from + position);
        found.or_else(|| before.iter().position(|column| column.is_of_property(property)))
    }

    /// Returns the positions of a row's properties, in the row's order. `None` if the row has a property that the layout
    /// has not, or has one twice.
    pub(crate) fn positions_of(&self, row: &RowProperties<'_>) -> Option<Vec<usize>> {
        let (mut positions, mut present) =
            (Vec::with_capacity(row.list.len()), ColumnSet::default());
        let mut next = 0;
        for property in &row.list {
            let position = self.find(property, next)?;
            present = present.with(position);
            positions.push(position);
            next = position + 1;
        }
        let is_once_each = present.len() == positions.len() && self.allows(present);
        is_once_each.then_some(positions)
    }
}

/// Returns, for each name with several types, the set of its columns. `None` if a column is there twice.
fn same_names(columns: &[Column]) -> Option<Box<[ColumnSet]>> {
    let mut by_name: HashMap<&[u8], ColumnSet> = HashMap::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        let same = by_name.entry(column.name()).or_default();
        let has_type = |other: &Column| other.head.edm() == column.head.edm();
        if same.iter().filter_map(|other| columns.get(other)).any(has_type) {
            return None;
        }
        *same = same.with(position);
    }
    Some(by_name.into_values().filter(|same| same.len() > 1).collect())
}

fn encode_body(kind: Kind<'_>, columns: &[Column]) -> Vec<u8> {
    let (tag, text) = kind.tag_and_text();
    let mut body = vec![VERSION, tag];
    put_text(text.as_bytes(), &mut body);
    // There are at most 255.
    let count = u16::try_from(columns.len()).unwrap_or_default();
    body.extend_from_slice(&count.to_le_bytes());
    columns.iter().for_each(|column| column.put_bytes(&mut body));
    body
}

/// Returns the checksum of a layout.
pub(crate) fn checksum(id: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}
