//! Translates errors of the store of the blobs that rows point to.

use object_store::Error as StoreError;

use crate::error::{Error, ErrorKind, ServiceCode};

/// Returns the error, an `is_conflict`, for a new blob whose name another blob has.
pub(super) fn name_taken_error() -> Error {
    Error::service(ServiceCode::EntityAlreadyExists, "a blob with this new name already exists")
}

/// Translates an error of the object store: a taken name is `is_conflict`, an operation that the
/// store lacks is `is_unsupported`, and any other error is `is_backend`.
pub(super) fn blob_store_error(error: StoreError) -> Error {
    match error {
        StoreError::AlreadyExists { .. } => name_taken_error(),
        StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => {
            let message = "the blob store does not support the operation; use a store that does";
            Error::new(ErrorKind::Unsupported, message).with_source(error)
        }
        error => Error::new(ErrorKind::Backend, "the blob store failed").with_source(error),
    }
}
