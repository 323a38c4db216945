//! The journal of a store: makes writes durable before the engine's file has them.
//!
//! A durable commit of the engine writes its pages at several places of the file, and takes twice the time of one sync. A
//! store with [`Durability::Sync`](crate::Durability::Sync) that keeps writing therefore appends the changes of each
//! transaction to a journal as one frame, syncs that, and commits the engine's transaction without a sync. Readers see the
//! same as before. A *checkpoint*, a durable commit of the engine, makes the frames so far unnecessary: it raises the
//! generation in the file, and only frames of the generation in the file are valid. So nothing in the journal has to be
//! erased, and the next frame is written over the first.
//!
//! A frame is written only after the sync of the frame before, so a crash can leave no more than one frame in doubt: the
//! last one, which was not acknowledged.

use std::{io, path::PathBuf};

use entable_core::{__runtime::limits::saturating_u64, edm::Ticks};
use redb::{ReadableTable, StorageBackend, WriteTransaction};
use uuid::Uuid;

use crate::{
    file_format::{JournalId, META, meta},
    journal_file::{
        HEAD_BYTES, INITIAL_FRAME_BYTES, MOST_BYTES, create_journal, extend_journal, remove_journal,
    },
    journal_frame::{FramePlace, FrameWriter},
};

/// The number of durable commits of rows after which a store gets a journal: a program that writes little makes no second
/// file.
pub(crate) const COMMITS_BEFORE_JOURNAL: u32 = 16;
/// The size from which a file gets a journal with its first commit. After a crash during commits without a journal, opening the
/// store reads the whole file.
const LARGE_FILE: u64 = 64 * 1024 * 1024;
/// The largest number of rows in the frames of one generation. In random order, each can dirty a page of 4 KiB, which the
/// next checkpoint has to write.
const MOST_ROWS: usize = 8_192;
/// The largest memory of a frame, in bytes, that is reused for the next one.
const SPARE_BYTES: usize = 256 * 1024;

/// The state of a journal as the store file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalFacts {
    /// The journal that is in use, or was last.
    pub(crate) id: JournalId,
    /// The current generation, which each checkpoint raises by one. The store file already has the rows of frames of earlier
    /// generations.
    pub(crate) generation: u64,
    /// Whether there may be frames of this generation.
    pub(crate) is_open: bool,
}

impl JournalFacts {
    fn encode(&self) -> Vec<u8> {
        let is_open = [u8::from(self.is_open)];
        let mut bytes = [&self.id[..], &self.generation.to_le_bytes(), &is_open].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    // It has a checksum, because with a damaged value valid frames would be discarded.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (checked, checksum) = bytes.split_last_chunk()?;
        let (id, rest) = checked.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let is_open = match rest {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let facts = Self { id: *id, generation: u64::from_le_bytes(*generation), is_open };
        (crc32fast::hash(checked).to_le_bytes() == *checksum).then_some(facts)
    }

    /// Reads what the file says. Returns `None` if the store never had a journal.
    pub(crate) fn read(
        facts: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Option<Self>, redb::Error> {
        let Some(bytes) = facts.get(meta::JOURNAL)? else { return Ok(None) };
        let damaged = || redb::Error::Corrupted("the entry of the journal is damaged".to_owned());
        Self::decode(bytes.value()).map(Some).ok_or_else(damaged)
    }

    /// Stores the facts with a transaction.
    pub(crate) fn store(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        transaction.open_table(META)?.insert(meta::JOURNAL, &*self.encode())?;
        Ok(())
    }

    /// Returns the facts after the next checkpoint.
    pub(crate) const fn after_checkpoint(&self, is_open: bool) -> Self {
        Self { id: self.id, generation: self.generation.saturating_add(1), is_open }
    }
}

/// The journal of an open store.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The path of the store.
    store: PathBuf,
    /// The number of commits before the store gets a journal, or `None` if it gets none.
    commits_before: Option<u32>,
    /// The facts that the newest checkpoint has stored, if it has stored any.
    facts: Option<JournalFacts>,
    state: State,
    /// Whether the newest frame is not in the engine yet.
    is_ahead: bool,
    /// The memory of the last frame.
    spare: FrameWriter,
}

#[derive(Debug)]
enum State {
    /// There is no file.
    Closed {
        commits: u32,
    },
    /// The journal file exists but is not in use yet. The next checkpoint begins to use it, unless that checkpoint closes
    /// the store.
    Created {
        id: JournalId,
        frames: Frames,
    },
    Open(Frames),
    /// The disk was too full for a checkpoint when the store was opened, so the frames are only in the engine's memory. The
    /// next checkpoint removes the journal.
    Replayed,
    /// The file could not be created. The store works without it.
    Failed,
}

/// The file, and the frames of the current generation in it.
#[derive(Debug)]
struct Frames {
    file: Box<dyn StorageBackend>,
    count: u64,
    rows: usize,
    /// The bytes of these frames.
    bytes: u64,
    /// The bytes that the file has for frames.
    capacity: u64,
}

impl Frames {
    fn of_new_file(file: Box<dyn StorageBackend>) -> Self {
        Self { file, count: 0, rows: 0, bytes: 0, capacity: INITIAL_FRAME_BYTES }
    }

    fn clear(&mut self) {
        (self.count, self.rows, self.bytes) = (0, 0, 0);
    }

    /// Writes a frame at the end, and syncs it.
    fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        self.file.write(saturating_u64(HEAD_BYTES) + self.bytes, frame)?;
        self.file.sync_data()?;
        self.bytes += saturating_u64(frame.len());
        self.count += 1;
        Ok(())
    }

    /// Makes the file long enough for a frame of so many `bytes`. Returns `false` if the journal would become too long.
    fn reserve(&mut self, bytes: u64) -> io::Result<bool> {
        let needed = self.bytes.saturating_add(bytes);
        if needed > MOST_BYTES {
            return Ok(false);
        }
        if needed > self.capacity {
            let capacity = needed.max(2 * self.capacity).min(MOST_BYTES);
            let head = saturating_u64(HEAD_BYTES);
            extend_journal(&*self.file, head + self.capacity, head + capacity)?;
            self.capacity = capacity;
        }
        Ok(true)
    }
}

impl Journal {
    /// Returns the journal of the store at `store`, without looking at the disk.
    pub(crate) fn new(store: PathBuf, commits_before: Option<u32>) -> Self {
        let state = State::Closed { commits: 0 };
        Self {
            store,
            commits_before,
            facts: None,
            state,
            is_ahead: false,
            spare: FrameWriter::default(),
        }
    }

    /// Forgets the journal of the opening before. The store was opened again, has `file_bytes` bytes, and all frames are
    /// replayed.
    pub(crate) fn take_over(&mut self, facts: Option<JournalFacts>, file_bytes: u64) {
        (self.facts, self.is_ahead) = (facts, false);
        self.state = match facts {
            Some(JournalFacts { is_open: true, .. }) => State::Replayed,
            _ => State::Closed { commits: if file_bytes >= LARGE_FILE { u32::MAX } else { 0 } },
        };
    }

    /// Returns the place after the last frame that was written since the store was opened. All frames before it are synced.
    pub(crate) fn next_place(&self) -> FramePlace {
        let generation = self.facts.map_or(0, |facts| facts.generation);
        let sequence = match &self.state {
            State::Open(frames) => frames.count,
            _ => 0,
        };
        FramePlace { generation, sequence }
    }

    /// Returns whether there are frames that the next checkpoint puts into the file.
    pub(crate) fn has_frames(&self) -> bool {
        self.next_place().sequence > 0
    }

    /// Returns whether the store file lacks rows that only the journal has.
    pub(crate) fn is_needed(&self) -> bool {
        matches!(self.state, State::Replayed) || self.has_frames()
    }

    /// Returns whether a frame was written whose transaction is not committed.
    pub(crate) const fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// Returns whether there is a file.
    pub(crate) const fn has_file(&self) -> bool {
        matches!(self.state, State::Created { .. } | State::Open(_) | State::Replayed)
    }

    /// Creates the journal file if the store has made enough commits without it.
    pub(crate) fn create_if_due(&mut self) {
        let State::Closed { commits } = self.state else { return };
        if self.commits_before.is_some_and(|most| commits >= most) {
            let id = Uuid::new_v4().into_bytes();
            self.state = match create_journal(&self.store, &id) {
                Ok(file) => State::Created { id, frames: Frames::of_new_file(Box::new(file)) },
                // Another file is there already, or the directory cannot be written.
                Err(_) => State::Failed,
            };
        }
    }

    /// Begins the frame of a transaction. Returns `None` if no frame can be written before the next checkpoint.
    pub(crate) fn begin_frame(&mut self) -> Option<FrameWriter> {
        let State::Open(_) = self.state else { return None };
        let mut frame = std::mem::take(&mut self.spare);
        frame.clear();
        Some(frame)
    }

    /// Makes room for a frame. Returns `false` if the transaction has to be a checkpoint.
    pub(crate) fn reserve(&mut self, frame: &FrameWriter) -> bool {
        let State::Open(frames) = &mut self.state else { return false };
        // A disk that is full may have room for the checkpoint, after which there is room for frames again.
        frames.rows.saturating_add(frame.rows()) <= MOST_ROWS
            && frames.reserve(saturating_u64(frame.frame_bytes())).unwrap_or(false)
    }

    /// Writes a frame, and syncs it. Call [`reserve`](Self::reserve) first.
    pub(crate) fn append(
        &mut self,
        mut frame: FrameWriter,
        bound: Option<Ticks>,
    ) -> io::Result<()> {
        let place = self.next_place();
        let (State::Open(frames), Some(facts)) = (&mut self.state, &self.facts) else {
            return Err(io::Error::other("the journal is not open"));
        };
        // Also after a failure: the frame may be there.
        self.is_ahead = true;
        frames.append(frame.complete(&facts.id, place, bound))?;
        frames.rows += frame.rows();
        if frame.frame_bytes() <= SPARE_BYTES {
            self.spare = frame;
        }
        Ok(())
    }

    /// Lets a test come between the journal and its file.
    #[cfg(test)]
    pub(crate) fn wrap_file(
        &mut self,
        wrap: impl FnOnce(Box<dyn StorageBackend>) -> Box<dyn StorageBackend>,
    ) {
        let state = std::mem::replace(&mut self.state, State::Failed);
        self.state = match state {
            State::Open(frames) => State::Open(Frames { file: wrap(frames.file), ..frames }),
            other => other,
        };
    }

    /// Notes that the transaction of the newest frame is committed, so the engine has its rows.
    pub(crate) fn note_committed(&mut self) {
        self.is_ahead = false;
    }

    /// Counts a commit of rows towards the creation of the journal.
    pub(crate) fn count_commit(&mut self) {
        if let State::Closed { commits } = &mut self.state {
            *commits = commits.saturating_add(1);
        }
    }

    /// Returns the facts that the next checkpoint has to store, or `None` if there is no journal file. Set `is_last` if the
    /// store is closed after this checkpoint.
    pub(crate) fn facts_for_checkpoint(&self, is_last: bool) -> Option<JournalFacts> {
        let facts = match (&self.state, self.facts) {
            (State::Created { id, .. }, Some(facts)) => JournalFacts { id: *id, ..facts },
            (State::Created { id, .. }, None) => {
                JournalFacts { id: *id, generation: 0, is_open: false }
            }
            (State::Open(_), Some(facts)) => facts,
            (State::Replayed, Some(facts)) => return Some(facts.after_checkpoint(false)),
            _ => return None,
        };
        Some(facts.after_checkpoint(!is_last))
    }

    /// Notes that a checkpoint has stored these facts. All frames are in the file, so the next one is the first again.
    pub(crate) fn note_checkpoint(&mut self, facts: JournalFacts) {
        self.facts = Some(facts);
        let state = std::mem::replace(&mut self.state, State::Failed);
        self.state = match state {
            State::Created { mut frames, .. } | State::Open(mut frames) if facts.is_open => {
                frames.clear();
                State::Open(frames)
            }
            used @ (State::Created { .. } | State::Open(_) | State::Replayed) => {
                // Close the file first, because not every system removes open files.
                drop(used);
                remove_journal(&self.store, &facts.id);
                // The next commit of rows gets a journal, without more commits before it.
                State::Closed { commits: u32::MAX }
            }
            other => other,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_gets_a_journal_at_once() {
        for (file_bytes, is_large) in [(LARGE_FILE - 1, false), (LARGE_FILE, true)] {
            let directory = tempfile::tempdir().unwrap();
            let mut journal = Journal::new(directory.path().join("store.db"), Some(2));
            journal.take_over(None, file_bytes);
            journal.create_if_due();
            assert_eq!(journal.has_file(), is_large);
            (0..2).for_each(|_| journal.count_commit());
            journal.create_if_due();
            assert!(journal.has_file());
        }
    }

    #[test]
    fn facts_with_a_changed_bit_are_damaged() {
        for is_open in [false, true] {
            let facts = JournalFacts { id: [7; 16], generation: 3, is_open };
            let bytes = facts.encode();
            assert_eq!(JournalFacts::decode(&bytes), Some(facts));
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(JournalFacts::decode(&changed), None, "bit {bit}");
            }
        }
    }
}
