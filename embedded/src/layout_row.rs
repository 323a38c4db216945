//! Reads a row that is stored by a layout.

use std::{borrow::Cow, sync::Arc};

use entable_core::{
    edm::{Ticks, ValueRef},
    error::Result,
    filter::Filter,
    key::keys_of_sort_key,
    row::{ColumnSet, ColumnValues, Columns, Row, RowBuffer, RowBytes},
};

use crate::row_layout::RowLayout;

/// A stored row whose parts fit its layout.
pub(crate) struct LayoutRow<'v> {
    pub(crate) layout: &'v RowLayout,
    /// PartitionKey and RowKey, from the row's address.
    keys: (Cow<'v, str>, Cow<'v, str>),
    timestamp: Ticks,
    /// The positions of the row's properties in its own order, if that is not the layout's.
    order: Option<&'v [u8]>,
    values: ColumnValues<'v>,
}

fn take_bytes<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

impl<'v> LayoutRow<'v> {
    /// Reads the row at an address from the bytes after the id of its layout. Returns `None` if they do not fit the
    /// layout, or if the address cannot be decoded.
    #[inline]
    pub(crate) fn parse(
        layout: &'v RowLayout,
        address: &'v [u8],
        has_own_order: bool,
        rest: &'v [u8],
    ) -> Option<Self> {
        let (timestamp, rest) = rest.split_first_chunk()?;
        let timestamp = Ticks::new(i64::from_le_bytes(*timestamp))?;
        let (present, mut rest) = ColumnValues::split_present(&layout.columns, rest)?;
        let mut order = None;
        if has_own_order {
            order = Some(take_bytes(&mut rest, present.len())?);
        }
        let values = ColumnValues::parse_present(&layout.columns, present, rest)?;
        let keys = keys_of_sort_key(address)?;
        Some(Self { layout, keys, timestamp, order, values })
    }

    /// Copies the row into memory, with the selected properties. Returns `None` if it is damaged.
    #[inline]
    pub(crate) fn to_row(&self, selected: ColumnSet, memory: &mut RowBuffer) -> Option<Row> {
        let columns = &self.layout.columns;
        if let Some(order) = self.order {
            return self.describe_in_own_order(columns, selected, order);
        }
        let (partition_key, row_key) = &self.keys;
        memory.add((partition_key, row_key), self.timestamp, columns, &self.values, selected)
    }

    /// Copies the row into memory in the order that the stored row has, which rows that share columns cannot have.
    fn describe_in_own_order(
        &self,
        columns: &Arc<Columns>,
        selected: ColumnSet,
        order: &[u8],
    ) -> Option<Row> {
        let mut values = self.values.clone();
        let mut by_position = vec![None; columns.list().len()];
        for position in self.values.left().iter() {
            let (column, value) = values.take_next()?;
            *by_position.get_mut(position)? = Some((column.name().as_bytes(), column.edm(), value));
        }
        let mut row = Row::build(&self.keys.0, &self.keys.1);
        for position in order.iter().copied().map(usize::from) {
            // Each property has exactly one place in the order.
            let property = by_position.get_mut(position)?.take()?;
            if selected.contains(position) {
                row.put_undecoded(property);
            }
        }
        // Copied, because a row may be held for long, and the builder has spare bytes.
        let row = row.finish_at(self.timestamp).ok()?;
        Some(Row::from_row_bytes(RowBytes::new(&row.as_bytes()).ok()?))
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
            _ => self.values.get(name),
        })
    }
}

/// Returns whether a Timestamp is the time of a write: that of a row that was not written is 0.
fn is_written(timestamp: &Ticks) -> bool {
    *timestamp != Ticks::default()
}
