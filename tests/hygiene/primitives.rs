//! Tests user types with the names of primitive types.
#![allow(dead_code, non_camel_case_types, reason = "hostile names")]

use entable::prelude::*;
use std::primitive as p;

struct str;
struct bool;
struct usize;
struct u8;
struct u32;
struct u64;
struct i32;
struct i64;
struct f64;
struct char;

fn check(_: &Primitives) -> Result<(), String> {
    Ok(())
}

fn always(_: &Primitives) -> p::bool {
    true
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Primitives",
    partition_key = "{part}",
    row_key = "p_{id:06}",
    validate = check,
    version = 2,
    upgrade_from(PrimitivesV1),
    index(ByText, row_key = "t_{text:lower}_{id}", only(choice), when = always),
    index(Remote, partition_key = "r_{id}", row_key = "{part}"),
    list(Choices, row_key = "c_{choice}")
)]
struct Primitives {
    part: p::u8,
    id: p::u32,
    text: String,
    choice: Choice,
    #[table(flatten)]
    inner: Inner,
    #[table(json)]
    list: Vec<p::u8>,
    #[table(extra)]
    rest: std::collections::BTreeMap<String, Value>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Primitives",
    partition_key = "{part}",
    row_key = "p_{id:06}",
    entity_type = "Primitives"
)]
struct PrimitivesV1 {
    part: p::u8,
    id: p::u32,
}

impl From<PrimitivesV1> for Primitives {
    fn from(old: PrimitivesV1) -> Self {
        primitives(old.part, old.id)
    }
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Inner {
    size: Option<p::i32>,
    #[table(flatten)]
    deep: Deep,
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Deep {
    size: Option<p::i64>,
}

#[derive(Debug, Clone, PartialEq, EdmEnum)]
enum Choice {
    One,
    Two,
}

#[derive(Debug, Clone, PartialEq, KeyPart)]
struct Number(p::u32);

#[derive(Debug, Projection)]
#[table(of = Primitives)]
struct Chosen {
    choice: Choice,
}

#[derive(Debug, EntitySet)]
enum Either {
    Whole(Primitives),
    #[table(other)]
    Other(DynamicEntity),
}

#[derive(Debug, EntitySet)]
struct All {
    #[table(many)]
    whole: Vec<Primitives>,
    #[table(other)]
    others: Vec<DynamicEntity>,
}

#[derive(Debug, Message)]
struct Sent {
    number: p::u8,
}

// Serde's own derives name primitive types.
impl serde::Serialize for Sent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number)
    }
}

impl<'de> serde::Deserialize<'de> for Sent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        p::u8::deserialize(deserializer).map(|number| Self { number })
    }
}

fn primitives(part: p::u8, id: p::u32) -> Primitives {
    let inner = Inner { size: Some(1), deep: Deep { size: None } };
    let rest = std::collections::BTreeMap::new();
    Primitives { part, id, text: "T".into(), choice: Choice::Two, inner, list: vec![1], rest }
}

#[test]
fn a_row_and_back() {
    let one = primitives(1, 2);
    let row = one.to_row().unwrap();
    assert_eq!((row.partition_key(), row.row_key()), ("001", "p_000002"));
    assert_eq!(Primitives::from_row(&row).unwrap(), one);
    assert_eq!(Chosen::from_row(&row).unwrap().choice, Choice::Two);
    assert_eq!((Sent::NAME, Sent::VERSION), ("Sent", 1));
}
