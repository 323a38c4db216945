//! The two sides of a match: a copy or an entry that is derived, and one that is there.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
};

use crate::{
    entity::{EntityRows, RowKind, RowVersion, TableEntity, head_row_key},
    error::Result,
    key::{Family, FamilyKind},
    plan::{Tokens, outbox::is_version_property, read_row_keys},
    row::Row,
};

/// A RowKey, as a text or as the row that has it, which is parsed only when the key is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowKeyRef<'r> {
    Of(&'r Row),
    Text(&'r str),
}

impl<'r> RowKeyRef<'r> {
    /// Returns the RowKey.
    pub(crate) fn text(self) -> &'r str {
        match self {
            Self::Of(row) => row.row_key(),
            Self::Text(text) => text,
        }
    }
}

/// One side of a match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark<'r> {
    pub(crate) family: &'static Family,
    /// The RowKey of the copy, or of the list's head.
    pub(crate) row_key: RowKeyRef<'r>,
    /// The primary that derives it; for an entry that is there, the id.
    pub(crate) primary: Option<RowKeyRef<'r>>,
    /// Whether it is there, rather than derived.
    pub(crate) found: bool,
    pub(crate) hash: u64,
}

impl<'r> Mark<'r> {
    /// The id, where it is an entry of a list.
    pub(crate) fn id(&self) -> Option<&'r str> {
        self.primary.filter(|_| self.family.kind == FamilyKind::List).map(RowKeyRef::text)
    }
}

/// What a row is to a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    Primary,
    Copy,
    List,
    /// A row of another type.
    Other,
}

/// Where the hash of an entry says how often the row held its id before.
const AGAIN: u32 = 32;

/// Gives every copy and every entry that a row is or derives to `each`. A row of an older version
/// derives what that version writes.
pub(crate) fn met<E: TableEntity>(
    row: &Row,
    tokens: &Tokens,
    hashing: Hashing,
    mut each: impl FnMut(Mark<'_>),
) -> Result<Met> {
    // Remote copies and lists are matched by the remote check, in whichever table they are.
    match E::SCHEMA.kind_among(row, |family| !family.is_remote)? {
        RowKind::Primary(RowVersion::Known(_)) => {
            let rows = E::SCHEMA.derive(row, tokens)?.into_known_rows(E::SCHEMA)?;
            derived(row, rows, hashing, &mut each)?;
            Ok(Met::Primary)
        }
        RowKind::Copy(family, RowVersion::Known(_)) => {
            each(Mark {
                family,
                row_key: RowKeyRef::Of(row),
                primary: None,
                found: true,
                hash: hashing.row(row)?,
            });
            Ok(Met::Copy)
        }
        RowKind::List(family) => {
            listed(row, family, hashing, &mut each)?;
            Ok(Met::List)
        }
        RowKind::Primary(RowVersion::Unknown(_))
        | RowKind::Copy(_, RowVersion::Unknown(_))
        | RowKind::UnknownCopy
        | RowKind::Framework
        | RowKind::Foreign(_)
        | RowKind::Unmarked => Ok(Met::Other),
    }
}

/// What a primary derives.
fn derived(
    primary: &Row,
    rows: Option<EntityRows>,
    hashing: Hashing,
    each: &mut impl FnMut(Mark<'_>),
) -> Result<()> {
    let Some(rows) = rows else { return Ok(()) };
    for copy in &rows.local_copies {
        each(Mark {
            family: copy.family,
            row_key: RowKeyRef::Of(&copy.row),
            primary: Some(RowKeyRef::Of(primary)),
            found: false,
            hash: hashing.row(&copy.row)?,
        });
    }
    for entry in &rows.local_list_entries {
        each(Mark {
            family: entry.family,
            row_key: RowKeyRef::Text(&entry.row_key),
            primary: Some(RowKeyRef::Text(&entry.id)),
            found: false,
            hash: hashing.entry(&entry.row_key, &entry.id),
        });
    }
    Ok(())
}

/// The entries of one row of a list.
fn listed(
    row: &Row,
    family: &'static Family,
    hashing: Hashing,
    each: &mut impl FnMut(Mark<'_>),
) -> Result<()> {
    let head = head_row_key(row.row_key());
    let ids = read_row_keys(row)?;
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for id in &ids {
        let times = seen.entry(id).or_default();
        each(Mark {
            family,
            row_key: RowKeyRef::Text(head),
            primary: Some(RowKeyRef::Text(id)),
            found: true,
            // An id that is there again has no counterpart.
            hash: hashing.entry(head, id) ^ (*times << AGAIN),
        });
        *times += 1;
    }
    Ok(())
}

/// Hashes that have met no counterpart.
pub(crate) type Hashes = HashSet<u64, BuildHasherDefault<Identity>>;

/// The hash of a hash.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// How a check hashes, from a seed of its own: equal for rows that hold the same, in whatever
/// order a service gives their properties back. The low 16 bits follow from the key alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashing {
    seed: u64,
}

impl Hashing {
    pub(crate) fn new() -> Self {
        Self { seed: RandomState::new().hash_one(0) }
    }

    fn row(self, row: &Row) -> Result<u64> {
        let (_, key) = row.key_bytes().unwrap_or_default();
        let key = self.bytes(key, 0);
        let mut all = key;
        let mut properties = row.properties();
        while let Some((name, edm, value)) = properties.next_raw()? {
            let name = Mixer(self.seed ^ u64::from(edm as u8)).bytes(name);
            all = all.wrapping_add(name.bytes(value).finish());
        }
        Ok(joined(key, all))
    }

    /// A copy elsewhere, whatever version of its primary it is of.
    pub(crate) fn elsewhere(self, table: &str, row: &Row) -> Result<u64> {
        let (partition, key) = row.key_bytes().unwrap_or_default();
        let key = self.bytes(partition, self.bytes(key, self.text(&table.to_ascii_lowercase(), 3)));
        let mut all = key;
        let mut properties = row.properties();
        while let Some((name, edm, value)) = properties.next_raw()? {
            if !is_version_property(name) {
                let name = Mixer(self.seed ^ u64::from(edm as u8)).bytes(name);
                all = all.wrapping_add(name.bytes(value).finish());
            }
        }
        Ok(joined(key, all))
    }

    /// An entry of a list elsewhere; `times`: how often the row held it before.
    pub(crate) fn entry_elsewhere(
        self,
        (table, partition_key, head): (&str, &str, &str),
        entry: &str,
        times: u64,
    ) -> u64 {
        let place = self.text(head, self.text(partition_key, self.text(table, 4)));
        joined(place, self.text(entry, place)) ^ (times << AGAIN)
    }

    fn entry(self, head: &str, id: &str) -> u64 {
        joined(self.text(head, 1), self.text(id, self.text(head, 2)))
    }

    fn text(self, text: &str, salt: u64) -> u64 {
        self.bytes(text.as_bytes(), salt)
    }

    fn bytes(self, bytes: &[u8], salt: u64) -> u64 {
        Mixer(self.seed ^ salt).bytes(bytes).finish()
    }
}

/// What a window goes by, and the rest.
fn joined(key: u64, rest: u64) -> u64 {
    key & 0xffff | rest << 16
}

/// Folds words by multiplication, as the fast hashes of tables do.
#[derive(Clone, Copy)]
struct Mixer(u64);

impl Mixer {
    fn word(self, word: u64) -> Self {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        Self((product >> 64) as u64 ^ product as u64)
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mixed = words.iter().fold(self, |mixer, word| mixer.word(u64::from_le_bytes(*word)));
        let tail = rest.iter().fold(0, |tail, byte| tail << 8 | u64::from(*byte));
        mixed.word(tail).word(bytes.len() as u64)
    }

    fn finish(self) -> u64 {
        self.word(0x2545_f491_4f6c_dd1d).0
    }
}
