//! Tests which layout a row gets: how few layouts many rows share, and what bounds them.

use std::sync::Arc;

use entable_core::{
    edm::{Ticks, ValueRef},
    row::Row,
};

use super::rows::{File, TABLE, full_dictionary, row, typed};
use crate::{dictionary::Dictionary, row_encoder::RowEncoder, stored_row::TableSeed};

/// Wide layouts fill the dictionary by their bytes, long before their number.
#[test]
fn layouts_take_at_most_a_mebibyte() {
    let mut file = File::default();
    let mut bytes = 0;
    for n in 0..4_096 {
        let names: Vec<_> = (0..200).map(|at| format!("{n:04}{}{at:03}", "x".repeat(60))).collect();
        let properties: Vec<_> =
            names.iter().map(|name| (&**name, ValueRef::Boolean(true))).collect();
        let before = file.layout_count();
        file.store_in(&format!("Table{n}"), &row("r", &properties));
        let Some(added) = file.layouts.added_after(before).first() else { break };
        bytes += added.bytes.len();
    }
    assert!((900_000..=1024 * 1024).contains(&bytes), "{bytes}");
}

/// If `EntityType` is data and not a type, later rows share the layouts of their table.
#[test]
fn texts_of_entity_type_that_are_data_do_not_fill_the_dictionary() {
    let mut file = File::default();
    for n in 0..3_000 {
        let text = format!("{n}");
        let row = row("r", &[("EntityType", ValueRef::String(&text)), ("A", ValueRef::Int32(n))]);
        let value = file.store(&row);
        assert_eq!(file.read(&row.sort_key(), &value).unwrap(), row);
    }
    assert_eq!(file.layout_count(), 1_024 + 1);
}

/// A type with 20 optional properties needs few layouts, although its rows have different ones.
#[test]
fn a_type_with_optional_properties_has_few_layouts() {
    let names: Vec<_> = (0..20).map(|n| format!("Property{n}")).collect();
    for share in [1, 5, 9] {
        let (mut file, mut random) = (File::default(), 7_u64);
        for _ in 0..2_000 {
            let mut row = Row::build("p", "r");
            row.put("EntityType", ValueRef::String("Employee"));
            for name in &names {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if random >> 33 & 0xff < share * 25 {
                    row.put(name, ValueRef::Int32(1));
                }
            }
            let row = row.finish_at(Ticks::UNIX_EPOCH).unwrap();
            let value = file.store(&row);
            assert_eq!(file.read(&row.sort_key(), &value).unwrap(), row);
        }
        assert!(file.layout_count() <= 21, "{}", file.layout_count());
    }
}

/// Returns a number that is the same in each run, below `end`.
fn next_random(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*state >> 33).unwrap() % end
}

/// A type has 120 properties, and each row stores five of them.
#[test]
fn rows_with_few_of_many_properties_share_layouts() {
    let names: Vec<_> = (0..120).map(|n| format!("Property{n}")).collect();
    for kind in ["Reading", ""] {
        let (mut file, mut random, mut described) = (File::default(), 7, 0);
        for _ in 0..3_000 {
            let mut row = Row::build("p", "r");
            if !kind.is_empty() {
                row.put("EntityType", ValueRef::String(kind));
            }
            let mut has = std::collections::BTreeSet::new();
            has.extend((0..5).map(|_| next_random(&mut random, names.len())));
            has.iter().for_each(|at| row.put(&names[*at], ValueRef::Int32(1)));
            let row = row.finish_at(Ticks::UNIX_EPOCH).unwrap();
            let value = file.store(&row);
            described += usize::from(value[0] == 1);
            assert_eq!(file.read(&row.sort_key(), &value).unwrap(), row);
        }
        assert!(file.layout_count() <= 64, "{}", file.layout_count());
        assert_eq!(described, 0);
    }
}

/// A client's numbers without a type are of type Int32 or Double by their values.
#[test]
fn properties_of_two_types_share_a_layout() {
    let names: Vec<_> = (0..12).map(|n| format!("Number{n}")).collect();
    let (mut file, mut random) = (File::default(), 7);
    for _ in 0..2_000 {
        let mut row = Row::build("p", "r");
        for name in &names {
            let is_whole = next_random(&mut random, 2) == 0;
            row.put(name, if is_whole { ValueRef::Int32(1) } else { ValueRef::Double(0.5) });
        }
        let row = row.finish_at(Ticks::UNIX_EPOCH).unwrap();
        let value = file.store(&row);
        assert_ne!(value[0], 1);
        assert_eq!(file.read(&row.sort_key(), &value).unwrap(), row);
    }
    assert!(file.layout_count() <= 24, "{}", file.layout_count());
}

/// Whether it comes first or last, a row with many properties does not widen those with few.
#[test]
fn a_wide_row_does_not_widen_the_others() {
    let names: Vec<_> = (0..200).map(|n| format!("Extra{n}")).collect();
    let kind = ("EntityType", ValueRef::String("Employee"));
    let small = row("small", &[kind, ("Age", ValueRef::Int32(34))]);
    let mut wide: Vec<_> = names.iter().map(|name| (&**name, ValueRef::Boolean(true))).collect();
    wide.extend([kind, ("Age", ValueRef::Int32(34))]);
    let wide = row("wide", &wide);
    for order in [[&small, &wide, &small], [&wide, &small, &small]] {
        let mut file = File::default();
        let lengths = order.map(|row| file.store(row).len());
        assert_eq!(*lengths.iter().min().unwrap(), (1 + 1 + 8 + 1) + 4 + 4, "{lengths:?}");
        assert_eq!(file.layout_count(), 2);
    }
}

/// Names that a client invents fill the budget of its table, and no other.
#[test]
fn each_kind_has_a_budget_of_its_own() {
    let mut file = File::default();
    let number = ValueRef::Int32(7);
    for n in 0..300 {
        file.store_in("Wild", &row("r", &[(&format!("Invented{n}"), number)]));
    }
    assert_eq!(file.layout_count(), 64);
    // As many types of one table do not fill its budget either: theirs is that of their type.
    for n in 0..300 {
        let text = format!("Type{n}");
        let typed = row("r", &[("EntityType", ValueRef::String(&text)), ("A", number)]);
        assert_ne!(file.store_in("Wild", &typed)[0], 1);
        assert_ne!(file.store_in(&format!("Table{n}"), &row("r", &[("A", number)]))[0], 1);
    }
    let count = file.layout_count();
    assert_eq!(count, 64 + 600);
    for n in 0..300 {
        assert_ne!(file.store_in(&format!("Table{n}"), &row("r", &[("A", number)]))[0], 1);
        let wide = format!("{}{n}", "x".repeat(200));
        let names: Vec<_> = (0..100).map(|at| format!("{wide}{at}")).collect();
        let wide: Vec<_> = names.iter().map(|name| (&**name, number)).collect();
        file.store_in("Wide", &row("r", &wide));
    }
    assert_eq!(file.layout_count(), count + 3, "layouts of 20 KB fill a budget of 64 KiB");
}

/// An `EntityType` that comes when the dictionary is full is a value of rows that fit another layout.
#[test]
fn rows_of_a_late_type_use_the_layouts_of_their_table() {
    let mut layouts = full_dictionary();
    let kind = ("EntityType", ValueRef::String("Late"));
    let late = row("r", &[("Invented1", ValueRef::Boolean(true))]);
    let value = |layouts: &mut Arc<Dictionary>, row: &Row| {
        let seed = TableSeed::of_table(TABLE);
        RowEncoder::new(seed, "Table0", layouts).encode(&row.sort_key(), row).to_vec()
    };
    assert_eq!(value(&mut layouts, &late)[0], 2);
    assert_eq!(value(&mut layouts, &row("r", &[kind]))[0], 1, "no layout has EntityType");
}

#[test]
fn a_row_without_a_layout_leaves_the_dictionary_shared() {
    let full = full_dictionary();
    let mut file = File { layouts: full.clone() };
    assert_eq!(file.store(&row("r", &[("New", ValueRef::Int32(7))]))[0], 1);
    assert!(Arc::ptr_eq(&full, &file.layouts), "the dictionary was copied");
}

/// Returns the number of columns of the newest layout.
fn newest_width(file: &File) -> usize {
    file.layouts.added_after(file.layout_count() - 1).first().unwrap().columns.list().len()
}

#[test]
fn rows_of_a_type_share_a_layout_also_with_nothing_else_in_common() {
    let mut file = File::default();
    for (names, count) in [(&["A"][..], 1), (&["B"], 2), (&["A", "B"], 2)] {
        file.store(&typed("T", names));
        assert_eq!(file.layout_count(), count, "{names:?}");
    }
    assert_eq!(newest_width(&file), 3);
}

/// Rows without `EntityType` extend a layout only if at least half of the wider one is common, and the nearest one.
#[test]
fn rows_of_a_table_extend_the_nearest_layout() {
    let value = ValueRef::Int32(1);
    let of = |names: &str| {
        let names: Vec<_> = names.split("").filter(|name| !name.is_empty()).collect();
        row("r", &names.iter().map(|name| (*name, value)).collect::<Vec<_>>())
    };
    for (rows, widths) in [
        (&["ABCD", "ABXY"][..], &[4, 6][..]),
        (&["ABCD", "AXYZ"], &[4, 4]),
        (&["ABCD", "AX"], &[4, 2]),
        (&["ABCDEFGH", "ABC"], &[8]),
        (&["ABC", "DEF", "ABX", "DEY"], &[3, 3, 4, 4]),
    ] {
        let mut file = File::default();
        rows.iter().for_each(|names| drop(file.store(&of(names))));
        let all = file.layouts.added_after(0).iter().map(|layout| layout.columns.list().len());
        assert_eq!(all.collect::<Vec<_>>(), widths, "{rows:?}");
    }
}

/// A row of two properties is stored by a layout of 20 columns, and not by one of 21.
#[test]
fn a_layout_is_right_for_rows_with_a_part_of_its_columns() {
    let names: Vec<_> = (0..20).map(|n| format!("N{n:02}")).collect();
    let names: Vec<_> = names.iter().map(|name| &**name).collect();
    for (width, count) in [(20, 1), (21, 2)] {
        let mut file = File::default();
        file.store(&typed("T", &names[..width - 1]));
        file.store(&typed("T", &["N07"]));
        assert_eq!(file.layout_count(), count, "{width}");
    }
    // If there can be no other layout, it is stored by that.
    let mut file = File::default();
    file.store(&typed("T", &names));
    let texts: Vec<_> = (0..1_023).map(|n| format!("T{n}")).collect();
    for text in &texts {
        for names in [&["A"][..], &["B"], &["C"], &["D"]] {
            file.store(&typed(text, names));
        }
    }
    assert_eq!(file.layout_count(), 1 + 1_023 * 4, "each of 1,023 texts has layouts");
    for name in ["A", "B", "C"] {
        file.store_in("Other", &row("r", &[(name, ValueRef::Int32(1))]));
    }
    assert_eq!(file.layout_count(), 4_096);
    assert_eq!(file.store(&typed("T", &["N07"]))[0], 2);
}

/// The eighth layout of a kind is for its own rows, the ninth has the columns of all, as long as they are not too many.
#[test]
fn many_layouts_of_a_kind_share_their_columns() {
    for (own, ninth) in [(2, 18), (28, 252), (29, 29)] {
        let mut file = File::default();
        for n in 0..9 {
            let names: Vec<_> = (0..own).map(|at| format!("N{n}x{at:02}")).collect();
            let names = names.iter().map(|name| (&**name, ValueRef::Int32(1)));
            let value = file.store(&row("r", &names.collect::<Vec<_>>()));
            assert_eq!(value[0], 2);
            assert_eq!(newest_width(&file), if n == 8 { ninth } else { own });
        }
    }
}

#[test]
fn a_new_column_follows_the_one_before_it_in_the_row() {
    let mut file = File::default();
    file.store(&typed("T", &["A", "D"]));
    for names in [["A", "B", "D"], ["A", "C", "D"]] {
        assert_eq!(file.store(&typed("T", &names))[0], 2, "the row has an order of its own");
    }
    assert_eq!(file.layout_count(), 3);
}

/// An `EntityType` has the same layouts in all tables. Rows without it have layouts of their table.
#[test]
fn a_type_that_is_full_leaves_its_table_alone() {
    let mut file = File::default();
    for n in 0..300 {
        file.store(&typed("Wild", &[&format!("Invented{n}")]));
    }
    assert_eq!(file.layout_count(), 64);
    assert_eq!(file.store(&typed("Wild", &["New"]))[0], 1);
    assert_eq!(file.store(&row("r", &[("New", ValueRef::Int32(7))]))[0], 2);
    assert_eq!(file.layout_count(), 65);
}

#[test]
fn a_long_entity_type_is_a_value() {
    let mut file = File::default();
    for (length, kind) in [(255, 1), (256, 2), (30_000, 2)] {
        let row = typed(&"x".repeat(length), &[&format!("A{length}")]);
        let value = file.store(&row);
        assert_eq!(file.read(&row.sort_key(), &value), Some(row));
        let layout = file.layouts.added_after(file.layout_count() - 1).first().unwrap();
        assert_eq!(layout.bytes[1], kind, "{length}");
    }
}

/// Rows without `EntityType` that have nothing in common do not share a layout, as long as there are few such kinds.
#[test]
fn rows_with_nothing_in_common_have_layouts_of_their_own() {
    let mut file = File::default();
    let mut value = |name| file.store(&row("r", &[(name, ValueRef::Boolean(true))])).len();
    assert_eq!(["A", "B", "C", "D", "E", "F", "G", "H"].map(&mut value), [16; 8]);
    // With 9 columns, and then 10.
    assert_eq!(["I", "J", "A", "I"].map(&mut value), [17, 17, 16, 17]);
    assert_eq!(file.layout_count(), 10);
}
