//! Stored rows: their bytes and their checksums, by a layout or self-described.

use entable_core::{
    error::Result,
    filter::Filter,
    key::sort_key_from_key_bytes,
    row::{ColumnSet, Row, RowBuffer, RowBytes},
};

use crate::{dictionary::Dictionary, layout_row::LayoutRow, row_layout::RowLayout};

/// The first byte of a row with its own names, types and keys. In memory, a row that describes itself has the same bytes.
const SELF_DESCRIBED: u8 = 1;
/// The first byte of a row whose properties are in the order of its layout.
pub(crate) const BY_LAYOUT: u8 = 2;
/// The first byte of a row whose properties are in another order, which it has.
pub(crate) const IN_OWN_ORDER: u8 = 3;

/// Number of bytes of the checksum after a row.
const CHECKSUM_BYTES: usize = 4;

/// The beginning of the checksums of a table's rows, so that a row of another table is damaged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSeed(u32);

impl TableSeed {
    pub(crate) fn of_table(id: u64) -> Self {
        Self(crc32fast::hash(&id.to_le_bytes()))
    }

    /// Returns the checksum of a row. It depends on all that gives the bytes a meaning, so a row that is moved to
    /// another address or table, or read by another layout, is damaged.
    // The engine has a checksum for each page, but compares it only when it repairs a file.
    pub(crate) fn checksum(
        self,
        layout: Option<&RowLayout>,
        address: &[u8],
        row: &[u8],
    ) -> [u8; CHECKSUM_BYTES] {
        let layout = layout.map_or(0, |layout| layout.checksum);
        // With its length, so that no end of an address counts as the beginning of a row. An address has at most 4 KiB.
        let length = u32::try_from(address.len()).unwrap_or(u32::MAX);
        // Both numbers at once, little endian, since few bytes take as long as many.
        let head = u64::from(length) << 32 | u64::from(layout);
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(&head.to_le_bytes());
        hasher.update(address);
        hasher.update(row);
        hasher.finalize().to_le_bytes()
    }
}

/// Why a stored row cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowDamage {
    /// The file has no sound layout with the id in the row.
    Layout(u32),
    /// The checksum is wrong, or the row does not fit its layout or its address.
    Row,
}

/// A stored row whose checksum and parts were checked.
pub(crate) enum StoredRow<'v> {
    ByLayout(LayoutRow<'v>),
    SelfDescribed(RowBytes<'v>),
}

impl<'v> StoredRow<'v> {
    /// Reads the value at an address of a table.
    // Inlined, as the functions that it calls: the row has many parts, and would be copied on each way back.
    #[inline]
    pub(crate) fn open(
        table: TableSeed,
        layouts: &'v Dictionary,
        address: &'v [u8],
        value: &'v [u8],
    ) -> Result<Self, RowDamage> {
        let (row, found) = value.split_last_chunk::<CHECKSUM_BYTES>().ok_or(RowDamage::Row)?;
        let layout = layout_of(layouts, row)?;
        if table.checksum(layout, address, row) != *found {
            return Err(RowDamage::Row);
        }
        Self::open_checked(layout, address, row).ok_or(RowDamage::Row)
    }

    /// Reads a row whose checksum was compared. Returns `None` if it does not fit its layout or its address.
    #[inline]
    pub(crate) fn open_checked(
        layout: Option<&'v RowLayout>,
        address: &'v [u8],
        row: &'v [u8],
    ) -> Option<Self> {
        let Some(layout) = layout else {
            let row = RowBytes::new(row).ok()?;
            let is_sound = has_address(address, row) && row.check_distinct_names().is_ok();
            return is_sound.then_some(Self::SelfDescribed(row));
        };
        let (format, rest) = row.split_first()?;
        let (_, rest) = take_id(rest)?;
        LayoutRow::parse(layout, address, *format == IN_OWN_ORDER, rest).map(Self::ByLayout)
    }

    /// Returns the row's layout, or `None` if it describes itself.
    pub(crate) const fn layout(&self) -> Option<&'v RowLayout> {
        match self {
            Self::ByLayout(row) => Some(row.layout),
            Self::SelfDescribed(_) => None,
        }
    }

    /// Returns whether the row matches a filter. Nothing of it is copied.
    ///
    /// # Errors
    ///
    /// `is_corrupt` if the row is damaged, and the errors of [`Filter::matches`].
    pub(crate) fn matches(&self, filter: &Filter) -> Result<bool> {
        match self {
            Self::ByLayout(row) => row.matches(filter),
            Self::SelfDescribed(row) => filter.matches_bytes(*row),
        }
    }

    /// Copies the row into memory.
    pub(crate) fn to_row(&self) -> Result<Row, RowDamage> {
        RowCopier::of_row(None).copy(self)
    }
}

/// Copies stored rows into memory, with the properties that a read selects.
pub(crate) struct RowCopier<'n> {
    /// The names of the selected properties. `None` selects all.
    names: Option<&'n [String]>,
    /// The columns that the names select in the layout of the last row, with its id.
    last: Option<(u32, ColumnSet)>,
    memory: RowBuffer,
}

impl<'n> RowCopier<'n> {
    /// Copies one row.
    pub(crate) fn of_row(names: Option<&'n [String]>) -> Self {
        Self { names, last: None, memory: RowBuffer::single() }
    }

    /// Copies the rows of a page.
    pub(crate) fn of_page(names: Option<&'n [String]>) -> Self {
        Self { names, last: None, memory: RowBuffer::shared() }
    }

    #[inline]
    pub(crate) fn copy(&mut self, row: &StoredRow<'_>) -> Result<Row, RowDamage> {
        let row = match (row, self.names) {
            (StoredRow::ByLayout(row), None) => {
                row.to_row(row.layout.columns.all(), &mut self.memory)
            }
            (StoredRow::ByLayout(row), Some(names)) => {
                row.to_row(self.columns_of(row.layout, names), &mut self.memory)
            }
            (StoredRow::SelfDescribed(row), None) => Some(Row::from_row_bytes(*row)),
            (StoredRow::SelfDescribed(row), Some(names)) => {
                Row::from_selected_properties(*row, names).ok()
            }
        };
        row.ok_or(RowDamage::Row)
    }

    /// Looks the names up in a layout, once for all rows that follow each other and have it.
    fn columns_of(&mut self, layout: &RowLayout, names: &[String]) -> ColumnSet {
        if let Some((id, columns)) = self.last
            && id == layout.id
        {
            return columns;
        }
        let positions =
            names.iter().flat_map(|name| layout.columns.positions_of_name(name.as_bytes()));
        let columns = positions.fold(ColumnSet::default(), ColumnSet::with);
        self.last = Some((layout.id, columns));
        columns
    }
}

/// Returns the layout of a row, or `None` for a self-described row. Fails if the file has no layout with the row's id.
fn layout_of<'d>(layouts: &'d Dictionary, row: &[u8]) -> Result<Option<&'d RowLayout>, RowDamage> {
    match row.split_first() {
        Some((&SELF_DESCRIBED, _)) => Ok(None),
        Some((&(BY_LAYOUT | IN_OWN_ORDER), rest)) => {
            let (id, _) = take_id(rest).ok_or(RowDamage::Row)?;
            layouts.get(id).map(|layout| Some(&**layout)).ok_or(RowDamage::Layout(id))
        }
        _ => Err(RowDamage::Row),
    }
}

/// Returns whether the keys in a self-described row are those that the address encodes.
fn has_address(address: &[u8], row: RowBytes<'_>) -> bool {
    let Some((partition_key, row_key)) = row.key_bytes() else { return false };
    // A zero byte separates the keys.
    let Some((partition, rest)) = address.split_at_checked(partition_key.len()) else {
        return false;
    };
    let [0, rest @ ..] = rest else { return false };
    // Fast path: nearly all keys consist of characters that an address contains unchanged.
    (partition == partition_key && rest == row_key)
        || *address == *sort_key_from_key_bytes(partition_key, row_key)
}

/// Takes the id of a layout, an unsigned LEB128: seven bits in each byte, the lowest first, and the highest bit set in
/// every byte but the last.
fn take_id(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut id = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        id |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(id).ok()?, bytes.get(at + 1..)?));
        }
    }
    None
}

pub(crate) fn put_id(mut id: u32, out: &mut Vec<u8>) {
    while id >= 0x80 {
        out.push(low_bits(id) | 0x80);
        id >>= 7;
    }
    out.push(low_bits(id));
}

/// Returns the seven lowest bits of an id.
const fn low_bits(id: u32) -> u8 {
    let [lowest, ..] = id.to_le_bytes();
    lowest & 0x7f
}

/// Writes the value of the same row in another table.
pub(crate) fn put_value_for_table(
    table: TableSeed,
    layout: Option<&RowLayout>,
    address: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let row = value.get(..value.len().saturating_sub(CHECKSUM_BYTES)).unwrap_or_default();
    out.extend_from_slice(row);
    out.extend_from_slice(&table.checksum(layout, address, row));
}
