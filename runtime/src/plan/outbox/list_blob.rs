//! A list as the text of a blob, and the blob's name. The text has one JSON value per line: a header, then the ids
//! of the entries, sorted by bytes. Two lists never have the same name, even on a file system that ignores case.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::hash::hash128;
use crate::{
    address::RowAt,
    blob_port::{BlobVersion, TextBlob},
    entity::{LIST_MARKER, blob::name::escape_segment},
    error::{Error, ErrorKind, Result},
    plan::ListDelta,
};

/// The maximum number of bytes in a segment of a name. File systems allow 255.
const MAX_SEGMENT: usize = 200;

/// The version of the format.
const FORMAT: i32 = 1;

/// The first line, which identifies the list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Header {
    entity_type: String,
    format: i32,
    table: String,
    partition_key: String,
    row_key: String,
    /// A random id of the write, which makes the bytes of every version different.
    #[serde(rename = "Beat")]
    write_id: String,
}

/// The ids in a list, and the version of the blob that they were read from.
#[derive(Debug, Clone)]
pub(crate) struct BlobList {
    pub(crate) ids: Vec<String>,
    pub(crate) version: BlobVersion,
}

impl BlobList {
    /// Parses a blob as the list with the address `place`.
    ///
    /// # Errors
    ///
    /// Fails with `is_unrecognized_entity` for another format, and with `is_decode` for the list of another address.
    pub(crate) fn parse(blob: TextBlob, place: RowAt<'_>) -> Result<Self> {
        let mut lines = blob.text.lines();
        let header: Header = parse_line(lines.next().unwrap_or_default())?;
        if header.entity_type != LIST_MARKER || header.format != FORMAT {
            let message = format!(
                "expected a list in format {FORMAT}, found {} in format {}",
                header.entity_type.escape_debug(),
                header.format
            );
            // A later version of the program may own it and has to do its work.
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message));
        }
        let table = place.table.sibling(&header.table);
        if RowAt::new(table, &header.partition_key, &header.row_key) != place {
            let message = format!(
                "the blob holds another list, ({}, {}, {}): another program wrote it here",
                header.table.escape_debug(),
                header.partition_key.escape_debug(),
                header.row_key.escape_debug()
            );
            return Err(Error::new(ErrorKind::Decode, message));
        }
        let ids = lines.map(|line| {
            let texts: Vec<String> = parse_line(line)?;
            Ok(serde_json::Value::from(texts).to_string())
        });
        Ok(Self { ids: ids.collect::<Result<_>>()?, version: blob.version })
    }
}

/// Returns the text of a list in a blob: `ids` with `delta` applied. `write_id` must be different for every write,
/// to make the text of every write different.
pub(crate) fn list_text_after(
    place: RowAt<'_>,
    ids: &[String],
    delta: &ListDelta,
    write_id: String,
) -> Result<String> {
    let header = Header {
        entity_type: LIST_MARKER.to_owned(),
        format: FORMAT,
        table: place.table.form().into_owned(),
        partition_key: place.partition_key.to_owned(),
        row_key: place.row_key.to_owned(),
        write_id,
    };
    let mut ids: BTreeSet<&String> = ids.iter().collect();
    for removed in &delta.remove {
        ids.remove(removed);
    }
    ids.extend(&delta.add);
    let failed = |error| {
        Error::new(ErrorKind::Invalid, "the list cannot be written as JSON").with_source(error)
    };
    let mut text = serde_json::to_string(&header).map_err(failed)?;
    for id in ids {
        text.push('\n');
        text.push_str(id);
    }
    text.push('\n');
    Ok(text)
}

/// Parses one line of a list in a blob as the JSON of a `T`. Fails with `is_decode` for any other text.
fn parse_line<'t, T: Deserialize<'t>>(line: &'t str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| {
        Error::new(ErrorKind::Decode, "expected a list with one JSON value per line")
            .with_source(error)
    })
}

/// Returns the name of the blob with the list at `at`: `{table}/{PartitionKey}/{RowKey}.jsonl`, with each part
/// escaped. The table is in its canonical form.
pub(crate) fn name_of_list_blob(at: RowAt<'_>) -> String {
    let parts = [&*at.table.form(), at.partition_key, at.row_key].map(escape_or_hash_segment);
    [&parts.join("/"), ".jsonl"].concat()
}

/// Escapes a key as one segment of a blob's name, as [`escape_segment`] does. A segment over 200 bytes becomes `=h` and a
/// hash of the key.
fn escape_or_hash_segment(key: &str) -> String {
    let segment = escape_segment(key);
    if segment.len() <= MAX_SEGMENT { segment } else { ["=h", &hash128(&[key])].concat() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{escape_or_hash_segment, name_of_list_blob};
    use crate::{address::Names, backend::TableCase};

    #[test]
    fn names_are_as_documented() {
        let name = |case| {
            let names = Names::with_case(case);
            name_of_list_blob(names.row_at("StaffByName", "Sales", "lastname_Jones"))
        };
        assert_eq!(name(TableCase::Insensitive), "staffbyname/!sales/lastname_!jones.jsonl");
        assert_eq!(name(TableCase::Sensitive), "!staff!by!name/!sales/lastname_!jones.jsonl");
        assert_eq!(escape_or_hash_segment(""), "=");
        assert_eq!(escape_or_hash_segment(".."), "=2e=2e");
        assert_eq!(escape_or_hash_segment("a.b"), "a.b");
        assert_eq!(escape_or_hash_segment("\u{e9}!="), "=c3=a9=21=3d");
        assert_eq!(escape_or_hash_segment(&"x".repeat(201)).len(), 34);
    }

    proptest! {
        #[test]
        fn two_keys_never_have_one_name(a in "\\PC{0,90}", b in "\\PC{0,90}") {
            prop_assert_eq!(a == b, escape_or_hash_segment(&a) == escape_or_hash_segment(&b));
            let lower = escape_or_hash_segment(&a).to_lowercase();
            prop_assert_eq!(lower, escape_or_hash_segment(&a));
        }

        #[test]
        fn keys_that_differ_in_one_place_have_two_names(
            (a, at, other) in ("[A-Za-z.!=~ \u{e4}]{1,8}", 0usize..8, "[A-Za-z.!=0-9]")
        ) {
            let b: String = a.chars().enumerate()
                .map(|(n, c)| if n == at { other.chars().next().unwrap_or(c) } else { c })
                .collect();
            prop_assert_eq!(a == b, escape_or_hash_segment(&a) == escape_or_hash_segment(&b));
        }
    }
}
