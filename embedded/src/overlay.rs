//! A file that is only read. What the engine writes to it stays in memory, which allows reading a store without a
//! change of its file, even if the engine has to repair it first.

use std::{
    io,
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

use entable_core::__runtime::limits::{saturating_u64, saturating_usize};
use redb::{BackendError, StorageBackend, backends::FileBackend};

/// A file with changes in memory.
#[derive(Debug)]
pub(crate) struct MemoryOverlay {
    file: FileBackend,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    length: u64,
    /// The number of bytes at the start of the file that were never cut off. Reads beyond them do not use the file.
    kept: u64,
    /// Positions and bytes, in the order they were written.
    writes: Vec<(u64, Vec<u8>)>,
}

impl MemoryOverlay {
    pub(crate) fn new(file: FileBackend) -> io::Result<Self> {
        let length = file.len()?;
        let changes = Changes { length, kept: length, writes: Vec::new() };
        Ok(Self { file, changes: Mutex::new(changes) })
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies the bytes that two ranges have in common: `from`, which begins at `start`, into `out`, which begins at
/// `offset`.
fn copy_common(start: u64, from: &[u8], offset: u64, out: &mut [u8]) {
    let skipped = saturating_usize(start.abs_diff(offset));
    let (from, out) = if start < offset {
        (from.get(skipped..), Some(out))
    } else {
        (Some(from), out.get_mut(skipped..))
    };
    for (out, from) in out.into_iter().flatten().zip(from.into_iter().flatten()) {
        *out = *from;
    }
}

impl StorageBackend for MemoryOverlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes();
        // A length always fits into 64 bits.
        let end = offset.saturating_add(saturating_u64(out.len()));
        if end > changes.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let stored = end.min(changes.kept).saturating_sub(offset);
        let stored = usize::try_from(stored).map_err(io::Error::other)?;
        if let Some(stored) = out.get_mut(..stored).filter(|stored| !stored.is_empty()) {
            self.file.read(offset, stored)?;
        }
        for (start, bytes) in &changes.writes {
            copy_common(*start, bytes, offset, out);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes();
        changes.length = len;
        changes.kept = changes.kept.min(len);
        changes.writes.retain_mut(|(start, bytes)| {
            bytes.truncate(saturating_usize(len.saturating_sub(*start)));
            !bytes.is_empty()
        });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.changes().writes.push((offset, data.to_vec()));
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, fs::OpenOptions};

    use super::*;

    #[test]
    fn an_overlay_reads_as_a_file_that_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["read", "written"].map(|name| {
            let path = directory.path().join(name);
            fs::write(&path, (0..100).collect::<Vec<u8>>()).unwrap();
            let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
            FileBackend::new(file).unwrap()
        });
        let [read, written] = files;
        let overlay = MemoryOverlay::new(read).unwrap();
        let both: [&dyn StorageBackend; 2] = [&overlay, &written];
        let compare = |what: &str| {
            let length = written.len().unwrap();
            assert_eq!(overlay.len().unwrap(), length, "{what}");
            for (offset, end) in (0..length).flat_map(|at| [(at, length), (at, at + 1), (0, at)]) {
                let mut found =
                    [vec![1; (end - offset) as usize], vec![2; (end - offset) as usize]];
                for (file, out) in both.iter().zip(&mut found) {
                    file.read(offset, out).unwrap();
                }
                assert_eq!(found[0], found[1], "{what}: {offset} to {end}");
            }
        };
        compare("nothing is written");
        for (offset, bytes) in [(10, [200; 20]), (0, [201; 20]), (25, [202; 20]), (80, [203; 20])] {
            for file in both {
                file.write(offset, &bytes).unwrap();
            }
            compare("written");
        }
        for length in [90, 120, 15, 60] {
            for file in both {
                file.set_len(length).unwrap();
            }
            compare("another length");
        }
        assert!(overlay.read(59, &mut [0; 2]).is_err());
        let path = directory.path().join("read");
        assert_eq!(fs::read(path).unwrap(), (0..100).collect::<Vec<u8>>());
    }
}
