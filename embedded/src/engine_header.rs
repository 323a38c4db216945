//! The header of the engine's file, as far as this crate reads it: the number of the newest commit.
//!
//! redb's `docs/design.md` specifies the bytes (file format 3): a byte of flags, then two slots for commits.

/// Bytes of the header, which the engine writes at once.
const HEADER_BYTES: usize = 320;
/// Position of the byte of flags. Its lowest bit says which slot holds the newest commit.
const FLAGS: usize = 9;
/// Position of the first slot.
const SLOTS: usize = 64;
const SLOT_BYTES: usize = 128;
/// Position of a commit's number in its slot.
const NUMBER: usize = 104;
/// The first byte of each slot in this format.
const FORMAT: u8 = 3;

/// Returns the number of the newest commit according to a header. Commit numbers increase. Returns `None` if the bytes
/// are not a header of this format.
pub(crate) fn newest_commit(header: &[u8]) -> Option<u64> {
    let header = header.first_chunk::<HEADER_BYTES>()?;
    let start = SLOTS + SLOT_BYTES * usize::from(header.get(FLAGS)? & 1);
    let slot = header.get(start..)?;
    if *slot.first()? != FORMAT {
        return None;
    }
    slot.get(NUMBER..)?.first_chunk().copied().map(u64::from_le_bytes)
}
