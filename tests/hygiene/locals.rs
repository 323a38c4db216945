//! Tests fields with names that generated code might use.
#![allow(non_snake_case)]

use entable::prelude::*;

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Names", partition_key = "{type}_{self_}", row_key = "{row}_{key}")]
struct Names {
    r#type: String,
    self_: u8,
    row: String,
    key: String,
    out: i32,
    value: i32,
    name: String,
    keys: String,
    properties: Option<i32>,
    primary: i32,
    patch: i32,
    scan: i32,
    from_row: i32,
    columns: i32,
    partition: i32,
    r#fn: Option<i32>,
    set: i32,
    clone: i32,
    #[table(rename = "K")]
    partition_key: i32,
}

#[derive(Debug, PartialEq, Properties)]
struct Inner {
    slots: i32,
    name: String,
    value: i32,
    prefix: String,
    out: i32,
    r#loop: u8,
}

fn names() -> Names {
    Names {
        r#type: "t".into(),
        self_: 1,
        row: "r".into(),
        key: "k".into(),
        out: 1,
        value: 2,
        name: "n".into(),
        keys: "s".into(),
        properties: Some(3),
        primary: 4,
        patch: 5,
        scan: 6,
        from_row: 7,
        columns: 8,
        partition: 9,
        r#fn: Some(10),
        set: 11,
        clone: 12,
        partition_key: 13,
    }
}

#[test]
fn a_row_and_back() {
    let row = names().to_row().unwrap();
    assert_eq!((row.partition_key(), row.row_key()), ("t_001", "r_k"));
    assert_eq!(Names::from_row(&row).unwrap(), names());
    assert_eq!(row.get("Fn").unwrap(), Some(entable::ValueRef::Int32(10)));
}

#[test]
fn raw_names_have_methods_and_columns() {
    let point = Names::primary().r#type("t").self_(1_u8).row("r").key("k");
    assert_eq!(point.keys().as_point(), Some(("t_001", "r_k")));
    let patch = Names::patch().out(1).value(2).name("n").r#fn(3).remove_fn().clone(4).set(5);
    let _: entable::Patch<Names> = patch.into();
    assert_eq!(Names::FN.name(), "Fn");
    assert_eq!(Names::PARTITION_KEY.name(), "K");
    assert_eq!(Inner::LOOP.name(), "Loop");
}
