//! Tests that every derive is quiet where lints are forbidden: what it writes needs no `allow`, which
//! would be an error here.
#![forbid(
    dead_code,
    deprecated,
    missing_copy_implementations,
    missing_debug_implementations,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    private_bounds,
    private_interfaces,
    single_use_lifetimes,
    trivial_casts,
    unnameable_types,
    unreachable_code,
    unreachable_pub,
    unsafe_code,
    unused_lifetimes,
    unused_mut,
    unused_qualifications,
    unused_results,
    unused_variables,
    variant_size_differences,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::absolute_paths,
    clippy::allow_attributes,
    clippy::indexing_slicing,
    clippy::missing_inline_in_public_items,
    clippy::missing_trait_methods,
    clippy::panic,
    clippy::question_mark_used,
    clippy::shadow_reuse,
    clippy::shadow_unrelated
)]

// The traits that generated code names are in scope, so that their paths could be shorter.
use entable::prelude::*;
use entable::{
    Blob,
    edm::{EdmValue, Property},
    key::{DatePart, Descending, FixedWidth, KeyPart, TextPart},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Forbidding",
    partition_key = "{part}",
    row_key = "p_{id:06}",
    version = 2,
    upgrade_from(Older),
    validate = check,
    index(ByText, row_key = "t_{text:lower}_{id}", only(choice), when = always),
    index(Remote, partition_key = "r_{id}", row_key = "{at:desc}_{at:%Y%m}_{part}", except(text)),
    list(Choices, row_key = "c_{choice}")
)]
struct Whole {
    part: u8,
    id: u32,
    text: String,
    choice: Choice,
    at: time::OffsetDateTime,
    #[table(rename = "Third")]
    _3rd: Option<i32>,
    #[table(encrypt, blind)]
    secret: String,
    #[table(flatten)]
    inner: Inner,
    #[table(json)]
    list: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Forbidding",
    partition_key = "{part}",
    row_key = "p_{id:06}",
    entity_type = "Whole"
)]
struct Older {
    part: u8,
    id: u32,
}

impl From<Older> for Whole {
    fn from(old: Older) -> Self {
        whole(old.part, old.id)
    }
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Inner {
    size: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EdmEnum)]
enum Choice {
    One,
    Two,
}

#[derive(Debug, Clone, PartialEq, Eq, KeyPart)]
struct Number(u32);

#[derive(Debug, Projection)]
#[table(of = Whole)]
struct Chosen {
    choice: Choice,
}

/// The rows of a partition.
#[derive(Debug, EntitySet)]
struct All {
    #[table(many)]
    whole: Vec<Whole>,
    #[table(other)]
    others: Vec<DynamicEntity>,
}

const fn always(_: &Whole) -> bool {
    true
}

const fn use_traits<A, B, C>()
where
    A: DatePart + Descending + EdmValue + Property,
    B: FixedWidth + KeyPart,
    C: TextPart,
{
}

/// Rows of one type and of others.
#[derive(Debug, EntitySet)]
enum Either {
    Whole(Whole),
    #[table(other)]
    Other(DynamicEntity),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, KeyPart)]
enum Region {
    North,
    South,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Slots", partition_key = "{region}", row_key = "s_{id:06}", wide)]
struct Slots {
    region: Region,
    id: u32,
    #[table(series)]
    sent: [i32; 24],
    #[table(split(3), part = 2)]
    text: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Photos", partition_key = "{region}", row_key = "f_{id:06}")]
struct Photo {
    region: Region,
    id: u32,
    #[table(blob)]
    bytes: Option<Blob>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Visits{at:%Y%m%d}", partition_key = "{region}", row_key = "v_{id:06}")]
struct Visit {
    region: Region,
    id: u32,
    at: time::OffsetDateTime,
}

#[derive(Debug, Message)]
struct Sent {
    number: u8,
}

// Serde's own derives allow lints, which cannot be allowed here.
impl serde::Serialize for Sent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number)
    }
}

impl<'de> serde::Deserialize<'de> for Sent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u8::deserialize(deserializer).map(|number| Self { number })
    }

    fn deserialize_in_place<D: serde::Deserializer<'de>>(
        deserializer: D,
        place: &mut Self,
    ) -> Result<(), D::Error> {
        Self::deserialize(deserializer).map(|sent| *place = sent)
    }
}

fn parts(all: All) -> (Vec<Whole>, Vec<DynamicEntity>) {
    (all.whole, all.others)
}

fn check(whole: &Whole) -> Result<(), String> {
    if whole.id == 0 { Err("no number".to_owned()) } else { Ok(()) }
}

fn whole(part: u8, id: u32) -> Whole {
    Whole {
        part,
        id,
        text: "T".to_owned(),
        choice: if id == 1 { Choice::One } else { Choice::Two },
        at: time::OffsetDateTime::UNIX_EPOCH,
        _3rd: None,
        secret: "S".to_owned(),
        inner: Inner { size: None },
        list: Vec::new(),
    }
}

#[test]
fn what_the_derives_write_needs_no_allow() {
    use_traits::<time::OffsetDateTime, u32, String>();
    assert_eq!(Number::decode("0000000007"), Ok(Number(7)));
    let one = whole(1, 2);
    assert_eq!(one.rows().unwrap().local_copies.len(), 1);
    let _: fn(All) -> (Vec<Whole>, Vec<DynamicEntity>) = parts;
    let row = one.to_row().unwrap();
    assert_eq!(Whole::from_row(&row).unwrap(), Older { part: 1, id: 2 }.into());
    assert_eq!(Chosen::from_row(&row).unwrap().choice, Choice::Two);
    let either = Either::from_row(&row).unwrap();
    assert!(matches!(&either, Either::Whole(read) if read.id == 2), "{either:?}");
    let other = Older { part: 1, id: 3 };
    assert_eq!((other.part, other.id), (1, 3));
    let none: fn(DynamicEntity) -> Either = Either::Other;
    assert_eq!(size_of_val(&none), size_of::<usize>());
}

#[test]
fn what_the_derives_write_for_large_and_dated_rows_needs_no_allow() {
    let at = time::OffsetDateTime::UNIX_EPOCH;
    let (north, south) = (Region::North, Region::South);
    let slots = Slots { region: north, id: 1, sent: [1; 24], text: "T".to_owned() };
    assert_eq!((slots.sent[0], slots.text.as_str()), (1, "T"));
    assert_eq!((slots.region, slots.id), (Region::decode("North").unwrap(), 1));
    let photo = Photo { region: south, id: 2, bytes: None };
    let row = photo.to_row().unwrap();
    assert_eq!((row.partition_key(), row.row_key()), ("South", "f_000002"));
    assert_eq!(Photo::from_row(&row).unwrap(), photo);
    assert_eq!((photo.region, photo.id, photo.bytes.is_none()), (south, 2, true));
    let visit = Visit { region: north, id: 3, at };
    let dated = visit.to_row().unwrap();
    assert_eq!(Visit::from_row(&dated).unwrap(), visit);
    assert_eq!((visit.region, visit.id, visit.at), (north, 3, at));
    assert_eq!((Sent::NAME, Sent { number: 4 }.number), ("Sent", 4));
}

/// Declares an entity as crates do that have several of one form.
macro_rules! entity {
    ($name:ident, $table:literal) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = $table, partition_key = "{part}", row_key = "m_{id}")]
        struct $name {
            part: u8,
            id: u32,
        }
    };
}

entity!(Declared, "Declared");

#[test]
fn a_struct_that_a_macro_declares_is_as_quiet() {
    let declared = Declared { part: 1, id: 2 };
    let row = declared.to_row().unwrap();
    assert_eq!(row.row_key(), "m_0000000002");
    assert_eq!(Declared::from_row(&row).unwrap(), declared);
}
