//! Opens the store of blobs that an argument names.

use std::{fs, path::Path, sync::Arc};

use entable::object_store::{ObjectStore, local::LocalFileSystem};

use crate::{
    failure::{FAILED, Failure},
    store::{is_service, refuse_secret},
};

/// Opens a store of blobs. `creates` says whether a directory that does not exist is created.
pub(crate) fn open(name: &str, creates: bool) -> Result<Arc<dyn ObjectStore>, Failure> {
    refuse_secret(name)?;
    if is_service(name) {
        return Err(Failure::usage(format!(
            "`{name}` is not a directory, and this command copies only blobs in directories; copy cloud blobs with a \
             tool such as AzCopy, since their names stay the same, or with the library's `copy_blobs_to`"
        )));
    }
    let path = Path::new(name);
    if creates {
        fs::create_dir_all(path)
            .map_err(|error| Failure::io(&format!("creating the directory `{name}`"), &error))?;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(Failure::usage(format!("`{name}` is not a directory of blobs"))),
        Err(error) => {
            return Err(Failure::io(&format!("opening the directory `{name}`"), &error));
        }
    }
    let directory = LocalFileSystem::new_with_prefix(path).map_err(|error| {
        Failure::new(FAILED, "Backend", format!("opening the directory `{name}` failed: {error}"))
    })?;
    // Without it a power cut may leave empty files under names that a later copy takes for complete.
    Ok(Arc::new(directory.with_fsync(true)))
}
