//! Tests indexes whose paths are keywords, and names that case conversion makes equal or empty.
#![allow(dead_code, reason = "most of it is there to compile")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Keywords",
    partition_key = "{type}",
    row_key = "p_{match}_{id}",
    index(Type, row_key = "t_{type}_{id}"),
    index(Match, row_key = "m_{match}_{id}"),
    index(In, row_key = "i_{id}"),
    index(Gen, row_key = "g_{id}"),
    index(Async, row_key = "a_{id}"),
    index(Try, row_key = "y_{id}"),
    list(Where, row_key = "w_{match}")
)]
struct Keywords {
    r#type: u8,
    r#match: String,
    id: u32,
    r#async: Option<i32>,
}

/// A field's type names the struct, whose own name is a keyword.
#[allow(non_camel_case_types, reason = "every keyword that may be a raw name is in lower case")]
#[derive(Debug, Clone, PartialEq, TableEntity, serde::Serialize, serde::Deserialize)]
#[table(name = "Trees", partition_key = "{id}", row_key = "t")]
struct r#match {
    id: u8,
    #[table(json)]
    inner: Option<Box<Self>>,
}

/// Path builders of `ByA` have twelve states, and those of `ByA1` are no thirteenth.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Numbers",
    partition_key = "{a}",
    row_key = "p_{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}{l}",
    index(ByA, row_key = "a_{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}{l}"),
    index(ByA1, row_key = "b_{l}{k}", unique, only(j)),
    index(ByA11, row_key = "c_{k}{l}", unique, only(i)),
    index(Schema, row_key = "d_{l}", unique),
    index(Path, row_key = "e_{l}", unique, only(b)),
    index(Patched, row_key = "f_{l}", unique, only(b))
)]
struct Numbers {
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Odd", partition_key = "{__}", row_key = "{_1}")]
struct Odd {
    #[table(rename = "First")]
    __: u8,
    #[table(rename = "Second")]
    _1: u16,
    #[table(rename = "Third")]
    _3rd: Option<i32>,
}

#[tokio::test]
async fn a_path_that_is_a_keyword_is_written_raw() {
    let client = Client::memory();
    let table = client.table::<Keywords>();
    table.create().await.unwrap();
    let one = Keywords { r#type: 1, r#match: "x".into(), id: 7, r#async: None };
    table.insert(&one).await.unwrap();
    let found = table.get(Keywords::r#match().r#type(1).r#match("x").id(7)).await.unwrap();
    assert_eq!(found.unwrap().into_inner(), one);
    let found = table.get(Keywords::r#type().r#type(1).id(7)).await.unwrap();
    assert_eq!(found.unwrap().into_inner(), one);
    let patch = Keywords::patch().r#async(3);
    let patched = table.patch_at(Keywords::primary().r#type(1).r#match("x").id(7), patch).await;
    patched.unwrap();
    let found = table.get(Keywords::r#in().r#type(1).id(7)).await.unwrap();
    assert_eq!(found.unwrap().r#async, Some(3));
    let _ = (Keywords::r#gen(), Keywords::r#async(), Keywords::r#try(), Keywords::r#where());
}

#[test]
fn a_struct_whose_name_is_a_keyword_may_stand_for_itself_in_a_field() {
    let leaf = r#match { id: 1, inner: None };
    let tree = r#match { id: 2, inner: Some(Box::new(leaf)) };
    let rows = tree.rows().unwrap();
    assert_eq!(r#match::from_row(&rows.primary).unwrap(), tree);
}

#[test]
fn generated_names_never_meet() {
    let one = Numbers { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10, k: 11, l: 12 };
    let rows = one.rows().unwrap();
    let keys: Vec<&str> = rows.local_copies.iter().map(|copy| copy.row.row_key()).collect();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert!(keys.contains(&"b_012011"), "{keys:?}");
    let _: Point<Numbers, _> = Numbers::by_a1().a(1).l(12).k(11);
    let _: Point<Numbers, _> = Numbers::by_a11().a(1).k(11).l(12);
}

#[test]
fn a_field_without_letters_has_a_column() {
    let one = Odd { __: 1, _1: 2, _3rd: Some(3) };
    let row = one.to_row().unwrap();
    assert_eq!((row.partition_key(), row.row_key()), ("001", "00002"));
    assert_eq!(Odd::from_row(&row).unwrap(), one);
    let _: (Column<Odd, u16>, Column<Odd, Option<i32>>) = (Odd::_1, Odd::_3RD);
}
