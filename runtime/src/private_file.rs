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
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The two names of a new file: a random one while it is written, and its own one once it is complete.
#[derive(Debug)]
pub(crate) struct NewFileName {
    random: PathBuf,
    own: PathBuf,
}

impl NewFileName {
    /// Chooses a random name in the directory of `path`: `path`, 32 hex digits and `ending`, with dots in between.
    // Nobody can have put a file or a link in the place of a name that nobody can guess.
    pub(crate) fn choose_beside(path: &Path, ending: &str) -> Self {
        let mut random = path.as_os_str().to_owned();
        random.push(format!(".{}.{ending}", Uuid::new_v4().simple()));
        Self { random: random.into(), own: path.to_owned() }
    }

    /// Returns the names of a file that an earlier attempt has left at `random`.
    pub(crate) fn of_earlier_attempt(random: PathBuf, path: &Path) -> Self {
        Self { random, own: path.to_owned() }
    }

    /// Returns the random name that the file is created under.
    pub(crate) fn random(&self) -> &Path {
        &self.random
    }

    /// Returns the name that the file gets once it is complete.
    pub(crate) fn own(&self) -> &Path {
        &self.own
    }

    /// Gives a complete file its own name in place of the random one. Returns `false` if a file or a link has that
    /// name already, which stays as it is.
    pub(crate) fn give_own_name(&self) -> io::Result<bool> {
        // A link never replaces another file, as a rename does.
        match fs::hard_link(&self.random, &self.own) {
            Ok(()) => {
                // The file has its final name. A leftover random name does no harm.
                let _ = fs::remove_file(&self.random);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            // Some file systems have no links.
            Err(_) => self.give_own_name_by_rename(),
        }
    }

    /// Gives a complete file its own name as [`give_own_name`](Self::give_own_name) does, on a file system without
    /// links.
    fn give_own_name_by_rename(&self) -> io::Result<bool> {
        // A rename replaces whatever has the target name. Take the name with an empty file first, which ensures
        // that the rename replaces only that file.
        match create_private_file(&self.own) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        let renamed = fs::rename(&self.random, &self.own);
        if renamed.is_err() {
            // It is empty, and would look like a complete file.
            let _ = fs::remove_file(&self.own);
        }
        renamed.map(|()| true)
    }

    /// Deletes the file under its random name, if it is there.
    pub(crate) fn remove_unfinished(&self) {
        let _ = fs::remove_file(&self.random);
    }

    /// Syncs the directory of the file: without that, a power failure can lose the name of a new file.
    pub(crate) fn sync_directory(&self) -> io::Result<()> {
        // Windows opens no directory as a file.
        if !cfg!(unix) {
            return Ok(());
        }
        File::open(self.directory()).and_then(|directory| directory.sync_all())
    }

    /// Returns the directory of the file.
    pub(crate) fn directory(&self) -> &Path {
        match self.own.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            // A path without a directory lies in the current one.
            _ => Path::new("."),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{NewFileName, create_private_file};

    /// On a file system without links, such as FAT.
    #[test]
    fn a_rename_replaces_no_other_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let names = [0, 1].map(|_| NewFileName::choose_beside(&path, "part"));
        for (name, text) in names.iter().zip(["first", "second"]) {
            create_private_file(name.random()).unwrap();
            fs::write(name.random(), text).unwrap();
        }
        assert!(names[0].give_own_name_by_rename().unwrap());
        assert!(!names[1].give_own_name_by_rename().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_to_string(names[1].random()).unwrap(), "second");
        fs::remove_file(&path).unwrap();
        fs::remove_file(names[1].random()).unwrap();
        assert!(names[1].give_own_name_by_rename().is_err());
        assert!(!path.exists(), "no empty file looks like a complete one");
    }
}
