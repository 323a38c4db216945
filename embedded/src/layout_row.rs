//! Reads a row that is stored by a layout.

use std::borrow::Cow;

use entable_core::{
    __runtime::row::corrupt_row_error,
    edm::{Ticks, ValueRef},
    error::Result,
    filter::Filter,
    key::keys_of_sort_key,
    row::{Row, RowAssembler},
};

use crate::{
    column_set::ColumnSet,
    row_layout::{RowLayout, ValuePlace},
};

/// The bytes of the end of a text or of bytes.
const END_BYTES: usize = 4;

/// A stored row whose parts fit its layout.
pub(crate) struct LayoutRow<'v> {
    pub(crate) layout: &'v RowLayout,
    /// PartitionKey and RowKey, from the row's address.
    keys: (Cow<'v, str>, Cow<'v, str>),
    timestamp: Ticks,
    present: ColumnSet,
    /// The positions of the row's properties in its own order, if that is not the layout's.
    order: Option<&'v [u8]>,
    values: Values<'v>,
}

/// The values of a row in the order of its layout, as far as they are not read yet.
#[derive(Clone, Copy)]
struct Values<'v> {
    fixed: &'v [u8],
    ends: &'v [u8],
    variable: &'v [u8],
    /// Where the next text or bytes begin.
    at: usize,
}

impl<'v> Values<'v> {
    /// Takes the bytes of the next value. Those of a constant come from the layout.
    #[inline]
    fn take(&mut self, place: &'v ValuePlace) -> Option<&'v [u8]> {
        match place {
            ValuePlace::Fixed(width) => take_bytes(&mut self.fixed, *width),
            ValuePlace::Variable => {
                let (end, after) = self.ends.split_first_chunk()?;
                self.ends = after;
                let end = usize::try_from(u32::from_le_bytes(*end)).ok()?;
                let value = self.variable.get(self.at..end)?;
                self.at = end;
                Some(value)
            }
            ValuePlace::Constant(text) => Some(text.as_bytes()),
        }
    }
}

fn take_bytes<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

impl<'v> LayoutRow<'v> {
    /// Reads the row at an address from the bytes after the id of its layout. Returns `None` if they do not fit the
    /// layout, or if the address cannot be decoded.
    pub(crate) fn parse(
        layout: &'v RowLayout,
        address: &'v [u8],
        has_own_order: bool,
        mut rest: &'v [u8],
    ) -> Option<Self> {
        let (timestamp, after) = rest.split_first_chunk()?;
        rest = after;
        let timestamp = Ticks::new(i64::from_le_bytes(*timestamp))?;
        let present = take_bytes(&mut rest, layout.columns.len().div_ceil(8))?;
        let present = ColumnSet::from_bytes(present);
        if !layout.allows(present) {
            return None;
        }
        let mut order = None;
        if has_own_order {
            order = Some(take_bytes(&mut rest, present.len())?);
        }
        let (fixed, variable_count) = if present == layout.all {
            (layout.fixed_bytes, layout.variable_count)
        } else {
            count_values(layout, present)
        };
        let fixed = take_bytes(&mut rest, fixed)?;
        let ends = take_bytes(&mut rest, variable_count * END_BYTES)?;
        let last_end = ends.last_chunk().map_or(0, |end| u32::from_le_bytes(*end));
        let values = Values { fixed, ends, variable: rest, at: 0 };
        let is_whole = usize::try_from(last_end).is_ok_and(|end| end == rest.len());
        let keys = keys_of_sort_key(address)?;
        is_whole.then_some(Self { layout, keys, timestamp, present, order, values })
    }

    /// Copies the row into memory, with the selected properties.
    pub(crate) fn to_row(&self, selected: ColumnSet) -> Option<Row> {
        let wanted = self.present.intersection(selected);
        let bytes = self.described_bytes(wanted)?;
        let (partition_key, row_key) = &self.keys;
        let mut row = RowAssembler::new(partition_key, row_key, self.timestamp, bytes);
        match self.order {
            None => self.put_in_order(&mut row, wanted)?,
            Some(order) => self.put_in_own_order(&mut row, wanted, order)?,
        }
        row.finish().ok()
    }

    /// Adds the wanted properties to a row in memory, in the order of the layout. Returns `None` if the row is damaged.
    fn put_in_order(&self, row: &mut RowAssembler, wanted: ColumnSet) -> Option<()> {
        let mut values = self.values;
        for position in self.present.iter() {
            let column = self.layout.columns.get(position)?;
            let value = values.take(&column.place)?;
            if wanted.contains(position) {
                row.put(&column.head, value);
            }
        }
        Some(())
    }

    /// Adds the wanted properties to a row in memory, in the order that the stored row has.
    fn put_in_own_order(
        &self,
        row: &mut RowAssembler,
        wanted: ColumnSet,
        order: &[u8],
    ) -> Option<()> {
        let mut values = self.values;
        let mut by_position: Vec<&[u8]> = vec![&[]; self.layout.columns.len()];
        for position in self.present.iter() {
            let column = self.layout.columns.get(position)?;
            *by_position.get_mut(position)? = values.take(&column.place)?;
        }
        let mut left = self.present;
        for position in order.iter().copied().map(usize::from) {
            // Each property has exactly one place in the order.
            left = left.without(position)?;
            if wanted.contains(position) {
                row.put(&self.layout.columns.get(position)?.head, by_position.get(position)?);
            }
        }
        Some(())
    }

    /// Returns the bytes that the wanted properties take in a row in memory, or `None` if the row is damaged.
    fn described_bytes(&self, wanted: ColumnSet) -> Option<usize> {
        if wanted == self.layout.all {
            let Values { fixed, variable, .. } = self.values;
            return Some(self.layout.described_bytes + fixed.len() + variable.len());
        }
        let (mut bytes, mut values) = (0, self.values);
        for position in self.present.iter() {
            let column = self.layout.columns.get(position)?;
            let value = values.take(&column.place)?;
            if wanted.contains(position) {
                bytes += column.head.bytes_with_value(value.len());
            }
        }
        Some(bytes)
    }

    /// Returns the bytes of the value of a column that the row has.
    fn value_at(&self, position: usize) -> Option<&'v [u8]> {
        let mut values = self.values;
        for before in self.present.iter().take_while(|before| *before < position) {
            values.take(&self.layout.columns.get(before)?.place)?;
        }
        values.take(&self.layout.columns.get(position)?.place)
    }

    /// Returns whether the row matches a filter. Reads only the values that the filter compares.
    ///
    /// # Errors
    ///
    /// `is_corrupt` if the row is damaged, and the errors of [`Filter::matches`].
    pub(crate) fn matches(&self, filter: &Filter) -> Result<bool> {
        filter.matches_values(&|name| match name {
            "PartitionKey" => Ok(Some(ValueRef::String(&self.keys.0))),
            "RowKey" => Ok(Some(ValueRef::String(&self.keys.1))),
            "Timestamp" => Ok(Some(self.timestamp).filter(is_written).map(ValueRef::DateTime)),
            _ => self.value_of(name),
        })
    }

    /// Returns the value of the property `name`, or `None` if the row has no such property.
    fn value_of(&self, name: &str) -> Result<Option<ValueRef<'v>>> {
        let mut positions = self.layout.positions_of_name(name.as_bytes());
        let Some(position) = positions.find(|at| self.present.contains(*at)) else {
            return Ok(None);
        };
        let column = self.layout.columns.get(position);
        let value = column
            .and_then(|column| ValueRef::from_stored(column.head.edm(), self.value_at(position)?));
        value.map(Some).ok_or_else(|| corrupt_row_error("a value does not fit its type"))
    }
}

/// Returns whether a Timestamp is the time of a write: that of a row that was not written is 0.
fn is_written(timestamp: &Ticks) -> bool {
    *timestamp != Ticks::default()
}

/// Returns the bytes of the fixed values of some columns, and the number of their texts and bytes.
fn count_values(layout: &RowLayout, present: ColumnSet) -> (usize, usize) {
    let (mut fixed, mut variable) = (0, 0);
    for column in present.iter().filter_map(|position| layout.columns.get(position)) {
        match &column.place {
            ValuePlace::Fixed(width) => fixed += width,
            ValuePlace::Variable => variable += 1,
            ValuePlace::Constant(_) => {}
        }
    }
    (fixed, variable)
}
