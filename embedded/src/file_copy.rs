//! Copies a file as of one moment while the engine keeps writing to it.
//!
//! One thread copies block after block. Before the engine changes a block that was not copied yet, the engine's thread
//! copies it first. The copy therefore holds every byte as of its start, including unused pages.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::StorageBackend;

/// Bytes that are copied at once. The engine waits for the copy of each block that it is the first to change.
const BLOCK_BYTES: u64 = 64 * 1024;

/// A copy of a file that is being made.
#[derive(Debug)]
pub(crate) struct FileCopy {
    length: u64,
    state: Mutex<CopyState>,
}

#[derive(Debug)]
struct CopyState {
    target: File,
    /// Whether each block is in the copy.
    copied: Vec<bool>,
    copied_bytes: u64,
    /// The first failure, which ends the copy.
    failure: Option<io::Error>,
}

impl FileCopy {
    /// Begins a copy of the first `length` bytes into `target`, which is empty.
    pub(crate) fn new(target: File, length: u64) -> io::Result<Self> {
        // Blocks of zeros are not written: the copy has the holes of the file.
        target.set_len(length)?;
        let blocks = usize::try_from(length.div_ceil(BLOCK_BYTES)).map_err(io::Error::other)?;
        let copied = vec![false; blocks];
        let state = CopyState { target, copied, copied_bytes: 0, failure: None };
        Ok(Self { length, state: Mutex::new(state) })
    }

    /// Returns the number of bytes of the whole copy.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Copies the next blocks that are missing from block `from` on, some at a time. Returns the block to go on with
    /// and the number of bytes that are copied, or `None` if no block is missing.
    pub(crate) fn copy_some(
        &self,
        source: &impl StorageBackend,
        from: u64,
    ) -> io::Result<Option<(u64, u64)>> {
        let start = from.saturating_mul(BLOCK_BYTES);
        if start >= self.length {
            return self.lock().take_failure().map(|()| None);
        }
        self.copy_range(source, start, start.saturating_add(BLOCK_BYTES));
        let mut state = self.lock();
        state.take_failure()?;
        Ok(Some((from + 1, state.copied_bytes)))
    }

    /// Copies the missing blocks between two positions. A failure ends the copy, and [`copy_some`](Self::copy_some)
    /// returns it. The engine, which may be the caller, continues.
    pub(crate) fn copy_range(&self, source: &impl StorageBackend, start: u64, end: u64) {
        let end = end.min(self.length);
        if start >= end {
            return;
        }
        let mut state = self.lock();
        for block in start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if state.failure.is_none()
                && let Err(error) = state.copy_block(source, block, self.length)
            {
                state.failure = Some(error);
            }
        }
    }

    /// Ends the copy with a failure.
    pub(crate) fn give_up(&self, failure: io::Error) {
        self.lock().failure.get_or_insert(failure);
    }

    fn lock(&self) -> MutexGuard<'_, CopyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CopyState {
    fn copy_block(
        &mut self,
        source: &impl StorageBackend,
        block: u64,
        length: u64,
    ) -> io::Result<()> {
        let slot = usize::try_from(block).ok().and_then(|block| self.copied.get_mut(block));
        let Some(is_copied) = slot.filter(|is_copied| !**is_copied) else { return Ok(()) };
        let start = block * BLOCK_BYTES;
        let bytes = BLOCK_BYTES.min(length - start);
        let mut found = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        source.read(start, &mut found)?;
        if found.iter().any(|byte| *byte != 0) {
            self.target.seek(SeekFrom::Start(start))?;
            self.target.write_all(&found)?;
        }
        *is_copied = true;
        self.copied_bytes += bytes;
        Ok(())
    }

    fn take_failure(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
