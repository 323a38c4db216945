//! Defines [`RowsDigest`]: how many rows there are, and a hash that says whether they are equal.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{edm::EdmType, error::Result, limits::saturating_u64, row::Row};

/// The number of rows, their bytes, and a hash of their keys and properties.
///
/// Timestamps, ETags and the order of rows and properties do not count, so stores with equal rows have
/// equal digests. The hash finds mistakes. It does not protect against forged rows.
///
/// ```
/// use entable::{Row, ValueRef, data::RowsDigest};
///
/// let row = |age| Row::build("Sales", "223").with("Age", ValueRef::Int32(age))?.finish();
/// let digest = |age| -> Result<RowsDigest, entable::Error> {
///     let mut digest = RowsDigest::default();
///     digest.add(&row(age)?)?;
///     Ok(digest)
/// };
/// assert_eq!(digest(34)?, digest(34)?);
/// assert_ne!(digest(34)?.hash(), digest(35)?.hash());
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowsDigest {
    rows: u64,
    bytes: u64,
    sum: u128,
}

impl RowsDigest {
    /// Adds a row.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn add(&mut self, row: &Row) -> Result<()> {
        let size = saturating_u64(row.service_size()?);
        self.rows += 1;
        self.bytes += size;
        // A sum, because it is the one total that no order changes.
        self.sum = self.sum.wrapping_add(hash_of_row(row));
        Ok(())
    }

    /// Adds the rows of another digest.
    pub fn add_all(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes of the rows, as the service counts them.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the hash as 32 hex digits.
    pub fn hash(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

impl fmt::Display for RowsDigest {
    /// Writes the counts and the hash, such as `2 rows, 96 bytes, hash 00..`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {} bytes, hash {:032x}", self.rows, self.bytes, self.sum)
    }
}

/// Returns the first 128 bits of SHA-256 of keys and properties, each after its length.
fn hash_of_row(row: &Row) -> u128 {
    // Room for names, values and the lengths of some thirty properties.
    let mut bytes = Vec::with_capacity(row.byte_len() + 512);
    let (partition_key, row_key) = row.keys();
    push_part(&mut bytes, partition_key.as_bytes());
    push_part(&mut bytes, row_key.as_bytes());
    for (name, edm, value) in row.sorted_properties() {
        push_part(&mut bytes, name);
        push_part(&mut bytes, &[edm as u8]);
        let double = value.try_into().map(f64::from_le_bytes);
        match (edm, double) {
            // The text of a NaN does not keep its bits.
            (EdmType::Double, Ok(double)) if double.is_nan() => {
                push_part(&mut bytes, &f64::NAN.to_le_bytes());
            }
            _ => push_part(&mut bytes, value),
        }
    }
    let hash: [u8; 32] = Sha256::digest(&bytes).into();
    // A hash has 32 bytes, so its first 16 always exist.
    hash.first_chunk().map(|first| u128::from_be_bytes(*first)).unwrap_or_default()
}

/// Appends the length of the part, and the part.
#[inline]
fn push_part(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&saturating_u64(part.len()).to_le_bytes());
    bytes.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edm::ValueRef;

    fn digest(rows: &[Row]) -> RowsDigest {
        let mut digest = RowsDigest::default();
        rows.iter().for_each(|row| digest.add(row).unwrap());
        digest
    }

    fn row(key: &str, properties: &[(&str, ValueRef<'_>)]) -> Row {
        let mut row = Row::build("p", key);
        properties.iter().for_each(|(name, value)| row.put(name, *value));
        row.finish().unwrap()
    }

    #[test]
    fn order_does_not_count_and_everything_else_does() {
        let (one, text) = (ValueRef::Int32(1), ValueRef::String("1"));
        let both = [("A", one), ("B", text)];
        let turned = [("B", text), ("A", one)];
        let rows = [row("1", &both), row("2", &[])];
        assert_eq!(digest(&rows), digest(&[row("2", &[]), row("1", &turned)]));
        for other in [
            vec![row("1", &both)],
            vec![row("1", &both), row("3", &[])],
            vec![row("1", &[("A", text), ("B", one)]), row("2", &[])],
            vec![row("1", &[("A", one)]), row("2", &[("B", text)])],
        ] {
            assert_ne!(digest(&rows).hash(), digest(&other).hash());
        }
    }

    #[test]
    fn equal_bytes_of_another_type_are_another_value() {
        let hash = |value| digest(&[row("1", &[("A", value)])]).hash();
        let bits = 1.5_f64.to_bits();
        let number = i64::try_from(bits).unwrap();
        assert_ne!(hash(ValueRef::Double(1.5)), hash(ValueRef::Int64(number)));
        assert_ne!(hash(ValueRef::String("a")), hash(ValueRef::Binary(b"a")));
    }

    #[test]
    fn zeros_differ_and_all_nans_are_one() {
        let double = |bits| digest(&[row("1", &[("D", ValueRef::Double(f64::from_bits(bits)))])]);
        assert_ne!(double(0), double(1 << 63));
        assert_eq!(double(f64::NAN.to_bits()), double(f64::NAN.to_bits() | 7));
    }
}
