//! The public predicates of an error, one for each kind of failure.

use super::{entable_error::Error, kind::ErrorKind};

macro_rules! predicates {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Error {
            $($(#[$doc])* pub fn $name(&self) -> bool { self.kind() == ErrorKind::$kind })*
        }
    };
}

predicates! {
    /// Returns whether the entity or the table does not exist.
    is_not_found => NotFound;
    /// Returns whether the entity or the table already exists, or the entity is being moved.
    is_conflict => Conflict;
    /// Returns whether the stored row no longer has the ETag that the write named.
    is_precondition_failed => PreconditionFailed;
    /// Returns whether another entity holds a key of a unique index; [`index`](Error::index) names
    /// the index.
    is_unique_violation => UniqueViolation;
    /// Returns whether a key, property, entity or batch exceeds a limit of the service.
    is_too_large => TooLarge;
    /// Returns whether the service asks for fewer requests.
    is_throttled => Throttled;
    /// Returns whether a row is of a type that the reader does not know.
    is_unrecognized_entity => UnrecognizedEntity;
    /// Returns whether a stored property does not fit its field.
    is_decode => Decode;
    /// Returns whether an encrypted value cannot be decrypted.
    is_decrypt => Decrypt;
    /// Returns whether an encryption key cannot be fetched now; the store is unchanged.
    is_key_unavailable => KeyUnavailable;
    /// Returns whether the outcome of a write is unknown.
    is_ambiguous => Ambiguous;
    /// Returns whether other writers kept winning until the attempts ran out.
    is_contended => Contended;
    /// Returns whether the receiver no longer holds the queue message.
    is_lease_lost => LeaseLost;
    /// Returns whether an input was refused before any request was sent.
    is_invalid => Invalid;
    /// Returns whether a query was refused because it would read a whole table.
    is_scan_refused => ScanRefused;
    /// Returns whether a cursor does not belong to the query.
    is_invalid_cursor => InvalidCursor;
    /// Returns whether the user's own callback returned an error.
    is_rejected => Rejected;
    /// Returns whether the backend does not support the request.
    is_unsupported => Unsupported;
    /// Returns whether a write was refused because it would lose an encrypted value that this program
    /// cannot decrypt; [`property`](Error::property) names it.
    is_lossy => Lossy;
    /// Returns whether a blob is gone because its row points elsewhere now, or an upload was refused
    /// because it is too old.
    is_stale => Stale;
    /// Returns whether credentials are missing, wrong, or do not cover the request.
    is_denied => Denied;
    /// Returns whether another process has the store's file open.
    is_locked => Locked;
    /// Returns whether the store's file was replaced by an older one, which lacks acknowledged writes.
    is_rolled_back => RolledBack;
    /// Returns whether stored bytes are damaged or have an unknown format.
    is_corrupt => Corrupt;
    /// Returns whether disk, network or the service itself failed.
    is_backend => Backend;
}
