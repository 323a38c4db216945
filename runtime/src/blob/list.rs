//! Parses and writes a list as the text of a blob: one JSON value per line, the first a header, each
//! further one the id of an entry, sorted by bytes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::object::{Blob, BlobVersion};
use crate::{
    address::{RowAt, TableCase},
    entity::LIST_MARKER,
    error::{Error, ErrorKind, Result},
    plan::ListDelta,
};

/// The version of the format.
const FORMAT: i32 = 1;

/// The first line: which list the blob is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Header {
    entity_type: String,
    format: i32,
    table: String,
    partition_key: String,
    row_key: String,
    /// A random id of the write, so that no two versions have equal bytes.
    #[serde(rename = "Beat")]
    write_id: String,
}

/// The ids in a list, with the version of the blob that they were read from.
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
    /// `is_unrecognized_entity` for another format, `is_decode` for the list of another place.
    pub(crate) fn parse(blob: Blob, place: RowAt<'_>, case: TableCase) -> Result<Self> {
        let mut lines = blob.text.lines();
        let header: Header = parse_line(lines.next().unwrap_or_default())?;
        if header.entity_type != LIST_MARKER || header.format != FORMAT {
            let message = format!(
                "expected a list in format {FORMAT}, found {} in format {}",
                header.entity_type.escape_debug(),
                header.format
            );
            // A later version of the program may own it, so its work is left to that program.
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message));
        }
        let named = RowAt::new(&header.table, &header.partition_key, &header.row_key);
        if !named.is_same_row(place, case) {
            let message = format!(
                "the blob holds the list ({}, {}, {}): another program put it here",
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

/// Returns the text of a list in a blob: `ids` with the change `delta` applied. `write_id` must be
/// new for every write, so that no two writes have the same text.
pub(crate) fn list_text_after(
    place: RowAt<'_>,
    case: TableCase,
    ids: &[String],
    delta: &ListDelta,
    write_id: String,
) -> Result<String> {
    let header = Header {
        entity_type: LIST_MARKER.to_owned(),
        format: FORMAT,
        table: case.canonical_table_name(place.table),
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

/// Parses one line of a list in a blob: the JSON text of a `T`. Fails with `is_decode` for any
/// other text.
fn parse_line<'t, T: Deserialize<'t>>(line: &'t str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| {
        Error::new(ErrorKind::Decode, "expected a list with one JSON value per line")
            .with_source(error)
    })
}
