//! The mark file next to a store's file. It holds the number of the newest commit known to be on disk, and the number of
//! frames in the store's journal since then.
//!
//! A store file older than its mark lost acknowledged writes: either an older copy replaced it, or its newest commit is
//! damaged and the engine takes it for one torn by a crash. The mark is written once a commit is on disk, but never
//! synced. After a crash it shows that commit or an earlier one, or is missing. A mark that is missing, damaged or from
//! another store is ignored.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use entable_core::__runtime::private_file::NewFileName;

use crate::{
    file_format::StoreId,
    journal_frame::FramePlace,
    neighbour_file::{open_to_read, path_with_ending},
};

/// The first bytes of a mark, with the version of its format.
const MAGIC: [u8; 8] = *b"entmark1";
/// Bytes of a mark: the first bytes, the store's id, three numbers and a checksum.
const BYTES: usize = 52;

/// The content of a mark: a store, the number of one of its commits, and the place after one of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitMark {
    /// The store that the mark belongs to.
    pub(crate) store: StoreId,
    /// The number of a commit that was on disk. The store has a commit of this or a greater number.
    pub(crate) commit: u64,
    /// The place after the last frame that was on disk.
    pub(crate) place: FramePlace,
}

impl CommitMark {
    fn encode(&self) -> Vec<u8> {
        let FramePlace { generation, sequence } = self.place;
        let numbers = [self.commit, generation, sequence].map(u64::to_le_bytes);
        let mut bytes = [&MAGIC[..], &self.store, numbers.as_flattened()].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, checksum) = bytes.split_last_chunk()?;
        let (magic, rest) = bytes.split_first_chunk()?;
        let (store, numbers) = rest.split_first_chunk()?;
        let is_whole = crc32fast::hash(bytes).to_le_bytes() == *checksum && *magic == MAGIC;
        let numbers: [u8; 24] = numbers.try_into().ok()?;
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let [commit, generation, sequence] = numbers.as_chunks().0 else { return None };
        let place = FramePlace { generation: number(generation), sequence: number(sequence) };
        is_whole.then_some(Self { store: *store, commit: number(commit), place })
    }
}

/// Returns the path of the mark of the store at `store`.
pub(crate) fn path_of_mark(store: &Path) -> PathBuf {
    path_with_ending(store, ".mark")
}

/// Reads the mark of the store at `store`. Returns `None` if there is none, or none that can be read.
pub(crate) fn read_mark(store: &Path) -> Option<CommitMark> {
    let found = read_file(&path_of_mark(store)).ok().flatten()?;
    CommitMark::decode(&found)
}

/// Reads the first bytes of a file: more than the size of a mark if the file is longer. Returns `None` if the file does
/// not exist.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_to_read(path)? else { return Ok(None) };
    let mut found = Vec::with_capacity(BYTES + 1);
    let most = u64::try_from(BYTES + 1).map_err(io::Error::other)?;
    file.take(most).read_to_end(&mut found)?;
    Ok(Some(found))
}

/// Writes the mark of an open store.
#[derive(Debug)]
pub(crate) struct MarkWriter {
    path: PathBuf,
    /// The newest mark, also if it could not be written. `None` before the first, and for a store without an id.
    newest: Option<CommitMark>,
    file: Option<File>,
    /// Whether a write of the mark has failed, for example because the directory is read-only or a foreign file has the
    /// mark's name. No further write is tried.
    has_failed: bool,
}

impl MarkWriter {
    pub(crate) fn new(store: &Path) -> Self {
        Self { path: path_of_mark(store), newest: None, file: None, has_failed: false }
    }

    /// Returns the newest mark of this opening of the store.
    pub(crate) const fn newest(&self) -> Option<CommitMark> {
        self.newest
    }

    /// Writes that a commit is on disk. Ignores a failure, because a store works without a mark. It only cannot notice
    /// that acknowledged writes are missing.
    pub(crate) fn write(&mut self, mark: CommitMark) {
        if self.newest == Some(mark) {
            return;
        }
        self.newest = Some(mark);
        if !self.has_failed && self.try_write(&mark.encode()).is_err() {
            self.has_failed = true;
            self.file = None;
        }
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(0))?;
            return file.write_all(bytes);
        }
        self.refuse_foreign_file()?;
        // Write a new file and rename it over the old mark, so no link is followed.
        let name = NewFileName::with_random_name(&self.path, "new");
        let created = name.create().and_then(|mut file| {
            file.write_all(bytes)?;
            fs::rename(name.temporary(), name.final_path())?;
            Ok(file)
        });
        if created.is_err() {
            name.remove_unfinished();
        }
        self.file = Some(created?);
        Ok(())
    }

    /// Fails if the mark's path holds anything but a mark.
    fn refuse_foreign_file(&self) -> io::Result<()> {
        match read_file(&self.path)? {
            // A crash can leave a mark whose bytes have not reached the disk.
            Some(found) if found.iter().any(|byte| *byte != 0) && !found.starts_with(&MAGIC) => {
                Err(io::ErrorKind::AlreadyExists.into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: CommitMark = CommitMark {
        store: [7; 16],
        commit: 1234,
        place: FramePlace { generation: 5, sequence: 67 },
    };

    #[test]
    fn a_mark_with_a_changed_bit_says_nothing() {
        let bytes = MARK.encode();
        assert_eq!((bytes.len(), CommitMark::decode(&bytes)), (BYTES, Some(MARK)));
        for bit in 0..BYTES * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CommitMark::decode(&changed), None, "bit {bit}");
        }
        for length in 0..BYTES {
            assert_eq!(CommitMark::decode(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(CommitMark::decode(&[&*bytes, &[0]].concat()), None, "one byte more");
    }

    #[test]
    fn a_mark_replaces_a_mark_and_no_other_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store.db");
        let path = path_of_mark(&store);
        let damaged = [&MAGIC[..], b"damaged"].concat();
        for earlier in
            [None, Some(MARK.encode()), Some(damaged), Some(Vec::new()), Some(vec![0; BYTES])]
        {
            match &earlier {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => assert!(!path.exists()),
            }
            let mut writer = MarkWriter::new(&store);
            for commit in [3, 4] {
                let mark = CommitMark { commit, ..MARK };
                writer.write(mark);
                assert_eq!(read_mark(&store), Some(mark), "{earlier:?}");
            }
        }
        for foreign in [&b"of another program"[..], &[0, 0, 1]] {
            fs::write(&path, foreign).unwrap();
            let mut writer = MarkWriter::new(&store);
            writer.write(MARK);
            assert_eq!((read_mark(&store), writer.newest()), (None, Some(MARK)));
            assert_eq!(fs::read(&path).unwrap(), foreign);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[cfg(unix)]
    #[test]
    fn a_mark_is_private_and_follows_no_link() {
        use std::os::unix::fs::{MetadataExt, symlink};

        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store.db");
        let victim = directory.path().join("victim");
        fs::write(&victim, MARK.encode()).unwrap();
        symlink(&victim, path_of_mark(&store)).unwrap();
        assert_eq!(read_mark(&store), None);
        MarkWriter::new(&store).write(CommitMark { commit: 5000, ..MARK });
        assert_eq!(fs::read(&victim).unwrap(), MARK.encode());
        fs::remove_file(path_of_mark(&store)).unwrap();
        MarkWriter::new(&store).write(MARK);
        assert_eq!(fs::metadata(path_of_mark(&store)).unwrap().mode() & 0o777, 0o600);
    }
}
