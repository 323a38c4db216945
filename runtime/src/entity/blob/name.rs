//! Names of the blobs that rows point to: `{table}/{PartitionKey}/{RowKey}/{field}/{random}`. Each part is
//! escaped, which allows the owner to be read back from the name.

use std::fmt::Write;

#[cfg(feature = "blob")]
use crate::address::TableName;
use crate::{
    address::{Names, RowAddress, RowAt},
    error::{Error, ErrorKind, Result},
};

/// The maximum number of bytes in a segment of a name, set by file systems.
const SEGMENT_BYTES: usize = 255;
/// The maximum number of characters in a name, set by blob services. Names are ASCII.
const NAME_CHARS: usize = 1_024;
/// The number of hex digits at the end of a name.
const RANDOM_DIGITS: usize = 24;

/// Returns the name of a new blob of a field: table, keys and field, each escaped, and then
/// `random`.
///
/// # Errors
///
/// Fails with `is_too_large` if an escaped part or the whole name exceeds the length of a blob's name.
pub(crate) fn blob_name(owner: RowAt<'_>, field: &str, random: &str) -> Result<String> {
    let parts = [&*owner.table.form(), owner.partition_key, owner.row_key, field];
    let mut name = String::new();
    for part in parts {
        let segment = escape_segment(part);
        if segment.len() > SEGMENT_BYTES {
            let message = format!(
                "`{}` takes {} bytes in the blob's name, the limit is {SEGMENT_BYTES}",
                part.escape_debug(),
                segment.len()
            );
            return Err(name_too_large_error(owner, message));
        }
        name.push_str(&segment);
        name.push('/');
    }
    name.push_str(random);
    if name.len() > NAME_CHARS {
        let message =
            format!("the blob's name has {} characters, the limit is {NAME_CHARS}", name.len());
        return Err(name_too_large_error(owner, message));
    }
    Ok(name)
}

fn name_too_large_error(owner: RowAt<'_>, message: String) -> Error {
    Error::new(ErrorKind::TooLarge, message).at_row(owner)
}

/// Returns the common prefix of the names of a table's blobs.
#[cfg(feature = "blob")]
pub(crate) fn blob_prefix_of_table(table: TableName<'_>) -> String {
    escape_segment(&table.form())
}

/// Returns the row whose table and keys are in a blob's name. The table is in its canonical form. Returns `None` if the
/// name has another form.
pub(crate) fn owner_of_blob(names: Names, name: &str) -> Option<RowAddress> {
    let segments: Vec<&str> = name.split('/').collect();
    let [table, partition_key, row_key, field, random] = segments[..] else { return None };
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if random.len() != RANDOM_DIGITS || !random.bytes().all(is_digit) {
        return None;
    }
    unescaped(field)?;
    Some(names.address([unescaped(table)?, unescaped(partition_key)?, unescaped(row_key)?]))
}

/// Returns whether a name has the form of the names of rows' blobs.
pub(crate) fn is_blob_name(name: &str) -> bool {
    owner_of_blob(Names::ANY_CASE, name).is_some()
}

/// Returns whether `name` is the name of a blob of the row at `owner`.
pub(crate) fn is_blob_name_of_row(name: &str, owner: RowAt<'_>) -> bool {
    let table = &*owner.table.form();
    // Compared as exact texts: a name with another spelling of the table was not made for a row.
    owner_of_blob(owner.table.names(), name).is_some_and(|named| {
        named.as_row_at().table_and_key_texts() == [table, owner.partition_key, owner.row_key]
    })
}

/// Escapes a string as one segment of a name. Keeps `a` to `z`, digits, `_`, `-`, `@` and an inner `.`. Writes
/// `A` as `!a`, any other byte as `=` and two hex digits, and the empty string as `=`.
pub(crate) fn escape_segment(text: &str) -> String {
    let mut segment = String::new();
    for (at, character) in text.char_indices() {
        let is_inner = at > 0 && at + 1 < text.len();
        match character {
            'a'..='z' | '0'..='9' | '_' | '-' | '@' => segment.push(character),
            '.' if is_inner => segment.push('.'),
            'A'..='Z' => segment.extend(['!', character.to_ascii_lowercase()]),
            other => {
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(segment, "={byte:02x}");
                }
            }
        }
    }
    if segment.is_empty() { "=".to_owned() } else { segment }
}

/// Returns the string whose escaped form is `segment`, or `None` if there is none.
fn unescaped(segment: &str) -> Option<String> {
    if segment == "=" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    loop {
        rest = match rest {
            [] => break,
            [b'!', letter, rest @ ..] => {
                bytes.push(letter.to_ascii_uppercase());
                rest
            }
            [b'=', high, low, rest @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
    let text = String::from_utf8(bytes).ok()?;
    // Each string has a single escaped form, so two names never have the same owner.
    (!text.is_empty() && escape_segment(&text) == segment).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{blob_name, is_blob_name_of_row, owner_of_blob};
    use crate::{address::Names, backend::TableCase};

    const RANDOM: &str = "0123456789abcdef01234567";

    fn name(partition_key: &str, row_key: &str) -> Option<String> {
        let owner = Names::ANY_CASE.row_at("Staff", partition_key, row_key);
        blob_name(owner, "photo", RANDOM).ok()
    }

    #[test]
    fn names_are_as_documented() {
        assert_eq!(
            name("Sales", "empid_000223").as_deref(),
            Some("staff/!sales/empid_000223/photo/0123456789abcdef01234567")
        );
        assert_eq!(
            name("", ".ä/").as_deref(),
            Some("staff/=/=2e=c3=a4=2f/photo/0123456789abcdef01234567")
        );
        let owner = Names::with_case(TableCase::Sensitive).row_at("Staff", "Sales", "a");
        let exact = blob_name(owner, "photo", RANDOM).unwrap();
        assert!(exact.starts_with("!staff/!sales/a/"), "{exact}");
        for other in
            ["crew/everywhere/name.jsonl", "a/b/c/d/e", "a/b/=zz/d/0123456789abcdef01234567"]
        {
            assert_eq!(owner_of_blob(Names::ANY_CASE, other), None, "{other}");
        }
    }

    #[test]
    fn long_keys_are_refused() {
        assert!(name(&"a".repeat(255), "r").is_some());
        let refused = |key: &str| {
            let made = blob_name(Names::ANY_CASE.row_at("Staff", key, "r"), "photo", RANDOM);
            made.is_err_and(|error| error.is_too_large())
        };
        assert!(refused(&"a".repeat(256)), "a segment");
        assert!(refused(&"A".repeat(128)), "a segment, escaped");
    }

    proptest! {
        #[test]
        fn the_owner_is_read_back(partition_key in "\\PC{0,20}", row_key in "[a-zA-Z.!=/_ ]{0,30}") {
            let made = name(&partition_key, &row_key).unwrap();
            let owner = owner_of_blob(Names::ANY_CASE, &made).unwrap();
            prop_assert_eq!(owner.as_row_at().table_and_key_texts(), ["staff", &*partition_key, &*row_key]);
            let is_of = |names: Names, table| {
                is_blob_name_of_row(&made, names.row_at(table, &partition_key, &row_key))
            };
            prop_assert!(is_of(Names::ANY_CASE, "STAFF"));
            prop_assert!(!is_of(Names::ANY_CASE, "Staffs"));
            prop_assert!(!is_of(Names::with_case(TableCase::Sensitive), "STAFF"));
        }
    }
}
