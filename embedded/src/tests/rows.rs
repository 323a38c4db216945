//! Tests rows by layout: any row comes back, and damaged or moved bytes are never read as another row.

use std::sync::Arc;

use entable_core::{
    edm::{Ticks, Value, ValueRef},
    filter::{Comparison, Filter},
    row::Row,
};
use proptest::prelude::*;

use crate::{
    dictionary::Dictionary,
    row_encoder::RowEncoder,
    row_layout::RowLayout,
    stored_row::{RowCopier, StoredRow, TableSeed},
};

/// A file, whose rows are all stored under the id of one table.
#[derive(Default)]
pub(super) struct File {
    pub(super) layouts: Arc<Dictionary>,
}

pub(super) const TABLE: u64 = 1;

impl File {
    pub(super) fn store(&mut self, row: &Row) -> Vec<u8> {
        self.store_in("Staff", row)
    }

    pub(super) fn store_in(&mut self, table: &str, row: &Row) -> Vec<u8> {
        let seed = TableSeed::of_table(TABLE);
        RowEncoder::new(seed, table, &mut self.layouts).encode(&row.sort_key(), row).to_vec()
    }

    pub(super) fn read(&self, address: &[u8], value: &[u8]) -> Option<Row> {
        let row = StoredRow::open(TableSeed::of_table(TABLE), &self.layouts, address, value);
        row.and_then(|row| row.to_row()).ok()
    }

    pub(super) fn layout_count(&self) -> usize {
        self.layouts.len()
    }
}

pub(super) fn row(row_key: &str, properties: &[(&str, ValueRef<'_>)]) -> Row {
    let mut row = Row::build("p", row_key);
    properties.iter().for_each(|(name, value)| row.put(name, *value));
    row.finish_at(Ticks::UNIX_EPOCH).unwrap()
}

pub(super) fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<f64>().prop_map(Value::Double),
        (0..=Ticks::MAX.get()).prop_map(|ticks| Value::DateTime(Ticks::new(ticks).unwrap())),
        any::<u128>().prop_map(|id| Value::Guid(uuid::Uuid::from_u128(id))),
        ".{0,9}".prop_map(Value::String),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Binary(bytes.into())),
    ]
}

prop_compose! {
    /// Few names, so that rows share some of them in other orders and with other types.
    pub(super) fn any_row()(
        keys in ("[a\u{e9}\u{ffee}\u{1f600}]{0,2}", "[a-c\u{f000}]{0,2}"),
        names in proptest::sample::subsequence(
            vec!["A", "B", "C", "D", "E", "EntityType", "Gr\u{fc}n"], 0..7,
        ).prop_shuffle(),
        values in proptest::collection::vec(any_value(), 7),
        entity_type in proptest::option::of("[XY]"),
        ticks in 1..Ticks::MAX.get(),
    ) -> Row {
        let mut row = Row::build(&keys.0, &keys.1);
        for (name, value) in names.iter().zip(&values) {
            match &entity_type {
                Some(text) if *name == "EntityType" => row.put(name, ValueRef::String(text)),
                _ => row.put(name, value.as_ref()),
            }
        }
        row.finish_at(Ticks::new(ticks).unwrap()).unwrap()
    }
}

pub(super) fn any_filter() -> impl Strategy<Value = Filter> {
    let names = proptest::sample::select(vec!["A", "C", "EntityType", "PartitionKey", "Timestamp"]);
    (names, any_value(), any::<bool>()).prop_map(|(name, value, is_less)| {
        let comparison = if is_less { Comparison::Lt } else { Comparison::Ge };
        Filter::Compare { property: name.to_owned(), comparison, value }
    })
}

proptest! {
    #[test]
    fn any_row_comes_back(rows in proptest::collection::vec(any_row(), 1..20)) {
        let mut file = File::default();
        let values: Vec<_> = rows.iter().map(|row| file.store(row)).collect();
        for (row, value) in rows.iter().zip(&values) {
            prop_assert_ne!(value[0], 1, "a row with few properties has a layout");
            let back = file.read(&row.sort_key(), value).unwrap();
            prop_assert_eq!(back.as_bytes(), row.as_bytes());
        }
    }

    #[test]
    fn a_self_described_row_comes_back(row in any_row()) {
        let mut file = File { layouts: full_dictionary() };
        let value = file.store(&row);
        prop_assert_eq!(value[0], 1);
        prop_assert_eq!(file.read(&row.sort_key(), &value).unwrap(), row);
    }

    #[test]
    fn a_stored_row_matches_and_selects_as_in_memory(
        others in proptest::collection::vec(any_row(), 0..4),
        row in any_row(),
        filter in any_filter(),
        is_self_described: bool,
    ) {
        let mut file = File::default();
        others.iter().for_each(|row| drop(file.store(row)));
        if is_self_described {
            file.layouts = full_dictionary();
        }
        let (address, value) = (row.sort_key(), file.store(&row));
        let table = TableSeed::of_table(TABLE);
        let Ok(stored) = StoredRow::open(table, &file.layouts, &address, &value) else {
            return Err(TestCaseError::fail("the row is damaged"));
        };
        prop_assert_eq!(stored.matches(&filter).unwrap(), filter.matches(&row).unwrap());
        for names in [vec!["B".to_owned(), "A".to_owned()], vec!["RowKey".to_owned()], vec![]] {
            let selected = RowCopier::of_row(Some(&names)).copy(&stored);
            let expected = entable_core::backend::rules::select_properties(&row, Some(&names));
            prop_assert_eq!(selected.unwrap(), expected.unwrap());
        }
    }
}

/// Returns a dictionary that takes no more layouts.
pub(super) fn full_dictionary() -> Arc<Dictionary> {
    static FULL: std::sync::OnceLock<Arc<Dictionary>> = std::sync::OnceLock::new();
    FULL.get_or_init(|| {
        let mut file = File::default();
        let is_full = |n: usize| {
            let (table, name) = (format!("Table{}", n / 8), format!("Invented{n}"));
            file.store_in(&table, &row("r", &[(&name, ValueRef::Boolean(true))]))[0] == 1
        };
        let count = (0..10_000).position(is_full).unwrap();
        assert_eq!(count, 4_096);
        file.layouts
    })
    .clone()
}

/// Returns a row of the type that has these properties.
pub(super) fn typed(entity_type: &str, names: &[&str]) -> Row {
    let mut properties = vec![("EntityType", ValueRef::String(entity_type))];
    properties.extend(names.iter().map(|name| (*name, ValueRef::Int32(1))));
    row("r", &properties)
}

#[test]
fn a_layout_has_at_most_255_columns() {
    let decoded = |count: u16| {
        let names = (0..count).map(|n| format!("{n:03}"));
        let columns = names.map(|name| [&[2, 3, 0][..], name.as_bytes()].concat());
        let body =
            [&[1, 2, 1, 0, b'T'][..], &count.to_le_bytes(), &columns.collect::<Vec<_>>().concat()];
        RowLayout::decode_body(0, &body.concat()).is_some()
    };
    assert!(decoded(255) && !decoded(256));
}

/// A plan of a layout is exact, so that nothing is built beyond the bounds.
#[test]
fn the_bytes_of_a_layout_are_known_before_it_is_made() {
    let mut file = File::default();
    for n in 0..40 {
        let text = format!("Type{}", n % 2);
        file.store(&typed(&text, &[&format!("Name{n}"), "A"]));
        file.store(&row("r", &[(&format!("Other{n}"), ValueRef::Int32(7))]));
    }
    for layout in file.layouts.added_after(0) {
        let (decoded, kind) = RowLayout::decode(layout.id, &layout.bytes).unwrap();
        let names = decoded.columns.list().iter().map(|column| column.name().len());
        assert_eq!(RowLayout::bytes_of(kind, names), layout.bytes.len());
    }
}

#[test]
fn a_row_with_a_byte_too_many_or_turned_ends_is_damaged() {
    let layout = [&[1, 2, 1, 0, b'T', 2, 0][..], &[5, 1, 0, b'A'], &[5, 1, 0, b'B']].concat();
    let (layout, _) = RowLayout::decode_body(0, &layout).unwrap();
    let read = |first: u32, last: u32, texts: &[u8]| {
        let ends = [first.to_le_bytes(), last.to_le_bytes()].concat();
        let row = [&[2, 0][..], &7_i64.to_le_bytes(), &[3], &ends, texts].concat();
        StoredRow::open_checked(Some(&layout), b"p\0r", &row)?.to_row().ok()
    };
    assert!(read(1, 2, b"xy").is_some());
    assert!(read(1, 2, b"xyz").is_none() && read(1, 3, b"xy").is_none());
    assert!(read(2, 1, b"x").is_none() && read(3, 2, b"xy").is_none());
}

/// A name selects other columns in each layout.
#[test]
fn a_selection_follows_the_layouts_of_the_rows() {
    let mut file = File::default();
    let rows = [typed("T", &["A", "B"]), typed("U", &["C", "B", "A"]), typed("T", &["B", "A"])];
    let values: Vec<_> = rows.iter().map(|row| file.store(row)).collect();
    let names = ["A".to_owned()];
    let mut copier = RowCopier::of_page(Some(&names));
    for at in [0, 1, 0, 2, 1] {
        let (address, table) = (rows[at].sort_key(), TableSeed::of_table(TABLE));
        let stored = StoredRow::open(table, &file.layouts, &address, &values[at]);
        let selected = stored.and_then(|row| copier.copy(&row)).unwrap();
        let expected = entable_core::backend::rules::select_properties(&rows[at], Some(&names));
        assert_eq!(selected, expected.unwrap());
    }
}

#[test]
fn a_checksum_tells_an_address_from_a_row() {
    let seed = TableSeed::of_table(TABLE);
    assert_ne!(seed.checksum(None, b"p\0", b"row"), seed.checksum(None, b"p\0r", b"ow"));
}

#[test]
fn a_row_takes_its_values_and_little_more() {
    let mut file = File::default();
    let row = row(
        "empid_000223",
        &[
            ("EntityType", ValueRef::String("Employee")),
            ("FirstName", ValueRef::String("Kim")),
            ("LastName", ValueRef::String("Jones")),
            ("Age", ValueRef::Int32(34)),
            ("Joined", ValueRef::DateTime(Ticks::UNIX_EPOCH)),
        ],
    );
    // Format, layout, Timestamp, presence; values; two ends and the texts; checksum.
    assert_eq!(file.store(&row).len(), (1 + 1 + 8 + 1) + (4 + 8) + (2 * 4 + 3 + 5) + 4);
}

/// Returns rows of both forms, with their values.
fn samples(file: &mut File) -> Vec<(Row, Vec<u8>)> {
    let text = ("Text", ValueRef::String("gr\u{fc}n"));
    let number = ("Number", ValueRef::Int32(7));
    let kind = ("EntityType", ValueRef::String("Employee"));
    let bytes = ("Bytes", ValueRef::Binary(&[1, 2, 3]));
    let rows = [
        row("all", &[kind, text, number, bytes]),
        row("some", &[kind, number]),
        row("turned", &[bytes, number, kind]),
        row("none", &[]),
    ];
    let mut samples: Vec<_> = rows.into_iter().map(|row| (row.clone(), file.store(&row))).collect();
    let mut full = File { layouts: full_dictionary() };
    let described = row("described", &[kind, text]);
    samples.push((described.clone(), full.store(&described)));
    samples
}

#[test]
fn each_changed_bit_of_a_row_is_seen() {
    let mut file = File::default();
    for (row, value) in samples(&mut file) {
        let address = row.sort_key();
        assert_eq!(file.read(&address, &value), Some(row));
        for bit in 0..8 * value.len() {
            let mut damaged = value.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(file.read(&address, &damaged), None, "bit {bit}");
        }
        for end in 0..value.len() {
            assert_eq!(file.read(&address, &value[..end]), None, "the row ends at {end}");
        }
        assert_eq!(file.read(&address, &[&*value, &[0]].concat()), None);
    }
}

#[test]
fn each_changed_bit_of_a_layout_is_seen() {
    let mut file = File::default();
    samples(&mut file);
    for layout in file.layouts.added_after(0) {
        let bytes = layout.bytes.to_vec();
        assert!(RowLayout::decode(layout.id, &bytes).is_some());
        assert!(RowLayout::decode(layout.id + 1, &bytes).is_none(), "it is under another id");
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(RowLayout::decode(layout.id, &damaged).is_none(), "bit {bit}");
        }
    }
}

#[test]
fn a_row_at_another_address_or_in_another_table_is_damaged() {
    let mut file = File::default();
    for (row, value) in samples(&mut file) {
        let address = row.sort_key();
        let other = Row::build("p", "other").finish().unwrap().sort_key();
        assert_eq!(file.read(&other, &value), None);
        let other_table = TableSeed::of_table(TABLE + 1);
        assert!(StoredRow::open(other_table, &file.layouts, &address, &value).is_err());
    }
}

/// The other layout has the same id, as in another file or after commits that were lost. It even fits the row.
#[test]
fn a_row_under_another_layout_is_damaged() {
    let (mut file, mut other) = (File::default(), File::default());
    let stored = row("r", &[("A", ValueRef::Int32(1))]);
    let value = file.store(&stored);
    other.store(&row("r", &[("B", ValueRef::Int32(1))]));
    assert_eq!(file.read(&stored.sort_key(), &value), Some(stored.clone()));
    assert_eq!(other.read(&stored.sort_key(), &value), None);
    assert_eq!(File::default().read(&stored.sort_key(), &value), None, "the layout is missing");
}

/// Also if its values have two types, which a layout may both have. Such a row adds no layout.
#[test]
fn a_row_that_gives_a_property_twice_does_not_decode() {
    let mut file = File::default();
    let (number, text) = (("A", ValueRef::Int32(1)), ("A", ValueRef::String("one")));
    let known = [row("r", &[number, ("B", ValueRef::Int32(1))]), row("r", &[text])];
    known.iter().for_each(|row| drop(file.store(row)));
    let count = file.layout_count();
    for twice in [[number, number], [number, text], [text, number]] {
        for more in [("B", ValueRef::Int32(1)), ("C", ValueRef::Int32(1))] {
            let twice = row("r", &[&[more], &twice[..]].concat());
            let value = file.store(&twice);
            assert_eq!(file.read(&twice.sort_key(), &value), None);
            assert_eq!(file.layout_count(), count);
        }
    }
}

/// A row of the layout of `A` as a number and `A` as a text: it may have either.
#[test]
fn a_row_has_a_property_in_one_type() {
    let layout = [&[1, 2, 1, 0, b'T', 2, 0][..], &[2, 1, 0, b'A'], &[5, 1, 0, b'A']].concat();
    let (layout, _) = RowLayout::decode_body(0, &layout).unwrap();
    let read = |presence: u8, values: &[u8]| {
        let row =
            [&[2, 0][..], &Ticks::UNIX_EPOCH.get().to_le_bytes(), &[presence], values].concat();
        StoredRow::open_checked(Some(&layout), b"p\0r", &row)?.to_row().ok()
    };
    let (number, text) = (&[1, 0, 0, 0][..], &[1, 0, 0, 0, b'x'][..]);
    assert_eq!(read(1, number), Some(row("r", &[("A", ValueRef::Int32(1))])));
    assert_eq!(read(2, text), Some(row("r", &[("A", ValueRef::String("x"))])));
    assert_eq!(read(3, &[number, text].concat()), None);
}

#[test]
fn a_layout_has_each_column_once_and_the_text_of_its_kind_once() {
    let decoded = |kind: u8, columns: &[&[u8]]| {
        let count = [u8::try_from(columns.len()).unwrap(), 0];
        let body = [&[1, kind, 1, 0, b'T'][..], &count, &columns.concat()].concat();
        RowLayout::decode_body(0, &body).is_some()
    };
    let named = |tag: u8| [&[tag, 10, 0][..], b"EntityType"].concat();
    let (number, text) = (&[2, 1, 0, b'A'][..], &[5, 1, 0, b'A'][..]);
    let (constant, other_type) = (&*named(9), &*named(5));
    assert!(decoded(2, &[number, text]) && decoded(1, &[number, constant]) && decoded(2, &[]));
    assert!(!decoded(2, &[number, number]), "a column is there twice");
    assert!(!decoded(2, &[number, constant]), "the kind has no text");
    assert!(!decoded(1, &[number]) && !decoded(1, &[constant, constant]));
    assert!(!decoded(0, &[number]) && !decoded(3, &[number]), "there is no such kind");
    assert!(!decoded(1, &[constant, other_type]), "the text is a String too");
    assert!(!decoded(1, &[&[9, 1, 0, b'A']]), "no other property has a text for all rows");
    assert!(decoded(2, &[number, text]), "one name, two types");
}
