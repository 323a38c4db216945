//! Recognizes and empties a file whose initialization by the engine was interrupted.
//!
//! The engine sets the length, writes its header without the first bytes, syncs, writes the first bytes and syncs
//! again. It refuses a file without the first bytes, so a crash in between would leave a file that never opens.

use std::{
    io,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use entable_core::error::Result;
use redb::{
    BackendError, Builder, StorageBackend,
    backends::{FileBackend, InMemoryBackend},
};

use crate::store_file::StoreFile;

/// Empties an unfinished file. Returns `false` for any other file, which is left as it is.
///
/// # Errors
///
/// `is_locked` if another process is making the file its own right now.
pub(crate) fn truncate_unfinished_file(store_file: &StoreFile, file: &FileBackend) -> Result<bool> {
    let fault = |error| store_file.io_error(error);
    let image = new_file_image().map_err(|error| store_file.engine_error(error))?;
    // Before the lock: a file of another program is not locked.
    if !is_unfinished(file, &image).map_err(fault)? {
        return Ok(false);
    }
    let whole = (Bound::Unbounded, Bound::Unbounded);
    let is_locked = match file.try_lock_range(whole.0, whole.1) {
        Ok(true) => true,
        Ok(false) => return Err(store_file.locked_error()),
        // The engine works without a lock on such systems, too.
        Err(BackendError::Unsupported) => false,
        Err(error) => return Err(fault(error.into())),
    };
    // Under the lock once more: the process that made the file its own may have finished meanwhile.
    if is_unfinished(file, &image).map_err(fault)? {
        file.set_len(0).map_err(fault)?;
    }
    if is_locked {
        file.unlock_range(whole.0, whole.1).map_err(|error| fault(error.into()))?;
    }
    Ok(true)
}

/// Returns whether a file has the length and the bytes of `image`. A byte that has not reached the disk is 0.
fn is_unfinished(file: &FileBackend, image: &[u8]) -> io::Result<bool> {
    if usize::try_from(file.len()?).ok() != Some(image.len()) {
        return Ok(false);
    }
    let mut found = vec![0; image.len()];
    match file.read(0, &mut found) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    Ok(found.iter().zip(image).all(|(found, image)| *found == 0 || found == image))
}

/// Returns the bytes of the engine's new file before it gets its first bytes.
fn new_file_image() -> Result<Vec<u8>, redb::Error> {
    let image = Arc::new(OnceLock::new());
    let memory = RecordingMemory { memory: InMemoryBackend::new(), image: image.clone() };
    drop(Builder::new().create_with_backend(memory)?);
    // Never missing: the engine syncs the header of a new file.
    Ok(image.get().cloned().unwrap_or_default())
}

/// A file in memory that records its bytes at the first sync.
#[derive(Debug)]
struct RecordingMemory {
    memory: InMemoryBackend,
    image: Arc<OnceLock<Vec<u8>>>,
}

impl StorageBackend for RecordingMemory {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.image.get().is_none() {
            let mut image = vec![0; usize::try_from(self.memory.len()?).unwrap_or_default()];
            self.memory.read(0, &mut image)?;
            self.image.get_or_init(|| image);
        }
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.memory.write(offset, data)
    }
}
