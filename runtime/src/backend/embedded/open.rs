//! Opening the file: whether it is one of ours, and making a new one.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read},
    path::PathBuf,
};

use redb::{Builder, Database, ReadableDatabase};

use super::{
    faults::Place,
    layout::{CATALOG, FORMAT, META, TRASH, meta},
};
use crate::error::{ErrorKind, Result};

/// What the engine's files begin with.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// The store in that file; a new one where there is none, or an empty file.
pub(super) fn open(place: &Place, cache_bytes: usize) -> Result<Database> {
    match OpenOptions::new().read(true).write(true).open(place.path()) {
        Ok(file) => existing(place, file, cache_bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(place, cache_bytes),
        Err(error) => Err(place.opening(error)),
    }
}

/// The store that was open before; never a new one.
pub(super) fn again(place: &Place, cache_bytes: usize) -> Result<Database> {
    let file = OpenOptions::new().read(true).write(true).open(place.path());
    existing(place, file.map_err(|error| place.opening(error))?, cache_bytes)
}

fn existing(place: &Place, file: File, cache_bytes: usize) -> Result<Database> {
    let empty = check_magic(place, &file)?;
    let database = start(place, file, cache_bytes)?;
    if empty {
        initialize(place, &database)?;
    } else {
        check_format(place, &database)?;
    }
    Ok(database)
}

/// Looks at every page of the file.
pub(super) fn verify(place: &Place, database: &mut Database) -> Result<()> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(place.corrupt("a page does not have the checksum that it was written with"))
        }
        Err(error) => Err(place.engine(error)),
    }
}

fn start(place: &Place, file: File, cache_bytes: usize) -> Result<Database> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    builder.create_file(file).map_err(|error| place.engine(error))
}

/// Makes a new store beside its place and moves it there when it is whole, so that a crash leaves
/// either no store or one that opens.
fn create(place: &Place, cache_bytes: usize) -> Result<Database> {
    let mut name = place.path().as_os_str().to_owned();
    name.push(".new");
    let fresh = PathBuf::from(name);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&fresh);
    let file = file.map_err(|error| place.opening(error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(place.locked()),
        Err(TryLockError::Error(error)) => return Err(place.io(error)),
    }
    if place.path().exists() {
        // Another process made it since; the file in hand may by now be that very store.
        drop(file);
        return open(place, cache_bytes);
    }
    file.set_len(0).map_err(|error| place.io(error))?;
    let database = start(place, file, cache_bytes)?;
    initialize(place, &database)?;
    std::fs::rename(&fresh, place.path()).map_err(|error| place.io(error))?;
    sync_directory(place)?;
    Ok(database)
}

/// A new file is not safe before its directory is on disk.
fn sync_directory(place: &Place) -> Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let directory = match place.path().parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => ".".as_ref(),
    };
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| place.io(error))
}

/// Whether the file is empty; refuses one that is not the engine's.
fn check_magic(place: &Place, file: &File) -> Result<bool> {
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut head).map_err(|error| place.opening(error))?;
    match head {
        head if head.is_empty() => Ok(true),
        head if head == MAGIC => Ok(false),
        _ => Err(foreign(place)),
    }
}

fn foreign(place: &Place) -> crate::error::Error {
    place.error(
        ErrorKind::Corrupt,
        "this is not an entable store, give the path of one or of a file that does not exist",
    )
}

fn check_format(place: &Place, database: &Database) -> Result<()> {
    let fault = |error: redb::Error| place.engine(error);
    let transaction = database.begin_read().map_err(|error| fault(error.into()))?;
    let table = match transaction.open_table(META) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Err(foreign(place)),
        Err(error) => return Err(fault(error.into())),
    };
    let found = table.get(meta::FORMAT).map_err(|error| fault(error.into()))?;
    let found = found.and_then(|bytes| bytes.value().try_into().ok()).map(u32::from_le_bytes);
    match found {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(place.error(
            ErrorKind::Unsupported,
            &format!(
                "it has format {newer}, this version knows formats up to {FORMAT}; \
                 use a newer version of entable"
            ),
        )),
        _ => Err(foreign(place)),
    }
}

fn initialize(place: &Place, database: &Database) -> Result<()> {
    let write = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        transaction.open_table(META)?.insert(meta::FORMAT, &FORMAT.to_le_bytes()[..])?;
        transaction.open_table(CATALOG)?;
        transaction.open_table(TRASH)?;
        transaction.commit()?;
        Ok(())
    };
    write().map_err(|error| place.engine(error))
}
