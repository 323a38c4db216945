//! Backups of a store in a file.

use std::path::Path;

use crate::{backend::BackupReport, error::Result, table::Client};

impl Client {
    /// Writes a snapshot of an embedded store to a new file at `path`. The new file opens as a store. Writers
    /// can continue during the backup. The call passes through the client's layers to
    /// [`Embedded::backup`](crate::backend::Embedded::backup).
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # let directory = std::env::temp_dir().join(format!("entable-client-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::open(directory.join("staff.db"))?;
    /// client.create_table("Staff").await?;
    /// let report = client.backup(directory.join("monday.db")).await?;
    /// assert_eq!(report.tables, 1);
    /// assert_eq!(Client::open(directory.join("monday.db"))?.tables().await?, ["Staff"]);
    /// # Ok::<(), Error>(()) })?;
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` for a store that is not a file, with `is_conflict` if the path is taken, and
    /// with the errors of both files.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<BackupReport> {
        self.backend().snapshot().await?.backup(path.as_ref()).await
    }
}
