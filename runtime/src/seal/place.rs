//! Where a value belongs: what an envelope is bound to.

use super::envelope::KeyId;
use crate::error::Error;

/// Where a value belongs. An envelope opens at its place only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The entity type's own table name, not the physical one: copies of a table keep opening.
    pub table: &'a str,
    /// The PartitionKey as stored.
    pub partition_key: &'a str,
    /// The RowKey as stored.
    pub row_key: &'a str,
    /// The property's name.
    pub property: &'a str,
}

/// Begins the associated data.
const DOMAIN: &[u8; 11] = b"azt-enc-v1\0";

/// Bytes that the associated data of most places fits in.
const USUAL: usize = 256;

/// The associated data of an envelope: in the room, or, where that is too short, in the Vec.
pub(super) struct Bound {
    short: [u8; USUAL],
    length: usize,
    long: Vec<u8>,
}

impl Bound {
    /// What an envelope of that suite and key is bound to at the place.
    pub(super) fn new(suite: u8, id: KeyId, place: &Place<'_>) -> Self {
        let parts: usize = place.parts().map(|part| 4 + part.len()).iter().sum();
        let length = DOMAIN.len() + 1 + id.as_bytes().len() + parts;
        let mut bound = Self { short: [0; USUAL], length, long: Vec::new() };
        match bound.short.get_mut(..length) {
            Some(mut room) => place.write(suite, id, |bytes| put(&mut room, bytes)),
            None => {
                bound.long.reserve_exact(length);
                place.write(suite, id, |bytes| bound.long.extend_from_slice(bytes));
            }
        }
        bound
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.short.get(..self.length).unwrap_or(&self.long)
    }
}

/// Writes at the front of the room and steps over it.
fn put(room: &mut &mut [u8], bytes: &[u8]) {
    if let Some((front, rest)) = std::mem::take(room).split_at_mut_checked(bytes.len()) {
        front.copy_from_slice(bytes);
        *room = rest;
    }
}

impl<'a> Place<'a> {
    fn parts(&self) -> [&'a str; 4] {
        [self.table, self.partition_key, self.row_key, self.property]
    }

    fn write(&self, suite: u8, id: KeyId, mut put: impl FnMut(&[u8])) {
        put(DOMAIN);
        put(&[suite]);
        put(id.as_bytes());
        for part in self.parts() {
            put(&counted(part.len()));
            put(part.as_bytes());
        }
    }

    /// The error, naming the place.
    pub(super) fn name(&self, error: Error) -> Error {
        error
            .in_table(self.table)
            .at_keys(self.partition_key, self.row_key)
            .in_property(self.property)
    }
}

/// A length as it stands before what it counts. What the service stores is far below 4 GiB.
pub(super) fn counted(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}
