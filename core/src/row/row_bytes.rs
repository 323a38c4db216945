//! Reads a row from borrowed bytes.
//!
//! A row describes itself, or shares the names and types of its properties with other rows, as [`Columns`]. A row that
//! describes itself has these bytes, in memory and in the file of the embedded store (`docs/embedded-format.md`). A row
//! that shares its columns has the same header and keys, followed by [`ColumnValues`] instead of properties:
//!
//! ```text
//! 0   u8    format, 1
//! 1   i64   Timestamp in ticks (0: not written yet)       all numbers little endian
//! 9   u16   bytes of the PartitionKey
//! 11  u16   bytes of the RowKey
//! 13  ..    PartitionKey, RowKey, UTF-8
//!     ..    properties: u16 bytes of the name, u8 type tag, name, value
//! ```
//!
//! A value takes 1 byte (Boolean), 4 (Int32), 8 (Int64, Double, DateTime) or 16 (Guid). A String
//! (in UTF-8) or Binary takes 4 bytes for its length as a u32, followed by its bytes.

use std::{borrow::Cow, ops::Range, str::from_utf8};

use super::{
    build::put_undecoded,
    column_values::ColumnValues,
    columns::Columns,
    read::{PropertyReader, RawProperty, corrupt_row_error},
};
use crate::{
    edm::{Ticks, ValueRef},
    error::Result,
};

const FORMAT: u8 = 1;
/// Byte range of the Timestamp.
pub(super) const TIMESTAMP: Range<usize> = 1..9;
/// Byte range of the lengths of both keys.
const LENGTHS: Range<usize> = 9..13;
/// Offset of the PartitionKey.
pub(super) const HEADER: usize = LENGTHS.end;

/// Returns the bytes of a row in front of its keys. Returns `None` for a key of over 65,535 bytes.
#[inline]
pub(super) fn header_of(
    timestamp: Ticks,
    partition_key: &str,
    row_key: &str,
) -> Option<[u8; HEADER]> {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = timestamp.get().to_le_bytes();
    let [p0, p1] = u16::try_from(partition_key.len()).ok()?.to_le_bytes();
    let [r0, r1] = u16::try_from(row_key.len()).ok()?.to_le_bytes();
    Some([FORMAT, t0, t1, t2, t3, t4, t5, t6, t7, p0, p1, r0, r1])
}

/// The bytes of a row, borrowed: a store looks at a row before it copies it.
///
/// The bytes may come from a file. [`new`](Self::new) checks header and keys, and properties are checked when they are
/// read, so damaged bytes are an error and never a panic.
///
/// ```
/// use entable_core::{Row, row::RowBytes};
///
/// let row = Row::build("Sales", "223").finish()?;
/// assert_eq!(RowBytes::new(&row.as_bytes())?.key_bytes(), Some((&b"Sales"[..], &b"223"[..])));
/// assert!(RowBytes::new(b"no row").unwrap_err().is_corrupt());
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RowBytes<'a> {
    bytes: &'a [u8],
    /// The names and types of the properties, if the bytes have none.
    columns: Option<&'a Columns>,
}

impl<'a> RowBytes<'a> {
    /// Borrows the bytes of a row whose header and keys were checked.
    #[inline]
    pub(super) const fn from_checked(bytes: &'a [u8], columns: Option<&'a Columns>) -> Self {
        Self { bytes, columns }
    }

    /// Borrows bytes that should be a row. Header and keys are checked now, properties when they are
    /// read.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged header and for an unknown format.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let row = Self { bytes, columns: None };
        match bytes.first() {
            Some(&FORMAT) => {}
            Some(format) => {
                return Err(corrupt_row_error(&format!("row format {format} is unknown")));
            }
            None => return Err(corrupt_row_error("the row is empty")),
        }
        let Some((partition, keys)) = row.joined_keys() else {
            return Err(corrupt_row_error("the keys are truncated"));
        };
        // Nearly all keys are ASCII, which is quicker to check than UTF-8.
        let is_text = || from_utf8(keys).is_ok_and(|keys| keys.is_char_boundary(partition));
        if !keys.is_ascii() && !is_text() {
            return Err(corrupt_row_error("the keys are not UTF-8"));
        }
        if row.stored_ticks().and_then(Ticks::new).is_none() {
            return Err(corrupt_row_error("the Timestamp is not in the years 1 to 9999"));
        }
        Ok(row)
    }

    /// Returns the bytes of the row with names and types of its own.
    pub(super) fn described(self) -> Cow<'a, [u8]> {
        if self.columns.is_none() {
            return Cow::Borrowed(self.bytes);
        }
        let (mut described, mut properties) = (self.header_bytes().to_vec(), self.properties());
        while let Ok(Some(property)) = properties.next_undecoded() {
            put_undecoded(property, &mut described);
        }
        Cow::Owned(described)
    }

    /// Returns the values of a row that shares its columns, or `None` if the row describes itself.
    #[inline]
    pub(super) fn column_values(self) -> Option<ColumnValues<'a>> {
        ColumnValues::of_row(self.columns?, self.property_bytes())
    }

    /// Returns the length of the PartitionKey in bytes, and both keys' bytes, one after the other.
    /// Returns `None` if the row's bytes end before the keys do.
    #[inline]
    fn joined_keys(self) -> Option<(usize, &'a [u8])> {
        let (partition, row) = self.bytes.get(LENGTHS)?.split_first_chunk()?;
        let partition = usize::from(u16::from_le_bytes(*partition));
        let row = usize::from(u16::from_le_bytes(row.try_into().ok()?));
        Some((partition, self.bytes.get(HEADER..HEADER + partition + row)?))
    }

    /// Returns PartitionKey and RowKey as bytes, or `None` if their lengths do not fit the row.
    #[inline]
    pub fn key_bytes(self) -> Option<(&'a [u8], &'a [u8])> {
        self.joined_keys().and_then(|(partition, keys)| keys.split_at_checked(partition))
    }

    /// Returns PartitionKey and RowKey together.
    #[inline]
    pub(super) fn keys(self) -> (&'a str, &'a str) {
        let keys = self.joined_keys().and_then(|(partition, keys)| {
            // Both keys are validated as one text and then split, which is valid only at a
            // character boundary.
            from_utf8(keys).ok()?.split_at_checked(partition)
        });
        // The keys were checked when the row was made, so the fallback is never taken.
        keys.unwrap_or_default()
    }

    #[inline]
    pub(crate) fn partition_key(self) -> &'a str {
        self.key_bytes().and_then(|(key, _)| from_utf8(key).ok()).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn row_key(self) -> &'a str {
        self.key_bytes().and_then(|(_, key)| from_utf8(key).ok()).unwrap_or_default()
    }

    #[inline]
    fn stored_ticks(self) -> Option<i64> {
        let ticks = self.bytes.get(TIMESTAMP)?;
        ticks.try_into().ok().map(i64::from_le_bytes)
    }

    /// Returns when the row was last written, or `None` if it was not written yet.
    #[inline]
    pub(crate) fn timestamp(self) -> Option<Ticks> {
        self.stored_ticks().filter(|ticks| *ticks != 0).and_then(Ticks::new)
    }

    /// Returns the bytes before the properties: format, Timestamp and keys.
    #[inline]
    pub(super) fn header_bytes(self) -> &'a [u8] {
        let keys = self.joined_keys().map_or(0, |(_, keys)| keys.len());
        self.bytes.get(..HEADER + keys).unwrap_or_default()
    }

    /// Returns the bytes of all properties.
    #[inline]
    pub(super) fn property_bytes(self) -> &'a [u8] {
        let keys = self.joined_keys().map_or(0, |(_, keys)| keys.len());
        self.bytes.get(HEADER + keys..).unwrap_or_default()
    }

    /// Iterates over the properties in stored order.
    #[inline]
    pub(crate) fn properties(self) -> PropertyReader<'a> {
        match self.column_values() {
            None => PropertyReader::new(self.property_bytes()),
            Some(values) => PropertyReader::of_columns(values),
        }
    }

    /// Calls `each` with each property that has one of the names.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row. Values are not checked.
    pub(super) fn each_selected_property(
        self,
        names: &[String],
        mut each: impl FnMut(RawProperty<'a>),
    ) -> Result<()> {
        let mut properties = self.properties();
        while let Some(property) = properties.next_undecoded()? {
            if names.iter().any(|wanted| wanted.as_bytes() == property.0) {
                each(property);
            }
        }
        Ok(())
    }

    /// Returns the value of the property `name`, or `None` if the row has no such property.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row. Values of other properties are not checked.
    pub(crate) fn get(self, name: &str) -> Result<Option<ValueRef<'a>>> {
        let Some(columns) = self.columns else { return self.properties().find_property(name) };
        // The type of a row is such a text, and each row is asked for it.
        if let Some((position, text)) = columns.constant_of_name(name)
            && ColumnValues::has_column(self.property_bytes(), position)
        {
            return Ok(Some(ValueRef::String(text)));
        }
        match self.column_values() {
            None => Ok(None),
            Some(values) => values.get(name),
        }
    }
}
