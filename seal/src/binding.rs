//! The table, row and property that an encrypted value is bound to.

use crate::envelope::KeyId;
use entable_core::{__runtime::limits::saturating_u32, error::Error};

/// The table, row and property that a value is encrypted for. An envelope decrypts only with the binding it was made
/// with, which prevents copying it to another row or property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueBinding<'a> {
    /// The name of the table that the entity type declares, not of the table that the row is stored
    /// in: the values of a copied table still decrypt.
    pub table: &'a str,
    /// The stored PartitionKey.
    pub partition_key: &'a str,
    /// The stored RowKey.
    pub row_key: &'a str,
    /// The name of the property.
    pub property: &'a str,
}

/// The first bytes of all associated data, which keep it apart from other uses of a key.
const DOMAIN: &[u8; 11] = b"azt-enc-v1\0";

/// Number of bytes of associated data that need no allocation.
const SHORT_BYTES: usize = 256;

/// The associated data of an envelope: the bytes that the cipher authenticates in addition to the value. The array
/// holds up to 256 bytes; longer data is in the `Vec`.
pub(crate) struct AssociatedData {
    short: [u8; SHORT_BYTES],
    length: usize,
    long: Vec<u8>,
}

impl AssociatedData {
    /// Builds the associated data from the cipher suite, the id of the key and the binding.
    pub(crate) fn new(suite: u8, id: KeyId, binding: &ValueBinding<'_>) -> Self {
        let parts: usize = binding.bound_texts().map(|part| 4 + part.len()).iter().sum();
        let length = DOMAIN.len() + 1 + id.as_bytes().len() + parts;
        let mut bound = Self { short: [0; SHORT_BYTES], length, long: Vec::new() };
        match bound.short.get_mut(..length) {
            Some(mut room) => {
                binding.write_associated_data(suite, id, |bytes| put_bytes(&mut room, bytes))
            }
            None => {
                bound.long.reserve_exact(length);
                binding
                    .write_associated_data(suite, id, |bytes| bound.long.extend_from_slice(bytes));
            }
        }
        bound
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.short.get(..self.length).unwrap_or(&self.long)
    }
}

/// Copies `bytes` to the front of `room` and shortens `room` by them. Copies nothing and empties
/// `room` if `bytes` do not fit.
fn put_bytes(room: &mut &mut [u8], bytes: &[u8]) {
    if let Some((front, rest)) = std::mem::take(room).split_at_mut_checked(bytes.len()) {
        front.copy_from_slice(bytes);
        *room = rest;
    }
}

impl<'a> ValueBinding<'a> {
    fn bound_texts(&self) -> [&'a str; 4] {
        [self.table, self.partition_key, self.row_key, self.property]
    }

    fn write_associated_data(&self, suite: u8, id: KeyId, mut put: impl FnMut(&[u8])) {
        put(DOMAIN);
        put(&[suite]);
        put(id.as_bytes());
        for part in self.bound_texts() {
            put(&length_prefix_bytes(part.len()));
            put(part.as_bytes());
        }
    }

    /// Adds table, keys and property to the error.
    pub(crate) fn error_at_value(&self, error: Error) -> Error {
        error
            .in_table(self.table)
            .at_keys(self.partition_key, self.row_key)
            .in_property(self.property)
    }
}

/// Returns the four bytes that precede a part of that length.
pub(crate) fn length_prefix_bytes(length: usize) -> [u8; 4] {
    // A row has at most 1 MiB, so every length fits in 32 bits.
    saturating_u32(length).to_be_bytes()
}
