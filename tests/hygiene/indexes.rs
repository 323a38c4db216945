//! Tests indexes and lists among names that generated code might use.
#![allow(dead_code, non_snake_case, non_camel_case_types, reason = "hostile names")]

/// Names that could be confused with names of generated code.
mod hostile {
    pub(super) struct Row;
    pub(super) struct Family;
    pub(super) struct Option;
    pub(super) struct Result;
    pub(super) struct CopyRow;
    pub(super) struct ListEntry;
    pub(super) struct EntityRows;
}

use ::entable::prelude::*;
#[allow(unused_imports, reason = "they shadow")]
use hostile::*;

fn always(_: &Names) -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Names",
    partition_key = "{type}_{family}",
    row_key = "p_{row}_{owner_of}",
    version = 2,
    upgrade_from(NamesV1),
    index(Row, row_key = "r_{rows_with:lower}", unique, only(copies)),
    index(Copy, row_key = "c_{type}_{row}_{owner_of}", when = always),
    index(Holds, row_key = "h_{primary_keys:%Y%m%d}_{owner_of}", except(copies)),
    list(Entries, row_key = "e_{entries}")
)]
struct Names {
    r#type: String,
    family: u8,
    row: String,
    owner_of: u32,
    rows_with: String,
    copies: i32,
    primary_keys: time::OffsetDateTime,
    entries: String,
    rows: ::std::option::Option<i32>,
    holders: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Names",
    partition_key = "{type}_{family}",
    row_key = "p_{row}_{owner_of}",
    entity_type = "Names",
    index(Row, row_key = "r_{rows_with}", unique, only(owner_of_version))
)]
struct NamesV1 {
    r#type: String,
    family: u8,
    row: String,
    owner_of: u32,
    rows_with: String,
    owner_of_version: i32,
}

impl From<NamesV1> for Names {
    fn from(old: NamesV1) -> Self {
        let NamesV1 { r#type, family, row, owner_of, rows_with, owner_of_version } = old;
        Self {
            r#type,
            family,
            row,
            owner_of,
            rows_with,
            copies: owner_of_version,
            primary_keys: time::OffsetDateTime::UNIX_EPOCH,
            entries: String::new(),
            rows: None,
            holders: 0,
        }
    }
}

fn names(id: u32) -> Names {
    NamesV1 { owner_of: id, rows_with: format!("W{id}"), ..first() }.into()
}

fn first() -> NamesV1 {
    NamesV1 {
        r#type: "t".into(),
        family: 1,
        row: "r".into(),
        owner_of: 1,
        rows_with: "w1".into(),
        owner_of_version: 7,
    }
}

#[tokio::test]
async fn every_row_is_written_and_found() {
    let client = Client::memory();
    let table = client.table::<Names>();
    table.create().await.unwrap();
    client.table::<NamesV1>().insert(&first()).await.unwrap();
    let error = table.insert(&Names { row: "other".into(), ..names(1) }).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.holder(), Some(("t_001", "p_r_0000000001")), "{error}");
    table.insert(&names(2)).await.unwrap();
    let found = table.get(Names::copy().r#type("t").family(1).row("r").owner_of(2)).await.unwrap();
    assert_eq!(found.unwrap().into_inner(), names(2));
    let listed = table.keys(Names::entries().r#type("t").family(1).entries("")).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(table.check().await.unwrap().is_clean());
}
