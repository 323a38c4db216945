//! The kinds of failure and the predicates that ask for them.

use super::{Error, ServiceCode};

/// The kinds of failure that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The entity or the table does not exist.
    NotFound,
    /// The entity or the table exists already.
    Conflict,
    /// The row changed since it was read: its ETag is another one now.
    PreconditionFailed,
    /// A key of an index is taken by another entity.
    UniqueViolation,
    /// A key, property, entity or batch is over a limit of the service.
    TooLarge,
    /// The service asks for less traffic.
    Throttled,
    /// A row's type is not one that the reader knows.
    UnrecognizedEntity,
    /// A stored property is missing, of another type, or does not fit its field.
    Decode,
    /// A sealed value cannot be opened; [`Error::seal_fault`] says how far it came.
    Decrypt,
    /// The key that a value is sealed with, or is to be sealed with, cannot be had now.
    KeyUnavailable,
    /// The answer to a write was lost and reading again does not prove its outcome.
    Ambiguous,
    /// Other writers kept winning until the attempts ran out.
    Contended,
    /// A message of a queue that one does not have any more: it was visible again, and others may
    /// have it.
    LeaseLost,
    /// A value, key, name, filter or batch that the service would refuse; nothing was sent.
    Invalid,
    /// A query that would read the whole table and was not allowed to.
    ScanRefused,
    /// A cursor of another query or another format.
    InvalidCursor,
    /// The user's own `validate`, `update` or handler said no.
    Rejected,
    /// The backend cannot do what was asked.
    Unsupported,
    /// Credentials are missing, wrong or do not cover the request.
    Denied,
    /// The store's file is in use by another process.
    Locked,
    /// Stored bytes are damaged or of an unknown format.
    Corrupt,
    /// The backend failed: disk, network or the service itself.
    Backend,
}

/// What reading a row again showed after the answer to a write was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Seen {
    /// The row is in the version that it had before: the write did not happen, or not yet.
    Unchanged,
    /// There is no such row.
    Absent,
    /// The row holds what was written: by this write, or by another one that says the same.
    Equal,
    /// The row holds something else.
    Other,
}

macro_rules! predicates {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Error {
            $($(#[$doc])* pub fn $name(&self) -> bool { self.kind() == ErrorKind::$kind })*
        }
    };
}

predicates! {
    /// The entity or the table does not exist.
    is_not_found => NotFound;
    /// The entity or the table exists already.
    is_conflict => Conflict;
    /// The row changed since it was read.
    is_precondition_failed => PreconditionFailed;
    /// A key of an index is taken; [`index`](Error::index) names it.
    is_unique_violation => UniqueViolation;
    /// Something is over a limit of the service.
    is_too_large => TooLarge;
    /// The service asks for less traffic.
    is_throttled => Throttled;
    /// A row of a type that the reader does not know.
    is_unrecognized_entity => UnrecognizedEntity;
    /// A stored property does not fit its field.
    is_decode => Decode;
    /// A sealed value cannot be opened.
    is_decrypt => Decrypt;
    /// A key cannot be had; the store holds what it held.
    is_key_unavailable => KeyUnavailable;
    /// A write whose outcome cannot be told.
    is_ambiguous => Ambiguous;
    /// Other writers kept winning.
    is_contended => Contended;
    /// A message of a queue is not one's own any more.
    is_lease_lost => LeaseLost;
    /// An input that was refused before anything was sent.
    is_invalid => Invalid;
    /// A table scan that was not asked for.
    is_scan_refused => ScanRefused;
    /// A cursor that does not belong to the query.
    is_invalid_cursor => InvalidCursor;
    /// The user's own callback said no.
    is_rejected => Rejected;
    /// The backend cannot do it.
    is_unsupported => Unsupported;
    /// Credentials are missing, wrong or too narrow.
    is_denied => Denied;
    /// Another process holds the store.
    is_locked => Locked;
    /// Stored bytes are damaged.
    is_corrupt => Corrupt;
    /// Disk, network or service failure.
    is_backend => Backend;
}

impl Error {
    /// Whether the row is there already that was to be inserted.
    pub(crate) fn is_there(&self) -> bool {
        self.is_conflict() && self.is_of_row()
    }

    /// Whether it says something of a row, and not that there is no table.
    fn is_of_row(&self) -> bool {
        let tables = [ServiceCode::TableNotFound, ServiceCode::TableBeingDeleted];
        !tables.iter().any(|code| self.code() == Some(code.as_str()))
    }

    /// Whether another writer was first with a row: changed, created or deleted it.
    pub(crate) fn is_raced(&self) -> bool {
        self.is_of_row()
            && (self.is_not_found() || self.is_conflict() || self.is_precondition_failed())
    }
}
