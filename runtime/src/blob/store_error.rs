//! Translates errors of the store of the blobs that rows point to.

use object_store::Error as StoreError;

use crate::error::{Error, ErrorKind, ServiceCode};

/// Returns the error, an `is_conflict`, for a new blob whose name another blob has.
pub(super) fn name_taken_error() -> Error {
    Error::service(ServiceCode::EntityAlreadyExists, "there is a blob of this new name already")
}

/// Translates an error of the object store: a taken name is `is_conflict`, an operation that the
/// store lacks is `is_unsupported`, and any other error is `is_backend`.
pub(super) fn blob_store_error(error: StoreError) -> Error {
    match error {
        StoreError::AlreadyExists { .. } => name_taken_error(),
        StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => {
            let message =
                "the store of blobs cannot do what the request needs: use a store that can";
            Error::new(ErrorKind::Unsupported, message).with_source(error)
        }
        error => Error::new(ErrorKind::Backend, "the store of blobs failed").with_source(error),
    }
}
