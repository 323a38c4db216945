//! Writes rows as JSON blobs, one per row. Also names the folder for copies of the blobs that such rows
//! point to.

use std::fmt::Write;

use object_store::{
    Error as StoreError, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion,
    path::Path,
};
use serde::Deserialize;

use crate::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    plan::outbox::hash128,
    row::{Row, json::JsonRow},
};

/// The most bytes in one segment of a name; file systems allow 255.
const MAX_SEGMENT: usize = 200;

/// The number of times that a blob is read and replaced while others replace it too.
const ATTEMPTS: u32 = 8;

/// The keys and the Timestamp of the row that an archive's blob holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ArchivedRow {
    partition_key: String,
    row_key: String,
    timestamp: Option<String>,
}

/// Returns the path of the blob of a row: `{folder}/{table}/{PartitionKey}/{RowKey}.json`, each of
/// the three escaped.
pub(crate) fn row_blob_path(
    folder: &str,
    table: &str,
    (partition_key, row_key): (&str, &str),
) -> Result<Path> {
    let parts = [table, partition_key, row_key].map(escaped_segment).join("/");
    let folder = folder.trim_end_matches('/');
    let slash = if folder.is_empty() { "" } else { "/" };
    Path::parse(format!("{folder}{slash}{parts}.json")).map_err(|error| {
        let message = format!(
            "expected a folder for blobs such as `archive`, found `{}`",
            folder.escape_debug()
        );
        Error::new(ErrorKind::Invalid, message).with_source(error)
    })
}

/// Returns the folder of the blobs of entities whose rows are in `folder`.
// No table's name begins so, and a file for a row never is where the folder of a blob has to be.
pub(crate) fn folder_of_copied_blobs(folder: &str) -> String {
    let folder = folder.trim_end_matches('/');
    let slash = if folder.is_empty() { "" } else { "/" };
    [folder, slash, "_blobs"].concat()
}

/// Escapes a text as one segment of a blob's name. ASCII letters, digits, `_`, `-`, `@` and an inner `.` stay.
/// Every other byte becomes `=` and two hex digits. An empty text becomes `=`, and a segment over 200 bytes
/// becomes `=h` and a hash of the text.
fn escaped_segment(text: &str) -> String {
    let mut segment = String::new();
    for (at, byte) in text.bytes().enumerate() {
        let is_inner = at > 0 && at + 1 < text.len();
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'@' => {
                segment.push(char::from(byte));
            }
            b'.' if is_inner => segment.push('.'),
            other => {
                // Writing to a `String` cannot fail.
                let _ = write!(segment, "={other:02x}");
            }
        }
    }
    match segment.len() {
        0 => "=".to_owned(),
        1..=MAX_SEGMENT => segment,
        _ => ["=h", &hash128(&[text])].concat(),
    }
}

/// Returns the row as the service's JSON with its Timestamp.
fn json_of(row: &Row) -> Result<String> {
    let mut text = serde_json::to_string(&JsonRow(row)).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "the row cannot be written as JSON").with_source(error)
    })?;
    if let (Some(timestamp), Some('}')) = (row.timestamp(), text.pop()) {
        // Writing to a `String` cannot fail.
        let _ = write!(text, ",\"Timestamp\":\"{timestamp}\"");
    }
    text.push('}');
    Ok(text)
}

/// Creates the blob of a row, or replaces it if it holds an earlier version of that row. A blob that
/// holds a later version stays.
///
/// # Errors
///
/// `is_conflict` if the blob holds something else, for example another row on a file system that
/// treats two names as equal; `is_contended` if others kept replacing the blob.
pub(crate) async fn put_row_if_newer(
    store: &dyn ObjectStore,
    path: &Path,
    row: &Row,
) -> Result<()> {
    let text = json_of(row)?;
    let put = async |mode| {
        let options = PutOptions { mode, ..PutOptions::default() };
        store.put_opts(path, PutPayload::from(text.clone()), options).await.map(drop)
    };
    for _ in 0..ATTEMPTS {
        // The first request: an entity is usually put once.
        let mut has_conditions = true;
        match put(PutMode::Create).await {
            Ok(()) => return Ok(()),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {}
            Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
                has_conditions = false;
            }
            Err(error) => return Err(archive_error(path, error)),
        }
        let found = match store.get_opts(path, GetOptions::default()).await {
            Ok(found) => Some(found),
            // Deleted since the attempt to create it, which is made again.
            Err(StoreError::NotFound { .. }) if has_conditions => continue,
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(archive_error(path, error)),
        };
        let version = match found {
            None => None,
            Some(found) => {
                let seen = (found.meta.e_tag.clone(), found.meta.version.clone());
                let held = found.bytes().await.map_err(|error| archive_error(path, error))?;
                if held == text || holds_later_version(path, &held, row)? {
                    return Ok(());
                }
                Some(UpdateVersion { e_tag: seen.0, version: seen.1 })
            }
        };
        let replaced = match version {
            // A put that was given up and arrives late names a version that is gone, and is refused.
            Some(version) => match put(PutMode::Update(version)).await {
                // A directory compares no versions.
                Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
                    put(PutMode::Overwrite).await
                }
                put => put,
            },
            None => put(PutMode::Overwrite).await,
        };
        match replaced {
            Ok(()) => return Ok(()),
            // Another worker was first: look again.
            Err(
                StoreError::AlreadyExists { .. }
                | StoreError::Precondition { .. }
                | StoreError::NotFound { .. },
            ) => {}
            Err(error) => return Err(archive_error(path, error)),
        }
    }
    let message = format!(
        "other writers replaced the blob `{path}` {ATTEMPTS} times in a row; try again later"
    );
    Err(Error::new(ErrorKind::Contended, message))
}

/// Returns whether the blob holds a later version of the row.
fn holds_later_version(path: &Path, held: &[u8], row: &Row) -> Result<bool> {
    let Ok(held) = serde_json::from_slice::<ArchivedRow>(held) else {
        let message =
            format!("expected an entity as JSON in the blob `{path}`, found other content");
        return Err(Error::new(ErrorKind::Conflict, message));
    };
    if (held.partition_key.as_str(), held.row_key.as_str()) != row.keys() {
        let message = format!(
            "the blob `{path}` holds another entity, ({}, {}): the store does not tell the two names apart",
            held.partition_key.escape_debug(),
            held.row_key.escape_debug()
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let held: Option<Ticks> = held.timestamp.and_then(|timestamp| timestamp.parse().ok());
    // A blob without a time is replaced: nothing shows that it is the newer one.
    Ok(held.zip(row.timestamp()).is_some_and(|(held, own)| held > own))
}

fn archive_error(path: &Path, error: StoreError) -> Error {
    let kind = match error {
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            ErrorKind::Denied
        }
        _ => ErrorKind::Backend,
    };
    Error::new(kind, format!("the blob store failed at `{path}`")).with_source(error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{escaped_segment, row_blob_path};

    #[test]
    fn names_are_as_documented() {
        let name = |folder| {
            row_blob_path(folder, "Current", ("Sales", "empid_000456")).map(|name| name.to_string())
        };
        let expected = "archive/Current/Sales/empid_000456.json";
        assert_eq!(name("archive").ok().as_deref(), Some(expected));
        assert_eq!(name("archive/").ok().as_deref(), Some(expected));
        assert_eq!(name("").ok().as_deref(), Some("Current/Sales/empid_000456.json"));
        assert!(name("a//b").is_err_and(|error| error.is_invalid()));
        assert!(name("..").is_err_and(|error| error.is_invalid()));
        assert_eq!(escaped_segment(""), "=");
        assert_eq!(escaped_segment(".."), "=2e=2e");
        assert_eq!(escaped_segment("a/b.c"), "a=2fb.c");
        assert_eq!(escaped_segment(&"x".repeat(201)).len(), 34);
    }

    proptest! {
        #[test]
        fn two_keys_never_have_one_name(a in "\\PC{0,90}", b in "\\PC{0,90}") {
            prop_assert_eq!(a == b, escaped_segment(&a) == escaped_segment(&b));
            prop_assert!(row_blob_path("archive", "T", (&a, &b)).is_ok());
        }
    }
}
