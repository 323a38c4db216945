//! The engine's failures as errors that name the file and say what to do.

use std::{
    io::{self, ErrorKind::*},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use crate::{
    error::{Error, ErrorKind, Result},
    key::decode_sort_key,
};

/// Does what may meet a damaged page: the engine panics at some that make no sense to it. What it
/// worked on is not used again, or is a snapshot that does not change.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(senseless()))
}

fn senseless() -> redb::Error {
    redb::Error::Corrupted("a page makes no sense".to_owned())
}

/// The file that errors name.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<Path>);

impl Place {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// An error of `kind` about this file.
    pub(super) fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, format!("store `{}`: {what}", self.0.display()))
    }

    /// The file cannot be opened or created.
    pub(super) fn opening(&self, error: io::Error) -> Error {
        let (kind, what) = match error.kind() {
            NotFound | NotADirectory => {
                (ErrorKind::NotFound, "its directory does not exist, create it first")
            }
            IsADirectory => {
                (ErrorKind::Invalid, "this is a directory, give the path of a file in it")
            }
            _ => return self.io(error),
        };
        self.error(kind, what).with_source(error)
    }

    /// Reading or writing failed.
    pub(super) fn io(&self, error: io::Error) -> Error {
        let (kind, what) = match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => {
                (ErrorKind::Backend, "there is no space left for it, free some and try again")
            }
            PermissionDenied | ReadOnlyFilesystem => (
                ErrorKind::Denied,
                "this process may not write it, change the file's permissions or its owner",
            ),
            UnexpectedEof | InvalidData => return self.corrupt(&error.to_string()),
            _ => (ErrorKind::Backend, "reading or writing it failed"),
        };
        self.error(kind, what).with_source(error)
    }

    /// The bytes are not what was written.
    pub(super) fn corrupt(&self, what: &str) -> Error {
        self.error(
            ErrorKind::Corrupt,
            &format!("the file is damaged, restore it from a copy: {what}"),
        )
    }

    /// Another process or another handle has it open.
    pub(super) fn locked(&self) -> Error {
        self.error(
            ErrorKind::Locked,
            "it is open already, in another process or through another handle of this one; \
             share one client, or close the other",
        )
    }

    /// A row does not have the checksum that it was written with, or does not decode.
    pub(super) fn damaged(&self, key: &[u8]) -> Error {
        let error = self.corrupt("a row is not what was written");
        match decode_sort_key(key) {
            Some((partition_key, row_key)) => error.at_keys(&partition_key, &row_key),
            None => error,
        }
    }

    /// As [`guarded`], for work that has its errors made already.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = catch_unwind(AssertUnwindSafe(work));
        done.unwrap_or_else(|_| Err(self.engine(senseless())))
    }

    /// Whatever the engine reports.
    pub(super) fn engine(&self, error: impl Into<redb::Error>) -> Error {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => self.locked(),
            redb::Error::Io(error) => self.io(error),
            redb::Error::Corrupted(what) => self.corrupt(&what),
            redb::Error::UpgradeRequired(version) => self.error(
                ErrorKind::Unsupported,
                &format!("its engine format {version} is of an older version, export it with that"),
            ),
            redb::Error::PreviousIo => self
                .error(ErrorKind::Backend, "an earlier failure of the disk stopped it, try again"),
            error @ (redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableDoesNotExist(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableIsMultimap(_)) => self.corrupt(&error.to_string()),
            error => self.error(ErrorKind::Backend, "the engine failed").with_source(error),
        }
    }
}
