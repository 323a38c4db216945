//! A file for rows that gets its name when it is complete.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::file_error::file_error;
use crate::{
    error::{Error, ErrorKind, Result},
    private_file::NewFileName,
};

/// The end of the name of a file that is not complete.
const ENDING: &str = "part";
/// The length of the random part of such a name, in hex digits.
const RANDOM_DIGITS: usize = 32;

/// A file for rows that gets its name only when it is complete.
///
/// Only this user can read it. Until [`finish`](Self::finish), its name is `path`, 32 random hex digits and
/// `part`, separated by dots. Nobody can guess the name and put a link in its place. Dropping an unfinished
/// file deletes it.
///
/// ```
/// use std::io::Write;
///
/// use entable::data::NewFile;
///
/// # let directory = std::env::temp_dir().join(format!("entable-new-file-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let path = directory.join("bad.jsonl");
/// let mut file = NewFile::create(&path)?;
/// file.write_all(b"one line\n")?;
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"one line\n");
/// assert!(NewFile::create(&path).unwrap_err().is_conflict());
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NewFile {
    file: File,
    name: NewFileName,
    /// Whether an unfinished file stays when it is dropped, for a later attempt to continue it.
    is_kept: bool,
}

impl NewFile {
    /// Creates a file that gets the name `path` when it is complete.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if the name is taken, also by a link, with `is_not_found` if the directory does not
    /// exist, and with `is_denied` or `is_backend` if the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // Only to fail before the work: a name that is taken later is found when the file is finished.
        if path.symlink_metadata().is_ok() {
            return Err(taken_error(path));
        }
        let name = NewFileName::with_random_name(path, ENDING);
        let file = name.create();
        let file = file.map_err(|error| file_error(name.temporary(), "creating", error))?;
        Ok(Self { file, name, is_kept: false })
    }

    /// Syncs the file, then gives it its name. In this order a crash cannot leave a broken file that looks
    /// complete.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if another file took the name; that file is not changed. Fails with
    /// `is_backend` if the file cannot be written or named.
    pub fn finish(self) -> Result<()> {
        let written = self.file.sync_all();
        written.map_err(|error| file_error(self.name.temporary(), "writing", error))?;
        let path = self.name.final_path();
        let named = self.name.rename_to_final();
        if !named.map_err(|error| file_error(path, "naming", error))? {
            return Err(taken_error(path));
        }
        self.name.sync_directory().map_err(|error| file_error(path, "naming", error))
    }

    /// Returns the path of the file while it is written.
    pub(super) fn path_while_written(&self) -> &Path {
        self.name.temporary()
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `finish`, no file has this name.
        if !self.is_kept || length_of_attempt(self) == 0 {
            self.name.remove_unfinished();
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates a file as [`NewFile::create`] does, and deletes files of earlier attempts at `path`. If `is_resumed` is
/// set, returns the longest of these files instead of a new one. Leaves a file alone if another process writes
/// it, if it has another owner, or if it is a link.
///
/// If the file has contents and is dropped before it is finished, it stays under its random name.
pub(super) fn create_or_resume(path: &Path, is_resumed: bool) -> Result<NewFile> {
    let new = NewFile::create(path)?;
    // Held until the file is closed. It shows other attempts that this one is running. Some file systems have
    // no locks.
    let _ = new.file.try_lock();
    let reading = |error| file_error(path, "looking for earlier attempts at", error);
    let mut earlier = earlier_attempts(&new).map_err(reading)?;
    let longest = (0..earlier.len()).max_by_key(|at| earlier.get(*at).map_or(0, length_of_attempt));
    let mut chosen = match longest.filter(|_| is_resumed) {
        Some(longest) => earlier.swap_remove(longest),
        None => new,
    };
    // The others are deleted as they are dropped.
    chosen.is_kept = true;
    Ok(chosen)
}

fn length_of_attempt(attempt: &NewFile) -> u64 {
    attempt.file.metadata().map_or(0, |found| found.len())
}

/// Returns the files that earlier attempts at the path of `new` have left, open and locked.
fn earlier_attempts(new: &NewFile) -> io::Result<Vec<NewFile>> {
    let Some(base) = new.name.final_path().file_name().and_then(|name| name.to_str()) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(new.name.directory())? {
        let path = entry?.path();
        if path != new.path_while_written() && is_name_of_attempt(&path, base) {
            found.extend(open_attempt(path, new));
        }
    }
    Ok(found)
}

/// Returns whether a path has the name of an unfinished file that will be called `base`.
fn is_name_of_attempt(path: &Path, base: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let random = name
        .and_then(|name| name.strip_prefix(base)?.strip_prefix('.')?.strip_suffix(ENDING))
        .and_then(|name| name.strip_suffix('.'));
    random.is_some_and(|random| {
        random.len() == RANDOM_DIGITS && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Opens the file of an earlier attempt. Returns `None` if it is not a file of this user, is a link, or is
/// being written.
fn open_attempt(path: PathBuf, new: &NewFile) -> Option<NewFile> {
    // Looked at before it is opened, since opening a pipe would wait.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).ok()?;
    if !is_own_file(&file, &path, &new.file).ok()? {
        return None;
    }
    if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
        return None;
    }
    let name = NewFileName::of_earlier_attempt(path, new.name.final_path());
    Some(NewFile { file, name, is_kept: false })
}

/// Returns whether the open file is that at `path` itself, has no other name, and has the owner of `new`. Makes
/// sure that only this user can read it.
#[cfg(unix)]
fn is_own_file(file: &File, path: &Path, new: &File) -> io::Result<bool> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    // Somebody may have put a link there after the look: what was opened is compared, not what was seen.
    let (opened, named) = (file.metadata()?, path.symlink_metadata()?);
    let is_own = named.is_file()
        && (opened.dev(), opened.ino()) == (named.dev(), named.ino())
        && opened.nlink() == 1
        && opened.uid() == new.metadata()?.uid();
    if is_own {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(is_own)
}

#[cfg(not(unix))]
fn is_own_file(file: &File, path: &Path, _: &File) -> io::Result<bool> {
    Ok(file.metadata()?.is_file() && path.symlink_metadata()?.is_file())
}

fn taken_error(path: &Path) -> Error {
    let message = format!("`{}` exists; delete it, or choose another name", path.display());
    Error::new(ErrorKind::Conflict, message)
}
