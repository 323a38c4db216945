//! The layouts of a file. Finds the layout of a stored row, and chooses one for a new row.

use std::{collections::HashMap, sync::Arc};

use redb::{ReadableTable, WriteTransaction};

use crate::{
    file_format::LAYOUTS,
    layouts_of_kind::LayoutsOfKind,
    row_layout::{Kind, RowLayout},
    row_properties::RowProperties,
};

/// The maximum number of layouts in a file. A program needs a few for each of its types. The limit is for programs, and for
/// clients of a server, that invent property names.
const MAX_LAYOUTS: usize = 4_096;
/// The maximum size of all layouts in a file, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// The maximum number of texts of `EntityType` that have layouts. Where the property is not a type but data, rows share the layouts
/// of their table.
const MAX_ENTITY_TYPES: usize = 1_024;

/// The layout that a new row is stored with.
pub(crate) enum LayoutChoice<'d, 'k> {
    /// One that the dictionary has, and the positions of the row's properties in it.
    Known(&'d Arc<RowLayout>, Vec<usize>),
    /// One to be added, which belongs to this kind.
    New(RowLayout, Kind<'k>),
}

/// The layouts of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dictionary {
    /// In the order of their ids.
    layouts: Vec<Arc<RowLayout>>,
    of_entity_types: HashMap<Box<str>, LayoutsOfKind>,
    of_tables: HashMap<Box<str>, LayoutsOfKind>,
    /// The next id. Ids grow, and a layout stays, so none is given twice.
    next: u32,
    bytes: usize,
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
            if let Some((layout, kind)) = RowLayout::decode(id, bytes) {
                dictionary.add(Arc::new(layout), kind);
            }
            // Also after the id of a damaged one.
            dictionary.next = dictionary.next.max(id.saturating_add(1));
        }
        Ok(dictionary)
    }

    /// Adds a layout, whose id is greater than all others.
    pub(crate) fn add(&mut self, layout: Arc<RowLayout>, kind: Kind<'_>) {
        self.next = self.next.max(layout.id.saturating_add(1));
        self.bytes += layout.bytes.len();
        self.layouts.push(layout.clone());
        let (kinds, text) = match kind {
            Kind::EntityType(text) => (&mut self.of_entity_types, text),
            Kind::Table(name) => (&mut self.of_tables, name),
        };
        kinds.entry(text.into()).or_default().add(layout);
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

    fn of_kind(&self, kind: Kind<'_>) -> Option<&LayoutsOfKind> {
        match kind {
            Kind::EntityType(text) => self.of_entity_types.get(text),
            Kind::Table(name) => self.of_tables.get(name),
        }
    }

    /// Chooses the layout for a row of the table of this name. `None` if no layout has its properties and there may be
    /// no other.
    pub(crate) fn choose<'d, 'k>(
        &'d self,
        table: &'k str,
        row: &RowProperties<'k>,
    ) -> Option<LayoutChoice<'d, 'k>> {
        if let Some(kind) = row.entity_type.map(Kind::EntityType) {
            let is_known = self.of_kind(kind).is_some();
            let may_be_new = self.of_entity_types.len() < MAX_ENTITY_TYPES;
            let choice = (is_known || may_be_new).then(|| self.choose_of_kind(kind, row)).flatten();
            if is_known || choice.is_some() {
                return choice;
            }
        }
        // A text that cannot get layouts any more is a value like any other.
        self.choose_of_kind(Kind::Table(table), row)
    }

    /// Chooses the narrowest layout that has all properties of the row. One that is too wide is chosen only if the kind may
    /// have no other.
    fn choose_of_kind<'d, 'k>(
        &'d self,
        kind: Kind<'k>,
        row: &RowProperties<'k>,
    ) -> Option<LayoutChoice<'d, 'k>> {
        let none = LayoutsOfKind::default();
        let known = self.of_kind(kind);
        let of_kind = known.unwrap_or(&none);
        let by_property = of_kind.layouts_by_property(row);
        let narrowest = known.and_then(|known| known.narrowest(&by_property));
        if narrowest.is_none_or(|layout| layout.columns.list().len() > of_kind.max_columns(row)) {
            let plan = of_kind.plan(row, kind, &by_property);
            if self.has_room(plan.bytes) && of_kind.has_room(plan.bytes) {
                let layout = RowLayout::new(self.next, kind, plan.columns(row, kind)?)?;
                return Some(LayoutChoice::New(layout, kind));
            }
        }
        let layout = narrowest?;
        Some(LayoutChoice::Known(layout, layout.positions_of(row)?))
    }

    /// Returns whether the file may have another layout of this many bytes.
    fn has_room(&self, bytes: usize) -> bool {
        self.layouts.len() < MAX_LAYOUTS && self.bytes + bytes <= MAX_BYTES && self.next < u32::MAX
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
        // Rows of the layout that had the id would be damaged forever.
        if table.insert(layout.id, &*layout.bytes)?.is_some() {
            return Err(redb::Error::Corrupted("the id of a layout is given twice".to_owned()));
        }
    }
    Ok(())
}
