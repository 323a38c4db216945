//! The kinds of failure that a caller can distinguish.

/// The kinds of failure that a caller can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The entity or the table does not exist.
    NotFound,
    /// The entity or the table already exists, or the entity is being moved.
    Conflict,
    /// The stored row no longer has the ETag that the write named: another writer changed it.
    PreconditionFailed,
    /// Another entity holds a key of a unique index.
    UniqueViolation,
    /// A key, property, entity or batch exceeds a limit of the service.
    TooLarge,
    /// The service asks for fewer requests.
    Throttled,
    /// The row is of a type that the reader does not know.
    UnrecognizedEntity,
    /// A stored property is missing, has another type, or does not fit its field.
    Decode,
    /// An encrypted value cannot be decrypted; [`Error::seal_fault`](super::Error::seal_fault)
    /// says why.
    Decrypt,
    /// The key to encrypt or decrypt a value with cannot be fetched now.
    KeyUnavailable,
    /// The answer to a write was lost, and reading the row again does not prove the outcome.
    Ambiguous,
    /// Other writers kept winning until the attempts ran out.
    Contended,
    /// The receiver no longer holds the queue message: its visibility timeout ended and another
    /// receiver may have taken it, or it was deleted.
    LeaseLost,
    /// The service would refuse the value, key, name, filter or batch, so it was not sent.
    Invalid,
    /// The query would read a whole table, and the caller did not allow that.
    ScanRefused,
    /// The cursor belongs to another query or has an unknown format.
    InvalidCursor,
    /// The user's own `validate`, `update` or handler returned an error.
    Rejected,
    /// The backend does not support the request.
    Unsupported,
    /// The write would lose an encrypted value that this program cannot decrypt.
    Lossy,
    /// The blob is gone since its row points elsewhere, or the upload is too old to be written.
    Stale,
    /// Credentials are missing, wrong, or do not cover the request.
    Denied,
    /// Another process has the store's file open.
    Locked,
    /// The store's file is older than it was: acknowledged writes are missing.
    RolledBack,
    /// Stored bytes are damaged or have an unknown format.
    Corrupt,
    /// The backend failed: disk, network, or the service itself.
    Backend,
}

/// The state of a row that was read after the answer to a write was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Seen {
    /// The row still has the ETag that it had before the write: the write was not carried out, or
    /// not yet.
    Unchanged,
    /// The row does not exist.
    Absent,
    /// The row holds the written values: this write stored them, or another write of equal values.
    Equal,
    /// The row holds other values.
    Other,
}
