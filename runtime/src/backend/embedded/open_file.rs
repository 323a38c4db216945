//! Opens and creates the file of a store, and refuses files that are no stores.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
};

use redb::{Builder, Database, ReadableDatabase, backends::FileBackend};

use super::{
    layout::{CATALOG, FORMAT, META, TRASH, meta},
    store_file::StoreFile,
    unfinished_file::empty_unfinished_file,
    watched_file::WatchedFile,
};
use crate::{
    error::{ErrorKind, Result},
    private_file::{NewFileName, create_private_file},
};

/// The first bytes of every file of the engine.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// An open file: the engine, and the file that it writes.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) database: Database,
    pub(super) disk: WatchedFile,
}

/// Opens the store in a file. Creates a new store if there is no file or an empty one. Also begins anew in a
/// file that was empty and in which a crash has interrupted the creation of a store.
pub(super) fn open_or_create(store_file: &StoreFile, cache_bytes: usize) -> Result<OpenedFile> {
    match OpenOptions::new().read(true).write(true).open(store_file.path()) {
        Ok(file) => open_existing(store_file, file, cache_bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_store(store_file, cache_bytes)
        }
        Err(error) => Err(store_file.opening_io_error(error)),
    }
}

/// Opens a store that was open before. Fails, instead of creating a store, if the file is gone.
pub(super) fn open_without_creating(
    store_file: &StoreFile,
    cache_bytes: usize,
) -> Result<OpenedFile> {
    let file = OpenOptions::new().read(true).write(true).open(store_file.path());
    open_existing(
        store_file,
        file.map_err(|error| store_file.opening_io_error(error))?,
        cache_bytes,
    )
}

fn open_existing(store_file: &StoreFile, file: File, cache_bytes: usize) -> Result<OpenedFile> {
    let may_be_store = is_empty_or_has_magic(store_file, &file)?;
    let file = FileBackend::new(file).map_err(|error| store_file.engine_error(error))?;
    if !may_be_store && !empty_unfinished_file(store_file, &file)? {
        return Err(no_store_error(store_file));
    }
    let opened = start_engine(store_file, WatchedFile::new(file), cache_bytes)?;
    // The engine makes an empty file its own before the store writes its first tables. A crash in
    // between leaves a file that is as good as empty.
    if is_unused(&opened.database).map_err(|error| store_file.engine_error(error))? {
        initialize_store(store_file, &opened.database)?;
    } else {
        check_format(store_file, &opened.database)?;
    }
    Ok(opened)
}

/// Opens a copy of a store, and checks every page of it against its checksum. Fails with `is_corrupt` if the copy
/// has not all pages of commit number `newest_commit`.
pub(super) fn open_copy(
    store_file: &StoreFile,
    copy: File,
    newest_commit: u64,
    cache_bytes: usize,
) -> Result<OpenedFile> {
    let file = FileBackend::new(copy).map_err(|error| store_file.engine_error(error))?;
    let disk = WatchedFile::with_least_commit(file, newest_commit);
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(true);
    let database = builder.create_with_backend(disk.clone());
    let database = database.map_err(|error| store_file.engine_error(error))?;
    check_format(store_file, &database)?;
    Ok(OpenedFile { database, disk })
}

/// Checks every page of the file against its checksum.
pub(super) fn verify_pages(store_file: &StoreFile, database: &mut Database) -> Result<()> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        // The engine has repaired the file by now. It may have gone back to an earlier commit for
        // that, so that acknowledged writes can be missing.
        Ok(false) => {
            Err(store_file
                .corrupt_error("a page does not have the checksum that it was written with"))
        }
        Err(error) => Err(store_file.engine_error(error)),
    }
}

fn start_engine(
    store_file: &StoreFile,
    disk: WatchedFile,
    cache_bytes: usize,
) -> Result<OpenedFile> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let database = builder.create_with_backend(disk.clone());
    let database = database.map_err(|error| store_file.engine_error(error))?;
    Ok(OpenedFile { database, disk })
}

/// Creates a store under another name in the same directory, and gives it its own name when it is
/// complete: a crash leaves either no store or one that opens.
fn create_store(store_file: &StoreFile, cache_bytes: usize) -> Result<OpenedFile> {
    match create_named(store_file, cache_bytes, |_| Ok(()))? {
        Some(opened) => Ok(opened),
        // Another process has created the store meanwhile.
        None => open_without_creating(store_file, cache_bytes),
    }
}

/// Creates a store with the contents that `fill` writes, and gives it its name when it is complete.
/// Returns `false` if the name is taken.
pub(super) fn create_filled_store(
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
    let name = NewFileName::choose_beside(store_file.path(), "new");
    let file = create_private_file(name.random());
    let file = file.map_err(|error| store_file.opening_io_error(error))?;
    let file = FileBackend::new(file).map_err(|error| store_file.engine_error(error));
    let named = file.and_then(|file| {
        let mut opened = start_engine(store_file, WatchedFile::new(file), cache_bytes)?;
        initialize_store(store_file, &opened.database)?;
        fill(&mut opened.database)?;
        let given = name.give_own_name();
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

/// Returns whether the file is empty, or its first bytes are those of the engine.
fn is_empty_or_has_magic(store_file: &StoreFile, file: &File) -> Result<bool> {
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|error| store_file.opening_io_error(error))?;
    Ok(head.is_empty() || head == MAGIC)
}

fn no_store_error(store_file: &StoreFile) -> crate::error::Error {
    store_file.error_of_kind(
        ErrorKind::Corrupt,
        "this is not an entable store, give the path of one or of a file that does not exist",
    )
}

/// Returns whether the engine has never stored a table in the file.
fn is_unused(database: &Database) -> Result<bool, redb::Error> {
    if database.begin_read()?.list_tables()?.next().is_some() {
        return Ok(false);
    }
    // A damaged page can hide all tables, and it may not be taken for an empty store. The height is 0
    // only if there is no page that could list a table.
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
                "it has format {newer}, this version knows formats up to {FORMAT}; \
                 use a newer version of entable"
            ),
        )),
        _ => Err(no_store_error(store_file)),
    }
}

fn initialize_store(store_file: &StoreFile, database: &Database) -> Result<()> {
    let write = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        transaction.open_table(META)?.insert(meta::FORMAT, &FORMAT.to_le_bytes()[..])?;
        // Opening creates the tables: a transaction that only reads fails if they do not exist.
        transaction.open_table(CATALOG)?;
        transaction.open_table(TRASH)?;
        transaction.commit()?;
        Ok(())
    };
    write().map_err(|error| store_file.engine_error(error))
}
