//! The file of a journal: creates it, reads it and removes it.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use entable_core::__runtime::{
    limits::{saturating_u64, saturating_usize},
    private_file::NewFileName,
};
use redb::{StorageBackend, backends::FileBackend};

use crate::{
    file_format::JournalId,
    neighbour_file::{open_to_read, path_with_ending},
};

/// The first bytes of a journal, with the version of its format.
const MAGIC: [u8; 8] = *b"entjour1";
/// Bytes of the head, which is never rewritten. Frames come after it.
pub(crate) const HEAD_BYTES: usize = 4096;
/// Bytes for frames in a new journal. A journal that has fewer is damaged.
pub(crate) const INITIAL_FRAME_BYTES: u64 = 256 * 1024;
/// The largest number of bytes of frames. After a crash, opening the store replays as many. The engine's file keeps about as
/// many bytes of replaced rows until the next checkpoint.
pub(crate) const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the path of the journal of the store at `store`.
pub(crate) fn path_of_journal(store: &Path) -> PathBuf {
    path_with_ending(store, ".journal")
}

fn encode_head(id: &JournalId) -> Vec<u8> {
    let mut head = [&MAGIC[..], id].concat();
    head.extend_from_slice(&crc32fast::hash(&head).to_le_bytes());
    head.resize(HEAD_BYTES, 0);
    head
}

fn decode_head(bytes: &[u8]) -> Option<JournalId> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let checked = bytes.get(..MAGIC.len() + id.len())?;
    let is_whole =
        *magic == MAGIC && crc32fast::hash(checked).to_le_bytes() == *rest.first_chunk()?;
    is_whole.then_some(*id)
}

/// The file at the path of a journal.
#[derive(Debug)]
pub(crate) enum FoundJournal {
    /// There is no file.
    None,
    /// The file is empty. A crash can leave it so on a file system without hard links, where the journal takes its name before it
    /// has its bytes.
    Empty,
    /// Something that is not a journal, or a journal with a damaged head.
    Other,
    Journal {
        id: JournalId,
        /// The bytes after the head.
        frames: Vec<u8>,
    },
}

/// The file at the path of a journal, after its head was read.
enum FoundHead {
    None,
    Empty,
    Other,
    Journal(JournalId, File),
}

fn read_head(store: &Path) -> io::Result<FoundHead> {
    let file = match open_to_read(&path_of_journal(store)) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(FoundHead::None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(FoundHead::Other),
        Err(error) => return Err(error),
    };
    let mut head = Vec::with_capacity(HEAD_BYTES);
    (&file).take(saturating_u64(HEAD_BYTES)).read_to_end(&mut head)?;
    Ok(match decode_head(&head) {
        Some(id) => FoundHead::Journal(id, file),
        None if head.is_empty() => FoundHead::Empty,
        None => FoundHead::Other,
    })
}

/// Reads the journal of the store at `store`.
pub(crate) fn read_journal(store: &Path) -> io::Result<FoundJournal> {
    let (id, file) = match read_head(store)? {
        FoundHead::Journal(id, file) => (id, file),
        FoundHead::None => return Ok(FoundJournal::None),
        FoundHead::Empty => return Ok(FoundJournal::Empty),
        FoundHead::Other => return Ok(FoundJournal::Other),
    };
    let mut frames = Vec::new();
    (&file).take(MOST_BYTES + 1).read_to_end(&mut frames)?;
    let is_longer = saturating_u64(frames.len()) > MOST_BYTES;
    Ok(if is_longer { FoundJournal::Other } else { FoundJournal::Journal { id, frames } })
}

/// Creates the journal of the store at `store`, with [`INITIAL_FRAME_BYTES`] of zeros after its head. It is on disk afterwards.
/// Fails with `AlreadyExists`, and changes nothing, if there is a file already.
pub(crate) fn create_journal(store: &Path, id: &JournalId) -> io::Result<FileBackend> {
    let name = NewFileName::with_random_name(&path_of_journal(store), "new");
    let created = name.create().and_then(|mut file| {
        file.write_all(&encode_head(id))?;
        // Write the zeros now: the sync of a frame takes longer if it also makes the file longer.
        file.write_all(&vec![0; saturating_usize(INITIAL_FRAME_BYTES)])?;
        file.sync_all()?;
        if name.rename_to_final()? { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    });
    if created.is_err() {
        name.remove_unfinished();
    }
    let file = created?;
    if let Err(error) = name.sync_directory() {
        remove_journal(store, id);
        return Err(error);
    }
    FileBackend::new(file).map_err(io::Error::other)
}

/// Makes a journal longer, with zeros.
pub(crate) fn extend_journal(file: &dyn StorageBackend, from: u64, to: u64) -> io::Result<()> {
    let added = usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?;
    file.set_len(to)?;
    file.write(from, &vec![0; added])
}

/// Removes the journal with an id. Leaves a file alone that has taken its place: another process may have removed the store
/// and begun a new one.
// A failure is ignored: the next opening finds that the journal is not needed.
pub(crate) fn remove_journal(store: &Path, id: &JournalId) {
    if matches!(read_head(store), Ok(FoundHead::Journal(found, _)) if found == *id) {
        drop(fs::remove_file(path_of_journal(store)));
    }
}

/// Removes an empty file at the path of a journal.
pub(crate) fn remove_empty_journal(store: &Path) {
    if matches!(read_head(store), Ok(FoundHead::Empty)) {
        drop(fs::remove_file(path_of_journal(store)));
    }
}

/// Gives a journal that cannot be used another name, so that the store can have a new one.
pub(crate) fn set_journal_aside(store: &Path) -> io::Result<()> {
    let path = path_of_journal(store);
    let aside = NewFileName::with_random_name(&path, "aside");
    match fs::rename(&path, aside.temporary()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // Sync the directory, or a power failure could undo the rename.
        _ => aside.sync_directory(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: JournalId = [7; 16];

    #[test]
    fn a_journal_is_found_with_its_id_and_its_frames() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store.db");
        assert!(matches!(read_journal(&store).unwrap(), FoundJournal::None));
        let file = create_journal(&store, &ID).unwrap();
        file.write(HEAD_BYTES as u64 + 512, b"frame").unwrap();
        let end = HEAD_BYTES as u64 + INITIAL_FRAME_BYTES;
        extend_journal(&file, end, end + 512).unwrap();
        let FoundJournal::Journal { id, frames } = read_journal(&store).unwrap() else { panic!() };
        let bytes = saturating_usize(INITIAL_FRAME_BYTES) + 512;
        assert_eq!((id, frames.len(), &frames[512..517]), (ID, bytes, &b"frame"[..]));
        assert!(frames[517..].iter().all(|byte| *byte == 0));
        assert_eq!(create_journal(&store, &ID).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
        remove_journal(&store, &[8; 16]);
        assert!(path_of_journal(&store).exists(), "it is another one");
        remove_empty_journal(&store);
        assert!(path_of_journal(&store).exists(), "it is not empty");
        file.set_len(HEAD_BYTES as u64 + MOST_BYTES + 1).unwrap();
        assert!(matches!(read_journal(&store).unwrap(), FoundJournal::Other), "it is too long");
        file.set_len(end).unwrap();
        remove_journal(&store, &ID);
        assert!(matches!(read_journal(&store).unwrap(), FoundJournal::None));
        fs::write(path_of_journal(&store), "").unwrap();
        remove_empty_journal(&store);
        assert!(matches!(read_journal(&store).unwrap(), FoundJournal::None));
    }

    #[test]
    fn a_damaged_head_is_no_journal() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store.db");
        create_journal(&store, &ID).unwrap();
        let bytes = fs::read(path_of_journal(&store)).unwrap();
        for bit in 0..28 * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(path_of_journal(&store), changed).unwrap();
            assert!(matches!(read_journal(&store).unwrap(), FoundJournal::Other), "bit {bit}");
        }
        fs::write(path_of_journal(&store), &bytes[..27]).unwrap();
        assert!(matches!(read_journal(&store).unwrap(), FoundJournal::Other));
    }

    #[cfg(unix)]
    #[test]
    fn a_journal_is_private_and_follows_no_link() {
        use std::os::unix::fs::{MetadataExt, symlink};

        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store.db");
        let other = directory.path().join("other.db");
        create_journal(&other, &ID).unwrap();
        assert_eq!(fs::metadata(path_of_journal(&other)).unwrap().mode() & 0o777, 0o600);
        symlink(path_of_journal(&other), path_of_journal(&store)).unwrap();
        assert!(matches!(read_journal(&store).unwrap(), FoundJournal::Other));
        assert_eq!(create_journal(&store, &ID).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
