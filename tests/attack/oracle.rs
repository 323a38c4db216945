//! Compares random conditions on fields that only the keys hold with an evaluation in plain Rust.

use entable::{entity::Predicate, prelude::*};
use proptest::prelude::*;

use crate::table;

#[derive(Debug, Clone, PartialEq, EdmEnum)]
enum Kind {
    Red,
    Green,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Oracle",
    partition_key = "{a}_{b}",
    row_key = "r_{c}_{d:desc}_{e}",
    index(ByValue, row_key = "v_{v:03}_{c}_{d:desc}_{e}", only(kind))
)]
struct Row {
    a: u8,
    b: String,
    c: i16,
    d: u8,
    e: String,
    v: u8,
    kind: Option<Kind>,
    n: Option<i32>,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Row)]
struct Part {
    b: String,
    v: u8,
    d: u8,
    kind: Option<Kind>,
}

const TEXTS: [&str; 5] = ["", "x", "x_y", "😀", "~"];

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for a in [0, 1, 200] {
        for b in ["", "x", "x_y"] {
            for (at, e) in TEXTS.into_iter().enumerate() {
                for (c, d) in [(-1, 0), (0, 7), (300, 7), (-1, 255)] {
                    let v = (at as u8 + d % 8) % 4;
                    let kind =
                        [None, Some(Kind::Red), Some(Kind::Green)][usize::from(v) % 3].clone();
                    let n = (v != 1).then_some(i32::from(c) + 1);
                    rows.push(Row { a, b: b.into(), c, d, e: e.into(), v, kind, n });
                }
            }
        }
    }
    rows
}

#[derive(Debug, Clone)]
enum Tree {
    A(u8, u8),
    B(u8, usize),
    C(u8, i16),
    D(u8, u8),
    E(u8, usize),
    V(u8, u8),
    N(u8, i32),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Not(Box<Tree>),
}

fn holds<T: PartialOrd>(op: u8, found: &T, value: &T) -> bool {
    match op {
        0 => found == value,
        1 => found != value,
        2 => found < value,
        3 => found <= value,
        4 => found > value,
        _ => found >= value,
    }
}

macro_rules! compare {
    ($column:expr, $op:expr, $value:expr) => {
        match $op {
            0 => $column.eq($value),
            1 => $column.ne($value),
            2 => $column.lt($value),
            3 => $column.le($value),
            4 => $column.gt($value),
            _ => $column.ge($value),
        }
    };
}

impl Tree {
    fn matches(&self, row: &Row) -> bool {
        match self {
            Self::A(op, v) => holds(*op, &row.a, v),
            Self::B(op, v) => holds(*op, &row.b.as_str(), &TEXTS[*v]),
            Self::C(op, v) => holds(*op, &row.c, v),
            Self::D(op, v) => holds(*op, &row.d, v),
            Self::E(op, v) => holds(*op, &row.e.as_str(), &TEXTS[*v]),
            Self::V(op, v) => holds(*op, &row.v, v),
            Self::N(op, v) => row.n.is_some_and(|n| holds(*op, &n, v)),
            Self::And(a, b) => a.matches(row) && b.matches(row),
            Self::Or(a, b) => a.matches(row) || b.matches(row),
            Self::Not(a) => !a.matches(row),
        }
    }

    fn filter(&self) -> Predicate<Row> {
        match self {
            Self::A(op, v) => compare!(Row::A, op, *v),
            Self::B(op, v) => compare!(Row::B, op, TEXTS[*v]),
            Self::C(op, v) => compare!(Row::C, op, *v),
            Self::D(op, v) => compare!(Row::D, op, *v),
            Self::E(op, v) => compare!(Row::E, op, TEXTS[*v]),
            Self::V(op, v) => compare!(Row::V, op, *v),
            Self::N(op, v) => compare!(Row::N, op, *v),
            Self::And(a, b) => a.filter() & b.filter(),
            Self::Or(a, b) => a.filter() | b.filter(),
            Self::Not(a) => !a.filter(),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let op = || 0..6_u8;
    let number = || proptest::sample::select(vec![0_u8, 1, 2, 7, 200, 255]);
    let leaf = prop_oneof![
        (op(), number()).prop_map(|(o, v)| Tree::A(o, v)),
        (0..2_u8, 0..5_usize).prop_map(|(o, v)| Tree::B(o, v)),
        (op(), proptest::sample::select(vec![-2_i16, -1, 0, 299, 300]))
            .prop_map(|(o, v)| Tree::C(o, v)),
        (op(), number()).prop_map(|(o, v)| Tree::D(o, v)),
        (0..2_u8, 0..5_usize).prop_map(|(o, v)| Tree::E(o, v)),
        (op(), 0..4_u8).prop_map(|(o, v)| Tree::V(o, v)),
        (op(), -1..3_i32).prop_map(|(o, v)| Tree::N(o, v)),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::And(a.into(), b.into())),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::Or(a.into(), b.into())),
            inner.prop_map(|a| Tree::Not(a.into())),
        ]
    })
}

fn sorted(mut rows: Vec<Row>) -> Vec<String> {
    rows.sort_by_key(|row| (row.a, row.b.clone(), row.c, row.d, row.e.clone()));
    rows.iter().map(|row| format!("{row:?}")).collect()
}

fn check(
    all: &[Row],
    tree: &Tree,
    path: &str,
    within: impl Fn(&Row) -> bool,
    found: Result<Vec<Stored<Row>>, Error>,
) -> Option<bool> {
    match found {
        Err(error) => {
            assert!(error.is_invalid() && error.property().is_some(), "{path} {tree:?}: {error}");
            None
        }
        Ok(found) => {
            let expected = all.iter().filter(|row| within(row) && tree.matches(row)).cloned();
            let found = found.into_iter().map(Stored::into_inner).collect();
            assert_eq!(sorted(found), sorted(expected.collect()), "{path} {tree:?}");
            Some(true)
        }
    }
}

#[test]
fn every_condition_that_is_not_refused_is_exact() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let all = rows();
    let rows = runtime.block_on(async {
        let rows = table::<Row>().await;
        let report = rows.bulk().insert_all(&all).await.unwrap();
        assert!(report.is_complete(), "{:?}", report.failed.first());
        let stray = rows.client().dynamic("Oracle");
        stray.insert(&DynamicEntity::new("000_", "r_x").with("N", 1)).await.unwrap();
        rows
    });
    let answered = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() };
    proptest!(config, |(tree in trees())| {
        runtime.block_on(async {
            let p = || Row::primary().a(0).b("x");
            macro_rules! ask {
                ($path:expr, $within:expr) => {
                    let query = rows.query($path).filter(tree.filter());
                    let found = query.collect().await;
                    let name = format!("{}: {}", stringify!($path), query.explain());
                    if check(&all, &tree, &name, $within, found).is_some() {
                        answered.set(answered.get() + 1);
                    }
                };
            }
            let own = |row: &Row| row.a == 0 && row.b == "x";
            ask!(Row::scan(), |_| true);
            ask!(p(), own);
            ask!(p().c(-1), |row| own(row) && row.c == -1);
            ask!(p().c(-1).d(255), |row| own(row) && row.c == -1 && row.d == 255);
            ask!(p().c_range(-1..300), |row| own(row) && row.c < 300);
            ask!(p().c(-1).d_range(1..), |row| own(row) && row.c == -1 && row.d > 0);
            ask!(p().c(300).d(7).e("x_y"), |row| own(row) && row.c == 300 && row.e == "x_y");
            ask!(p().c(-1).d(0).e_prefix("x"), |row| own(row) && row.c == -1 && row.d == 0 && row.e.starts_with('x'));
            let copies = rows.query(Row::by_value().a(0).b("x").v_range(1..=2)).filter(tree.filter());
            match copies.select::<Part>().collect().await {
                Ok(parts) => {
                    let expected = all.iter().filter(|row| own(row) && (1..=2).contains(&row.v) && tree.matches(row));
                    assert_eq!(parts.len(), expected.count(), "{tree:?}");
                    answered.set(answered.get() + 1);
                }
                Err(error) => assert!(error.is_invalid() && error.property().is_some(), "{error}"),
            }
        });
    });
    assert!(answered.get() > 1000, "most conditions are answered");
}
