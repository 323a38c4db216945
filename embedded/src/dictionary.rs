//! The layouts of a file: which one a stored row has, and which one a new row gets.

use std::{collections::BTreeSet, sync::Arc};

use redb::{ReadableTable, WriteTransaction};

use crate::{
    file_format::LAYOUTS,
    row_layout::{Column, RowLayout},
    row_properties::RowProperties,
};

/// The most layouts of a file. Programs have some for each of their types. The bound is for programs, and clients of a
/// server, that invent names of properties.
const MOST_LAYOUTS: usize = 4_096;
/// The most bytes that a file's layouts take together.
const MOST_BYTES: usize = 1024 * 1024;
/// The most texts of `EntityType` that have layouts of their own. A store where it is no type but data shares layouts
/// among the others.
const MOST_ENTITY_TYPES: usize = 1_024;
/// How many layouts are tried for a row, from the newest on.
const MOST_TRIED: usize = 32;

/// The layouts of a file, in the order of their ids.
///
/// A row gets the newest layout of its `EntityType` that has all its properties. If there is none, it gets a new one:
/// the columns of the newest one that the row does not contradict, with the row's own. So a type with n optional
/// properties has at most n + 1 layouts, and mostly one or two, whichever of them are missing in its first rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dictionary {
    layouts: Vec<Arc<RowLayout>>,
    /// The next id. Ids grow, and a layout stays, so none is given twice.
    next: u32,
    bytes: usize,
    entity_types: BTreeSet<Box<str>>,
}

impl Dictionary {
    /// Reads the layouts of a file. A damaged layout is left out, so each of its rows is damaged too.
    pub(crate) fn load(
        table: &impl ReadableTable<u32, &'static [u8]>,
    ) -> Result<Self, redb::Error> {
        let mut dictionary = Self::default();
        for item in table.iter()? {
            let (id, bytes) = item?;
            let (id, bytes) = (id.value(), bytes.value());
            dictionary.next = dictionary.next.max(id.saturating_add(1));
            if let Some(layout) = RowLayout::decode(id, bytes) {
                dictionary.push(layout, bytes.len());
            }
        }
        Ok(dictionary)
    }

    fn push(&mut self, layout: RowLayout, bytes: usize) -> Arc<RowLayout> {
        let layout = Arc::new(layout);
        self.entity_types.extend(layout.entity_type().map(Box::from));
        self.bytes += bytes;
        self.layouts.push(layout.clone());
        layout
    }

    /// Returns the layout with an id, or `None` if there is none.
    pub(crate) fn get(&self, id: u32) -> Option<&Arc<RowLayout>> {
        let found = self.layouts.binary_search_by_key(&id, |layout| layout.id).ok()?;
        self.layouts.get(found)
    }

    /// Returns the layouts that were added after the first `count`.
    pub(crate) fn added_after(&self, count: usize) -> &[Arc<RowLayout>] {
        self.layouts.get(count..).unwrap_or_default()
    }

    /// Returns the number of layouts.
    pub(crate) fn len(&self) -> usize {
        self.layouts.len()
    }

    /// Returns the `EntityType` of a row if layouts have it. `None` if the row's own layout keeps it with its other
    /// values.
    fn entity_type_of<'r>(&self, row: &RowProperties<'r>) -> Option<&'r str> {
        row.entity_type.filter(|text| {
            self.entity_types.len() < MOST_ENTITY_TYPES || self.entity_types.contains(*text)
        })
    }

    /// Returns the layouts that are tried for rows with that constant `EntityType`, from the newest on.
    fn tried<'d>(&'d self, entity_type: Option<&str>) -> impl Iterator<Item = &'d Arc<RowLayout>> {
        let of_type = move |layout: &&Arc<RowLayout>| layout.entity_type() == entity_type;
        self.layouts.iter().rev().filter(of_type).take(MOST_TRIED)
    }

    /// Returns the layout for a row and the positions of the row's properties, or `None` if no layout is known for it.
    pub(crate) fn find(&self, row: &RowProperties<'_>) -> Option<(&Arc<RowLayout>, Vec<usize>)> {
        let mut tried = self.tried(self.entity_type_of(row));
        tried.find_map(|layout| Some((layout, layout.positions_of(row)?)))
    }

    /// Adds a layout for a row that has none. Returns `None` if the row has a property twice, or if the dictionary is
    /// full.
    pub(crate) fn add_layout_for(&mut self, row: &RowProperties<'_>) -> Option<Arc<RowLayout>> {
        let entity_type = self.entity_type_of(row);
        let extended = self.tried(entity_type).find_map(|layout| layout.extended_by(row));
        let own = || {
            let columns = row.list.iter().map(|one| Column::of_property(one, entity_type));
            columns.collect::<Option<Vec<_>>>()
        };
        let columns = extended.or_else(own)?;
        // One that is no longer tried may be the same.
        if let Some(known) = self.layouts.iter().find(|layout| *layout.columns == *columns) {
            return Some(known.clone());
        }
        let layout = RowLayout::new(self.next, columns)?;
        let bytes = layout.encode().len();
        let next = self.next.checked_add(1)?;
        if self.layouts.len() >= MOST_LAYOUTS || self.bytes + bytes > MOST_BYTES {
            return None;
        }
        self.next = next;
        Some(self.push(layout, bytes))
    }
}

/// Writes layouts to the file.
pub(crate) fn store_layouts(
    transaction: &WriteTransaction,
    layouts: &[Arc<RowLayout>],
) -> Result<(), redb::Error> {
    // A table is opened only for new layouts, which few transactions have.
    if layouts.is_empty() {
        return Ok(());
    }
    let mut table = transaction.open_table(LAYOUTS)?;
    for layout in layouts {
        // Rows of the layout that had the id would be damaged for ever.
        if table.insert(layout.id, &*layout.encode())?.is_some() {
            return Err(redb::Error::Corrupted("the id of a layout is given twice".to_owned()));
        }
    }
    Ok(())
}
