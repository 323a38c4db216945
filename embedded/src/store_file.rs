//! The path of a store, and the engine's failures as errors that name the path and say what to do.

use std::{
    io::{self, ErrorKind::*},
    path::Path,
    sync::Arc,
};

use entable_core::{
    error::{Error, ErrorKind, Result},
    key::decode_sort_key,
};

use crate::{engine_panic::catch_engine_panic, stored_row::RowDamage};

/// Runs work of the engine and turns a panic into an error: the engine panics on some damaged pages.
///
/// After a panic, the caller must drop the transaction or file that the work was changing. A
/// snapshot never changes and stays usable.
pub(crate) fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T, redb::Error> {
    catch_engine_panic(work).unwrap_or_else(|| Err(panicked_error()))
}

fn panicked_error() -> redb::Error {
    redb::Error::Corrupted("the engine cannot read a page".to_owned())
}

/// Returns whether the disk has no room for a file.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The path of a store's file. Builds the errors of the store, which name the path.
#[derive(Debug, Clone)]
pub(crate) struct StoreFile(Arc<Path>);

impl StoreFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Builds an error of `kind` whose message begins with the path.
    pub(crate) fn error_of_kind(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, format!("store `{}`: {what}", self.0.display()))
    }

    /// Builds the error for a file that cannot be opened or created.
    pub(crate) fn opening_io_error(&self, error: io::Error) -> Error {
        let (kind, what) = match error.kind() {
            NotFound | NotADirectory => {
                (ErrorKind::NotFound, "the directory does not exist; create it first")
            }
            IsADirectory => {
                (ErrorKind::Invalid, "this is a directory; give the path of a file in it")
            }
            _ => return self.io_error(error),
        };
        self.error_of_kind(kind, what).with_source(error)
    }

    /// Builds the error for a failed read or write of the file.
    pub(crate) fn io_error(&self, error: io::Error) -> Error {
        let (kind, what) = match error.kind() {
            _ if is_full(&error) => {
                (ErrorKind::Backend, "no space is left on the disk; free some and try again")
            }
            PermissionDenied | ReadOnlyFilesystem => (
                ErrorKind::Denied,
                "this process may not write the file; change the file's permissions or owner",
            ),
            // A whole file has every page that the engine asks for: an early end means that it was
            // cut.
            UnexpectedEof | InvalidData => return self.corrupt_error(&error.to_string()),
            _ => (ErrorKind::Backend, "reading or writing the file failed"),
        };
        self.error_of_kind(kind, what).with_source(error)
    }

    /// Returns the error for a damaged file: its bytes are not those that were written.
    pub(crate) fn corrupt_error(&self, what: &str) -> Error {
        self.error_of_kind(
            ErrorKind::Corrupt,
            &format!("the file is damaged; restore it from a backup: {what}"),
        )
    }

    /// Builds the error for a file that another process or another handle has open.
    pub(crate) fn locked_error(&self) -> Error {
        self.error_of_kind(
            ErrorKind::Locked,
            "the file is already open in another process or through another handle in this process; share one client, \
             or close the other handle",
        )
    }

    /// Builds the error for a stored row that cannot be read. `key` is its address.
    pub(crate) fn damaged_row_error(&self, key: &[u8], damage: RowDamage) -> Error {
        let error = match damage {
            RowDamage::Row => {
                self.corrupt_error("a row cannot be decoded or does not match its checksum")
            }
            RowDamage::Layout(id) => {
                self.corrupt_error(&format!("layout {id} of a row is missing or damaged"))
            }
        };
        match decode_sort_key(key) {
            Some((partition_key, row_key)) => error.at_keys(&partition_key, &row_key),
            None => error,
        }
    }

    /// Runs work that may meet a damaged page, and turns a panic of the engine into an error that
    /// names the file. The work itself may return any error of this crate.
    pub(crate) fn catch_panic<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = catch_engine_panic(work);
        done.unwrap_or_else(|| Err(self.engine_error(panicked_error())))
    }

    /// Builds the error for a failure that the engine reports.
    pub(crate) fn engine_error(&self, error: impl Into<redb::Error>) -> Error {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => self.locked_error(),
            redb::Error::Io(error) => self.io_error(error),
            redb::Error::Corrupted(what) => self.corrupt_error(&what),
            redb::Error::UpgradeRequired(version) => self.error_of_kind(
                ErrorKind::Unsupported,
                &format!(
                    "the file has the old engine format {version}; export it with the version of entable that wrote it"
                ),
            ),
            redb::Error::PreviousIo => self
                .error_of_kind(ErrorKind::Backend, "an earlier disk failure stopped the store; try again"),
            // Each table has the same type in all versions of the format. Another type means damage.
            error @ (redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableDoesNotExist(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableIsMultimap(_)) => self.corrupt_error(&error.to_string()),
            error => self.error_of_kind(ErrorKind::Backend, "the storage engine failed").with_source(error),
        }
    }
}
