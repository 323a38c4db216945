//! The layouts that the rows of one kind share, and which of them a row gets.

use std::{collections::HashSet, sync::Arc};

use crate::{
    column_set::MOST_COLUMNS,
    row_layout::{Column, Kind, RowLayout},
    row_properties::RowProperties,
};

/// The most layouts of a kind. A type has some: one for each group of properties that its first rows lacked.
const MOST_LAYOUTS: usize = 64;
/// The most bytes that the layouts of a kind take together.
const MOST_BYTES: usize = 64 * 1024;
/// How many layouts a kind has before its rows share those of all its properties.
const TIGHT_LAYOUTS: usize = 8;

/// The layouts of one kind, from the narrowest on.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayoutsOfKind {
    layouts: Vec<Arc<RowLayout>>,
    bytes: usize,
}

impl LayoutsOfKind {
    pub(crate) fn add(&mut self, layout: Arc<RowLayout>) {
        self.bytes += layout.bytes.len();
        let width = layout.columns.len();
        let place = self.layouts.partition_point(|known| known.columns.len() <= width);
        self.layouts.insert(place, layout);
    }

    /// Returns whether the kind has so few layouts that each is for rows much alike.
    const fn is_tight(&self) -> bool {
        self.layouts.len() < TIGHT_LAYOUTS
    }

    /// Returns whether the kind may have another layout of this many bytes.
    pub(crate) const fn has_room(&self, bytes: usize) -> bool {
        self.layouts.len() < MOST_LAYOUTS && self.bytes + bytes <= MOST_BYTES
    }

    /// Returns the most columns of a layout for a row. Each takes a bit of the row, so a row is not stored by one with
    /// far more than it has, except if its kind has such layouts in any case.
    pub(crate) fn most_columns(&self, row: &RowProperties<'_>) -> usize {
        if self.is_tight() { MOST_COLUMNS.min(2 * row.list.len() + 16) } else { MOST_COLUMNS }
    }

    /// Returns the narrowest layout that has all properties of a row, with their positions. `None` if it has more than
    /// `most` columns, or if there is none.
    pub(crate) fn find(
        &self,
        row: &RowProperties<'_>,
        most: usize,
    ) -> Option<(&Arc<RowLayout>, Vec<usize>)> {
        let mut layouts = self.layouts.iter().take_while(|layout| layout.columns.len() <= most);
        layouts.find_map(|layout| Some((layout, layout.positions_of(row)?)))
    }

    /// Returns a number of bytes that a new layout for a row takes at least. A row whose kind is full costs no more than
    /// this.
    pub(crate) fn least_bytes(&self, row: &RowProperties<'_>) -> usize {
        let widest = self.layouts.last().filter(|_| !self.is_tight());
        row.name_bytes().max(widest.map_or(0, |layout| layout.bytes.len()))
    }

    /// Returns the columns of a new layout for a row: its own and those that it will share.
    pub(crate) fn new_columns(
        &self,
        row: &RowProperties<'_>,
        kind: Kind<'_>,
    ) -> Option<Vec<Column>> {
        let shared = if self.is_tight() {
            self.nearest(row, kind).map_or_else(Vec::new, |layout| layout.columns.to_vec())
        } else {
            self.all_columns()
        };
        let together = with_columns_of(shared, row, kind)?;
        if together.len() <= MOST_COLUMNS {
            return Some(together);
        }
        with_columns_of(Vec::new(), row, kind)
    }

    /// Returns the layout that has most of a row's properties, if one for both is not too wide.
    fn nearest(&self, row: &RowProperties<'_>, kind: Kind<'_>) -> Option<&Arc<RowLayout>> {
        let with_common = self.layouts.iter().map(|layout| (layout.count_common(row), layout));
        let near = with_common.filter(|(common, layout)| {
            let (width, count) = (layout.columns.len(), row.list.len());
            // Rows of a table that have little in common are of different types, though none of them names its own.
            let is_of_its_type =
                matches!(kind, Kind::EntityType(_)) || 2 * common >= width.max(count);
            is_of_its_type && width + count - common <= self.most_columns(row)
        });
        near.max_by_key(|(common, _)| *common).map(|(_, layout)| layout)
    }

    /// Returns the columns of all layouts of the kind.
    fn all_columns(&self) -> Vec<Column> {
        let mut seen = HashSet::new();
        // The widest one first, which has most of them: their order stays.
        let columns = self.layouts.iter().rev().flat_map(|layout| &layout.columns);
        columns
            .filter(|column| seen.insert((column.name(), column.head.edm() as u8)))
            .cloned()
            .collect()
    }
}

/// Adds the columns of a row of the kind to others. A new one gets its place behind the one that it follows in the row.
fn with_columns_of(
    mut columns: Vec<Column>,
    row: &RowProperties<'_>,
    kind: Kind<'_>,
) -> Option<Vec<Column>> {
    let mut next = 0;
    for property in &row.list {
        let known = columns.iter().position(|column| column.is_of_property(property));
        let position = known.unwrap_or(next);
        if known.is_none() {
            columns.insert(position, Column::of_property(property, kind)?);
        }
        next = position + 1;
    }
    Some(columns)
}
