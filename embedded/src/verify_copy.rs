//! Verifies a copy of a store's file, while reads and writes of the store go on.

use std::{
    fmt,
    fs::File,
    future::IntoFuture,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use entable_core::{
    __runtime::private_file::NewFileName,
    backend::BoxFuture,
    error::{Error, ErrorKind, Result},
    row::Row,
};
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata};
use tokio::sync::oneshot;

use crate::{
    catalog::Catalog,
    dictionary::Dictionary,
    engine_panic::catch_user_panic,
    file_format::{CATALOG, CatalogEntry, LAYOUTS},
    handle::Embedded,
    job::{BegunCopy, FailedReadAlarm, WriterJob},
    open_file::{self, OpenedFile},
    snapshot::Snapshot,
    store_file::StoreFile,
    stored_row::RowDamage,
};

/// Bytes of memory for pages of the copy.
const CACHE_BYTES: usize = 32 * 1024 * 1024;
/// Rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 8 * 1024;

/// A callback of the user for the progress of a verification.
type Listener = dyn Fn(VerifyProgress) + Send + Sync;

/// The progress of the verification of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// The bytes of the file that are copied.
    pub copied_bytes: u64,
    /// The bytes of the file.
    pub file_bytes: u64,
    /// The rows that were read. Before the first row is read, every page is.
    pub rows: u64,
}

/// Counts what a verified copy of a store contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The number of tables.
    pub tables: u64,
    /// The number of rows of every kind, including outbox rows.
    pub rows: u64,
    /// The bytes of the file.
    pub file_bytes: u64,
}

/// A verification of a copy, from [`Embedded::verify_copy`]. It runs when it is awaited.
#[must_use = "does nothing unless awaited"]
pub struct VerifyCopy<'s> {
    store: &'s Embedded,
    kept_as: Option<PathBuf>,
    directory: Option<PathBuf>,
    on_progress: Option<Box<Listener>>,
}

impl fmt::Debug for VerifyCopy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, kept_as, directory, on_progress: _ } = self;
        let mut shown = f.debug_struct("VerifyCopy");
        shown.field("store", store).field("kept_as", kept_as).field("directory", directory);
        shown.finish_non_exhaustive()
    }
}

impl Embedded {
    /// Copies the file as it is now and checks every page and every row of the copy, while reads and writes continue.
    /// The copy is deleted afterwards unless you keep it. [`verify`](Self::verify) checks the file itself and blocks
    /// reads and writes.
    ///
    /// Run it when there are few writes: until the copy is complete, the first change to each 64 KiB block of the file
    /// waits until that block is copied. The copy takes as much space as the file. It is readable by its owner only,
    /// and is named after the store with a random part and `verify`. A process that is killed meanwhile leaves it
    /// behind.
    ///
    /// The file is read through the system's page cache, so damage on the disk is not detected while the cache holds
    /// the page.
    ///
    /// ```
    /// use entable_core::BoxError;
    /// use entable_embedded::Embedded;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("staff.db");
    /// let store = Embedded::open(&path)?;
    /// let report = store.verify_copy().await?;
    /// assert_eq!((report.tables, report.rows), (0, 0));
    ///
    /// let sunday = directory.path().join("sunday.db");
    /// store
    ///     .verify_copy()
    ///     .keep_as(&sunday)
    ///     .on_progress(|at| println!("{} of {} bytes, {} rows", at.copied_bytes, at.file_bytes, at.rows))
    ///     .await?;
    /// assert!(Embedded::open(sunday).is_ok());
    /// # Ok::<(), BoxError>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * `is_corrupt`: the store is damaged. The error names a damaged row, if one is found;
    /// * `is_conflict`: the name of a copy that is kept is taken;
    /// * `is_rejected`: the callback for the progress panicked;
    /// * `is_not_found`, `is_denied`: the directory of the copy does not exist, or cannot be written;
    /// * `is_backend`: the disk is full or fails, or the store was closed, compacted or opened again while it was
    ///   copied.
    pub const fn verify_copy(&self) -> VerifyCopy<'_> {
        VerifyCopy { store: self, kept_as: None, directory: None, on_progress: None }
    }
}

impl VerifyCopy<'_> {
    /// Keeps the copy as the file `path` if nothing in it is damaged. It opens as a store. The copy is then made in the
    /// directory of `path`. An existing file is never replaced.
    pub fn keep_as(mut self, path: impl AsRef<Path>) -> Self {
        self.kept_as = Some(path.as_ref().to_owned());
        self
    }

    /// Makes the copy in a directory, such as one on another disk. Without this call and `keep_as`, the copy is made
    /// in the directory of the store.
    pub fn in_directory(mut self, path: impl AsRef<Path>) -> Self {
        self.directory = Some(path.as_ref().to_owned());
        self
    }

    /// Calls `report` with the progress of the copy and of the verification, from the thread that does the work.
    pub fn on_progress(mut self, report: impl Fn(VerifyProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Box::new(report));
        self
    }

    async fn run(self) -> Result<VerifyReport> {
        let store_file = self.store.store_file().clone();
        let copy = UnfinishedCopy { name: self.name_of_copy(&store_file)? };
        let path = StoreFile::new(copy.name.temporary());
        let created = copy.name.create();
        let target = created.map_err(|error| path.opening_io_error(error))?;
        let file = target.try_clone().map_err(|error| path.io_error(error))?;
        let begun = self.store.ask_writer(|answer| WriterJob::BeginCopy(target, answer)).await??;
        let progress = VerifyProgress { file_bytes: begun.copy.length(), ..Default::default() };
        let is_kept = self.kept_as.is_some();
        let (sender, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("entable-verify".to_owned());
        let verifying = thread.spawn(move || {
            let is_wanted = || !sender.is_closed();
            let on_progress = self.on_progress.as_deref();
            let is_wanted = &is_wanted;
            let mut work = Work { store_file, path, is_kept, progress, on_progress, is_wanted };
            let verified = work.run(begun, file);
            let verified = verified.and_then(|report| {
                if is_kept { copy.keep(&work.path).map(|()| report) } else { Ok(report) }
            });
            // Nobody may wait for the answer any more. The copy is gone before it.
            drop(copy);
            let _ = sender.send(verified);
        });
        let ended = |what: &str| Error::new(ErrorKind::Backend, format!("the verification {what}"));
        verifying.map_err(|error| ended("could not start its thread").with_source(error))?;
        answer.await.map_err(|_| ended("ended without an answer"))?
    }

    /// Returns the names of the copy: a temporary one, and the final one that it gets if it is kept.
    fn name_of_copy(&self, store_file: &StoreFile) -> Result<NewFileName> {
        let own = match (&self.kept_as, &self.directory) {
            (Some(path), _) => path.clone(),
            (None, Some(directory)) => {
                directory.join(store_file.path().file_name().unwrap_or_default())
            }
            (None, None) => store_file.path().to_owned(),
        };
        // Only to fail before the work: a name that is taken later is found when the copy gets it.
        if self.kept_as.is_some() && own.symlink_metadata().is_ok() {
            return Err(taken_error(&own));
        }
        Ok(NewFileName::with_random_name(&own, "verify"))
    }
}

impl<'s> IntoFuture for VerifyCopy<'s> {
    type Output = Result<VerifyReport>;
    type IntoFuture = BoxFuture<'s, Result<VerifyReport>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.run().await })
    }
}

fn taken_error(path: &Path) -> Error {
    let what = "the file already exists; choose another name";
    StoreFile::new(path).error_of_kind(ErrorKind::Conflict, what)
}

/// The file of a copy, which is deleted when this is dropped, unless it has got its own name.
struct UnfinishedCopy {
    name: NewFileName,
}

impl UnfinishedCopy {
    fn keep(&self, path: &StoreFile) -> Result<()> {
        let named = self.name.rename_to_final().map_err(|error| path.io_error(error))?;
        if !named {
            return Err(taken_error(self.name.final_path()));
        }
        self.name.sync_directory().map_err(|error| path.io_error(error))
    }
}

impl Drop for UnfinishedCopy {
    fn drop(&mut self) {
        self.name.remove_unfinished();
    }
}

/// The work of a verification, in a thread of its own.
struct Work<'w> {
    /// The store. Errors name it instead of the copy, because damage in the copy is damage in the store.
    store_file: StoreFile,
    /// The path of the copy.
    path: StoreFile,
    is_kept: bool,
    progress: VerifyProgress,
    on_progress: Option<&'w Listener>,
    is_wanted: &'w dyn Fn() -> bool,
}

impl Work<'_> {
    fn run(&mut self, begun: BegunCopy, file: File) -> Result<VerifyReport> {
        self.copy_bytes(&begun)?;
        let BegunCopy { copy, source, newest_commit } = begun;
        // From here on, writes of the store no longer wait for the copy.
        drop((copy, source));
        let store_file = self.store_file.clone();
        store_file.catch_panic(|| {
            let opened = open_file::open_copy(&store_file, file, newest_commit, CACHE_BYTES)?;
            let report = self.check_rows(&opened)?;
            if self.is_kept {
                let renewed = open_file::renew_store_id(&opened.database);
                renewed.map_err(|error| self.path.engine_error(error))?;
            }
            Ok(report)
        })
    }

    fn copy_bytes(&mut self, begun: &BegunCopy) -> Result<()> {
        let mut block = 0;
        loop {
            self.check_wanted()?;
            let copied = begun.copy.copy_some(&begun.source, block);
            match copied.map_err(|error| self.path.io_error(error))? {
                Some((next, bytes)) => (block, self.progress.copied_bytes) = (next, bytes),
                None => return Ok(()),
            }
            self.report_progress()?;
        }
    }

    /// Reads every row of the copy. Fails if a row is damaged, or if a table's row count differs from the number of its rows.
    fn check_rows(&mut self, opened: &OpenedFile) -> Result<VerifyReport> {
        let fault = |error: redb::Error| self.store_file.engine_error(error);
        let load = || -> Result<_, redb::Error> {
            let transaction = opened.database.begin_read()?;
            let catalog = Catalog::load_catalog(&transaction.open_table(CATALOG)?)?;
            Ok((catalog, Dictionary::load(&transaction.open_table(LAYOUTS)?)?))
        };
        let (catalog, layouts) = load().map_err(fault)?;
        let (catalog, layouts) = (Arc::new(catalog), Arc::new(layouts));
        let alarm = FailedReadAlarm::new(Weak::new());
        let snapshot =
            Snapshot::new(&self.store_file, &opened.database, &catalog, &layouts, &alarm)?;
        let mut report =
            VerifyReport { file_bytes: self.progress.file_bytes, ..Default::default() };
        let mut damage = None;
        for entry in catalog.entries() {
            report.tables += 1;
            report.rows += self.check_table(&snapshot, entry, &mut damage)?;
        }
        self.report_progress()?;
        damage.map_or(Ok(report), |Damage { first, rows }| {
            Err(first.with_source(format!("{rows} rows of the file are damaged")))
        })
    }

    /// Returns the number of rows of a table.
    fn check_table(
        &mut self,
        snapshot: &Snapshot,
        entry: &CatalogEntry,
        damage: &mut Option<Damage>,
    ) -> Result<u64> {
        let rows = snapshot.rows_of_table(&entry.name)?;
        let (mut found, mut last) = (0, Vec::new());
        for item in
            ReadableTable::iter(&rows.table).map_err(|error| snapshot.engine_error(error))?
        {
            let (key, value) = item.map_err(|error| snapshot.engine_error(error))?;
            let key = key.value();
            // The checksum of a page does not say that the page is in its right place.
            let is_in_order = found == 0 || *key > *last;
            last.clear();
            last.extend_from_slice(key);
            found += 1;
            self.progress.rows += 1;
            let row = rows.open_value(key, value.value()).and_then(|row| row.to_row());
            // Decoding every value finds what a checksum cannot: a row that was written wrong.
            let is_sound = |row: &Row| is_in_order && row.check().is_ok();
            if let Err(found) =
                row.and_then(|row| is_sound(&row).then_some(()).ok_or(RowDamage::Row))
            {
                Damage::count_row(damage, || {
                    self.store_file.damaged_row_error(key, found).in_table(&entry.name)
                });
            }
            if found % ROWS_PER_REPORT == 0 {
                self.check_wanted()?;
                self.report_progress()?;
            }
        }
        let counted = ReadableTableMetadata::len(&rows.table);
        if counted.map_err(|error| snapshot.engine_error(error))? != found {
            let what = "a table's row count differs from the number of its rows";
            return Err(self.store_file.corrupt_error(what).in_table(&entry.name));
        }
        Ok(found)
    }

    fn check_wanted(&self) -> Result<()> {
        let given_up = || Error::new(ErrorKind::Backend, "the verification was cancelled");
        (self.is_wanted)().then_some(()).ok_or_else(given_up)
    }

    /// Calls the user's callback with the progress so far. Fails with `is_rejected` if the callback panics.
    fn report_progress(&self) -> Result<()> {
        let Some(report) = self.on_progress else { return Ok(()) };
        // A panic of the callback says nothing about the file.
        let told = catch_user_panic(|| report(self.progress));
        let what = "the callback for the progress of a verification panicked";
        told.ok_or_else(|| Error::new(ErrorKind::Rejected, what))
    }
}

/// The damaged rows of a copy.
struct Damage {
    /// The error of the first one.
    first: Error,
    rows: u64,
}

impl Damage {
    fn count_row(damage: &mut Option<Self>, error: impl FnOnce() -> Error) {
        damage.get_or_insert_with(|| Self { first: error(), rows: 0 }).rows += 1;
    }
}
