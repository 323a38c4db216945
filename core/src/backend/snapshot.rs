//! The rows of a store in a file at one moment: read while writers go on, or written to a new file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    port::{Backend, BoxFuture},
    request::BackupReport,
};
use crate::error::Result;

/// The rows of one moment, which reads do not change and writes do not reach. A store in a file implements it for its
/// [`Snapshot`].
pub trait FrozenRows: Backend {
    /// Writes the rows to a new file at `path`, which opens as a store.
    fn write_to<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<BackupReport>>;
}

/// The rows of a store in a file at one moment. The file keeps their space until the snapshot is dropped.
#[derive(Debug, Clone)]
pub struct Snapshot {
    rows: Arc<dyn FrozenRows>,
    file: PathBuf,
    length: u64,
}

impl Snapshot {
    /// Creates a snapshot of the store in `file`. `rows` reads the rows of that moment.
    pub fn new(rows: Arc<dyn FrozenRows>, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        let length = length_of(&file);
        Self { rows, file, length }
    }

    /// Returns a backend that reads the rows as they were when the snapshot was taken, and refuses writes.
    pub fn rows(&self) -> Arc<dyn Backend> {
        self.rows.clone()
    }

    /// Writes the rows to a new file, which opens as a store. Reads and writes of the store go on meanwhile.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if the path is taken, and with the errors of both files.
    pub async fn backup(&self, path: &Path) -> Result<BackupReport> {
        self.rows.write_to(path).await
    }

    /// Returns how many bytes the file has grown since the snapshot was taken.
    pub fn growth(&self) -> u64 {
        // A file that has become smaller has not grown.
        length_of(&self.file).saturating_sub(self.length)
    }
}

fn length_of(file: &Path) -> u64 {
    // A file that cannot be looked at has not grown, as far as anybody knows.
    std::fs::metadata(file).map(|found| found.len()).unwrap_or_default()
}
