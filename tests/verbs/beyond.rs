//! Tests conditions and ranges with values that a property or a part of a key cannot hold: the keys
//! answer them exactly, and nothing is refused that has an answer.

use entable::{Predicate, prelude::*};
use time::{OffsetDateTime, macros::datetime};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Plain", partition_key = "{part}", row_key = "{number}")]
struct Plain {
    part: u8,
    number: u64,
    stored: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, KeyPart)]
struct Serial(u64);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Serials", partition_key = "{part}", row_key = "{serial}")]
struct Item {
    part: u8,
    serial: Serial,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Latest", partition_key = "{part}", row_key = "{number:desc}")]
struct Latest {
    part: u8,
    number: u64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Wide", partition_key = "{part}", row_key = "{number:020}_{id}")]
struct Wide {
    part: u8,
    number: u64,
    id: u8,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Narrow", partition_key = "{part}", row_key = "n_{number:03}_{id}")]
struct Narrow {
    part: u8,
    number: i64,
    id: u8,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Dated", partition_key = "{part}", row_key = "{at}")]
struct Dated {
    part: u8,
    at: OffsetDateTime,
    seen: Option<OffsetDateTime>,
}

const ABOVE: u64 = 1 << 63;
const NUMBERS: [u64; 5] = [0, 7, ABOVE - 1, ABOVE, u64::MAX];

async fn table_of<E: TableEntity + Clone>(entities: impl IntoIterator<Item = E>) -> Table<E> {
    let table = Client::memory().table::<E>();
    table.create().await.unwrap();
    for entity in entities {
        table.insert(&entity).await.unwrap();
    }
    table
}

/// Compares what the conditions find in the partition with what the same comparisons say of `values`.
macro_rules! conditions_agree {
    ($table:expr, $path:expr, $column:expr, $field:ident, $values:expr, $operands:expr) => {
        for operand in $operands {
            conditions_agree!(@one $table, $path, $column, $field, $values, operand, eq ==);
            conditions_agree!(@one $table, $path, $column, $field, $values, operand, ne !=);
            conditions_agree!(@one $table, $path, $column, $field, $values, operand, lt <);
            conditions_agree!(@one $table, $path, $column, $field, $values, operand, le <=);
            conditions_agree!(@one $table, $path, $column, $field, $values, operand, gt >);
            conditions_agree!(@one $table, $path, $column, $field, $values, operand, ge >=);
        }
    };
    (@one $table:expr, $path:expr, $column:expr, $field:ident, $values:expr, $operand:expr,
     $name:ident $op:tt) => {
        let items = $table.query($path).filter($column.$name($operand)).collect().await.unwrap();
        let mut found: Vec<_> = items.iter().map(|item| item.$field).collect();
        found.sort();
        let expected: Vec<_> = $values.into_iter().filter(|value| *value $op $operand).collect();
        assert_eq!(found, expected, "{} {:?}", stringify!($name), $operand);
    };
}

#[tokio::test]
async fn keys_answer_for_numbers_that_no_property_holds() {
    let operands = [0, 8, ABOVE - 1, ABOVE, ABOVE + 1, u64::MAX];
    let plain = NUMBERS.map(|number| Plain { part: 1, number, stored: None });
    let plain = table_of(plain).await;
    conditions_agree!(plain, Plain::primary().part(1), Plain::NUMBER, number, NUMBERS, operands);
    let latest = table_of(NUMBERS.map(|number| Latest { part: 1, number })).await;
    conditions_agree!(latest, Latest::primary().part(1), Latest::NUMBER, number, NUMBERS, operands);
    let wide = table_of(NUMBERS.map(|number| Wide { part: 1, number, id: 1 })).await;
    conditions_agree!(wide, Wide::primary().part(1), Wide::NUMBER, number, NUMBERS, operands);
    // Where the path fixes the number, the answer is a constant.
    let point = || Plain::primary().part(1).number(u64::MAX);
    assert_eq!(plain.query(point()).filter(Plain::NUMBER.ge(u64::MAX)).count().await.unwrap(), 1);
    assert_eq!(plain.query(point()).filter(Plain::NUMBER.lt(u64::MAX)).count().await.unwrap(), 0);
}

#[tokio::test]
async fn keys_answer_for_ids_that_no_property_holds() {
    let serials = NUMBERS.map(Serial);
    let items = table_of(serials.map(|serial| Item { part: 1, serial })).await;
    let operands = [0, 8, ABOVE - 1, ABOVE, ABOVE + 1, u64::MAX].map(Serial);
    conditions_agree!(items, Item::primary().part(1), Item::SERIAL, serial, serials, operands);
    let point = Item::primary().part(1).serial(Serial(u64::MAX));
    assert_eq!(items.query(point).count().await.unwrap(), 1);
    let above = Item::primary().part(1).serial_range(Serial(ABOVE)..);
    assert_eq!(items.query(above).count().await.unwrap(), 2);
}

#[tokio::test]
async fn keys_answer_for_numbers_that_are_wider_than_their_part() {
    let values = [0, 7, 998, 999];
    let narrow = table_of(values.map(|number| Narrow { part: 1, number, id: 1 })).await;
    let operands = [i64::MIN, -1, 0, 7, 999, 1_000, i64::MAX];
    conditions_agree!(narrow, Narrow::primary().part(1), Narrow::NUMBER, number, values, operands);
}

#[tokio::test]
async fn ranges_end_at_the_widest_number_of_their_part() {
    let values = [0, 7, 998, 999];
    let narrow = table_of(values.map(|number| Narrow { part: 1, number, id: 1 })).await;
    let found = |from: std::ops::Bound<i64>, to: std::ops::Bound<i64>| {
        let path = Narrow::primary().part(1).number_range((from, to));
        let narrow = narrow.clone();
        async move {
            let items = narrow.query(path).collect().await.unwrap();
            items.iter().map(|item| item.number).collect::<Vec<_>>()
        }
    };
    use std::ops::Bound::{Excluded, Included, Unbounded};
    for operand in [i64::MIN, -1, 0, 7, 999, 1_000, i64::MAX] {
        let filtered = |keep: &dyn Fn(i64) -> bool| {
            values.into_iter().filter(|value| keep(*value)).collect::<Vec<_>>()
        };
        assert_eq!(found(Included(operand), Unbounded).await, filtered(&|it| it >= operand));
        assert_eq!(found(Excluded(operand), Unbounded).await, filtered(&|it| it > operand));
        assert_eq!(found(Unbounded, Included(operand)).await, filtered(&|it| it <= operand));
        assert_eq!(found(Unbounded, Excluded(operand)).await, filtered(&|it| it < operand));
    }
    assert_eq!(found(Included(0), Excluded(1_000)).await, values);
    let path = Narrow::primary().part(1).number_range(0..1_000);
    let explained = narrow.query(path).explain().to_string();
    assert!(explained.contains("(RowKey ge 'n_000') and (RowKey lt 'n`')"), "{explained}");
}

#[tokio::test]
async fn keys_answer_for_times_before_those_of_properties() {
    let times = [
        datetime!(0001-01-01 0:00 UTC),
        datetime!(1000-06-01 12:00 UTC),
        datetime!(1600-12-31 23:59 UTC),
        datetime!(2014-08-22 0:50 UTC),
    ];
    let dated = table_of(times.map(|at| Dated { part: 1, at, seen: None })).await;
    let operands =
        [times[0], times[1], datetime!(1200-01-01 0:00 UTC), datetime!(1601-01-01 0:00 UTC)];
    conditions_agree!(dated, Dated::primary().part(1), Dated::AT, at, times, operands);
}

#[tokio::test]
async fn a_property_answers_for_values_that_it_cannot_hold() {
    let of = |number, stored| Plain { part: 1, number, stored };
    let plain = table_of([of(1, None), of(2, Some(0)), of(3, Some(ABOVE - 1))]).await;
    let found = |condition: Predicate<Plain>| {
        let query = plain.query(Plain::primary().part(1)).filter(condition);
        async move {
            let items = query.collect().await.unwrap();
            items.iter().map(|item| item.number).collect::<Vec<_>>()
        }
    };
    // A row without the property meets no comparison with it.
    assert_eq!(found(Plain::STORED.lt(ABOVE)).await, [2, 3]);
    assert_eq!(found(Plain::STORED.le(u64::MAX)).await, [2, 3]);
    assert_eq!(found(Plain::STORED.ne(ABOVE)).await, [2, 3]);
    assert_eq!(found(!Plain::STORED.lt(ABOVE)).await, [1]);
    for none in [Plain::STORED.ge(ABOVE), Plain::STORED.gt(ABOVE), Plain::STORED.eq(ABOVE)] {
        assert_eq!(found(none).await, Vec::<u64>::new());
    }
    let seen = Some(datetime!(2014-08-22 0:50 UTC));
    let times = [None, seen].map(|seen| Dated {
        part: 1,
        at: seen.unwrap_or(OffsetDateTime::UNIX_EPOCH),
        seen,
    });
    let dated = table_of(times).await;
    let before = datetime!(1000-01-01 0:00 UTC);
    let count = |condition| {
        let query = dated.query(Dated::primary().part(1)).filter(condition);
        async move { query.count().await }
    };
    assert_eq!(count(Dated::SEEN.gt(before)).await.unwrap(), 1);
    assert_eq!(count(Dated::SEEN.le(before)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_value_that_a_write_cannot_store_is_refused_as_ever() {
    let plain = table_of::<Plain>([]).await;
    let error = plain.insert(&Plain { part: 1, number: 1, stored: Some(ABOVE) }).await.unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.property(), Some("Stored"));
    let narrow = table_of::<Narrow>([]).await;
    let error = narrow.insert(&Narrow { part: 1, number: 1_000, id: 1 }).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    // A point has no nearest value.
    let point = Narrow::primary().part(1).number(1_000).id(1);
    assert!(narrow.get(point).await.unwrap_err().is_invalid());
}
