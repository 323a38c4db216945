//! A list as a blob: JSON, one value a line. The first says what it is, the others what is in it,
//! sorted by their bytes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::blobs::{Blob, BlobVersion};
use crate::{
    error::{Error, ErrorKind, Result},
    plan::{LIST_MARKER, ListDelta, outbox::ListPlace},
};

/// The version of the form.
const FORMAT: i32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Header {
    entity_type: String,
    format: i32,
    table: String,
    partition_key: String,
    row_key: String,
    /// Another with each write, so that no two versions are the same bytes.
    beat: String,
}

/// A list as it was read.
#[derive(Debug, Clone)]
pub(crate) struct BlobList {
    pub(crate) ids: Vec<String>,
    pub(crate) version: BlobVersion,
}

impl BlobList {
    /// The list at that place.
    pub(crate) fn of(blob: Blob, place: &ListPlace) -> Result<Self> {
        let mut lines = blob.text.lines();
        let header: Header = parsed(lines.next().unwrap_or_default())?;
        if header.entity_type != LIST_MARKER || header.format != FORMAT {
            let message = format!(
                "expected a list in format {FORMAT}, found {} in format {}",
                header.entity_type.escape_debug(),
                header.format
            );
            // Another program's: left alone.
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message));
        }
        let is_here = header.table.eq_ignore_ascii_case(&place.table)
            && header.partition_key == place.partition_key
            && header.row_key == place.row_key;
        if !is_here {
            let message = format!(
                "the blob is the list ({}, {}, {}): another program put it here",
                header.table.escape_debug(),
                header.partition_key.escape_debug(),
                header.row_key.escape_debug()
            );
            return Err(Error::new(ErrorKind::Decode, message));
        }
        let ids = lines.map(|line| {
            let texts: Vec<String> = parsed(line)?;
            Ok(serde_json::Value::from(texts).to_string())
        });
        Ok(Self { ids: ids.collect::<Result<_>>()?, version: blob.version })
    }
}

/// The list after a change. `beat`: never the same twice.
pub(crate) fn changed(
    place: &ListPlace,
    ids: &[String],
    delta: &ListDelta,
    beat: String,
) -> Result<String> {
    let header = Header {
        entity_type: LIST_MARKER.to_owned(),
        format: FORMAT,
        table: place.table.to_ascii_lowercase(),
        partition_key: place.partition_key.clone(),
        row_key: place.row_key.clone(),
        beat,
    };
    let mut ids: BTreeSet<&String> = ids.iter().collect();
    for removed in &delta.remove {
        ids.remove(removed);
    }
    ids.extend(&delta.add);
    let failed = |error| Error::new(ErrorKind::Invalid, "no JSON").with_source(error);
    let mut text = serde_json::to_string(&header).map_err(failed)?;
    for id in ids {
        text.push('\n');
        text.push_str(id);
    }
    text.push('\n');
    Ok(text)
}

fn parsed<'t, T: Deserialize<'t>>(line: &'t str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| {
        Error::new(ErrorKind::Decode, "expected a list, one JSON value a line").with_source(error)
    })
}
