//! The values of a row whose names and types are in [`Columns`].
//!
//! ```text
//! present    a bit for each column, the lowest of the first byte for the first column
//! fixed      the values of fixed length of the columns that the row has, in the order of the columns
//! ends       u32 for each of its texts and bytes: where it ends among them           all numbers little endian
//! variable   the texts, in UTF-8, and bytes
//! ```

use bytes::BytesMut;

use super::{
    column_set::ColumnSet,
    columns::{Columns, RowColumn, Sizes, ValuePlace},
    read::corrupt_row_error,
};
use crate::{
    edm::ValueRef,
    error::{Error, Result},
};

/// The bytes of the end of a text or of bytes.
const END_BYTES: usize = 4;

/// The values of a row, borrowed, in the order of its columns. Reading takes them one after the other.
///
/// ```
/// use entable_core::{EdmType, ValueRef, row::{RowColumn, ColumnValues, Columns}};
///
/// let columns = vec![RowColumn::new("Age", EdmType::Int32), RowColumn::new("Name", EdmType::String)];
/// let Some(columns) = Columns::new(columns) else { return Ok(()) };
/// let bytes = [&[0b11][..], &34_i32.to_le_bytes(), &5_u32.to_le_bytes(), b"Jones"].concat();
/// let Some(values) = ColumnValues::parse(&columns, &bytes) else { return Ok(()) };
/// assert_eq!(values.get("Name")?, Some(ValueRef::String("Jones")));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ColumnValues<'v> {
    columns: &'v Columns,
    /// The sizes of all columns of the row, including columns that were read.
    sizes: Sizes,
    /// The columns that are not read yet.
    left: ColumnSet,
    fixed: &'v [u8],
    ends: &'v [u8],
    variable: &'v [u8],
    /// Where the next text or bytes begin.
    at: usize,
}

impl<'v> ColumnValues<'v> {
    /// Reads the values of a row. Returns `None` if the bytes do not fit the columns. Values are checked when they are
    /// read.
    #[inline]
    pub fn parse(columns: &'v Columns, bytes: &'v [u8]) -> Option<Self> {
        let (present, rest) = Self::split_present(columns, bytes)?;
        Self::parse_present(columns, present, rest)
    }

    /// Reads which columns a row has. Also returns the bytes after that. Returns `None` if no row can have them.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::{RowColumn, ColumnSet, ColumnValues, Columns}};
    /// let Some(columns) = Columns::new(vec![RowColumn::new("Age", EdmType::Int32)]) else { return };
    /// assert_eq!(ColumnValues::split_present(&columns, &[1, 34]), Some((columns.all(), &[34][..])));
    /// assert_eq!(ColumnValues::split_present(&columns, &[2]), None);
    /// ```
    #[inline]
    pub fn split_present<'b>(columns: &Columns, bytes: &'b [u8]) -> Option<(ColumnSet, &'b [u8])> {
        let (present, rest) = bytes.split_at_checked(columns.list().len().div_ceil(8))?;
        let present = ColumnSet::from_bytes(present);
        columns.allows(present).then_some((present, rest))
    }

    /// Reads the values of a row that has the columns `present`, from the bytes after these.
    ///
    /// ```
    /// # use entable_core::{EdmType, ValueRef, row::{RowColumn, ColumnValues, Columns}};
    /// let Some(columns) = Columns::new(vec![RowColumn::new("Yes", EdmType::Boolean)]) else { return Ok(()) };
    /// let values = ColumnValues::parse_present(&columns, columns.all(), &[1]);
    /// assert_eq!(values.map(|values| values.get("Yes")).transpose()?, Some(Some(ValueRef::Boolean(true))));
    /// assert!(ColumnValues::parse_present(&columns, columns.all(), &[1, 1]).is_none());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[inline]
    pub fn parse_present(
        columns: &'v Columns,
        present: ColumnSet,
        bytes: &'v [u8],
    ) -> Option<Self> {
        let values = Self::split(columns, present, bytes)?;
        let last_end = values.ends.last_chunk().map_or(0, |end| u32::from_le_bytes(*end));
        let is_whole = usize::try_from(last_end).is_ok_and(|end| end == values.variable.len());
        (is_whole && is_ascending(values.ends)).then_some(values)
    }

    /// Reads the values of a row in memory, whose bytes were made from values that fit the columns.
    #[inline]
    pub(super) fn of_row(columns: &'v Columns, bytes: &'v [u8]) -> Option<Self> {
        let (present, rest) = bytes.split_at_checked(columns.list().len().div_ceil(8))?;
        Self::split(columns, ColumnSet::from_bytes(present), rest)
    }

    #[inline]
    fn split(columns: &'v Columns, present: ColumnSet, bytes: &'v [u8]) -> Option<Self> {
        let sizes = columns.sizes_of(present);
        let (fixed, rest) = bytes.split_at_checked(sizes.fixed_bytes)?;
        let (ends, variable) = rest.split_at_checked(sizes.variable_count * END_BYTES)?;
        Some(Self { columns, sizes, left: present, fixed, ends, variable, at: 0 })
    }

    /// Takes the next value: its column, and its bytes. Returns `None` after the last one.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::{RowColumn, ColumnValues, Columns}};
    /// let Some(columns) = Columns::new(vec![RowColumn::new("Yes", EdmType::Boolean)]) else { return };
    /// let Some(mut values) = ColumnValues::parse(&columns, &[1, 0]) else { return };
    /// let first = values.take_next().map(|(column, value)| (column.name(), value));
    /// assert_eq!((first, values.take_next()), (Some(("Yes", &[0][..])), None));
    /// ```
    #[inline]
    pub fn take_next(&mut self) -> Option<(&'v RowColumn, &'v [u8])> {
        let position = self.left.first_position()?;
        self.left = self.left.without(position)?;
        self.take_at(position)
    }

    /// Takes the value of the column at `position`, the next that the row has. Leaves the set of columns as it is.
    #[inline(always)]
    fn take_at(&mut self, position: usize) -> Option<(&'v RowColumn, &'v [u8])> {
        let column = self.columns.list().get(position)?;
        let value = match column.place() {
            ValuePlace::Fixed(width) => {
                let (value, after) = self.fixed.split_at_checked(*width)?;
                self.fixed = after;
                value
            }
            ValuePlace::Variable => {
                let (end, after) = self.ends.split_first_chunk()?;
                let end = usize::try_from(u32::from_le_bytes(*end)).ok()?;
                let value = self.variable.get(self.at..end)?;
                (self.ends, self.at) = (after, end);
                value
            }
            ValuePlace::Constant(text) => text.as_bytes(),
        };
        Some((column, value))
    }

    /// Returns the columns that the row has and whose values are not taken yet.
    #[inline]
    pub const fn left(&self) -> ColumnSet {
        self.left
    }

    /// Returns the value of the property `name`, or `None` if the row has no such property.
    ///
    /// # Errors
    ///
    /// `is_corrupt` if the value is damaged.
    pub fn get(&self, name: &str) -> Result<Option<ValueRef<'v>>> {
        let mut positions = self.columns.positions_of_name(name.as_bytes());
        let Some(wanted) = positions.find(|position| self.left.contains(*position)) else {
            return Ok(None);
        };
        let Some(column) = self.columns.list().get(wanted) else { return Ok(None) };
        if let ValuePlace::Constant(text) = column.place() {
            return Ok(Some(ValueRef::String(text)));
        }
        let mut values = self.clone();
        let same = |(taken, _): &(&RowColumn, _)| std::ptr::eq(*taken, column);
        let value = std::iter::from_fn(|| values.take_next()).find(same);
        let value = value.and_then(|(_, value)| ValueRef::from_stored(column.edm(), value));
        value.map(Some).ok_or_else(damaged_value_error)
    }

    /// Puts each value into the slot of its name. `names` is the reader's own static array, whose order the slots have.
    /// Returns `false`, and changes nothing, if the columns have no slots for this reader.
    ///
    /// # Errors
    ///
    /// `is_corrupt` if a value in a slot is damaged.
    pub(super) fn fill_slots(
        mut self,
        names: &'static [&'static str],
        found: &mut [Option<ValueRef<'v>>],
    ) -> Result<bool> {
        let Some(slots) = self.columns.slots_of_reader(names) else { return Ok(false) };
        for position in self.left.iter() {
            let Some((column, value)) = self.take_at(position) else { break };
            let slot = slots.get(position).and_then(|slot| found.get_mut(usize::from(*slot)));
            if let Some(slot) = slot {
                let value = ValueRef::from_stored(column.edm(), value);
                *slot = Some(value.ok_or_else(damaged_value_error)?);
            }
        }
        Ok(true)
    }

    /// Returns the columns that the values are of.
    pub(super) const fn columns(&self) -> &'v Columns {
        self.columns
    }

    /// Returns the bytes that all properties take in a row that describes itself.
    pub(super) const fn described_bytes(&self) -> usize {
        self.sizes.head_bytes + self.sizes.fixed_bytes + self.variable.len()
    }

    /// Returns the number of bytes of the selected values, in the form that [`parse`](Self::parse) reads.
    pub(super) fn selected_bytes(&self, selected: ColumnSet) -> usize {
        let present_bytes = self.columns.list().len().div_ceil(8);
        if self.left.is_subset_of(selected) {
            let variable = self.variable.len() - self.at;
            return present_bytes + self.fixed.len() + self.ends.len() + variable;
        }
        let sizes = self.each(selected).map(|(place, value)| match place {
            ValuePlace::Fixed(width) => *width,
            ValuePlace::Variable => END_BYTES + value.len(),
            ValuePlace::Constant(_) => 0,
        });
        present_bytes + sizes.sum::<usize>()
    }

    /// Appends the selected values, in the form that [`parse`](Self::parse) reads.
    pub(super) fn put_selected(&self, selected: ColumnSet, out: &mut BytesMut) {
        let present = self.left.intersection(selected);
        let present_bytes = self.columns.list().len().div_ceil(8);
        out.extend(present.to_bytes().iter().take(present_bytes));
        // Otherwise the ends count from a text that was taken.
        if present == self.left && self.at == 0 {
            out.extend_from_slice(self.fixed);
            out.extend_from_slice(self.ends);
            out.extend_from_slice(self.variable);
            return;
        }
        let is_variable = |(place, _): &(&ValuePlace, &[u8])| **place == ValuePlace::Variable;
        let fixed = self.each(present).filter(|(place, _)| matches!(place, ValuePlace::Fixed(_)));
        fixed.for_each(|(_, value)| out.extend_from_slice(value));
        let mut end = 0;
        for (_, value) in self.each(present).filter(is_variable) {
            end += value.len();
            // It is not beyond the end of the whole row's values, which fits.
            out.extend_from_slice(&u32::try_from(end).unwrap_or(u32::MAX).to_le_bytes());
        }
        let variable = self.each(present).filter(is_variable);
        variable.for_each(|(_, value)| out.extend_from_slice(value));
    }

    /// Iterates over the selected values, each with the place of its column.
    fn each(&self, selected: ColumnSet) -> impl Iterator<Item = (&'v ValuePlace, &'v [u8])> {
        let (positions, mut values) = (self.left.iter(), self.clone());
        let taken =
            positions.filter_map(move |position| Some((position, values.take_at(position)?)));
        let selected = taken.filter(move |(position, _)| selected.contains(*position));
        selected.map(|(_, (column, value))| (column.place(), value))
    }
}

/// Returns whether no text or bytes end before they begin.
#[inline]
fn is_ascending(ends: &[u8]) -> bool {
    let (ends, _) = ends.as_chunks();
    ends.is_sorted_by_key(|end| u32::from_le_bytes(*end))
}

/// Returns the error of a value that does not fit its column.
#[cold]
fn damaged_value_error() -> Error {
    corrupt_row_error("a value does not fit its type")
}
