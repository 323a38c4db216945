//! Layouts: the names and types of the properties of many rows, which the file stores once.

use std::{collections::HashSet, str::from_utf8};

use entable_core::{edm::EdmType, row::PropertyHead};

use crate::{
    column_set::{ColumnSet, MOST_COLUMNS},
    row_properties::{Property, RowProperties},
};

/// The version of the format of a layout.
const VERSION: u8 = 1;
/// The type of a column whose text the layout has for all rows.
const CONSTANT: u8 = 9;

/// Where a row has the value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Among the values of fixed length, in this number of bytes.
    Fixed(usize),
    /// Among the texts and bytes, with its end.
    Variable,
    /// In no row: the layout has the text.
    Constant(Box<str>),
}

/// A property that rows of a layout may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) head: PropertyHead,
    pub(crate) slot: Slot,
}

impl Column {
    /// Returns the column of a property, whose name and type are those of a row. Returns `None` for a name that is
    /// not UTF-8.
    pub(crate) fn of_property(property: &Property<'_>, entity_type: Option<&str>) -> Option<Self> {
        let constant = entity_type.filter(|_| property.is_entity_type());
        Self::new(from_utf8(property.name).ok()?, property.edm, constant)
    }

    fn new(name: &str, edm: EdmType, constant: Option<&str>) -> Option<Self> {
        let slot = match (constant, edm.fixed_width()) {
            (Some(text), _) => Slot::Constant(text.into()),
            (None, Some(width)) => Slot::Fixed(width),
            (None, None) => Slot::Variable,
        };
        Some(Self { head: PropertyHead::new(name, edm)?, slot })
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.head.name()
    }

    /// Returns whether rows of the layout can have the value of the property.
    fn accepts(&self, property: &Property<'_>) -> bool {
        self.head.edm() == property.edm
            && match &self.slot {
                Slot::Constant(text) => text.as_bytes() == property.value,
                Slot::Fixed(_) | Slot::Variable => true,
            }
    }

    fn put_bytes(&self, out: &mut Vec<u8>) {
        let constant = match &self.slot {
            Slot::Constant(text) => Some(text),
            Slot::Fixed(_) | Slot::Variable => None,
        };
        out.push(if constant.is_some() { CONSTANT } else { self.head.edm() as u8 });
        for text in [Some(self.name()), constant.map(|text| text.as_bytes())].into_iter().flatten()
        {
            // A name and the text of an entity type are checked to be shorter before a column is made of them.
            out.extend_from_slice(&u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
            out.extend_from_slice(text);
        }
    }

    fn decode(rest: &mut &[u8]) -> Option<Self> {
        let ([tag], after) = rest.split_first_chunk()?;
        *rest = after;
        let name = take_text(rest)?;
        if *tag != CONSTANT {
            return Self::new(name, EdmType::from_tag(*tag)?, None);
        }
        Self::new(name, EdmType::String, Some(take_text(rest)?))
    }
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
    /// The layout's own checksum, which those of its rows depend on.
    pub(crate) checksum: u32,
    pub(crate) columns: Box<[Column]>,
    /// All columns.
    pub(crate) all: ColumnSet,
    /// The bytes of the values of fixed length of a row that has all properties.
    pub(crate) fixed_bytes: usize,
    /// The number of texts and bytes of a row that has all properties.
    pub(crate) variable_count: usize,
    /// The bytes that a row in memory with all properties takes for everything but the values that the stored row has.
    pub(crate) described_bytes: usize,
}

impl RowLayout {
    /// Returns a layout. `None` if two columns have one name, or if there are too many.
    pub(crate) fn new(id: u32, columns: Vec<Column>) -> Option<Self> {
        let mut names = HashSet::with_capacity(columns.len());
        if columns.len() > MOST_COLUMNS || !columns.iter().all(|column| names.insert(column.name()))
        {
            return None;
        }
        let mut layout = Self {
            id,
            checksum: 0,
            all: ColumnSet::first(columns.len()),
            fixed_bytes: 0,
            variable_count: 0,
            described_bytes: 0,
            columns: columns.into(),
        };
        for Column { head, slot } in &layout.columns {
            let own = match slot {
                Slot::Fixed(width) => (*width, 0, 0),
                Slot::Variable => (0, 1, 0),
                Slot::Constant(text) => (0, 0, text.len()),
            };
            let (fixed_bytes, variable_count, constant_bytes) = own;
            layout.fixed_bytes += fixed_bytes;
            layout.variable_count += variable_count;
            layout.described_bytes += head.bytes_with_value(constant_bytes);
        }
        layout.checksum = checksum(id, &layout.body());
        Some(layout)
    }

    fn body(&self) -> Vec<u8> {
        let mut body = vec![VERSION];
        // `new` refuses more columns than fit.
        let count = u16::try_from(self.columns.len()).unwrap_or_default();
        body.extend_from_slice(&count.to_le_bytes());
        self.columns.iter().for_each(|column| column.put_bytes(&mut body));
        body
    }

    /// Returns the bytes of the layout, as the file has them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.body();
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Reads the layout with the id `id` from its bytes. Returns `None` if they are damaged, or belong to another id.
    pub(crate) fn decode(id: u32, bytes: &[u8]) -> Option<Self> {
        let (body, found) = bytes.split_last_chunk()?;
        if checksum(id, body) != u32::from_le_bytes(*found) {
            return None;
        }
        Self::decode_body(id, body)
    }

    /// Reads a layout from the bytes in front of its checksum.
    pub(crate) fn decode_body(id: u32, body: &[u8]) -> Option<Self> {
        let ([VERSION], rest) = body.split_first_chunk()? else { return None };
        let (count, mut rest) = rest.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes(*count));
        // Not allocated from the number in the file: a layout of too many columns is refused when they are read.
        let columns = (0..count).map(|_| Column::decode(&mut rest)).collect::<Option<Vec<_>>>()?;
        let layout = Self::new(id, columns)?;
        rest.is_empty().then_some(layout)
    }

    /// Returns the constant text of `EntityType`, or `None` if rows of the layout have their own or none.
    pub(crate) fn entity_type(&self) -> Option<&str> {
        self.columns.iter().find_map(|column| match &column.slot {
            Slot::Constant(text) => Some(&**text),
            Slot::Fixed(_) | Slot::Variable => None,
        })
    }

    /// Returns the position of the column `name`. Most lookups follow the order of the columns, so the search begins at
    /// the position `from`.
    pub(crate) fn find(&self, name: &[u8], from: usize) -> Option<usize> {
        let has_name = |column: &Column| column.name() == name;
        let (before, after) = self.columns.split_at_checked(from)?;
        let found = after.iter().position(has_name).map(|position| from + position);
        found.or_else(|| before.iter().position(has_name))
    }

    /// Returns the positions of a row's properties, in the row's order. `None` if the row has a property that the layout
    /// has not, or has one twice.
    pub(crate) fn positions_of(&self, row: &RowProperties<'_>) -> Option<Vec<usize>> {
        let (mut positions, mut seen) = (Vec::with_capacity(row.list.len()), ColumnSet::default());
        let mut next = 0;
        for property in &row.list {
            let position = self.find(property.name, next)?;
            if seen.contains(position) || !self.columns.get(position)?.accepts(property) {
                return None;
            }
            seen = seen.with(position);
            positions.push(position);
            next = position + 1;
        }
        Some(positions)
    }

    /// Returns the columns of the layout and of a row together. `None` if one name has two types, or if a row without
    /// `EntityType` has few of the layout's properties: then the two are of different kinds.
    pub(crate) fn extended_by(&self, row: &RowProperties<'_>) -> Option<Vec<Column>> {
        let mut columns = self.columns.to_vec();
        let (mut next, mut common) = (0, 0);
        for property in &row.list {
            let known = columns.iter().position(|column| column.name() == property.name);
            if let Some(position) = known {
                columns.get(position).filter(|column| column.accepts(property))?;
                next = position + 1;
                common += 1;
            } else {
                // A new property gets its place behind the one that it follows in the row.
                columns.insert(next, Column::of_property(property, None)?);
                next += 1;
            }
        }
        let is_of_its_kind = self.entity_type().is_some() || 2 * common >= row.list.len();
        (is_of_its_kind && columns.len() <= MOST_COLUMNS).then_some(columns)
    }
}

/// Returns the checksum of a layout.
pub(crate) fn checksum(id: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}
