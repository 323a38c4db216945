//! The values of a row whose names and types are in [`Columns`].
//!
//! ```text
//! present    a bit for each column, the lowest of the first byte for the first column
//! fixed      the values of fixed length of the columns that the row has, in the order of the columns
//! ends       u32 for each of its texts and bytes: where it ends among them           all numbers little endian
//! variable   the texts, in UTF-8, and bytes
//! ```

use std::str::from_utf8;

use bytes::BytesMut;

use super::{
    column_set::ColumnSet,
    columns::{Columns, RowColumn, Sizes, ValuePlace},
    read::corrupt_row_error,
};
use crate::{
    edm::{EdmType, ValueRef},
    error::{Error, Result},
};

/// The bytes of the end of a text or of bytes.
const END_BYTES: usize = 4;

/// The most bytes of texts that a reader checks together, before it looks which of them it needs. To begin a check costs as
/// much as to check some twenty bytes.
const CHECKED_TOGETHER: usize = 512;

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
    /// The bytes of all values of the row, including values that were taken.
    all: &'v [u8],
    rest: UntakenValues<'v>,
}

/// The bytes of values that are not taken yet.
#[derive(Debug, Clone, Copy)]
struct UntakenValues<'v> {
    fixed: &'v [u8],
    ends: &'v [u8],
    /// All texts and bytes of the row, one after the other.
    variable: &'v [u8],
    /// Where the next text or bytes begin.
    at: usize,
}

impl<'v> UntakenValues<'v> {
    /// Takes the next value, which is of this column.
    #[inline(always)]
    fn take(&mut self, column: &'v RowColumn) -> Option<&'v [u8]> {
        Some(match column.place() {
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
        })
    }

    /// Returns the texts and bytes of a small row as one text, if it is valid. Each text is then valid too, if it begins and
    /// ends between characters.
    #[inline]
    fn check_texts_together(&self) -> Option<&'v str> {
        let is_short = self.variable.len() <= CHECKED_TOGETHER;
        if is_short { from_utf8(self.variable).ok() } else { None }
    }
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
        let UntakenValues { ends, variable, .. } = values.rest;
        let last_end = ends.last_chunk().map_or(0, |end| u32::from_le_bytes(*end));
        let is_whole = usize::try_from(last_end).is_ok_and(|end| end == variable.len());
        (is_whole && is_ascending(ends)).then_some(values)
    }

    /// Reads the values of a row in memory, whose bytes were made from values that fit the columns.
    #[inline]
    pub(super) fn of_row(columns: &'v Columns, bytes: &'v [u8]) -> Option<Self> {
        let (present, rest) = bytes.split_at_checked(columns.list().len().div_ceil(8))?;
        Self::split(columns, ColumnSet::from_bytes(present), rest)
    }

    /// Returns whether a row in memory has the column at `position`, from the bytes of its values.
    #[inline]
    pub(super) fn has_column(bytes: &[u8], position: usize) -> bool {
        bytes.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
    }

    #[inline]
    fn split(columns: &'v Columns, present: ColumnSet, bytes: &'v [u8]) -> Option<Self> {
        let sizes = columns.sizes_of(present);
        let (fixed, rest) = bytes.split_at_checked(sizes.fixed_bytes)?;
        let (ends, variable) = rest.split_at_checked(sizes.variable_count * END_BYTES)?;
        let rest = UntakenValues { fixed, ends, variable, at: 0 };
        Some(Self { columns, sizes, left: present, all: bytes, rest })
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
        let column = self.columns.list().get(position)?;
        Some((column, self.rest.take(column)?))
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
        &self,
        names: &'static [&'static str],
        found: &mut [Option<ValueRef<'v>>],
    ) -> Result<bool> {
        let columns = self.columns;
        let Some(slots) = columns.slots_of_reader(names) else { return Ok(false) };
        let (mut rest, has_all) = (self.rest, self.left == columns.all());
        let texts = rest.check_texts_together();
        for (position, (column, slot)) in columns.list().iter().zip(slots).enumerate() {
            if !has_all && !self.left.contains(position) {
                continue;
            }
            let from = rest.at;
            let Some(value) = rest.take(column) else { break };
            let Some(slot) = found.get_mut(usize::from(*slot)) else { continue };
            let value = match (column.place(), column.edm(), texts) {
                (ValuePlace::Variable, EdmType::String, Some(texts)) => {
                    texts.get(from..rest.at).map(ValueRef::String)
                }
                (_, edm, _) => ValueRef::from_stored(edm, value),
            };
            *slot = Some(value.ok_or_else(damaged_value_error)?);
        }
        Ok(true)
    }

    /// Returns the columns that the values are of.
    pub(super) const fn columns(&self) -> &'v Columns {
        self.columns
    }

    /// Returns the bytes that all properties of a row in memory take in a row that describes itself.
    #[inline]
    pub(super) fn described_bytes(columns: &Columns, bytes: &[u8]) -> usize {
        let present_bytes = columns.list().len().div_ceil(8);
        let present = ColumnSet::from_bytes(bytes.get(..present_bytes).unwrap_or_default());
        let sizes = columns.sizes_of(present);
        let values = bytes.len().saturating_sub(present_bytes + sizes.variable_count * END_BYTES);
        sizes.head_bytes + values
    }

    /// Returns the number of bytes of the selected values, in the form that [`parse`](Self::parse) reads.
    pub(super) fn selected_bytes(&self, selected: ColumnSet) -> usize {
        let present_bytes = self.columns.list().len().div_ceil(8);
        if self.left.is_subset_of(selected) {
            let UntakenValues { fixed, ends, variable, at } = self.rest;
            return present_bytes + fixed.len() + ends.len() + variable.len() - at;
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
        out.extend_from_slice(present.to_bytes().get(..present_bytes).unwrap_or_default());
        let UntakenValues { fixed, ends, .. } = self.rest;
        let none_taken = fixed.len() == self.sizes.fixed_bytes
            && ends.len() == self.sizes.variable_count * END_BYTES;
        // Otherwise the ends count from a text that was taken.
        if none_taken && present == self.left {
            out.extend_from_slice(self.all);
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
        let (columns, mut rest) = (self.columns.list(), self.rest);
        let taken = self.left.iter().filter_map(move |position| {
            let column = columns.get(position)?;
            Some((position, column.place(), rest.take(column)?))
        });
        let selected = taken.filter(move |(position, ..)| selected.contains(*position));
        selected.map(|(_, place, value)| (place, value))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        edm::{Ticks, Value},
        row::RowBuffer,
    };

    static NAMES: [&str; 2] = ["A", "B"];
    static FIRST: [&str; 1] = ["A"];

    /// Reads `A`, a value of this type, and the text `B` from the bytes of both, of which `A` has the first.
    fn read(
        names: &'static [&'static str],
        (edm, first): (EdmType, u32),
        both: &[u8],
    ) -> Result<Vec<Option<Value>>> {
        let list = vec![RowColumn::new("A", edm), RowColumn::new("B", EdmType::String)];
        let columns = Columns::new(list).unwrap();
        let last = u32::try_from(both.len()).unwrap();
        let bytes = [&[0b11][..], &first.to_le_bytes(), &last.to_le_bytes(), both].concat();
        let values = ColumnValues::parse(&columns, &bytes).unwrap();
        let mut found = [None; 2];
        assert!(values.fill_slots(names, &mut found[..names.len()])?);
        Ok(found.map(|value| value.map(|value| value.to_value())).to_vec())
    }

    #[test]
    fn texts_that_are_valid_only_together_are_damaged() {
        let both = "é".as_bytes();
        assert!(read(&NAMES, (EdmType::String, 1), both).unwrap_err().is_corrupt());
        let texts = read(&NAMES, (EdmType::String, 2), both).unwrap();
        assert_eq!(texts, [Some("é".into()), Some("".into())]);
    }

    #[test]
    fn bytes_and_damaged_texts_do_not_damage_other_texts() {
        let both = [&[0xff][..], "é".as_bytes()].concat();
        let values = read(&NAMES, (EdmType::Binary, 1), &both).unwrap();
        assert_eq!(values, [Some(vec![0xff].into()), Some("é".into())]);
        for length in [1, CHECKED_TOGETHER] {
            let both = [&b"x".repeat(length)[..], &[0xff]].concat();
            let first = (EdmType::String, u32::try_from(length).unwrap());
            assert!(read(&NAMES, first, &both).unwrap_err().is_corrupt());
            assert_eq!(read(&FIRST, first, &both).unwrap()[0], Some("x".repeat(length).into()));
        }
    }

    #[test]
    fn a_text_of_the_columns_is_in_the_rows_that_have_it() {
        let list = vec![
            RowColumn::new("Age", EdmType::Int32),
            RowColumn::constant("EntityType", "Employee"),
        ];
        let columns = Arc::new(Columns::new(list).unwrap());
        let stored = [&[0b11][..], &34_i32.to_le_bytes()].concat();
        for (present, kind) in
            [(&stored[..], Some("Employee")), (&[0b10], Some("Employee")), (&[0], None)]
        {
            let values = ColumnValues::parse(&columns, present).unwrap();
            let row =
                RowBuffer::single().add(("P", "R"), Ticks::MIN, &columns, &values, columns.all());
            let row = row.unwrap();
            assert_eq!(row.get("EntityType").unwrap(), kind.map(ValueRef::String));
            assert_eq!(row.byte_len(), row.as_bytes().len());
        }
    }
}
