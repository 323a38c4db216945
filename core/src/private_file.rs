//! Creates files that may hold rows: only their user can read them, no link is followed, and no other
//! file is replaced.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

/// Creates a file that only this user can read and write. Fails with `AlreadyExists` if the name is taken, also
/// by a link.
fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The two names of a new file: a random, temporary one while it is written, and its final one once it is complete.
#[derive(Debug)]
pub struct NewFileName {
    temporary: PathBuf,
    final_path: PathBuf,
}

impl NewFileName {
    /// Chooses a random name in the directory of `path`: `path`, 32 hex digits and `ending`, with dots in between.
    // Nobody can have put a file or a link in the place of a name that nobody can guess.
    pub fn with_random_name(path: &Path, ending: &str) -> Self {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}.{ending}", Uuid::new_v4().simple()));
        Self { temporary: temporary.into(), final_path: path.to_owned() }
    }

    /// Returns the names of a file that an earlier attempt has left at `random`.
    pub fn of_earlier_attempt(temporary: PathBuf, path: &Path) -> Self {
        Self { temporary, final_path: path.to_owned() }
    }

    /// Returns the random name that the file is created under.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Returns the name that the file gets once it is complete.
    pub fn final_path(&self) -> &Path {
        &self.final_path
    }

    /// Creates the file under its random name. Only this user can read and write it.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenOptions::open`], `AlreadyExists` if the name is taken.
    pub fn create(&self) -> io::Result<File> {
        create_private_file(&self.temporary)
    }

    /// Gives a complete file its final name in place of the temporary one. Returns `false` if a file or a link has that
    /// name already, which stays as it is.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist under its random name, and other errors of a rename.
    pub fn rename_to_final(&self) -> io::Result<bool> {
        // A link never replaces another file, as a rename does.
        match fs::hard_link(&self.temporary, &self.final_path) {
            Ok(()) => {
                // The file has its final name. A leftover random name does no harm.
                let _ = fs::remove_file(&self.temporary);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            // Some file systems have no links.
            Err(_) => self.rename_to_final_without_links(),
        }
    }

    /// Gives a complete file its final name as [`rename_to_final`](Self::rename_to_final) does, on a file system without
    /// links.
    fn rename_to_final_without_links(&self) -> io::Result<bool> {
        // A rename replaces whatever has the target name. Take the name with an empty file first, which ensures
        // that the rename replaces only that file.
        match create_private_file(&self.final_path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        let renamed = fs::rename(&self.temporary, &self.final_path);
        if renamed.is_err() {
            // It is empty, and would look like a complete file.
            let _ = fs::remove_file(&self.final_path);
        }
        renamed.map(|()| true)
    }

    /// Deletes the file under its random name, if it is there.
    pub fn remove_unfinished(&self) {
        let _ = fs::remove_file(&self.temporary);
    }

    /// Syncs the directory of the file: without that, a power failure can lose the name of a new file.
    ///
    /// # Errors
    ///
    /// The errors of [`File::sync_all`].
    pub fn sync_directory(&self) -> io::Result<()> {
        // Windows opens no directory as a file.
        if !cfg!(unix) {
            return Ok(());
        }
        File::open(self.directory()).and_then(|directory| directory.sync_all())
    }

    /// Returns the directory of the file.
    pub fn directory(&self) -> &Path {
        match self.final_path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            // A path without a directory lies in the current one.
            _ => Path::new("."),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::NewFileName;

    /// On a file system without links, such as FAT.
    #[test]
    fn a_rename_replaces_no_other_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let names = [0, 1].map(|_| NewFileName::with_random_name(&path, "part"));
        for (name, text) in names.iter().zip(["first", "second"]) {
            name.create().unwrap();
            fs::write(name.temporary(), text).unwrap();
        }
        assert!(names[0].rename_to_final_without_links().unwrap());
        assert!(!names[1].rename_to_final_without_links().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_to_string(names[1].temporary()).unwrap(), "second");
        fs::remove_file(&path).unwrap();
        fs::remove_file(names[1].temporary()).unwrap();
        assert!(names[1].rename_to_final_without_links().is_err());
        assert!(!path.exists(), "no empty file looks like a complete one");
    }
}
