//! Names of blobs: one for each list, and no two alike, on a file system that does not tell case
//! apart either.

use std::fmt::Write;

use object_store::path::Path;

use crate::{
    error::{Error, ErrorKind, Result},
    plan::outbox::hash128,
};

/// Bytes that a part of a name has at most: file systems take 255.
const PART: usize = 200;

/// The name of the blob of a list: `{table}/{PartitionKey}/{RowKey}.jsonl`.
pub(crate) fn list_name(table: &str, partition_key: &str, row_key: &str) -> Result<Path> {
    let table = table.to_ascii_lowercase();
    let parts = [&table, partition_key, row_key].map(part);
    Path::parse([&parts.join("/"), ".jsonl"].concat())
        .map_err(|error| Error::new(ErrorKind::Invalid, "no blob's name").with_source(error))
}

/// A key as a part of a name: `a` to `z`, digits, `_`, `-`, `@` and inner `.` as they are; `A` as
/// `!a`; every other byte as `=` and two hex digits; nothing as `=`; what is too long as `=h` and a
/// hash.
fn part(key: &str) -> String {
    let mut part = String::new();
    for (at, character) in key.char_indices() {
        let is_inner = at > 0 && at + 1 < key.len();
        match character {
            'a'..='z' | '0'..='9' | '_' | '-' | '@' => part.push(character),
            '.' if is_inner => part.push('.'),
            'A'..='Z' => part.extend(['!', character.to_ascii_lowercase()]),
            other => {
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(part, "={byte:02x}");
                }
            }
        }
    }
    match part.len() {
        0 => "=".to_owned(),
        1..=PART => part,
        _ => ["=h", &hash128(&[key])].concat(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{list_name, part};

    #[test]
    fn names_are_as_documented() {
        let name = |p, r| list_name("StaffByName", p, r).map(|name| name.to_string());
        assert_eq!(
            name("Sales", "lastname_Jones").ok().as_deref(),
            Some("staffbyname/!sales/lastname_!jones.jsonl")
        );
        assert_eq!(part(""), "=");
        assert_eq!(part(".."), "=2e=2e");
        assert_eq!(part("a.b"), "a.b");
        assert_eq!(part("\u{e9}!="), "=c3=a9=21=3d");
        assert_eq!(part(&"x".repeat(201)).len(), 34);
    }

    proptest! {
        #[test]
        fn two_keys_never_have_one_name(a in "\\PC{0,90}", b in "\\PC{0,90}") {
            prop_assert_eq!(a == b, part(&a) == part(&b));
            prop_assert!(list_name("T", &a, &b).is_ok());
            let lower = part(&a).to_lowercase();
            prop_assert_eq!(lower, part(&a));
        }

        #[test]
        fn keys_that_differ_in_one_place_have_two_names(
            (a, at, other) in ("[A-Za-z.!=~ \u{e4}]{1,8}", 0usize..8, "[A-Za-z.!=0-9]")
        ) {
            let b: String = a.chars().enumerate()
                .map(|(n, c)| if n == at { other.chars().next().unwrap_or(c) } else { c })
                .collect();
            prop_assert_eq!(a == b, part(&a) == part(&b));
        }
    }
}
