//! The layouts that the rows of one kind share, and which of them a row gets.

use std::{collections::HashMap, sync::Arc};

use entable_core::{
    edm::EdmType,
    row::{MAX_COLUMNS, RowColumn},
};

use crate::{
    row_layout::{Kind, RowLayout, column_of_property},
    row_properties::RowProperties,
};

/// The maximum number of layouts of a kind: one for each bit of a [`LayoutSet`].
const MAX_LAYOUTS: usize = 64;
/// The maximum size of all layouts of a kind, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// How many layouts a kind has before a new one gets the columns of all.
const TIGHT_LAYOUTS: usize = 8;

/// A set of layouts of a kind, one bit each, in the order of their ids.
type LayoutSet = u64;

/// The layouts of one kind, in the order of their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayoutsOfKind {
    layouts: Vec<Arc<RowLayout>>,
    bytes: usize,
    /// The names of the columns, with their types and the layouts that have them.
    by_name: HashMap<Box<[u8]>, Vec<(EdmType, LayoutSet)>>,
    /// The columns of all layouts. If they are more than a layout can have, some are missing.
    all_columns: Vec<RowColumn>,
}

/// A layout that is not made yet.
pub(crate) struct LayoutPlan<'l> {
    /// The columns that it takes over from other layouts.
    shared: &'l [RowColumn],
    /// Its number of bytes.
    pub(crate) bytes: usize,
}

impl LayoutPlan<'_> {
    /// Merges the row's properties into the shared columns, each after the one that precedes it in the row. Returns `None`
    /// if a name is not UTF-8.
    pub(crate) fn columns(
        &self,
        row: &RowProperties<'_>,
        kind: Kind<'_>,
    ) -> Option<Vec<RowColumn>> {
        let own = row.list.iter().map(|property| column_of_property(property, kind));
        let mut columns = self.shared.to_vec();
        insert_columns(&mut columns, &own.collect::<Option<Vec<_>>>()?);
        Some(columns)
    }
}

impl LayoutsOfKind {
    /// Adds a layout. A damaged file may have more than the maximum: no new row gets the others.
    pub(crate) fn add(&mut self, layout: Arc<RowLayout>) {
        if self.layouts.len() == MAX_LAYOUTS {
            return;
        }
        let bit: LayoutSet = 1 << self.layouts.len();
        for column in layout.columns.list() {
            let types = self.by_name.entry(column.name().as_bytes().into()).or_default();
            match types.iter_mut().find(|(edm, _)| *edm == column.edm()) {
                Some((_, layouts)) => *layouts |= bit,
                None => types.push((column.edm(), bit)),
            }
        }
        if self.all_columns.len() <= MAX_COLUMNS {
            insert_columns(&mut self.all_columns, layout.columns.list());
        }
        self.bytes += layout.bytes.len();
        self.layouts.push(layout);
    }

    /// Returns whether the kind may have another layout of this many bytes.
    pub(crate) const fn has_room(&self, bytes: usize) -> bool {
        self.layouts.len() < MAX_LAYOUTS && self.bytes + bytes <= MAX_BYTES
    }

    /// Returns whether the kind has so few layouts that each is for rows that are much alike.
    const fn is_tight(&self) -> bool {
        self.layouts.len() < TIGHT_LAYOUTS
    }

    /// Returns the maximum number of columns of a layout that suits a row. Each column takes a bit of the row.
    pub(crate) fn max_columns(&self, row: &RowProperties<'_>) -> usize {
        if self.is_tight() { MAX_COLUMNS.min(2 * row.list.len() + 16) } else { MAX_COLUMNS }
    }

    /// Returns the layouts that have a property, for each property of a row.
    pub(crate) fn layouts_by_property(&self, row: &RowProperties<'_>) -> Vec<LayoutSet> {
        let layouts_with = |(name, edm): (&[u8], EdmType)| {
            let mut types = self.by_name.get(name).into_iter().flatten();
            types.find(|(of_type, _)| *of_type == edm).map_or(0, |(_, layouts)| *layouts)
        };
        row.list.iter().map(|property| layouts_with((property.name, property.edm))).collect()
    }

    /// Returns the layout with the fewest columns among those that have all properties of a row.
    pub(crate) fn narrowest(&self, by_property: &[LayoutSet]) -> Option<&Arc<RowLayout>> {
        let with_all = by_property.iter().fold(LayoutSet::MAX, |all, with| all & with);
        let fitting = self.layouts.iter().enumerate().filter(|(bit, _)| with_all >> bit & 1 == 1);
        fitting.map(|(_, layout)| layout).min_by_key(|layout| layout.columns.list().len())
    }

    /// Plans a new layout for a row of this kind that no existing layout suits.
    pub(crate) fn plan(
        &self,
        row: &RowProperties<'_>,
        kind: Kind<'_>,
        by_property: &[LayoutSet],
    ) -> LayoutPlan<'_> {
        let extended = if self.is_tight() {
            self.nearest(row, kind, by_property)
        } else {
            Some((LayoutSet::MAX, &*self.all_columns))
        };
        let width = |(set, columns): &(LayoutSet, &[RowColumn])| {
            columns.len() + by_property.iter().filter(|with| **with & set == 0).count()
        };
        let extended = extended.filter(|extended| width(extended) <= MAX_COLUMNS);
        let (set, shared) = extended.unwrap_or_default();
        let own = row.list.iter().zip(by_property).filter(|(_, with)| **with & set == 0);
        let names = shared.iter().map(|column| column.name().len());
        let names = names.chain(own.map(|(property, _)| property.name.len()));
        LayoutPlan { shared, bytes: RowLayout::bytes_of(kind, names) }
    }

    /// Returns the columns of the layout that shares the most properties with a row, among those that still suit the row
    /// with its other properties.
    fn nearest(
        &self,
        row: &RowProperties<'_>,
        kind: Kind<'_>,
        by_property: &[LayoutSet],
    ) -> Option<(LayoutSet, &[RowColumn])> {
        let with_common = self.layouts.iter().enumerate().map(|(bit, layout)| {
            let set: LayoutSet = 1 << bit;
            (
                by_property.iter().filter(|with| **with & set != 0).count(),
                set,
                layout.columns.list(),
            )
        });
        let near = with_common.filter(|(common, _, columns)| {
            // Rows of a table that have little in common are of different types, without an EntityType that says so.
            let is_of_its_type = matches!(kind, Kind::EntityType(_))
                || 2 * common >= columns.len().max(row.list.len());
            is_of_its_type && columns.len() + row.list.len() - common <= self.max_columns(row)
        });
        near.max_by_key(|(common, ..)| *common).map(|(_, set, columns)| (set, columns))
    }
}

/// Inserts columns into others, each after the one that it follows.
fn insert_columns(columns: &mut Vec<RowColumn>, others: &[RowColumn]) {
    let mut next = 0;
    for other in others {
        let known = columns.iter().position(|column| column.is_same(other));
        let position = known.unwrap_or(next);
        if known.is_none() {
            columns.insert(position, other.clone());
        }
        next = position + 1;
    }
}
