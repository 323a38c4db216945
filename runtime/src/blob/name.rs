//! Builds the names of blobs. Two lists never share a name, even on a file system that ignores
//! case.

use object_store::path::Path;

use crate::{
    address::{RowAt, TableCase},
    entity::blob_name::escaped,
    error::{Error, ErrorKind, Result},
    plan::outbox::hash128,
};

/// The most bytes in one segment of a name; file systems allow 255.
const MAX_SEGMENT: usize = 200;

/// Returns the path of the blob of the list at `at`: `{table}/{PartitionKey}/{RowKey}.jsonl`, each
/// part escaped. The table is in lower case if `case` says that case does not count.
pub(crate) fn list_blob_path(at: RowAt<'_>, case: TableCase) -> Result<Path> {
    let table = case.canonical_table_name(at.table);
    let parts = [&table, at.partition_key, at.row_key].map(escaped_segment);
    Path::parse([&parts.join("/"), ".jsonl"].concat()).map_err(|error| {
        Error::new(ErrorKind::Invalid, "the keys of the list make no valid name of a blob")
            .with_source(error)
    })
}

/// Escapes a key as one segment of a blob's name, as [`escaped`] does; a segment over 200 bytes
/// becomes `=h` and a hash of the key.
fn escaped_segment(key: &str) -> String {
    let segment = escaped(key);
    if segment.len() <= MAX_SEGMENT { segment } else { ["=h", &hash128(&[key])].concat() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{escaped_segment, list_blob_path};
    use crate::address::{RowAt, TableCase};

    #[test]
    fn names_are_as_documented() {
        let at = RowAt::new("StaffByName", "Sales", "lastname_Jones");
        let name = |case| list_blob_path(at, case).map(|name| name.to_string());
        assert_eq!(
            name(TableCase::Insensitive).ok().as_deref(),
            Some("staffbyname/!sales/lastname_!jones.jsonl")
        );
        assert_eq!(
            name(TableCase::Sensitive).ok().as_deref(),
            Some("!staff!by!name/!sales/lastname_!jones.jsonl")
        );
        assert_eq!(escaped_segment(""), "=");
        assert_eq!(escaped_segment(".."), "=2e=2e");
        assert_eq!(escaped_segment("a.b"), "a.b");
        assert_eq!(escaped_segment("\u{e9}!="), "=c3=a9=21=3d");
        assert_eq!(escaped_segment(&"x".repeat(201)).len(), 34);
    }

    proptest! {
        #[test]
        fn two_keys_never_have_one_name(a in "\\PC{0,90}", b in "\\PC{0,90}") {
            prop_assert_eq!(a == b, escaped_segment(&a) == escaped_segment(&b));
            prop_assert!(list_blob_path(RowAt::new("T", &a, &b), TableCase::Sensitive).is_ok());
            let lower = escaped_segment(&a).to_lowercase();
            prop_assert_eq!(lower, escaped_segment(&a));
        }

        #[test]
        fn keys_that_differ_in_one_place_have_two_names(
            (a, at, other) in ("[A-Za-z.!=~ \u{e4}]{1,8}", 0usize..8, "[A-Za-z.!=0-9]")
        ) {
            let b: String = a.chars().enumerate()
                .map(|(n, c)| if n == at { other.chars().next().unwrap_or(c) } else { c })
                .collect();
            prop_assert_eq!(a == b, escaped_segment(&a) == escaped_segment(&b));
        }
    }
}
