//! The columns of rows that store the same properties: names and types, which such rows share.

use std::{collections::HashMap, sync::OnceLock};

use super::column_set::{ColumnSet, MAX_COLUMNS};
use crate::edm::EdmType;

/// The bytes of the length of a text, in a row that describes itself.
const LENGTH_BYTES: usize = 4;

/// Where the value of a column is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuePlace {
    /// Among the values of fixed length, in this number of bytes.
    Fixed(usize),
    /// Among the texts and bytes, with its end.
    Variable,
    /// In the columns: all rows with the property have this text.
    Constant(Box<str>),
}

/// A property that rows with the same columns may have.
///
/// ```
/// use entable_core::{EdmType, row::RowColumn};
///
/// assert!(RowColumn::new("Age", EdmType::Int32).is_same(&RowColumn::new("Age", EdmType::Int32)));
/// assert!(!RowColumn::new("Age", EdmType::Int32).is_same(&RowColumn::new("Age", EdmType::Int64)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowColumn {
    name: Box<str>,
    edm: EdmType,
    place: ValuePlace,
}

impl RowColumn {
    /// Creates the column of a property whose value each row has.
    ///
    /// ```
    /// use entable_core::{EdmType, row::{RowColumn, ValuePlace}};
    ///
    /// assert_eq!(RowColumn::new("Age", EdmType::Int32).place(), &ValuePlace::Fixed(4));
    /// assert_eq!(RowColumn::new("Name", EdmType::String).place(), &ValuePlace::Variable);
    /// ```
    pub fn new(name: &str, edm: EdmType) -> Self {
        let place = edm.fixed_width().map_or(ValuePlace::Variable, ValuePlace::Fixed);
        Self { name: name.into(), edm, place }
    }

    /// Creates the column of a String that is the same in all rows.
    ///
    /// ```
    /// use entable_core::row::{RowColumn, ValuePlace};
    ///
    /// let kind = RowColumn::constant("EntityType", "Employee");
    /// assert_eq!(kind.place(), &ValuePlace::Constant("Employee".into()));
    /// ```
    pub fn constant(name: &str, text: &str) -> Self {
        Self { name: name.into(), edm: EdmType::String, place: ValuePlace::Constant(text.into()) }
    }

    /// Returns the name of the property.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::RowColumn};
    /// assert_eq!(RowColumn::new("Age", EdmType::Int32).name(), "Age");
    /// ```
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the property.
    #[inline]
    pub const fn edm(&self) -> EdmType {
        self.edm
    }

    /// Returns where the values of the column are.
    #[inline]
    pub const fn place(&self) -> &ValuePlace {
        &self.place
    }

    /// Returns whether two columns are of the same property: one name and one type.
    pub fn is_same(&self, other: &Self) -> bool {
        self.edm == other.edm && self.name == other.name
    }
}

/// The columns that many rows share. They never change.
///
/// ```
/// use entable_core::{EdmType, row::{RowColumn, Columns}};
///
/// let columns = Columns::new(vec![RowColumn::new("Age", EdmType::Int32), RowColumn::new("Name", EdmType::String)]);
/// assert_eq!(columns.map(|columns| columns.all().len()), Some(2));
/// let twice = vec![RowColumn::new("Age", EdmType::Int32), RowColumn::new("Age", EdmType::Int32)];
/// assert!(Columns::new(twice).is_none());
/// ```
#[derive(Debug)]
pub struct Columns {
    list: Box<[RowColumn]>,
    /// The set of all columns.
    all: ColumnSet,
    /// For each name with several types, its columns. A row has at most one of them.
    same_names: Box<[ColumnSet]>,
    /// The position of the first column whose text is the same in all rows.
    constant: Option<usize>,
    /// The sizes of a row that has all properties.
    sizes_of_all: Sizes,
    /// The readers that asked for slots first. Mostly one type reads the rows, or an entity and its older version.
    readers: [OnceLock<ReaderSlots>; 4],
}

/// How much space columns take in a row, not counting their texts and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    /// The bytes of the values of fixed length.
    pub(super) fixed_bytes: usize,
    /// The number of texts and bytes.
    pub(super) variable_count: usize,
    /// The bytes that a row which describes itself takes for names, types, lengths and constants.
    pub(super) head_bytes: usize,
}

/// Which of a reader's slots takes the value of each column.
#[derive(Debug)]
struct ReaderSlots {
    /// The names of the slots, in the reader's own static array. Its address identifies the reader.
    names: &'static [&'static str],
    slots: Box<[u8]>,
}

/// The slot of a column that the reader leaves out. Rows have fewer properties.
pub(super) const NO_SLOT: u8 = u8::MAX;

impl Columns {
    /// Creates columns in the order of their values. Returns `None` for more than [`MAX_COLUMNS`], if a column is there
    /// twice, and for a name of over 65,535 bytes.
    pub fn new(list: Vec<RowColumn>) -> Option<Self> {
        let has_long_name = list.iter().any(|column| u16::try_from(column.name.len()).is_err());
        if list.len() > MAX_COLUMNS || has_long_name {
            return None;
        }
        let same_names = same_names(&list)?;
        let all = ColumnSet::first(list.len());
        let constant =
            list.iter().position(|column| matches!(column.place, ValuePlace::Constant(_)));
        let mut columns = Self {
            list: list.into(),
            all,
            same_names,
            constant,
            sizes_of_all: Sizes::default(),
            readers: Default::default(),
        };
        columns.sizes_of_all = columns.sum_sizes(all);
        Some(columns)
    }

    /// Returns the columns in order.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::{RowColumn, Columns}};
    /// let columns = Columns::new(vec![RowColumn::new("Age", EdmType::Int32)]);
    /// assert_eq!(columns.map(|columns| columns.list()[0].name().to_owned()), Some("Age".to_owned()));
    /// ```
    #[inline]
    pub fn list(&self) -> &[RowColumn] {
        &self.list
    }

    /// Returns the set of all columns.
    #[inline]
    pub const fn all(&self) -> ColumnSet {
        self.all
    }

    /// Returns whether a row can have exactly these columns: none that is not there, and no property with two types.
    ///
    /// ```
    /// use entable_core::{EdmType, row::{RowColumn, ColumnSet, Columns}};
    ///
    /// let columns = vec![RowColumn::new("Age", EdmType::Int32), RowColumn::new("Age", EdmType::Int64)];
    /// let Some(columns) = Columns::new(columns) else { return };
    /// assert!(columns.allows(ColumnSet::default().with(1)));
    /// assert!(!columns.allows(columns.all()));
    /// ```
    pub fn allows(&self, present: ColumnSet) -> bool {
        let is_single = |columns: &ColumnSet| present.intersection(*columns).len() <= 1;
        present.is_subset_of(self.all) && self.same_names.iter().all(is_single)
    }

    /// Returns the positions of the columns with a name: one for each of its types.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::{RowColumn, Columns}};
    /// let columns = Columns::new(vec![RowColumn::new("Age", EdmType::Int32)]);
    /// assert_eq!(columns.map(|columns| columns.positions_of_name(b"Age").next()), Some(Some(0)));
    /// ```
    pub fn positions_of_name(&self, name: &[u8]) -> impl Iterator<Item = usize> {
        let columns = self.list.iter().enumerate();
        columns.filter(move |(_, column)| column.name.as_bytes() == name).map(|(at, _)| at)
    }

    /// Returns the first column whose text is the same in all rows, if it has this name: its position, and the text.
    pub(super) fn constant_of_name(&self, name: &str) -> Option<(usize, &str)> {
        let position = self.constant?;
        let column = self.list.get(position).filter(|column| *column.name == *name)?;
        match &column.place {
            ValuePlace::Constant(text) => Some((position, text)),
            ValuePlace::Fixed(_) | ValuePlace::Variable => None,
        }
    }

    /// Returns how much space the present columns take in a row.
    #[inline]
    pub(super) fn sizes_of(&self, present: ColumnSet) -> Sizes {
        if present == self.all { self.sizes_of_all } else { self.sum_sizes(present) }
    }

    fn sum_sizes(&self, present: ColumnSet) -> Sizes {
        let mut sizes = Sizes::default();
        for column in present.iter().filter_map(|position| self.list.get(position)) {
            // The length of the name, and the type.
            sizes.head_bytes += 2 + 1 + column.name.len();
            match &column.place {
                ValuePlace::Fixed(width) => sizes.fixed_bytes += width,
                ValuePlace::Variable => {
                    sizes.variable_count += 1;
                    sizes.head_bytes += LENGTH_BYTES;
                }
                ValuePlace::Constant(text) => sizes.head_bytes += LENGTH_BYTES + text.len(),
            }
        }
        sizes
    }

    /// Returns, for each column, the position of its name in `names`, or [`NO_SLOT`]. Returns `None` for a reader with as
    /// many names as `NO_SLOT` or more, and for one that comes after the first four.
    // Names are compared once for each reader, and not for each of its rows.
    pub(super) fn slots_of_reader(&self, names: &'static [&'static str]) -> Option<&[u8]> {
        if names.len() >= usize::from(NO_SLOT) {
            return None;
        }
        let new = || ReaderSlots { names, slots: self.slots_of(names) };
        let mut readers = self.readers.iter().map(|reader| reader.get_or_init(new));
        let known = readers.find(|reader| std::ptr::eq(reader.names, names))?;
        Some(&known.slots)
    }

    fn slots_of(&self, names: &[&str]) -> Box<[u8]> {
        let slot_of = |column: &RowColumn| {
            let slot = names.iter().position(|name| **name == *column.name);
            slot.and_then(|slot| u8::try_from(slot).ok()).unwrap_or(NO_SLOT)
        };
        self.list.iter().map(slot_of).collect()
    }
}

/// Returns, for each name with several types, the set of its columns. `None` if a column is there twice.
fn same_names(list: &[RowColumn]) -> Option<Box<[ColumnSet]>> {
    let mut by_name: HashMap<&str, ColumnSet> = HashMap::with_capacity(list.len());
    for (position, column) in list.iter().enumerate() {
        let same = by_name.entry(&column.name).or_default();
        if same.iter().filter_map(|other| list.get(other)).any(|other| other.edm == column.edm) {
            return None;
        }
        *same = same.with(position);
    }
    Some(by_name.into_values().filter(|same| same.len() > 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More readers than the columns remember, each with an order of its own.
    #[test]
    fn each_reader_gets_its_own_slots() {
        static READERS: [&[&str]; 6] =
            [&["A", "B"], &["B", "A"], &["B"], &["A"], &[], &["C", "A", "B"]];
        let list = vec![RowColumn::new("A", EdmType::Int32), RowColumn::new("B", EdmType::String)];
        let columns = Columns::new(list).unwrap();
        const NONE: u8 = NO_SLOT;
        let own: [&[u8]; 4] = [&[0, 1], &[1, 0], &[NONE, 0], &[0, NONE]];
        for _ in 0..2 {
            let slots = READERS.map(|names| columns.slots_of_reader(names));
            assert_eq!(slots[..4], own.map(Some));
            // They compare names for each row.
            assert_eq!(slots[4..], [None, None]);
        }
    }

    #[test]
    fn a_reader_of_255_names_has_no_slots() {
        static MANY: [&str; 255] = ["A"; 255];
        let columns = Columns::new(vec![RowColumn::new("A", EdmType::Int32)]).unwrap();
        assert!(columns.slots_of_reader(&MANY).is_none());
        assert_eq!(columns.slots_of_reader(&MANY[1..]), Some(&[0][..]));
    }

    #[test]
    fn columns_of_one_name_and_several_types_have_one_slot() {
        let types = [EdmType::Int32, EdmType::Int64];
        let columns = Columns::new(types.map(|edm| RowColumn::new("A", edm)).to_vec()).unwrap();
        assert_eq!(columns.slots_of_reader(&["A"]), Some(&[0, 0][..]));
        assert!(!columns.allows(columns.all()));
    }

    #[test]
    fn a_name_has_at_most_65535_bytes_and_columns_are_at_most_255() {
        let named = |length: usize| vec![RowColumn::new(&"x".repeat(length), EdmType::Int32)];
        assert!(Columns::new(named(65_535)).is_some() && Columns::new(named(65_536)).is_none());
        let many =
            |count: usize| (0..count).map(|n| RowColumn::new(&n.to_string(), EdmType::Int32));
        assert!(Columns::new(many(255).collect()).is_some());
        assert!(Columns::new(many(256).collect()).is_none());
    }
}
