//! Layouts. A layout holds the property names and types that many rows share, so the file stores them only once.

use std::{str::from_utf8, sync::Arc};

use entable_core::{
    edm::EdmType,
    row::{ColumnSet, Columns, MAX_COLUMNS, RowColumn, ValuePlace},
};

use crate::row_properties::{ENTITY_TYPE, Property, RowProperties};

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

/// Returns the column of a property of a row. Returns `None` for a name that is not UTF-8.
pub(crate) fn column_of_property(property: &Property<'_>, kind: Kind<'_>) -> Option<RowColumn> {
    let name = from_utf8(property.name).ok()?;
    Some(match kind.constant().filter(|_| property.is_entity_type()) {
        Some(text) => RowColumn::constant(name, text),
        None => RowColumn::new(name, property.edm),
    })
}

fn is_of_property(column: &RowColumn, property: &Property<'_>) -> bool {
    column.edm() == property.edm && column.name().as_bytes() == property.name
}

fn is_constant(column: &RowColumn) -> bool {
    matches!(column.place(), ValuePlace::Constant(_))
}

fn put_column(column: &RowColumn, out: &mut Vec<u8>) {
    out.push(if is_constant(column) { CONSTANT } else { column.edm() as u8 });
    put_text(column.name().as_bytes(), out);
}

fn take_column(kind: Kind<'_>, rest: &mut &[u8]) -> Option<RowColumn> {
    let ([tag], after) = rest.split_first_chunk()?;
    *rest = after;
    let name = take_text(rest)?;
    if *tag == CONSTANT {
        let constant = kind.constant().filter(|_| name.as_bytes() == ENTITY_TYPE)?;
        return Some(RowColumn::constant(name, constant));
    }
    Some(RowColumn::new(name, EdmType::from_tag(*tag)?))
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
    pub(crate) columns: Arc<Columns>,
}

impl RowLayout {
    /// Makes a layout. Returns `None` if it has too many columns, one of them twice, or not its kind's text exactly once.
    pub(crate) fn new(id: u32, kind: Kind<'_>, columns: Vec<RowColumn>) -> Option<Self> {
        let constants = columns.iter().filter(|column| is_constant(column)).count();
        if constants != usize::from(kind.constant().is_some()) {
            return None;
        }
        let body = encode_body(kind, &columns);
        let checksum = checksum(id, &body);
        let bytes = [&*body, &checksum.to_le_bytes()].concat().into();
        Some(Self { id, checksum, bytes, columns: Arc::new(Columns::new(columns)?) })
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
        let columns = (0..count).map(|_| take_column(kind, &mut rest));
        let layout = Self::new(id, kind, columns.collect::<Option<Vec<_>>>()?)?;
        rest.is_empty().then_some((layout, kind))
    }

    /// Returns the number of bytes of a layout whose columns have names of these lengths.
    pub(crate) fn bytes_of(kind: Kind<'_>, names: impl Iterator<Item = usize>) -> usize {
        let (_, text) = kind.tag_and_text();
        let columns = names.map(|name| 1 + 2 + name).sum::<usize>();
        1 + 1 + (2 + text.len()) + 2 + columns + size_of::<u32>()
    }

    /// Returns the position of the column of a property. Most lookups follow the order of the columns, so the search
    /// begins at the position `from`.
    fn find(&self, property: &Property<'_>, from: usize) -> Option<usize> {
        let (before, after) = self.columns.list().split_at_checked(from)?;
        let found = after.iter().position(|column| is_of_property(column, property));
        let found = found.map(|position| from + position);
        found.or_else(|| before.iter().position(|column| is_of_property(column, property)))
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
        let is_once_each = present.len() == positions.len() && self.columns.allows(present);
        is_once_each.then_some(positions)
    }
}

fn encode_body(kind: Kind<'_>, columns: &[RowColumn]) -> Vec<u8> {
    let (tag, text) = kind.tag_and_text();
    let mut body = vec![VERSION, tag];
    put_text(text.as_bytes(), &mut body);
    // There are at most 255.
    let count = u16::try_from(columns.len()).unwrap_or_default();
    body.extend_from_slice(&count.to_le_bytes());
    columns.iter().for_each(|column| put_column(column, &mut body));
    body
}

/// Returns the checksum of a layout.
pub(crate) fn checksum(id: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}
