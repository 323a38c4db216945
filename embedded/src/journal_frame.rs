//! The frames of a journal. Each frame has the changes of one transaction, and is valid as a whole or not at all.
//!
//! `docs/embedded-format.md` specifies the bytes. A frame holds outcomes, not operations: rows as they are stored, so
//! replaying frames twice, in order, gives the same rows as replaying them once.

use entable_core::edm::Ticks;

use crate::file_format::JournalId;

/// Frames begin at multiples of this number of bytes. A torn write then cannot damage the frame before, provided that the
/// disk does not alter blocks outside of a write.
pub(crate) const BLOCK_BYTES: usize = 512;

/// The first bytes of every frame.
const MAGIC: [u8; 4] = *b"entf";
const CHECKSUM_BYTES: usize = 4;

/// The position of a frame in the history of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FramePlace {
    /// The generation: how many checkpoints came before the frame.
    pub(crate) generation: u64,
    /// The position of the frame in its generation, from 0.
    pub(crate) sequence: u64,
}

/// The bytes before the changes: magic bytes, number of bytes of the changes, generation, sequence, bound, and their
/// checksum. The checksum keeps a search for frames from reading far at user data that looks like a head.
type Head = [u8; 36];

/// Rows, deletions and layouts of one transaction, on their way into a frame.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    /// The head, which is filled in last, and the changes.
    bytes: Vec<u8>,
    rows: usize,
}

const LAYOUT: u8 = 1;
const ROW: u8 = 2;
const DELETION: u8 = 3;

impl Default for FrameWriter {
    fn default() -> Self {
        Self { bytes: vec![0; size_of::<Head>()], rows: 0 }
    }
}

impl FrameWriter {
    /// Forgets the changes, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(size_of::<Head>());
        self.rows = 0;
    }

    /// Returns the number of rows that are stored or deleted.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of bytes of the frame, a multiple of [`BLOCK_BYTES`].
    pub(crate) const fn frame_bytes(&self) -> usize {
        bytes_of_frame(self.bytes.len())
    }

    pub(crate) fn put_layout(&mut self, id: u32, layout: &[u8]) {
        self.bytes.push(LAYOUT);
        self.bytes.extend_from_slice(&id.to_le_bytes());
        self.put_bytes(layout);
    }

    /// Adds a row that is stored at an address of a table.
    pub(crate) fn put_row(&mut self, table: u64, address: &[u8], value: &[u8]) {
        self.put_address(ROW, table, address);
        self.put_bytes(value);
    }

    /// Adds the deletion of the row at an address of a table.
    pub(crate) fn put_deletion(&mut self, table: u64, address: &[u8]) {
        self.put_address(DELETION, table, address);
    }

    fn put_address(&mut self, tag: u8, table: u64, address: &[u8]) {
        self.rows += 1;
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&table.to_le_bytes());
        self.put_bytes(address);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        // A row, an address and a layout are far shorter than 4 GiB.
        self.bytes.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds changes that are encoded already, which may be none.
    #[cfg(feature = "simulation")]
    pub(crate) fn put_encoded(&mut self, changes: &[u8]) {
        self.bytes.extend_from_slice(changes);
    }

    /// Completes the frame and returns its bytes. `bound` is a bound of Timestamps as a commit stores it, or `None` if it
    /// stores none.
    pub(crate) fn complete(
        &mut self,
        journal: &JournalId,
        place: FramePlace,
        bound: Option<Ticks>,
    ) -> &[u8] {
        // A group of batches is far shorter than 4 GiB.
        let changes = self.bytes.len() - size_of::<Head>();
        let head = [
            &MAGIC[..],
            &u32::try_from(changes).unwrap_or(u32::MAX).to_le_bytes(),
            &place.generation.to_le_bytes(),
            &place.sequence.to_le_bytes(),
            &bound.unwrap_or(Ticks::MIN).get().to_le_bytes(),
        ];
        let mut head = head.concat();
        head.extend_from_slice(&checksum(journal, &head));
        self.bytes.splice(..size_of::<Head>(), head);
        let (whole, checksum) = (self.frame_bytes(), checksum(journal, &self.bytes));
        self.bytes.extend_from_slice(&checksum);
        self.bytes.resize(whole, 0);
        &self.bytes
    }
}

/// Returns the number of bytes of a frame, with so many bytes before its checksum.
const fn bytes_of_frame(checked: usize) -> usize {
    (checked + CHECKSUM_BYTES).next_multiple_of(BLOCK_BYTES)
}

/// Returns the checksum of a frame. It depends on the journal, so the frame of another journal is not valid in this one.
fn checksum(journal: &JournalId, frame: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(journal);
    hasher.update(frame);
    hasher.finalize().to_le_bytes()
}

/// A valid frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'f> {
    pub(crate) place: FramePlace,
    /// The [bound of Timestamps](crate::timestamp_bound) that the transaction stored, or `MIN` if it stored none.
    pub(crate) bound: Ticks,
    changes: &'f [u8],
}

impl<'f> Frame<'f> {
    /// Reads the frame that begins with the first byte of `bytes`. Returns `None` if there is no valid one.
    pub(crate) fn decode(journal: &JournalId, bytes: &'f [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<{ size_of::<Head>() }>()?;
        let (magic, fields) = head.split_first_chunk()?;
        if *magic != MAGIC {
            return None;
        }
        let (checked, found) = head.split_last_chunk::<CHECKSUM_BYTES>()?;
        if checksum(journal, checked) != *found {
            return None;
        }
        let (length, fields) = fields.split_first_chunk()?;
        let (generation, fields) = fields.split_first_chunk()?;
        let (sequence, fields) = fields.split_first_chunk()?;
        let bound = fields.first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (changes, rest) = rest.split_at_checked(length)?;
        let found = rest.first_chunk::<CHECKSUM_BYTES>()?;
        let checked = bytes.get(..size_of::<Head>() + length)?;
        let place = FramePlace {
            generation: u64::from_le_bytes(*generation),
            sequence: u64::from_le_bytes(*sequence),
        };
        let bound = Ticks::new(i64::from_le_bytes(*bound))?;
        (checksum(journal, checked) == *found).then_some(Self { place, bound, changes })
    }

    /// Returns the number of bytes to the next frame.
    pub(crate) fn byte_len(&self) -> usize {
        bytes_of_frame(size_of::<Head>() + self.changes.len())
    }

    /// Returns the changes in order, and `None` as the last item if the rest of the bytes is no change.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Option<FrameChange<'f>>> + use<'f> {
        let mut rest = self.changes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let change = take_change(&mut rest);
            if change.is_none() {
                rest = &[];
            }
            Some(change)
        })
    }
}

/// A change of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrameChange<'f> {
    Layout {
        id: u32,
        bytes: &'f [u8],
    },
    /// A row that is stored, or deleted if the value is `None`.
    Row {
        table: u64,
        address: &'f [u8],
        value: Option<&'f [u8]>,
    },
}

fn take_change<'f>(rest: &mut &'f [u8]) -> Option<FrameChange<'f>> {
    let [tag] = take_array(rest)?;
    if tag == LAYOUT {
        let id = u32::from_le_bytes(take_array(rest)?);
        return Some(FrameChange::Layout { id, bytes: take_bytes(rest)? });
    }
    let table = u64::from_le_bytes(take_array(rest)?);
    let address = take_bytes(rest)?;
    let value = match tag {
        ROW => Some(take_bytes(rest)?),
        DELETION => None,
        _ => return None,
    };
    Some(FrameChange::Row { table, address, value })
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn take_bytes<'f>(rest: &mut &'f [u8]) -> Option<&'f [u8]> {
    let length = usize::try_from(u32::from_le_bytes(take_array(rest)?)).ok()?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOURNAL: JournalId = [7; 16];
    const PLACE: FramePlace = FramePlace { generation: 3, sequence: 1 };

    fn frame() -> Vec<u8> {
        let mut frame = FrameWriter::default();
        frame.put_row(1, b"p\0r", b"value");
        frame.put_deletion(2, b"p\0s");
        frame.put_row(2, b"\0", b"");
        assert_eq!(frame.rows(), 3);
        let length = frame.frame_bytes();
        let bytes = frame.complete(&JOURNAL, PLACE, Some(Ticks::UNIX_EPOCH)).to_vec();
        assert_eq!(bytes.len(), length);
        bytes
    }

    #[test]
    fn a_frame_has_the_changes_that_were_put() {
        let bytes = frame();
        let frame = Frame::decode(&JOURNAL, &bytes).unwrap();
        assert_eq!((frame.place, frame.bound), (PLACE, Ticks::UNIX_EPOCH));
        assert_eq!((bytes.len(), frame.byte_len()), (BLOCK_BYTES, BLOCK_BYTES));
        let row = |table, address, value| Some(FrameChange::Row { table, address, value });
        let expected = [
            row(1, &b"p\0r"[..], Some(&b"value"[..])),
            row(2, &b"p\0s"[..], None),
            row(2, &b"\0"[..], Some(&b""[..])),
        ];
        assert_eq!(frame.changes().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_frame_with_a_changed_bit_or_of_another_journal_is_not_valid() {
        let bytes = frame();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for bit in 0..used * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Frame::decode(&JOURNAL, &changed), None, "bit {bit}");
        }
        for length in 0..used {
            assert_eq!(Frame::decode(&JOURNAL, &bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Frame::decode(&[8; 16], &bytes), None);
    }

    #[test]
    fn changes_that_are_cut_end_with_none() {
        let bytes = frame();
        let changes = Frame::decode(&JOURNAL, &bytes).unwrap().changes;
        for length in 0..changes.len() {
            let cut = Frame { place: PLACE, bound: Ticks::MIN, changes: &changes[..length] };
            let found: Vec<_> = cut.changes().collect();
            assert!(found.len() <= 3, "{length} bytes");
            assert!(found.iter().rev().skip(1).all(Option::is_some), "{length} bytes");
        }
    }

    #[test]
    fn a_frame_takes_whole_blocks() {
        for bytes in [0, 440, 450, 451, 460, 470, 2_000] {
            let mut frame = FrameWriter::default();
            frame.put_row(1, b"", &vec![1; bytes]);
            let encoded = frame.complete(&JOURNAL, PLACE, None);
            assert_eq!(encoded.len() % BLOCK_BYTES, 0);
            assert!(
                Frame::decode(&JOURNAL, encoded)
                    .is_some_and(|found| found.byte_len() == encoded.len())
            );
        }
    }
}
