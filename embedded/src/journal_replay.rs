//! Puts the frames of a journal into the store's file when that is opened, and refuses files that do not belong together.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
};

use entable_core::{
    __runtime::limits::saturating_u64,
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};
use redb::{Database, WriteTransaction};
use uuid::Uuid;

use crate::{
    catalog::Catalog,
    file_format::{CATALOG, JournalId, LAYOUTS, RowsDefinition, rows_table_name},
    journal::JournalFacts,
    journal_file::{
        FoundJournal, INITIAL_FRAME_BYTES, path_of_journal, read_journal, remove_empty_journal,
        remove_journal, set_journal_aside,
    },
    journal_frame::{BLOCK_BYTES, Frame, FrameChange, FramePlace},
    mark::CommitMark,
    store_file::{StoreFile, is_full},
    stored_facts::StoredFacts,
    timestamp_bound::store_bound,
};

/// The frames that an opening has to replay, and the changes to the journal that follow.
#[derive(Debug, Default, PartialEq, Eq)]
struct Duty<'f> {
    /// The frames to put into the store's file.
    frames: Vec<Frame<'f>>,
    /// The facts in the store file, if the journal is open.
    open: Option<JournalFacts>,
    /// Whether the journal can be removed afterwards, because the store file has all its frames.
    has_file: bool,
}

/// Why acknowledged writes are missing, and what can be done without them.
#[derive(Debug, PartialEq, Eq)]
struct Gap<'f> {
    why: &'static str,
    duty_without_them: Duty<'f>,
}

const IS_MISSING: &str = "it is missing, so acknowledged writes may be lost; put it back";
const IS_OTHER: &str = "it does not belong to this file, or its first bytes are damaged, so acknowledged writes may be lost; put \
                        the journal that belongs to it in its place";
const HAS_OTHER_WRITES: &str = "it has writes that this file lacks, of another store or of a later state of this one; put the file \
                                that it belongs to in its place, or move the journal away to go on without these writes";
const IS_LATER: &str = "it has writes of a later state of the store: an older file was put in place of the store's; put the newest \
                        one back";
const IS_DAMAGED: &str = "it is damaged, and acknowledged writes with it; restore a backup";
const LACKS_FRAMES: &str = "acknowledged writes are missing from its end, which is damaged or older than the mark; restore a backup";

/// The way in which an opening uses the frames of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replay {
    /// Puts the frames into the store file, and removes the journal.
    ToFile,
    /// Replays the frames in memory alone. Neither the store file nor the journal changes.
    ToMemory,
    /// Leaves the frames out, because the store file does not accept them, and renames the journal.
    Omit,
}

/// Replays all frames of the store's journal, so that everything that was acknowledged can be read. With `accepts_older`,
/// goes on without writes that are missing, and gives a journal that cannot be used another name.
///
/// Returns `false`, and leaves the journal as it is, if the disk is too full for the checkpoint. The caller then has to start
/// the engine again.
///
/// # Errors
///
/// `is_rolled_back`, and no row and no frame is changed, if acknowledged writes are missing: there is no journal although
/// the file needs one, or it lacks frames, or belongs to another state of the store. `is_corrupt` if a page that a frame
/// changes is damaged.
pub(crate) fn replay_journal(
    store_file: &StoreFile,
    database: &Database,
    mark: Option<CommitMark>,
    accepts_older: bool,
    replay: Replay,
) -> Result<bool> {
    let stored = StoredFacts::read(database).map_err(|error| store_file.engine_error(error))?;
    let found = read(store_file)?;
    let (mut duty, mut is_whole) = match find_duty(&stored, &found, mark) {
        Ok(duty) => (duty, true),
        Err(gap) if accepts_older => (gap.duty_without_them, false),
        Err(gap) => return Err(journal_error(store_file, gap.why)),
    };
    if replay == Replay::Omit {
        duty.frames.clear();
        is_whole = false;
    }
    if replay == Replay::ToMemory && !is_whole {
        // The journal keeps its name for as long as the file needs it.
        return Ok(false);
    }
    if let Some(facts) = duty.open {
        let mut facts = facts.after_checkpoint(false);
        if !is_whole {
            // A new id, so that nobody can put the renamed journal back and have it taken for one that was replayed.
            facts.id = Uuid::new_v4().into_bytes();
        }
        let facts = (replay != Replay::ToMemory).then_some(facts);
        match replay_frames(database, &duty.frames, stored.bound, facts) {
            Ok(()) => {}
            Err(redb::Error::Io(error)) if is_full(&error) => return Ok(false),
            Err(error) => return Err(store_file.engine_error(error)),
        }
    }
    let is_replayed = duty.open.is_none() || replay == Replay::ToFile;
    if !is_whole {
        set_aside(store_file)?;
    } else if is_replayed
        && duty.has_file
        && let FoundJournal::Journal { id, .. } = &found
    {
        remove_journal(store_file.path(), id);
    }
    remove_empty_journal(store_file.path());
    Ok(true)
}

/// Fails if the path of a new store's journal has a journal with writes of another store, unless `accepts_older`. Changes
/// nothing.
///
/// # Errors
///
/// `is_rolled_back`.
pub(crate) fn refuse_other_journal(store_file: &StoreFile, accepts_older: bool) -> Result<()> {
    match read(store_file)? {
        FoundJournal::Journal { id, frames } if !accepts_older && has_frame(&id, &frames) => {
            Err(journal_error(store_file, HAS_OTHER_WRITES))
        }
        _ => Ok(()),
    }
}

/// Removes or renames what is at the path of the journal of a new store, which this process has locked.
pub(crate) fn free_name_of_journal(store_file: &StoreFile) -> Result<()> {
    if let FoundJournal::Journal { id, frames } = read(store_file)? {
        if has_frame(&id, &frames) {
            set_aside(store_file)?;
        } else {
            remove_journal(store_file.path(), &id);
        }
    }
    remove_empty_journal(store_file.path());
    Ok(())
}

fn read(store_file: &StoreFile) -> Result<FoundJournal> {
    read_journal(store_file.path()).map_err(|error| io_error(store_file, error))
}

fn set_aside(store_file: &StoreFile) -> Result<()> {
    set_journal_aside(store_file.path()).map_err(|error| io_error(store_file, error))
}

/// Builds the error for a journal that cannot be read or renamed. It names the journal.
fn io_error(store_file: &StoreFile, error: io::Error) -> Error {
    StoreFile::new(&path_of_journal(store_file.path())).io_error(error)
}

fn journal_error(store_file: &StoreFile, why: &str) -> Error {
    let what = format!(
        "cannot be opened with its journal `{}`: {why}, or open the file with `accept_rolled_back(true)` to go on without \
         these writes",
        path_of_journal(store_file.path()).display()
    );
    store_file.error_of_kind(ErrorKind::RolledBack, &what)
}

/// Finds out what to do with the journal that was found next to a file.
fn find_duty<'f>(
    stored: &StoredFacts,
    found: &'f FoundJournal,
    mark: Option<CommitMark>,
) -> Result<Duty<'f>, Gap<'f>> {
    let gap = |why, open| Err(Gap { why, duty_without_them: Duty { open, ..Duty::default() } });
    let open = stored.journal.filter(|facts| facts.is_open);
    match (open, found) {
        (Some(facts), FoundJournal::Journal { id, frames }) if *id == facts.id => {
            let mark = mark.filter(|mark| Some(mark.store) == stored.store);
            find_frames(facts, frames, mark)
        }
        (Some(_), FoundJournal::None | FoundJournal::Empty) => gap(IS_MISSING, open),
        (Some(_), _) => gap(IS_OTHER, open),
        (None, FoundJournal::Journal { id, frames }) => {
            // A crash can leave a journal that is not used yet, or that was closed: its frames are of an earlier
            // generation.
            let is_closed = stored.journal.is_some_and(|facts| facts.id == *id);
            if is_closed || !has_frame(id, frames) {
                Ok(Duty { has_file: true, ..Duty::default() })
            } else {
                gap(HAS_OTHER_WRITES, None)
            }
        }
        (None, FoundJournal::None | FoundJournal::Empty | FoundJournal::Other) => {
            Ok(Duty::default())
        }
    }
}

/// Finds the frames of the generation in the file.
fn find_frames<'f>(
    facts: JournalFacts,
    bytes: &'f [u8],
    mark: Option<CommitMark>,
) -> Result<Duty<'f>, Gap<'f>> {
    let (mut frames, mut rest, mut place) = (Vec::new(), bytes, first_place(facts));
    while let Some(frame) = Frame::decode(&facts.id, rest).filter(|frame| frame.place == place) {
        rest = rest.get(frame.byte_len()..).unwrap_or_default();
        place.sequence += 1;
        frames.push(frame);
    }
    let known = mark.map(|mark| mark.place).filter(|known| known.generation == place.generation);
    // The end is where a crash has torn a frame, or where nothing was written in this generation. Behind it, there can only
    // be frames of earlier ones.
    let generations_behind = all_frames(&facts.id, rest).map(|frame| frame.place.generation);
    let why = match generations_behind.max() {
        Some(newest) if newest > facts.generation => Some(IS_LATER),
        Some(newest) if newest == facts.generation => Some(IS_DAMAGED),
        _ if saturating_u64(bytes.len()) < INITIAL_FRAME_BYTES => Some(IS_DAMAGED),
        _ if known.is_some_and(|known| known.sequence > place.sequence) => Some(LACKS_FRAMES),
        _ => None,
    };
    let duty = Duty { frames, open: Some(facts), has_file: true };
    match why {
        None => Ok(duty),
        Some(why) => Err(Gap { why, duty_without_them: duty }),
    }
}

const fn first_place(facts: JournalFacts) -> FramePlace {
    FramePlace { generation: facts.generation, sequence: 0 }
}

/// Returns the valid frames among the bytes, wherever they begin.
fn all_frames<'f>(journal: &JournalId, bytes: &'f [u8]) -> impl Iterator<Item = Frame<'f>> {
    (0..bytes.len()).step_by(BLOCK_BYTES).filter_map(|at| Frame::decode(journal, bytes.get(at..)?))
}

fn has_frame(journal: &JournalId, bytes: &[u8]) -> bool {
    all_frames(journal, bytes).next().is_some()
}

/// Applies the frames in one transaction of the engine. With `facts`, its commit is a checkpoint. Without, it is not synced.
fn replay_frames(
    database: &Database,
    frames: &[Frame<'_>],
    stored_bound: Ticks,
    facts: Option<JournalFacts>,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    apply_changes(&transaction, frames)?;
    let bound = frames.iter().map(|frame| frame.bound).max().unwrap_or_default();
    if bound > stored_bound {
        store_bound(&transaction, bound)?;
    }
    match facts {
        Some(facts) => {
            facts.store(&transaction)?;
            // With the map of free pages. Otherwise the opening after a crash would read the whole file.
            transaction.set_quick_repair(true);
        }
        None => transaction.set_durability(redb::Durability::None)?,
    }
    Ok(transaction.commit()?)
}

fn apply_changes(transaction: &WriteTransaction, frames: &[Frame<'_>]) -> Result<(), redb::Error> {
    let catalog = Catalog::load_catalog(&transaction.open_table(CATALOG)?)?;
    let mut layouts = transaction.open_table(LAYOUTS)?;
    let mut tables = HashMap::new();
    let damaged =
        || redb::Error::Corrupted("a frame of the journal does not fit the file".to_owned());
    for change in frames.iter().flat_map(Frame::changes) {
        match change.ok_or_else(damaged)? {
            FrameChange::Layout { id, bytes } => _ = layouts.insert(id, bytes)?,
            FrameChange::Row { table, address, value } => {
                let rows = match tables.entry(table) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(closed) => {
                        // Tables are created and deleted by checkpoints, so each frame finds the tables of its time.
                        if !catalog.entries().iter().any(|entry| entry.id == table) {
                            return Err(damaged());
                        }
                        let name = rows_table_name(table);
                        closed.insert(transaction.open_table(RowsDefinition::new(&name))?)
                    }
                };
                match value {
                    Some(value) => rows.insert(address, value)?,
                    None => rows.remove(address)?,
                };
            }
        }
    }
    Ok(())
}
