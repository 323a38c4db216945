//! The two sides of a match: a copy or an entry that is derived, and one that is there.

use std::{
    collections::HashSet,
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
};

use crate::{
    edm::ValueRef,
    entity::{Recognition, TableEntity},
    error::Result,
    key::{Family, FamilyKind},
    plan::{LIST_MARKER, Tokens, head_key, ids_in},
    row::Row,
};

/// One side of a match.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark<'r> {
    pub(super) family: &'static Family,
    /// The RowKey of the copy, or of the list's head.
    pub(super) row_key: &'r str,
    /// The primary that derives it; for an entry that is there, the id.
    pub(super) primary: Option<&'r str>,
    /// Whether it is there, rather than derived.
    pub(super) found: bool,
    pub(super) hash: u64,
}

impl Mark<'_> {
    /// The id, where it is an entry of a list.
    pub(super) fn id(&self) -> Option<&str> {
        self.primary.filter(|_| self.family.kind == FamilyKind::List)
    }
}

/// What a row is to a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    Primary,
    Copy,
    List,
    /// A row of another type.
    Other,
}

/// Gives every copy and every entry that a row is or derives to `each`.
pub(super) fn met<E: TableEntity>(
    row: &Row,
    tokens: &Tokens,
    hashing: Hashing,
    mut each: impl FnMut(Mark<'_>),
) -> Result<Met> {
    for family in E::SCHEMA.families {
        match family.kind {
            FamilyKind::Primary if is_ours::<E>(row, family)? => {
                let rows = tokens.fill(E::SCHEMA, E::from_row(row)?.rows()?)?;
                for copy in &rows.copies {
                    each(Mark {
                        family: copy.family,
                        row_key: copy.row.row_key(),
                        primary: Some(row.row_key()),
                        found: false,
                        hash: hashing.row(&copy.row)?,
                    });
                }
                for entry in &rows.entries {
                    each(Mark {
                        family: entry.family,
                        row_key: &entry.row_key,
                        primary: Some(&entry.id),
                        found: false,
                        hash: hashing.entry(&entry.row_key, &entry.id),
                    });
                }
                return Ok(Met::Primary);
            }
            FamilyKind::Copy if is_ours::<E>(row, family)? => {
                each(Mark {
                    family,
                    row_key: row.row_key(),
                    primary: None,
                    found: true,
                    hash: hashing.row(row)?,
                });
                return Ok(Met::Copy);
            }
            FamilyKind::List if is_list(row, family)? => {
                let head = head_key(row.row_key());
                for id in ids_in(row)? {
                    each(Mark {
                        family,
                        row_key: head,
                        primary: Some(&id),
                        found: true,
                        hash: hashing.entry(head, &id),
                    });
                }
                return Ok(Met::List);
            }
            _ => {}
        }
    }
    Ok(Met::Other)
}

fn is_ours<E: TableEntity>(row: &Row, family: &Family) -> Result<bool> {
    Ok(E::SCHEMA.recognize(row, family)? == Recognition::Ours)
}

fn is_list(row: &Row, family: &Family) -> Result<bool> {
    Ok(row.get("EntityType")? == Some(ValueRef::String(LIST_MARKER))
        && family.row.matches(head_key(row.row_key())))
}

/// Hashes that have met no counterpart.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<Identity>>;

/// The hash of a hash.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Identity(u64);

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
pub(super) struct Hashing {
    seed: u64,
}

impl Hashing {
    pub(super) fn new() -> Self {
        Self { seed: RandomState::new().hash_one(0) }
    }

    fn row(self, row: &Row) -> Result<u64> {
        let key = self.text(row.row_key(), 0);
        let mut all = key;
        let mut properties = row.properties();
        while let Some((name, edm, value)) = properties.raw()? {
            let name = Mixer(self.seed ^ u64::from(edm as u8)).bytes(name);
            all = all.wrapping_add(name.bytes(value).finish());
        }
        Ok(joined(key, all))
    }

    fn entry(self, head: &str, id: &str) -> u64 {
        joined(self.text(head, 1), self.text(id, self.text(head, 2)))
    }

    fn text(self, text: &str, salt: u64) -> u64 {
        Mixer(self.seed ^ salt).bytes(text.as_bytes()).finish()
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
