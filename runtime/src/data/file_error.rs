//! The errors of files that hold rows as text.

use std::path::Path;

use crate::error::{Error, ErrorKind};

/// Returns the error for a file that cannot be read or written.
pub(super) fn file_error(path: &Path, doing: &str, error: std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        std::io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        _ => ErrorKind::Backend,
    };
    Error::new(kind, format!("{doing} `{}` failed: {error}", path.display())).with_source(error)
}
