//! What a layout says of changes that rows do not survive, beside what becomes of stored rows. Each change is
//! made by two structs, of which the second reads rows of the first.

use entable::{
    PlaintextPolicy,
    backend::Memory,
    layout::{Layout, LayoutChange, RequiredWork},
    prelude::*,
};
use std::sync::Arc;

/// Declares two structs of one type and table, and a module for each pair.
macro_rules! pair {
    ($pair:ident, row_key = $key:literal $(, $setting:ident)*;
     was { $($(#[$was:meta])* $old:ident: $old_type:ty,)* }
     is { $($(#[$is:meta])* $new:ident: $new_type:ty,)* }) => {
        mod $pair {
            #[allow(unused_imports, reason = "some pairs use them")]
            use super::*;

            #[derive(Debug, Clone, PartialEq, TableEntity)]
            #[table(name = "Notes", partition_key = "{p}", row_key = $key, entity_type = "Note" $(, $setting)*)]
            pub struct Was { pub p: String, $($(#[$was])* pub $old: $old_type,)* }

            #[derive(Debug, Clone, PartialEq, TableEntity)]
            #[table(name = "Notes", partition_key = "{p}", row_key = $key, entity_type = "Note" $(, $setting)*)]
            pub struct Is { pub p: String, $($(#[$is])* pub $new: $new_type,)* }

            pub fn changes() -> Vec<LayoutChange> {
                entable::layout![Is].changes_since(&entable::layout![Was])
            }

            pub async fn store(was: Was) -> Result<Client, Error> {
                let client = Client::memory();
                client.table::<Was>().create().await?;
                client.table::<Was>().insert(&was).await?;
                Ok(client)
            }
        }
    };
}

/// Asserts that the only change has this need, and says these words.
#[track_caller]
fn assert_only(changes: &[LayoutChange], needs: RequiredWork, words: &str) {
    let [change] = changes else { panic!("{changes:#?}") };
    assert_needs(std::slice::from_ref(change), needs, words);
}

/// Asserts that a change has this need and says these words, and that none needs more.
#[track_caller]
fn assert_needs(changes: &[LayoutChange], needs: RequiredWork, words: &str) {
    let found = changes.iter().find(|change| change.to_string().contains(words));
    assert_eq!(found.map(|change| change.needs), Some(needs), "{words}: {changes:#?}");
    assert_eq!(changes.iter().map(|change| change.needs).max(), Some(needs), "{changes:#?}");
}

pair! { more_pieces, row_key = "note";
    was { #[table(split(3))] text: String, }
    is { #[table(split(5))] text: String, }
}
pair! { now_split, row_key = "note";
    was { text: String, }
    is { #[table(split(4))] text: String, }
}
pair! { new_split, row_key = "note";
    was { n: i32, }
    is { n: i32, #[table(split(2))] text: String, }
}
pair! { new_split_json, row_key = "note";
    was { n: i32, }
    is { n: i32, #[table(split(2), json)] text: Vec<String>, }
}
pair! { new_optional_split, row_key = "note";
    was { n: i32, }
    is { n: i32, #[table(split(2))] text: Option<String>, }
}
pair! { required_split, row_key = "note";
    was { n: i32, #[table(split(2))] text: Option<String>, }
    is { n: i32, #[table(split(2))] text: String, }
}

#[tokio::test]
async fn a_split_field_with_other_pieces_needs_a_version() -> Result<(), Error> {
    let p = || "a".to_owned();
    let client = more_pieces::store(more_pieces::Was { p: p(), text: "x".into() }).await?;
    let read = client.table::<more_pieces::Is>().get(more_pieces::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&more_pieces::changes(), RequiredWork::Version, "is lengthened from 3 to 5");

    let client = now_split::store(now_split::Was { p: p(), text: "x".into() }).await?;
    let read = client.table::<now_split::Is>().get(now_split::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_needs(
        &now_split::changes(),
        RequiredWork::Version,
        "`Text` is now piece 1 of split field",
    );

    let client = new_split::store(new_split::Was { p: p(), n: 1 }).await?;
    let read = client.table::<new_split::Is>().get(new_split::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&new_split::changes(), RequiredWork::Version, "make the field an `Option`");

    let client = new_split_json::store(new_split_json::Was { p: p(), n: 1 }).await?;
    let read = client.table::<new_split_json::Is>().get(new_split_json::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&new_split_json::changes(), RequiredWork::Version, "without all pieces");

    let none = required_split::Was { p: p(), n: 1, text: None };
    let client = required_split::store(none).await?;
    let read = client.table::<required_split::Is>().get(required_split::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&required_split::changes(), RequiredWork::Version, "may no longer be absent");
    Ok(())
}

/// The counterpart: an `Option` that is new is read, so it is compatible.
#[tokio::test]
async fn a_new_split_field_that_may_be_absent_is_compatible() -> Result<(), Error> {
    use new_optional_split::{Is, Was, changes, store};
    let client = store(Was { p: "a".into(), n: 1 }).await?;
    let read = client.table::<Is>().get(Is::primary().p("a")).await?.unwrap();
    assert_eq!(read.text, None);
    assert_only(&changes(), RequiredWork::Nothing, "rows without it are read");
    Ok(())
}

pair! { encrypted_split, row_key = "note";
    was { #[table(split(3))] text: Vec<u8>, }
    is { #[table(split(3), encrypt)] text: Vec<u8>, }
}

#[tokio::test]
async fn full_pieces_are_encrypted_by_a_replace_and_not_by_reencrypt() -> Result<(), Error> {
    use encrypted_split::{Is, Was, changes};
    assert_only(&changes(), RequiredWork::Migration, "`table.replace(..)`");
    let keys = Keyring::parse(&Keyring::generate_text()?)?;
    let backend = Arc::new(Memory::new());
    let client = |policy| {
        let builder = Client::builder().backend(backend.clone()).keys(keys.clone());
        builder.plaintext(policy).build()
    };
    let allow = client(PlaintextPolicy::Allow)?;
    allow.table::<Was>().create().await?;
    let text = vec![7; 70_000];
    allow.table::<Was>().insert(&Was { p: "a".into(), text: text.clone() }).await?;
    let table = allow.table::<Is>();
    let report = table.reencrypt().await?;
    assert!(!report.is_complete(), "{report:?}");
    let plain = table.get(Is::primary().p("a")).await?.unwrap();
    table.replace(&plain).await?;
    assert!(table.reencrypt().await?.is_complete());
    let strict = client(PlaintextPolicy::Reject)?;
    let read = strict.table::<Is>().get(Is::primary().p("a")).await?.unwrap();
    assert_eq!(read.text, text);
    Ok(())
}

pair! { third_part, row_key = "{id:06}", wide;
    was { id: u32, a: i32, #[table(part = 2)] b: i32, }
    is { id: u32, a: i32, #[table(part = 2)] b: i32, #[table(part = 3)] c: Option<i32>, }
}
pair! { longer_year, row_key = "{id:06}", wide;
    was { id: u32, #[table(series("Day{:03}"))] days: [Option<i64>; 365], }
    is { id: u32, #[table(series("Day{:03}"))] days: [Option<i64>; 420], }
}
pair! { cut_series, row_key = "{id:06}", wide;
    was { id: u32, #[table(series("Day{:03}"))] days: [i32; 180], #[table(part = 2)] b: i32, }
    is { id: u32, #[table(series("Day{:03}"))] days: [i32; 220], #[table(part = 2)] b: i32, }
}

#[tokio::test]
async fn another_number_of_parts_needs_a_version() -> Result<(), Error> {
    let was = third_part::Was { p: "a".into(), id: 1, a: 1, b: 2 };
    let client = third_part::store(was).await?;
    let table = client.table::<third_part::Is>();
    let read = table.get(third_part::Is::primary().p("a").id(1)).await;
    assert!(read.unwrap_err().is_corrupt());
    assert_needs(&third_part::changes(), RequiredWork::Version, "an entity is 3 rows, not 2");

    let was = longer_year::Was { p: "a".into(), id: 1, days: [Some(1); 365] };
    let client = longer_year::store(was).await?;
    let table = client.table::<longer_year::Is>();
    let read = table.get(longer_year::Is::primary().p("a").id(1)).await;
    assert!(read.unwrap_err().is_corrupt());
    assert_needs(&longer_year::changes(), RequiredWork::Version, "an entity is 3 rows, not 2");
    assert_needs(&longer_year::changes(), RequiredWork::Version, "moves from part 1 to part 2");
    Ok(())
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = cut_series::Is)]
struct OfPartTwo {
    b: i32,
}

#[tokio::test]
async fn slots_that_move_to_another_part_need_a_version() -> Result<(), Error> {
    use cut_series::{Is, Was, changes, store};
    let client = store(Was { p: "a".into(), id: 1, days: [5; 180], b: 2 }).await?;
    let table = client.table::<Is>();
    let found =
        table.query(Is::primary().p("a")).select::<OfPartTwo>().filter(Is::DAYS.at(150).eq(5));
    assert_eq!(found.collect().await?.len(), 0, "the stored row has the slot in part 1");
    assert_only(&changes(), RequiredWork::Version, "`Day110` moves from part 1 to part 2");
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Notes", partition_key = "{p}", row_key = "{id:06}", entity_type = "Note")]
struct OneRow {
    p: String,
    id: u32,
    a: i32,
    b: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Notes",
    partition_key = "{p}",
    row_key = "{id:06}",
    entity_type = "Note",
    version = 2
)]
struct OneRowLater {
    p: String,
    id: u32,
}

#[test]
fn one_row_and_several_are_no_versions_of_each_other() {
    let (one, wide) = (entable::layout![OneRow], entable::layout![third_part::Was]);
    assert_only(&wide.changes_since(&one), RequiredWork::Migration, "another `entity_type`");
    assert_only(&one.changes_since(&wide), RequiredWork::Migration, "was wide, of 2 rows");
    // A raised version does not help.
    let later = entable::layout![OneRowLater];
    assert_only(
        &later.changes_since(&wide),
        RequiredWork::Migration,
        "version 2 is new: an entity was wide",
    );
}

mod plain_version {
    use entable::prelude::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(name = "Notes", partition_key = "{p}", row_key = "note", entity_type = "Note")]
    pub(crate) struct NoteV1 {
        pub(crate) p: String,
        pub(crate) text: String,
        #[table(encrypt)]
        pub(crate) secret: String,
    }

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Notes",
        partition_key = "{p}",
        row_key = "note",
        entity_type = "Note",
        version = 2,
        upgrade_from(NoteV1)
    )]
    pub(crate) struct Note {
        p: String,
        #[table(encrypt)]
        body: String,
        #[table(series, encrypt)]
        marks: [i32; 2],
        #[table(encrypt)]
        secret: String,
    }

    impl From<NoteV1> for Note {
        fn from(old: NoteV1) -> Self {
            Self { p: old.p, body: old.text, marks: [0; 2], secret: old.secret }
        }
    }
}

#[test]
fn a_version_that_encrypts_names_the_policy_of_its_migration() {
    use plain_version::{Note, NoteV1};
    let changes = entable::layout![Note].changes_since(&entable::layout![NoteV1]);
    let [version, encrypts] = &changes[..] else { panic!("{changes:#?}") };
    assert!(
        version.needs == RequiredWork::Nothing && version.what == "version 2 is new",
        "{version}"
    );
    assert_eq!(encrypts.needs, RequiredWork::Migration);
    assert_eq!(encrypts.what, "version 2 encrypts `Body`, `Marks0`, and version 1 does not");
    assert!(encrypts.how.contains("`table.upgrade_all()` until it is complete"), "{encrypts}");
}

pair! { now_json, row_key = "note";
    was { text: String, }
    is { #[table(json)] text: String, }
}
pair! { narrow, row_key = "note";
    was { n: i32, }
    is { n: u8, }
}
pair! { fewer_variants, row_key = "note";
    was { state: Before, }
    is { state: After, }
}
pair! { no_option, row_key = "note";
    was { n: i32, #[table(flatten)] home: Option<Address>, }
    is { n: i32, #[table(flatten)] home: Address, }
}
pair! { typed, row_key = "note";
    was { state: String, }
    is { state: After, }
}

#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
pub enum Before {
    Open,
    #[table(rename = "in work|now")]
    InWork,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
pub enum After {
    Open,
    #[table(rename = "in work|now")]
    InWork,
    Filed,
}

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Address {
    street: String,
}

#[tokio::test]
async fn values_that_a_field_does_not_read_need_a_version() -> Result<(), Error> {
    let p = || "a".to_owned();
    let client = now_json::store(now_json::Was { p: p(), text: "plain".into() }).await?;
    let read = client.table::<now_json::Is>().get(now_json::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&now_json::changes(), RequiredWork::Version, "was String and is String as json");
    let back = entable::layout![now_json::Was].changes_since(&entable::layout![now_json::Is]);
    assert_only(&back, RequiredWork::Version, "was String as json and is String");

    let client = narrow::store(narrow::Was { p: p(), n: 300 }).await?;
    let read = client.table::<narrow::Is>().get(narrow::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&narrow::changes(), RequiredWork::Version, "was Int32 and is Int32 as u8");
    let back = entable::layout![narrow::Was].changes_since(&entable::layout![narrow::Is]);
    assert_only(&back, RequiredWork::Nothing, "was Int32 as u8 and is Int32");

    let closed = fewer_variants::Was { p: p(), state: Before::Closed };
    let client = fewer_variants::store(closed).await?;
    let read = client.table::<fewer_variants::Is>().get(fewer_variants::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&fewer_variants::changes(), RequiredWork::Version, "has no `Closed` any more");
    let text = entable::layout![fewer_variants::Was].to_string();
    assert!(text.contains("State String as enum(Open|in%20work%7Cnow|Closed)"), "{text}");

    let client = typed::store(typed::Was { p: p(), state: "other".into() }).await?;
    let read = client.table::<typed::Is>().get(typed::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(&typed::changes(), RequiredWork::Version, "was String and is String as enum(");

    let client = no_option::store(no_option::Was { p: p(), n: 1, home: None }).await?;
    let read = client.table::<no_option::Is>().get(no_option::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(
        &no_option::changes(),
        RequiredWork::Version,
        "`HomeStreet` may no longer be absent",
    );
    Ok(())
}

pair! { other_prefix, row_key = "note";
    was { n: i32, #[table(flatten(prefix = "Home"))] place: Option<Address>, }
    is { n: i32, #[table(flatten(prefix = "Work"))] place: Option<Address>, }
}
pair! { new_struct, row_key = "note";
    was { n: i32, }
    is { n: i32, #[table(flatten)] home: Option<Address>, }
}
pair! { like_prefix, row_key = "note";
    was { home_town: String, }
    is { home_town: String, #[table(flatten(prefix = "Home"))] home: Option<Address>, }
}
pair! { no_prefix, row_key = "note";
    was { n: i32, }
    is { n: i32, #[table(flatten(prefix = ""))] home: Option<Address>, }
}
pair! { grown_outer, row_key = "note";
    was { n: i32, #[table(flatten)] home: Option<Place>, }
    is { n: i32, #[table(flatten)] home: Option<LongPlace>, }
}
pair! { grown_struct, row_key = "note";
    was { n: i32, #[table(flatten)] home: Option<Address>, }
    is { n: i32, #[table(flatten)] home: Option<LongAddress>, }
}

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct LongAddress {
    street: String,
    town: String,
}

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Place {
    #[table(flatten)]
    gate: Option<Address>,
}

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct LongPlace {
    #[table(flatten)]
    gate: Option<Address>,
    town: String,
}

/// A row has a flattened `Option` if it stores one of its properties, whatever else begins as they do.
#[tokio::test]
async fn a_new_flattened_option_is_absent_from_stored_rows() -> Result<(), Error> {
    let p = || "a".to_owned();
    let was = like_prefix::Was { p: p(), home_town: "x".into() };
    let client = like_prefix::store(was).await?;
    let read = client.table::<like_prefix::Is>().get(like_prefix::Is::primary().p("a")).await?;
    assert_eq!(read.unwrap().home, None);
    assert_only(&like_prefix::changes(), RequiredWork::Nothing, "rows without it are read");

    let client = no_prefix::store(no_prefix::Was { p: p(), n: 1 }).await?;
    let read = client.table::<no_prefix::Is>().get(no_prefix::Is::primary().p("a")).await?;
    assert_eq!(read.unwrap().home, None);
    assert_only(&no_prefix::changes(), RequiredWork::Nothing, "rows without it are read");

    // The property of an `Option` inside is one of the outer struct's, too.
    let gate = Some(Address { street: "x".into() });
    let was = grown_outer::Was { p: p(), n: 1, home: Some(Place { gate }) };
    let client = grown_outer::store(was).await?;
    let read = client.table::<grown_outer::Is>().get(grown_outer::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(
        &grown_outer::changes(),
        RequiredWork::Version,
        "property `HomeTown` (String) is new",
    );
    Ok(())
}

#[tokio::test]
async fn properties_of_a_flattened_option_come_together() -> Result<(), Error> {
    let p = || "a".to_owned();
    let home = || Some(Address { street: "x".into() });
    let was = other_prefix::Was { p: p(), n: 1, place: home() };
    let client = other_prefix::store(was).await?;
    let read = client.table::<other_prefix::Is>().get(other_prefix::Is::primary().p("a")).await?;
    assert_eq!(read.unwrap().place, None, "nobody looks for `HomeStreet`");
    assert_only(
        &other_prefix::changes(),
        RequiredWork::Version,
        "`HomeStreet` is gone and `WorkStreet`",
    );

    let client = new_struct::store(new_struct::Was { p: p(), n: 1 }).await?;
    let read = client.table::<new_struct::Is>().get(new_struct::Is::primary().p("a")).await?;
    assert_eq!(read.unwrap().home, None);
    assert_only(&new_struct::changes(), RequiredWork::Nothing, "rows without it are read");

    let client = grown_struct::store(grown_struct::Was { p: p(), n: 1, home: home() }).await?;
    let read = client.table::<grown_struct::Is>().get(grown_struct::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(
        &grown_struct::changes(),
        RequiredWork::Version,
        "property `HomeTown` (String) is new",
    );
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Memos",
    partition_key = "{p}",
    row_key = "note",
    entity_type = "Note",
    version = 2,
    upgrade_from(narrow::Was)
)]
struct InOtherTable {
    p: String,
    n: i64,
}

impl From<narrow::Was> for InOtherTable {
    fn from(was: narrow::Was) -> Self {
        Self { p: was.p, n: was.n.into() }
    }
}

/// A version is read from its own table only.
#[tokio::test]
async fn a_version_in_another_table_needs_a_migration() -> Result<(), Error> {
    let client = narrow::store(narrow::Was { p: "a".into(), n: 1 }).await?;
    let table = client.table::<InOtherTable>();
    table.create().await?;
    assert!(table.get(InOtherTable::primary().p("a")).await?.is_none());
    let changes = entable::layout![InOtherTable].changes_since(&entable::layout![narrow::Was]);
    assert_needs(&changes, RequiredWork::Migration, "the table was `Notes` and is `Memos`");
    Ok(())
}

pair! { wider, row_key = "note";
    was { n: i32, }
    is { n: i64, }
}
pair! { wider_secret, row_key = "note";
    was { #[table(encrypt)] n: i32, }
    is { #[table(encrypt)] n: i64, }
}

/// A filter compares the stored type, so rows that the earlier program found are found no longer.
#[tokio::test]
async fn a_wider_number_is_read_and_not_found() -> Result<(), Error> {
    let client = wider::store(wider::Was { p: "a".into(), n: 7 }).await?;
    let table = client.table::<wider::Is>();
    assert_eq!(table.get(wider::Is::primary().p("a")).await?.unwrap().n, 7);
    let found = table.query(wider::Is::primary().p("a")).filter(wider::Is::N.ge(5));
    assert_eq!(found.collect().await?.len(), 0);
    assert_only(
        &wider::changes(),
        RequiredWork::Version,
        "filters compare only values of the new one",
    );
    // No filter compares an encrypted property without a token.
    assert_only(&wider_secret::changes(), RequiredWork::Nothing, "read as the wider type");
    Ok(())
}

pair! { signed, row_key = "{id}";
    was { id: u32, n: i32, }
    is { id: i32, n: i32, }
}
pair! { padded, row_key = "{id:06}";
    was { id: u32, n: i32, }
    is { id: i32, n: i32, }
}
pair! { byte, row_key = "{id:06}";
    was { id: u32, n: i32, }
    is { id: u8, n: i32, }
}
pair! { bucket, row_key = "{id:bucket(1000)}_{id:06}";
    was { id: u32, n: i32, }
    is { id: u64, n: i32, }
}
pair! { stored_bucket, row_key = "{n:bucket(16)}_{id:06}";
    was { id: u32, n: i32, }
    is { id: u32, n: i64, }
}
pair! { long_keys, row_key = "{id:06}";
    was { id: u64, n: i32, }
    is { id: i64, n: i32, }
}
pair! { long_values, row_key = "note";
    was { n: u64, }
    is { n: i64, }
}

#[test]
fn a_bucket_of_another_stored_type_is_another_key() {
    let (was, is) = (entable::layout![stored_bucket::Was], entable::layout![stored_bucket::Is]);
    assert_needs(&is.changes_since(&was), RequiredWork::Version, "the RowKey was");
}

/// A row stores no number above the greatest Int64, but a key may.
#[tokio::test]
async fn each_stored_u64_is_an_i64() -> Result<(), Error> {
    let greatest = i64::MAX.unsigned_abs();
    let stored = long_values::Was { p: "a".into(), n: greatest };
    let client = long_values::store(stored).await?;
    let above = long_values::Was { p: "b".into(), n: greatest + 1 };
    assert!(client.table::<long_values::Was>().insert(&above).await.unwrap_err().is_invalid());
    let read = client.table::<long_values::Is>().get(long_values::Is::primary().p("a")).await?;
    assert_eq!(read.unwrap().n, i64::MAX);
    assert_only(&long_values::changes(), RequiredWork::Nothing, "was Int64 as u64 and is Int64");
    assert_only(&long_keys::changes(), RequiredWork::Version, "stored keys with other values");
    Ok(())
}

mod raised {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Notes", partition_key = "{id}", row_key = "note", entity_type = "Note")]
    pub struct First {
        pub id: u32,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Notes",
        partition_key = "{id}",
        row_key = "note",
        entity_type = "Note",
        version = 2,
        upgrade_from(First)
    )]
    pub struct Second {
        pub id: i32,
    }

    impl From<First> for Second {
        fn from(was: First) -> Self {
            Self { id: was.id.cast_signed() }
        }
    }
}

#[test]
fn a_version_with_another_type_in_its_partition_key_needs_a_migration() {
    let (was, is) = (entable::layout![raised::First], entable::layout![raised::Second]);
    // The PartitionKey of 7 is another one, and a version cannot move rows.
    assert_needs(
        &is.changes_since(&was),
        RequiredWork::Migration,
        "and its PartitionKey is `{Id}`",
    );
}

#[test]
fn a_split_field_with_the_names_of_its_properties_has_any_name_in_the_code() {
    assert_only(&renamed_split::changes(), RequiredWork::Nothing, "now called `words` in the code");
}

pair! { renamed_split, row_key = "note";
    was { #[table(split(3))] text: String, }
    is { #[table(split(3), rename = "Text")] words: String, }
}
pair! { stored_too, row_key = "{id:06}";
    was { id: u32, n: i32, }
    is { #[table(store)] id: u32, n: i32, }
}

#[tokio::test]
async fn keys_that_a_type_writes_in_another_way_need_a_version() -> Result<(), Error> {
    let p = || "a".to_owned();
    let client = signed::store(signed::Was { p: p(), id: 7, n: 1 }).await?;
    let read = client.table::<signed::Is>().get(signed::Is::primary().p("a").id(7)).await?;
    assert!(read.is_none(), "the key of 7 is another one");
    assert_only(&signed::changes(), RequiredWork::Version, "`Id` was Int64 as u32 and is Int32");

    let client = bucket::store(bucket::Was { p: p(), id: 7, n: 1 }).await?;
    let read = client.table::<bucket::Is>().get(bucket::Is::primary().p("a").id(7)).await?;
    assert!(read.is_none(), "the bucket of 7 is another one");
    assert_only(
        &bucket::changes(),
        RequiredWork::Version,
        "`Id` was Int64 as u32 and is Int64 as u64",
    );

    let client = byte::store(byte::Was { p: p(), id: 300, n: 1 }).await?;
    let read = client.table::<byte::Is>().query(byte::Is::primary().p("a")).collect().await;
    assert!(read.is_err() || read.unwrap().is_empty(), "no u8 holds 300");
    assert_only(&byte::changes(), RequiredWork::Version, "stored keys with other values");
    let back = entable::layout![byte::Was].changes_since(&entable::layout![byte::Is]);
    assert_only(&back, RequiredWork::Nothing, "keys stay as they are");

    // Digits are the same for each type, but an i32 does not hold each u32.
    assert_only(&padded::changes(), RequiredWork::Version, "was Int64 as u32 and is Int32");

    let client = stored_too::store(stored_too::Was { p: p(), id: 7, n: 1 }).await?;
    let read = client.table::<stored_too::Is>().get(stored_too::Is::primary().p("a").id(7)).await;
    assert!(read.unwrap_err().is_decode());
    assert_only(
        &stored_too::changes(),
        RequiredWork::Version,
        "property `Id` (Int64 as u32) is new",
    );
    Ok(())
}

const SECRETS: &str = r#"layout 1

entity "Login" version 1
  table Logins{at:%Y%m%d} by At
  discriminator property EntityType
  primary
    partition "{User}" -
    row "{At:desc}_{Id:03}" 19 3
  index ByToken local
    partition "{User}" -
    row "card_{Card:hmac}" 26
  key User String
  key At DateTime
  key Id Int32 as u16
  property Card String
"#;

/// Tokens and the keys of encrypted blobs hold for one table, and tokens for one property.
#[test]
fn tokens_and_keys_of_blobs_follow_no_other_name() {
    let needs = |text: &str, was: &str, is: &str| -> Vec<LayoutChange> {
        let new = text.replace(was, is);
        assert_ne!(text, new, "`{was}` is not in the text");
        new.parse::<Layout>().unwrap().changes_since(&text.parse().unwrap())
    };
    let dated = needs(SECRETS, "{at:%Y%m%d}", "{time:%Y%m%d}");
    assert_only(&dated, RequiredWork::Migration, "tokens open only under");
    let blob = SECRETS.replace("{Card:hmac}\" 26", "{Card}\" -")
        + "  blob Photo optional with PhotoLength PhotoHash PhotoType PhotoKey\n";
    let dated = needs(&blob, "{at:%Y%m%d}", "{time:%Y%m%d}");
    assert_only(&dated, RequiredWork::Migration, "open only under");
    let renamed = needs(SECRETS, "Card", "Badge");
    assert_needs(&renamed, RequiredWork::Rebuild, "the keys of local index");
}

/// Reads refuse a row that lacks a hidden absence.
#[test]
fn slots_with_a_hidden_absence_are_encrypted_first() {
    const PLAIN: &str = "layout 1\n\nentity \"Day\" version 1\n  table Days\n  discriminator property EntityType\n  \
                         primary\n    partition \"{P}\" -\n    row \"day\"\n  key P String\n";
    let slots = |count: usize| {
        format!(
            "{PLAIN}  series sent {count} to Sent{:02} first Sent00 Int32 optional encrypted hide_none\n",
            count - 1
        )
    };
    let changes = |was: &str, is: &str| {
        is.parse::<Layout>().unwrap().changes_since(&was.parse::<Layout>().unwrap())
    };
    assert_only(&changes(PLAIN, &slots(12)), RequiredWork::Migration, "`table.reencrypt()`");
    assert_only(&changes(&slots(12), &slots(24)), RequiredWork::Migration, "`table.reencrypt()`");
}

pair! { adopted, row_key = "note";
    was { sent3: String, n: i32, }
    is { #[table(series("Sent{:01}"))] sent: [i32; 4], n: i32, }
}
pair! { renamed_series, row_key = "note";
    was { #[table(series)] sent: [i32; 24], }
    is { #[table(series("Sent{:02}"))] posted: [i32; 24], }
}
pair! { other_pattern, row_key = "note";
    was { #[table(series)] sent: [i32; 10], }
    is { #[table(series)] sent: [i32; 24], }
}

#[tokio::test]
async fn slots_follow_the_names_of_their_properties() -> Result<(), Error> {
    let was = adopted::Was { p: "a".into(), sent3: "x".into(), n: 1 };
    let client = adopted::store(was).await?;
    let read = client.table::<adopted::Is>().get(adopted::Is::primary().p("a")).await;
    assert!(read.unwrap_err().is_decode());
    assert_needs(
        &adopted::changes(),
        RequiredWork::Version,
        "property `Sent3` was String and is Int32",
    );

    assert_only(
        &renamed_series::changes(),
        RequiredWork::Nothing,
        "now called `posted` in the code",
    );
    assert_only(
        &other_pattern::changes(),
        RequiredWork::Version,
        "from `Sent00` on, not from `Sent0`",
    );
    Ok(())
}
