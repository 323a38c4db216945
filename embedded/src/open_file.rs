//! Opens or creates the file of a store, and refuses files that are not stores.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
};

use entable_core::{
    __runtime::private_file::NewFileName,
    error::{ErrorKind, Result},
};
use redb::{
    Builder, Database, ReadableDatabase, StorageBackend, WriteTransaction, backends::FileBackend,
};
use uuid::Uuid;

use crate::{
    file_format::{CATALOG, FORMAT, LAYOUTS, META, StoreId, TRASH, meta},
    journal_replay::{Replay, free_name_of_journal, refuse_other_journal, replay_journal},
    mark::{CommitMark, path_of_mark},
    options::EmbeddedOptions,
    overlay::MemoryOverlay,
    store_file::StoreFile,
    stored_facts::store_id,
    unfinished_file::truncate_unfinished_file,
    watched_file::WatchedFile,
};

/// The first bytes of every file of the engine.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// An open file: the engine, and the file that it writes.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) database: Database,
    pub(crate) disk: WatchedFile,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) cache_bytes: usize,
    /// The size up to which every page of a file is checked, or `None` to check none.
    pub(crate) verify_files_up_to_bytes: Option<u64>,
    /// A mark that the store must not be older than, if it is the store's own.
    pub(crate) mark: Option<CommitMark>,
    /// Whether the store is opened even if acknowledged writes are missing.
    pub(crate) accepts_older: bool,
}

impl Opening {
    /// Returns how a file is opened with the options, without a mark.
    pub(crate) const fn from_options(options: &EmbeddedOptions) -> Self {
        let EmbeddedOptions { cache_bytes, verify_files_up_to_bytes, accepts_older, .. } = options;
        Self {
            cache_bytes: *cache_bytes,
            verify_files_up_to_bytes: Some(*verify_files_up_to_bytes),
            mark: None,
            accepts_older: *accepts_older,
        }
    }
}

/// Opens the store in a file. Creates a new store if the file is missing or empty, or if a crash interrupted the
/// creation of a store in an empty file.
///
/// Fails with `is_rolled_back`, and leaves the file as it is, if the store is older than `mark`.
pub(crate) fn open_or_create(store_file: &StoreFile, opening: Opening) -> Result<OpenedFile> {
    match open_for_writing(store_file) {
        Ok(file) => open_existing(store_file, file, opening),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            refuse_other_journal(store_file, opening.accepts_older)?;
            create_store(store_file, opening)
        }
        Err(error) => Err(store_file.opening_io_error(error)),
    }
}

/// Opens a store that was open before. Fails, instead of creating a store, if the file is gone.
pub(crate) fn open_without_creating(
    store_file: &StoreFile,
    opening: Opening,
) -> Result<OpenedFile> {
    let file = open_for_writing(store_file).map_err(|error| store_file.opening_io_error(error))?;
    open_existing(store_file, file, opening)
}

fn open_for_writing(store_file: &StoreFile) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(store_file.path())
}

fn open_existing(store_file: &StoreFile, file: File, opening: Opening) -> Result<OpenedFile> {
    let may_be_store = is_empty_or_has_magic(store_file, &file)?;
    let file = FileBackend::new(file).map_err(|error| store_file.engine_error(error))?;
    if !may_be_store && !truncate_unfinished_file(store_file, &file)? {
        return Err(no_store_error(store_file));
    }
    let length = file.len().map_err(|error| store_file.io_error(error))?;
    let is_checked = opening.verify_files_up_to_bytes.is_some_and(|most| length <= most);
    let least_commit = opening.mark.map_or(0, |mark| mark.commit);
    let disk = WatchedFile::with_least_commit(file, least_commit);
    let opened = match start_engine(store_file, disk.clone(), opening.cache_bytes, is_checked) {
        Err(error) => match (opening.mark, disk.refused_commit()) {
            (Some(mark), Some(found)) => return open_older(store_file, opening, mark, found),
            _ => return Err(error),
        },
        Ok(opened) => opened,
    };
    // The engine makes an empty file its own before the store writes its first tables. A crash in
    // between leaves a file that is as good as empty.
    if is_unused(&opened.database).map_err(|error| store_file.engine_error(error))? {
        refuse_other_journal(store_file, opening.accepts_older)?;
        free_name_of_journal(store_file)?;
        initialize_store(store_file, &opened.database)?;
    } else {
        check_format(store_file, &opened.database)?;
        return replay(store_file, opened, opening);
    }
    Ok(opened)
}

/// Replays the journal of an open file. If the disk has no room for its frames, they are kept in memory and in the journal.
/// If they do not fit the file, it is opened without them if that is accepted.
fn replay(store_file: &StoreFile, opened: OpenedFile, opening: Opening) -> Result<OpenedFile> {
    let replay_journal = |opened: &OpenedFile, replay| {
        let (mark, accepts_older) = (opening.mark, opening.accepts_older);
        store_file.catch_panic(|| {
            replay_journal(store_file, &opened.database, mark, accepts_older, replay)
        })
    };
    let other = match replay_journal(&opened, Replay::ToFile) {
        Ok(true) => return Ok(opened),
        Ok(false) => Replay::ToMemory,
        Err(error) if error.is_corrupt() && opening.accepts_older => Replay::Omit,
        Err(error) => return Err(error),
    };
    // An engine that has failed is of no more use.
    drop(opened);
    let file = open_for_writing(store_file).map_err(|error| store_file.opening_io_error(error))?;
    let file = FileBackend::new(file).map_err(|error| store_file.engine_error(error))?;
    let least_commit = opening.mark.map_or(0, |mark| mark.commit);
    let disk = WatchedFile::with_least_commit(file, least_commit);
    let opened = start_engine(store_file, disk, opening.cache_bytes, false)?;
    if replay_journal(&opened, other)? {
        return Ok(opened);
    }
    Err(store_file.io_error(io::ErrorKind::StorageFull.into()))
}

/// Opens a file whose newest commit has a smaller number than the mark, if the mark belongs to another store. Otherwise
/// fails with `is_rolled_back`, and leaves the file as it is.
fn open_older(
    store_file: &StoreFile,
    opening: Opening,
    mark: CommitMark,
    found: u64,
) -> Result<OpenedFile> {
    let file = || open_for_writing(store_file).map_err(|error| store_file.opening_io_error(error));
    let looked_at = FileBackend::new(file()?).map_err(|error| store_file.engine_error(error))?;
    let looked_at = MemoryOverlay::new(looked_at).map_err(|error| store_file.io_error(error))?;
    let disk = WatchedFile::new(looked_at);
    let opened = start_engine(store_file, disk, opening.cache_bytes, true)?;
    let store = read_store_id(&opened.database).map_err(|error| store_file.engine_error(error))?;
    drop(opened);
    if store != Some(mark.store) {
        return open_existing(store_file, file()?, Opening { mark: None, ..opening });
    }
    Err(store_file.error_of_kind(
        ErrorKind::RolledBack,
        &format!(
            "acknowledged writes are missing: the newest commit that opens is number {found}, and `{}` says that \
             number {} was on disk; its last commit is damaged, or an older file was put in its place; restore a \
             backup, or open the file with `accept_rolled_back(true)` or without the mark to go on without these writes",
            path_of_mark(store_file.path()).display(),
            mark.commit,
        ),
    ))
}

/// Returns the id of a store. `None` if the file has none.
pub(crate) fn read_store_id(database: &Database) -> Result<Option<StoreId>, redb::Error> {
    let facts = match database.begin_read()?.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        facts => facts?,
    };
    store_id(&facts)
}

/// Gives the store in an open file a new id. The mark and the journal of the store it was copied from then no longer apply
/// to it.
pub(crate) fn renew_store_id(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    write_store_id(&transaction)?;
    transaction.open_table(META)?.remove(meta::JOURNAL)?;
    Ok(transaction.commit()?)
}

fn write_store_id(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    let id: StoreId = Uuid::new_v4().into_bytes();
    transaction.open_table(META)?.insert(meta::STORE, &id[..])?;
    Ok(())
}

/// Opens a copy of a store, and checks every page of it against its checksum. Fails with `is_corrupt` if the copy
/// has not all pages of commit number `newest_commit`.
pub(crate) fn open_copy(
    store_file: &StoreFile,
    copy: File,
    newest_commit: u64,
    cache_bytes: usize,
) -> Result<OpenedFile> {
    let file = FileBackend::new(copy).map_err(|error| store_file.engine_error(error))?;
    let disk = WatchedFile::with_least_commit(file, newest_commit);
    let opened = start_engine(store_file, disk, cache_bytes, true)?;
    check_format(store_file, &opened.database)?;
    Ok(opened)
}

/// Checks every page of the file against its checksum.
pub(crate) fn verify_pages(store_file: &StoreFile, database: &mut Database) -> Result<()> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        // The engine has repaired the file. It may have gone back to an earlier commit, which loses acknowledged
        // writes.
        Ok(false) => Err(store_file.corrupt_error("a page does not match its checksum")),
        Err(error) => Err(store_file.engine_error(error)),
    }
}

/// Starts the engine on a file. If `is_checked`, compares every page with its checksum first, so damage is an error
/// instead of a panic.
fn start_engine(
    store_file: &StoreFile,
    disk: WatchedFile,
    cache_bytes: usize,
    is_checked: bool,
) -> Result<OpenedFile> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(is_checked);
    let database = builder.create_with_backend(disk.clone());
    let database = database.map_err(|error| store_file.engine_error(error))?;
    Ok(OpenedFile { database, disk })
}

/// Creates a store under another name in the same directory, and gives it its own name when it is
/// complete: a crash leaves either no store or one that opens.
fn create_store(store_file: &StoreFile, opening: Opening) -> Result<OpenedFile> {
    match create_named(store_file, opening.cache_bytes, |_| Ok(()))? {
        Some(opened) => {
            free_name_of_journal(store_file)?;
            Ok(opened)
        }
        // Another process has created the store meanwhile.
        None => open_without_creating(store_file, opening),
    }
}

/// Creates a store with the contents that `fill` writes, and gives it its name when it is complete.
/// Returns `false` if the name is taken.
pub(crate) fn create_filled_store(
    store_file: &StoreFile,
    cache_bytes: usize,
    fill: impl FnOnce(&mut Database) -> Result<()>,
) -> Result<bool> {
    Ok(create_named(store_file, cache_bytes, fill)?.is_some())
}

/// Creates a store with the contents that `fill` writes, gives it its name when it is complete, and
/// returns the open file. Returns `None` if the name is taken.
fn create_named(
    store_file: &StoreFile,
    cache_bytes: usize,
    fill: impl FnOnce(&mut Database) -> Result<()>,
) -> Result<Option<OpenedFile>> {
    let name = NewFileName::with_random_name(store_file.path(), "new");
    let file = name.create();
    let file = file.map_err(|error| store_file.opening_io_error(error))?;
    let file = FileBackend::new(file).map_err(|error| store_file.engine_error(error));
    let named = file.and_then(|file| {
        let mut opened = start_engine(store_file, WatchedFile::new(file), cache_bytes, false)?;
        initialize_store(store_file, &opened.database)?;
        fill(&mut opened.database)?;
        let given = name.rename_to_final();
        Ok((opened, given.map_err(|error| store_file.opening_io_error(error))?))
    });
    // It is worth nothing after a failure, or if another file has the name.
    name.remove_unfinished();
    match named? {
        (opened, true) => {
            name.sync_directory().map_err(|error| store_file.io_error(error))?;
            Ok(Some(opened))
        }
        (_, false) => Ok(None),
    }
}

/// Returns whether the file is empty or begins with the engine's magic bytes.
fn is_empty_or_has_magic(store_file: &StoreFile, file: &File) -> Result<bool> {
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|error| store_file.opening_io_error(error))?;
    Ok(head.is_empty() || head == MAGIC)
}

fn no_store_error(store_file: &StoreFile) -> entable_core::error::Error {
    store_file.error_of_kind(
        ErrorKind::Corrupt,
        "this is not an entable store; give the path of a store or of a new file",
    )
}

/// Returns whether the engine has never stored a table in the file.
fn is_unused(database: &Database) -> Result<bool, redb::Error> {
    if database.begin_read()?.list_tables()?.next().is_some() {
        return Ok(false);
    }
    // A damaged page can hide all tables; do not take that for an empty store. The height is 0 only if no page lists
    // tables.
    let transaction = database.begin_write()?;
    let height = transaction.stats()?.tree_height();
    transaction.abort()?;
    Ok(height == 0)
}

fn check_format(store_file: &StoreFile, database: &Database) -> Result<()> {
    let fault = |error: redb::Error| store_file.engine_error(error);
    let transaction = database.begin_read().map_err(|error| fault(error.into()))?;
    let table = match transaction.open_table(META) {
        Ok(table) => table,
        // Another program has made this file with the same engine.
        Err(redb::TableError::TableDoesNotExist(_)) => return Err(no_store_error(store_file)),
        Err(error) => return Err(fault(error.into())),
    };
    let found = table.get(meta::FORMAT).map_err(|error| fault(error.into()))?;
    let found = found.and_then(|bytes| bytes.value().try_into().ok()).map(u32::from_le_bytes);
    match found {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(store_file.error_of_kind(
            ErrorKind::Unsupported,
            &format!(
                "it has format {newer}, but this version of entable reads formats up to {FORMAT}; use a newer version"
            ),
        )),
        _ => Err(no_store_error(store_file)),
    }
}

fn initialize_store(store_file: &StoreFile, database: &Database) -> Result<()> {
    let write = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        transaction.open_table(META)?.insert(meta::FORMAT, &FORMAT.to_le_bytes()[..])?;
        write_store_id(&transaction)?;
        // Opening creates the tables: a transaction that only reads fails if they do not exist.
        transaction.open_table(CATALOG)?;
        transaction.open_table(TRASH)?;
        transaction.open_table(LAYOUTS)?;
        transaction.commit()?;
        Ok(())
    };
    write().map_err(|error| store_file.engine_error(error))
}
