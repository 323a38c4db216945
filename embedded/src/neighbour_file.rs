//! Files next to a store's file, which have its name with an ending: its mark and its journal.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// Returns the path of a store with an ending.
pub(crate) fn path_with_ending(store: &Path, ending: &str) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// Opens a file to read it. Returns `None` if there is none. Fails with `InvalidInput` if something else is there, and
/// follows no link.
pub(crate) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    // Check what it is before it is opened, because opening a pipe would wait.
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => File::open(path).map(Some),
        Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
