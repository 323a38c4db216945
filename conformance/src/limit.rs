//! Keys, property names, counts and sizes: what is taken and what is refused.

use crate::setup::{Setup, bare, delete, expected, refused, row};
use entable_core::{
    batch::{Condition, Operation},
    edm::Value,
    row::Row,
};

fn integers(count: usize) -> Row {
    let names: Vec<String> = (0..count).map(|at| format!("P{at}")).collect();
    row("p", "r", &names.iter().map(|name| (name.as_str(), 1.into())).collect::<Vec<_>>())
}

/// A row of some `bytes` by the formula of section 2.5, in properties below 64 KiB.
fn sized(bytes: usize) -> Row {
    const EACH: usize = 60 * 1024;
    let names: Vec<String> = (10..99).map(|at| format!("P{at}")).collect();
    let mut left = bytes - (4 + 2 * 2);
    let mut properties = Vec::new();
    for name in &names {
        let overhead = 8 + 2 * name.len() + 4;
        let value = EACH.min(left.saturating_sub(overhead));
        properties.push((name.as_str(), Value::from(vec![0; value])));
        left = left.saturating_sub(overhead + value);
        if left < overhead {
            break;
        }
    }
    row("p", "r", &properties)
}

async fn too_large(s: &Setup, row: Row, code: &str) {
    let error = refused(s.one(Operation::insert(row)).await, 400, code);
    assert!(error.is_too_large());
    s.finds("", &[]).await;
}

/// 2.2: an entity has up to 252 properties in addition to the three system properties.
pub async fn most_properties(s: &Setup) {
    s.one(Operation::insert(integers(252))).await.expect("inserted");
    assert_eq!(s.properties("p", "r").await.len(), 252);
}

/// 2.2: the 253rd property is `TooManyProperties`.
pub async fn too_many_properties(s: &Setup) {
    too_large(s, integers(253), "TooManyProperties").await;
}

/// 2.2: a merge that adds up to more than 252 properties is refused and changes nothing.
pub async fn merge_to_too_many_properties(s: &Setup) {
    s.one(Operation::insert(integers(252))).await.expect("inserted");
    let before = s.get("p", "r").await;
    let merge = Operation::merge(row("p", "r", &[("More", 1.into())]), Condition::Any);
    refused(s.one(merge).await, 400, "TooManyProperties");
    assert_eq!(s.get("p", "r").await, before);
}

/// 2.2: a merge that sets what is there stays within 252 properties.
pub async fn merge_within_the_properties(s: &Setup) {
    s.one(Operation::insert(integers(252))).await.expect("inserted");
    s.one(Operation::merge(integers(252), Condition::Any)).await.expect("merged");
    assert_eq!(s.properties("p", "r").await.len(), 252);
}

/// 2.5: an entity of nearly 1 MiB by the formula is stored.
pub async fn largest_entity(s: &Setup) {
    let row = sized(1024 * 1024 - 256);
    s.one(Operation::insert(row.clone())).await.expect("inserted");
    let found = s.get("p", "r").await.expect("the row is there");
    assert_eq!(found.service_size().ok(), row.service_size().ok());
}

/// 2.5: an entity of more than 1 MiB by the formula is `EntityTooLarge`.
pub async fn entity_too_large(s: &Setup) {
    too_large(s, sized(1024 * 1024 + 64), "EntityTooLarge").await;
}

/// 2.5: text counts two bytes for a character.
pub async fn entity_too_large_in_text(s: &Setup) {
    let names: Vec<String> = (10..28).map(|at| format!("P{at}")).collect();
    let text = Value::from("x".repeat(30_000));
    let given: Vec<_> = names.iter().map(|name| (name.as_str(), text.clone())).collect();
    too_large(s, row("p", "r", &given), "EntityTooLarge").await;
}

/// 2.5: a merge that adds up to more than 1 MiB is refused and changes nothing.
pub async fn merge_to_too_large(s: &Setup) {
    s.one(Operation::insert(sized(1000 * 1024))).await.expect("inserted");
    let before = s.get("p", "r").await;
    let more = row("p", "r", &[("More", vec![0; 60 * 1024].into())]);
    refused(s.one(Operation::merge(more, Condition::Any)).await, 400, "EntityTooLarge");
    assert_eq!(s.get("p", "r").await, before);
}

/// 2.5: a string of more than 64 KiB is `PropertyValueTooLarge`.
pub async fn string_too_large(s: &Setup) {
    too_large(s, row("p", "r", &[("P", "x".repeat(32_769).into())]), "PropertyValueTooLarge").await;
}

/// 2.5: a binary of more than 64 KiB is `PropertyValueTooLarge`.
pub async fn binary_too_large(s: &Setup) {
    let large = row("p", "r", &[("P", vec![0; 64 * 1024 + 1].into())]);
    too_large(s, large, "PropertyValueTooLarge").await;
}

/// 2.2: a property name has up to 255 characters.
pub async fn longest_property_name(s: &Setup) {
    let name = "n".repeat(255);
    s.given("p", "r", &[(&name, 1.into())]).await;
    assert_eq!(s.properties("p", "r").await, expected(&[(&name, 1.into())]));
}

/// 2.2: a property name of 256 characters is `PropertyNameTooLong`.
pub async fn property_name_too_long(s: &Setup) {
    too_large(s, row("p", "r", &[(&"n".repeat(256), 1.into())]), "PropertyNameTooLong").await;
}

macro_rules! refused_property_names {
    ($($name:ident: $what:literal [$($property:literal),*];)*) => {
        $(#[doc = concat!("2.2: a property name ", $what, " is `PropertyNameInvalid` (C# specification, \"Identifiers\").")]
        pub async fn $name(s: &Setup) {
            for property in [$($property),*] {
                let insert = Operation::insert(row("p", "r", &[(property, 1.into())]));
                assert!(refused(s.one(insert).await, 400, "PropertyNameInvalid").is_invalid());
            }
        })*
    };
}

refused_property_names! {
    property_name_empty: "that is empty" [""];
    property_name_leading_digit: "that begins with a digit" ["1", "1a"];
    property_name_with_hyphen: "with a hyphen" ["a-b", "-"];
    property_name_with_blank: "with a blank" ["a b", " a", "a "];
    property_name_with_punctuation: "with punctuation" ["a.b", "a:b", "a@b", "a'b", "a/b"];
    property_name_with_control: "with a control character" ["a\u{1}", "\n"];
    property_name_other_number: "with a number of another kind, or a mark at the start"
        ["m\u{b2}", "a\u{bd}", "\u{e38}a", "\u{203f}a"];
    property_name_private_use: "with a character of private use" ["\u{e000}", "a\u{e000}"];
}

/// 2.2: a property name may begin with `_` and hold letters of any script, then also combining marks, decimal
/// digits, connectors and format characters: a C# identifier (Microsoft, "Understanding the Table service
/// data model", property names; C# specification, "Identifiers").
pub async fn property_names_of_letters(s: &Setup) {
    let names = [
        "_",
        "_1",
        "Gr\u{f6}\u{df}e",
        "\u{65e5}\u{672c}",
        "\u{3b1}9",
        "e\u{301}t\u{e9}",
        "\u{e19}\u{e32}\u{e21}\u{e2a}\u{e01}\u{e38}\u{e25}",
        "a\u{203f}b",
        "a\u{200d}b",
        "\u{2167}",
    ];
    let given: Vec<_> = names.iter().map(|name| (*name, Value::from(1))).collect();
    s.given("p", "r", &given).await;
    assert_eq!(s.properties("p", "r").await, expected(&given));
}

/// 2.2: property names that differ by case are two properties.
pub async fn property_names_by_case(s: &Setup) {
    let given = [("Name", 1.into()), ("name", 2.into()), ("NAME", 3.into())];
    s.given("p", "r", &given).await;
    assert_eq!(s.properties("p", "r").await, expected(&given));
}

/// 2.2: only the exact names of the system's properties are reserved.
pub async fn property_names_like_the_system(s: &Setup) {
    let given = [
        ("timestamp", 1.into()),
        ("ETag", 2.into()),
        ("etag", 3.into()),
        ("partitionKey", 4.into()),
    ];
    s.given("p", "r", &given).await;
    assert_eq!(s.properties("p", "r").await, expected(&given));
}

/// 6: a property that is given twice is `DuplicatePropertiesSpecified`.
pub async fn property_given_twice(s: &Setup) {
    let twice = row("p", "r", &[("P", 1.into()), ("P", 2.into())]);
    refused(s.one(Operation::insert(twice)).await, 400, "DuplicatePropertiesSpecified");
    s.finds("", &[]).await;
}

/// Inserts, reads, finds and deletes a row under these keys.
async fn keys_work(s: &Setup, partition_key: &str, row_key: &str) {
    s.given(partition_key, row_key, &[("P", 1.into())]).await;
    let found = s.get(partition_key, row_key).await.expect("the row is there");
    assert_eq!((found.partition_key(), found.row_key()), (partition_key, row_key));
    let quoted = |key: &str| key.replace('\'', "''");
    let text =
        format!("PartitionKey eq '{}' and RowKey eq '{}'", quoted(partition_key), quoted(row_key));
    s.finds(&text, &[row_key]).await;
    let merge = Operation::merge(row(partition_key, row_key, &[("Q", 2.into())]), Condition::Any);
    s.all_of([merge]).await.expect("merged");
    s.one(delete(partition_key, row_key, Condition::Any)).await.expect("deleted");
    assert!(s.get(partition_key, row_key).await.is_none());
}

macro_rules! legal_keys {
    ($($name:ident: $what:literal [$($key:expr),*];)*) => {
        $(#[doc = concat!("2.3: a key ", $what, " is taken by every verb.")]
        pub async fn $name(s: &Setup) {
            for key in [$($key),*] {
                keys_work(s, key, "r").await;
                keys_work(s, "p", key).await;
                keys_work(s, key, key).await;
            }
        })*
    };
}

legal_keys! {
    key_empty: "that is empty" [""];
    key_with_quotes: "with quotes" ["'", "''", "a'b", "\""];
    key_with_blanks: "with blanks" [" ", " a", "a ", "a b"];
    key_with_percent: "with percent signs" ["%", "%25", "100%", "%2F"];
    key_with_url_characters: "with characters that mean something in a URL"
        ["a+b", "a&b", "a=b", "a:b", "a@b", "a,b", "a;b", "$filter"];
    key_with_brackets: "with brackets" ["(", ")", "a(b)", "[a]", "{a}", "<a>"];
    key_with_signs: "with other signs" ["|", "~", "`", "^", "!", "*", ".", ".."];
    key_beyond_ascii: "beyond ASCII" ["\u{e9}", "\u{65e5}\u{672c}", "\u{a0}", "\u{fffd}"];
    key_of_four_bytes: "beyond the basic plane" ["\u{1f600}", "\u{10ffff}"];
    key_longest: "of 512 UTF-16 units" [&"k".repeat(512), &"\u{e9}".repeat(512)];
}

/// 2.3: keys differ if their case, blanks or Unicode form differ.
pub async fn keys_are_ordinal(s: &Setup) {
    let keys = ["a", "A", "a ", " a", "e\u{301}", "\u{e9}"];
    s.given_rows("p", &keys).await;
    for key in keys {
        s.finds(&format!("RowKey eq '{key}'"), &[key]).await;
    }
    assert!(s.get("P", "a").await.is_none());
}

/// 2.3: a key of more than 1,024 characters is refused.
pub async fn key_too_long(s: &Setup) {
    let long = "k".repeat(1025);
    for (partition_key, row_key) in [(long.as_str(), "r"), ("p", long.as_str())] {
        let error = s.one(Operation::insert(bare(partition_key, row_key))).await;
        assert_eq!(error.expect_err("it is refused").status(), Some(400));
    }
}

macro_rules! forbidden_in_keys {
    ($($name:ident: $what:literal [$($character:literal),*];)*) => {
        $(#[doc = concat!("2.3: ", $what, " in a key is `OutOfRangeInput` on insert.")]
        pub async fn $name(s: &Setup) {
            for character in [$($character),*] {
                let key = format!("a{character}b");
                for keys in [(key.as_str(), "r"), ("p", key.as_str())] {
                    let insert = Operation::insert(bare(keys.0, keys.1));
                    assert!(refused(s.one(insert).await, 400, "OutOfRangeInput").is_invalid());
                }
            }
        })*
    };
}

forbidden_in_keys! {
    key_with_slash: "`/`" ['/'];
    key_with_backslash: "`\\`" ['\\'];
    key_with_hash: "`#`" ['#'];
    key_with_question_mark: "`?`" ['?'];
    key_with_control: "U+0000 to U+001F" ['\u{0}', '\u{1}', '\t', '\n', '\u{1f}'];
    key_with_upper_control: "U+007F to U+009F" ['\u{7f}', '\u{80}', '\u{81}', '\u{9f}'];
}

/// 2.3: a forbidden character is refused by every verb.
pub async fn forbidden_keys_under_every_verb(s: &Setup) {
    for key in ["a/b", "a\\b", "a#b", "a?b", "a\u{1f}", "a\u{7f}"] {
        let operations = [
            Operation::replace(bare("p", key), Condition::Any),
            Operation::merge(bare("p", key), Condition::Any),
            Operation::insert_or_replace(bare("p", key)),
            Operation::insert_or_merge(bare("p", key)),
            delete("p", key, Condition::Any),
        ];
        for operation in operations {
            let error = s.one(operation).await.expect_err("it is refused");
            assert_eq!((error.is_invalid(), error.status()), (true, Some(400)), "{error}");
        }
    }
}
