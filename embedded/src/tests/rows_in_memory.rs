//! Tests rows in memory that share their columns: each is equal to the row that describes itself, whatever is asked.

use entable_core::{
    backend::rules::select_properties,
    edm::{Ticks, Value, ValueRef},
    row::Row,
};
use proptest::prelude::*;

use super::rows::{File, TABLE, any_filter, any_row, any_value, row};
use crate::stored_row::{RowCopier, StoredRow, TableSeed};

/// Stores rows, and copies them into memory as the rows of a page.
fn page(rows: &[Row]) -> Vec<Row> {
    let mut file = File::default();
    let values: Vec<_> = rows.iter().map(|row| (row.sort_key(), file.store(row))).collect();
    let mut copier = RowCopier::of_page(None);
    let copy = |(address, value): &(Vec<u8>, Vec<u8>)| {
        let stored = StoredRow::open(TableSeed::of_table(TABLE), &file.layouts, address, value);
        stored.and_then(|row| copier.copy(&row)).unwrap()
    };
    values.iter().map(copy).collect()
}

fn undecoded(row: &Row) -> Vec<(Vec<u8>, u8, Vec<u8>)> {
    let mut properties = row.properties();
    let mut list = Vec::new();
    while let Some((name, edm, value)) = properties.next_undecoded().unwrap() {
        list.push((name.to_vec(), edm as u8, value.to_vec()));
    }
    list
}

proptest! {
    #[test]
    fn rows_of_a_page_are_the_rows_that_were_stored(
        rows in proptest::collection::vec(any_row(), 1..20),
        filter in any_filter(),
        at in 1..Ticks::MAX.get(),
        value in any_value(),
        names in proptest::sample::subsequence(vec!["A", "B", "EntityType", "Gr\u{fc}n"], 0..4),
    ) {
        let at = Ticks::new(at).unwrap();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let new: [(&str, Value); 2] = [("B", value.clone()), ("New", value)];
        for (read, row) in page(&rows).iter().zip(&rows) {
            prop_assert_eq!(read, row);
            prop_assert_eq!(row, read);
            prop_assert_eq!((read.keys(), read.etag()), (row.keys(), row.etag()));
            prop_assert_eq!(read.as_bytes(), row.as_bytes());
            prop_assert_eq!(read.byte_len(), row.as_bytes().len());
            prop_assert_eq!(undecoded(read), undecoded(row));
            for name in ["A", "B", "C", "D", "E", "EntityType", "Gr\u{fc}n", "New", ""] {
                // NaN is not equal to itself, and its bits were compared above.
                let (found, stored) = (read.get(name).unwrap(), row.get(name).unwrap());
                prop_assert_eq!(format!("{found:?}"), format!("{stored:?}"));
            }
            prop_assert!(read.has_same_content(row) && row.has_same_content(read));
            prop_assert_eq!(read.property_count().unwrap(), row.property_count().unwrap());
            prop_assert_eq!(read.service_size().unwrap(), row.service_size().unwrap());
            prop_assert_eq!(read.check().is_ok(), row.check().is_ok());
            prop_assert_eq!(filter.matches(read).unwrap(), filter.matches(row).unwrap());
            let moved = read.with_keys("q", "s").unwrap();
            prop_assert_eq!(moved, row.with_keys("q", "s").unwrap());
            prop_assert_eq!(read.with_timestamp(at), row.with_timestamp(at));
            prop_assert_eq!(
                read.clone().without_timestamp_and_etag(),
                row.clone().without_timestamp_and_etag()
            );
            prop_assert_eq!(read.with_values(&new).unwrap(), row.with_values(&new).unwrap());
            let selected = select_properties(read, Some(&names)).unwrap();
            prop_assert_eq!(selected, select_properties(row, Some(&names)).unwrap());
        }
    }

    #[test]
    fn rows_that_differ_are_not_equal(rows in proptest::collection::vec(any_row(), 2..8)) {
        let read = page(&rows);
        for (one, read_one) in rows.iter().zip(&read) {
            for (other, read_other) in rows.iter().zip(&read) {
                prop_assert_eq!(read_one == read_other, one.as_bytes() == other.as_bytes());
                prop_assert_eq!(read_one == other, one.as_bytes() == other.as_bytes());
                let same = one.has_same_content(other);
                prop_assert_eq!(read_one.has_same_content(read_other), same);
                prop_assert_eq!(read_one.has_same_content(other), same);
            }
        }
    }
}

/// Both rows have the same bytes, and other columns.
#[test]
fn equal_bytes_under_other_columns_are_other_rows() {
    let rows = [("A", "X"), ("B", "Y")].map(|(name, kind)| {
        row("r", &[("EntityType", ValueRef::String(kind)), (name, ValueRef::Int32(1))])
    });
    let read = page(&rows);
    assert_ne!(read[0], read[1]);
    assert!(!read[0].has_same_content(&read[1]));
}

/// A row by its layout and one in an order of its own have the same bytes in the value that is wrong.
#[test]
fn a_damaged_value_is_an_error_only_for_who_reads_it() {
    let ordered = [("A", ValueRef::Boolean(true)), ("B", ValueRef::Int32(7))];
    let reversed = [ordered[1], ordered[0]];
    for (properties, form) in [(ordered, 2), (reversed, 3)] {
        let mut file = File::default();
        file.store(&row("r", &ordered));
        let row = row("r", &properties);
        let (address, mut value) = (row.sort_key(), file.store(&row));
        assert_eq!(value[0], form);
        // Form, id, Timestamp, presence bits, order.
        let at = 1 + 1 + 8 + 1 + usize::from(form - 2) * 2;
        assert_eq!(std::mem::replace(&mut value[at], 2), 1);
        let body = value.len() - 4;
        let layout = &file.layouts.added_after(0)[0];
        let seed = TableSeed::of_table(TABLE);
        let checksum = seed.checksum(Some(layout), &address, &value[..body]);
        value[body..].copy_from_slice(&checksum);
        let stored = StoredRow::open(seed, &file.layouts, &address, &value).unwrap();
        let read = stored.to_row().unwrap();
        assert_eq!(read.get("B").unwrap(), Some(ValueRef::Int32(7)));
        assert!(read.get("A").unwrap_err().is_corrupt());
        let mut properties = read.properties();
        let list: Vec<_> = std::iter::from_fn(|| properties.next().transpose()).take(3).collect();
        assert_eq!(list.iter().filter(|read| read.is_err()).count(), 1);
        assert!(list.last().unwrap().is_err(), "reading ends with the damage");
        let names = ["B".to_owned()];
        let selected = RowCopier::of_row(Some(&names)).copy(&stored).unwrap();
        assert_eq!(selected.property_count().unwrap(), 1);
    }
}

/// The first 1,000 texts of a page are as long as their numbers, so that pieces end at any place.
#[test]
fn rows_of_any_length_follow_each_other_in_memory() {
    let text = "x".repeat(3_000);
    let rows: Vec<_> = (0..1_000)
        .map(|n| row(&format!("{n}"), &[("Text", ValueRef::String(&text[..n * 7 % 3_000]))]))
        .collect();
    assert_eq!(page(&rows), rows);
}
