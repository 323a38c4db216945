//! Writes rows by their layouts, and finds or makes a layout for each.

use std::sync::Arc;

use entable_core::{
    edm::Ticks,
    row::{ColumnSet, Row, RowColumn, ValuePlace},
};

use crate::{
    dictionary::{Dictionary, LayoutChoice},
    row_layout::RowLayout,
    row_properties::RowProperties,
    stored_row::{BY_LAYOUT, IN_OWN_ORDER, TableSeed, put_id},
};

/// Encodes the rows of one table for the file.
pub(crate) struct RowEncoder<'e> {
    table: TableSeed,
    table_name: &'e str,
    layouts: &'e mut Arc<Dictionary>,
    value: Vec<u8>,
}

impl<'e> RowEncoder<'e> {
    pub(crate) const fn new(
        table: TableSeed,
        table_name: &'e str,
        layouts: &'e mut Arc<Dictionary>,
    ) -> Self {
        Self { table, table_name, layouts, value: Vec::new() }
    }

    /// Encodes a row as the value to store at an address. This may add a layout to the dictionary, which the caller must
    /// store in the same transaction.
    pub(crate) fn encode(&mut self, address: &[u8], row: &Row) -> &[u8] {
        self.value.clear();
        let layout = self.put_by_layout(row);
        if layout.is_none() {
            // Either the file, or the kind of the row, has as many layouts as it may have. Or the row cannot have one: it
            // then reads as damaged, as a row that gives a property twice does.
            self.value.extend_from_slice(&row.as_bytes());
        }
        let checksum = self.table.checksum(layout.as_deref(), address, &self.value);
        self.value.extend_from_slice(&checksum);
        &self.value
    }

    /// Encodes a row by its layout, and returns that. `None` if there is none, and nothing was encoded.
    fn put_by_layout(&mut self, row: &Row) -> Option<Arc<RowLayout>> {
        let properties = RowProperties::of_row(row)?;
        let (layout, positions) = match self.layouts.choose(self.table_name, &properties)? {
            LayoutChoice::Known(layout, positions) => (layout.clone(), positions),
            LayoutChoice::New(layout, kind) => {
                let positions = layout.positions_of(&properties)?;
                let layout = Arc::new(layout);
                // Readers share the layouts, so a new one goes into a copy of the dictionary.
                Arc::make_mut(self.layouts).add(layout.clone(), kind);
                (layout, positions)
            }
        };
        let timestamp = row.timestamp().unwrap_or_default();
        put_row(&layout, timestamp, &properties, &positions, &mut self.value);
        Some(layout)
    }
}

/// Writes a row by a layout that has its properties at these positions.
fn put_row(
    layout: &RowLayout,
    timestamp: Ticks,
    row: &RowProperties<'_>,
    positions: &[usize],
    out: &mut Vec<u8>,
) {
    let has_own_order = !positions.is_sorted();
    out.push(if has_own_order { IN_OWN_ORDER } else { BY_LAYOUT });
    put_id(layout.id, out);
    out.extend_from_slice(&timestamp.get().to_le_bytes());
    let present = positions.iter().fold(ColumnSet::default(), |set, at| set.with(*at));
    let present_bytes = layout.columns.list().len().div_ceil(8);
    out.extend(present.to_bytes().iter().take(present_bytes));
    let mut values: Vec<(usize, &[u8])> =
        positions.iter().copied().zip(row.list.iter().map(|property| property.value)).collect();
    if has_own_order {
        // A layout has at most 255 columns.
        out.extend(positions.iter().map(|at| u8::try_from(*at).unwrap_or(u8::MAX)));
        values.sort_by_key(|(position, _)| *position);
    }
    put_values(layout, &values, out);
}

/// Writes values in the order of the layout: first the values of fixed length, then the ends of the others, then the
/// others.
fn put_values(layout: &RowLayout, values: &[(usize, &[u8])], out: &mut Vec<u8>) {
    let place_of = |position: usize| layout.columns.list().get(position).map(RowColumn::place);
    for (position, value) in values {
        if let Some(ValuePlace::Fixed(_)) = place_of(*position) {
            out.extend_from_slice(value);
        }
    }
    let is_variable =
        |(position, _): &&(usize, &[u8])| matches!(place_of(*position), Some(ValuePlace::Variable));
    let mut end = 0;
    for (_, value) in values.iter().filter(is_variable) {
        end += value.len();
        // A row is far shorter than 4 GiB.
        out.extend_from_slice(&u32::try_from(end).unwrap_or(u32::MAX).to_le_bytes());
    }
    for (_, value) in values.iter().filter(is_variable) {
        out.extend_from_slice(value);
    }
}
