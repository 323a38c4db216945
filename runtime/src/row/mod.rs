//! One stored entity in one allocation.
//!
//! The bytes are the same in memory, in the embedded store's file and in the derive's codec; their
//! layout is written down in `docs/embedded-format.md`:
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
//! A value is 1 byte (Boolean), 4 (Int32), 8 (Int64, Double, DateTime), 16 (Guid), or a u32 count
//! of bytes and the bytes (String as UTF-8, Binary).

mod build;
mod check;
mod etag;
mod read;

use std::{
    fmt,
    ops::Range,
    str::from_utf8,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

pub use build::RowBuilder;
pub use etag::ETag;
pub use read::Properties;

use crate::{
    edm::{Bag, Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    key::order_of,
    limits,
};

const FORMAT: u8 = 1;
/// Where the Timestamp stands.
const TIMESTAMP: Range<usize> = 1..9;
/// Where the keys' lengths stand.
const LENGTHS: Range<usize> = 9..13;
/// Where the keys begin.
const HEADER: usize = LENGTHS.end;

/// One stored entity: keys, Timestamp, ETag and properties.
///
/// ```
/// use entable::{Row, ValueRef};
///
/// let row = Row::build("Sales", "empid_000223").with("Age", ValueRef::Int32(34))?.finish()?;
/// assert_eq!(row.partition_key(), "Sales");
/// assert_eq!(row.get("Age")?, Some(ValueRef::Int32(34)));
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Clone)]
pub struct Row {
    bytes: Bytes,
    etag: Option<ETag>,
    /// Properties that are stored encrypted, whatever the entity declares.
    encrypted: Option<Arc<[Box<str>]>>,
    /// What [`check`](Self::check) found, once it was made: the row's bytes in a request.
    checked: OnceLock<usize>,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, &self.etag) == (&other.bytes, &other.etag)
    }
}

impl Eq for Row {}

impl Row {
    fn of(bytes: Bytes) -> Self {
        Self { bytes, etag: None, encrypted: None, checked: OnceLock::new() }
    }

    /// A builder for the row with these keys.
    pub fn build(partition_key: &str, row_key: &str) -> RowBuilder {
        RowBuilder::new(partition_key, row_key)
    }

    /// A row from its bytes; keys and header are checked here, properties when they are read.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged header or an unknown format.
    #[inline]
    pub fn from_bytes(bytes: Bytes) -> Result<Self> {
        let row = Self::of(bytes);
        match row.bytes.first() {
            Some(&FORMAT) => {}
            Some(format) => return Err(corrupt(&format!("row format {format} is unknown"))),
            None => return Err(corrupt("the row is empty")),
        }
        let Some((partition, keys)) = row.joined_keys() else {
            return Err(corrupt("the keys are cut"));
        };
        // Nearly all keys are ASCII, which is seen at a glance.
        let is_text = || from_utf8(keys).is_ok_and(|keys| keys.is_char_boundary(partition));
        if !keys.is_ascii() && !is_text() {
            return Err(corrupt("the keys are not UTF-8"));
        }
        if row.ticks().and_then(Ticks::new).is_none() {
            return Err(corrupt("the Timestamp is not in the years 1 to 9999"));
        }
        Ok(row)
    }

    /// The bytes, as a store keeps them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the PartitionKey, and both keys, one behind the other.
    #[inline]
    fn joined_keys(&self) -> Option<(usize, &[u8])> {
        let (partition, row) = self.bytes.get(LENGTHS)?.split_first_chunk()?;
        let partition = usize::from(u16::from_le_bytes(*partition));
        let row = usize::from(u16::from_le_bytes(row.try_into().ok()?));
        Some((partition, self.bytes.get(HEADER..HEADER + partition + row)?))
    }

    #[inline]
    pub(crate) fn key_bytes(&self) -> Option<(&[u8], &[u8])> {
        self.joined_keys().and_then(|(partition, keys)| keys.split_at_checked(partition))
    }

    /// The row's address in a store that keeps rows in order.
    pub(crate) fn address(&self) -> Vec<u8> {
        let (partition_key, row_key) = self.key_bytes().unwrap_or_default();
        order_of(partition_key, row_key)
    }

    /// PartitionKey and RowKey: cheaper than one after the other.
    ///
    /// ```
    /// # use entable::Row;
    /// assert_eq!(Row::build("Sales", "223").finish()?.keys(), ("Sales", "223"));
    /// # Ok::<(), entable::Error>(())
    /// ```
    #[inline]
    pub fn keys(&self) -> (&str, &str) {
        let keys = self.joined_keys().and_then(|(partition, keys)| {
            // Both are looked at together: the text of two texts is split where one ends.
            from_utf8(keys).ok()?.split_at_checked(partition)
        });
        keys.unwrap_or_default()
    }

    #[inline]
    fn ticks(&self) -> Option<i64> {
        let ticks = self.bytes.get(TIMESTAMP)?;
        ticks.try_into().ok().map(i64::from_le_bytes)
    }

    /// The PartitionKey.
    #[inline]
    pub fn partition_key(&self) -> &str {
        self.key_bytes().and_then(|(key, _)| from_utf8(key).ok()).unwrap_or_default()
    }

    /// The RowKey.
    #[inline]
    pub fn row_key(&self) -> &str {
        self.key_bytes().and_then(|(_, key)| from_utf8(key).ok()).unwrap_or_default()
    }

    /// When the row was written last; `None` for one that was not written yet.
    pub fn timestamp(&self) -> Option<Ticks> {
        self.ticks().filter(|ticks| *ticks != 0).and_then(Ticks::new)
    }

    /// The version; `None` for a row that was not written yet.
    pub fn etag(&self) -> Option<ETag> {
        self.etag.clone().or_else(|| self.timestamp().map(ETag::of))
    }

    /// The same row with the version that the service gave it.
    #[must_use]
    pub fn with_etag(mut self, etag: ETag) -> Self {
        self.etag = Some(etag);
        self
    }

    /// The same row, written at that time.
    #[must_use]
    pub fn written_at(&self, timestamp: Ticks) -> Self {
        let mut bytes = self.bytes.to_vec();
        if let Some(slot) = bytes.get_mut(TIMESTAMP) {
            slot.copy_from_slice(&timestamp.get().to_le_bytes());
        }
        let row = Self { checked: self.checked.clone(), ..Self::of(bytes.into()) };
        Self { encrypted: self.encrypted.clone(), ..row }
    }

    /// The same content under other keys.
    pub(crate) fn with_keys(&self, partition_key: &str, row_key: &str) -> Result<Self> {
        let mut row = RowBuilder::new(partition_key, row_key);
        let keys = self.key_bytes().map_or(0, |(partition, row)| partition.len() + row.len());
        row.put_encoded(self.bytes.get(HEADER + keys..).unwrap_or_default());
        Ok(Self { encrypted: self.encrypted.clone(), ..row.finish()? })
    }

    /// The same row, some of whose properties are stored encrypted.
    #[must_use]
    pub(crate) fn encrypting(mut self, names: impl IntoIterator<Item = Box<str>>) -> Self {
        let names: Vec<Box<str>> = names.into_iter().collect();
        self.encrypted = if names.is_empty() { None } else { Some(names.into()) };
        self
    }

    /// The same row, encrypted where the row that it follows is.
    #[must_use]
    pub(crate) fn encrypted_as(mut self, before: &Self) -> Self {
        if self.encrypted.is_none() {
            self.encrypted.clone_from(&before.encrypted);
        }
        self
    }

    /// Properties that are stored encrypted, as far as the row knows.
    pub(crate) fn encrypted(&self) -> &[Box<str>] {
        self.encrypted.as_deref().unwrap_or_default()
    }

    /// The same row as if it was not written yet.
    pub(crate) fn without_version(self) -> Self {
        Self { etag: None, ..self.written_at(Ticks::default()) }
    }

    /// Keys and properties, without the version.
    fn content(&self) -> &[u8] {
        self.bytes.get(9..).unwrap_or_default()
    }

    /// Whether two rows hold the same, whenever they were written and in whatever order a service
    /// gives their properties back.
    pub(crate) fn holds_same(&self, other: &Self) -> bool {
        self.content() == other.content()
            || self.key_bytes() == other.key_bytes() && self.sorted() == other.sorted()
    }

    /// The properties by name; as far as they can be read.
    fn sorted(&self) -> Vec<read::Raw<'_>> {
        let mut properties = self.properties();
        let mut sorted = Vec::new();
        while let Ok(Some(property)) = properties.raw() {
            sorted.push(property);
        }
        sorted.sort_unstable_by_key(|(name, _, _)| *name);
        sorted
    }

    /// The properties, in the order in which they are stored.
    #[inline]
    pub fn properties(&self) -> Properties<'_> {
        let keys = self.key_bytes().map_or(0, |(partition, row)| partition.len() + row.len());
        Properties::new(self.bytes.get(HEADER + keys..).unwrap_or_default())
    }

    /// The place that a walk has come to, for [`properties_from`](Self::properties_from).
    #[inline]
    pub(crate) fn place_of(&self, properties: &Properties<'_>) -> u32 {
        u32::try_from(self.bytes.len() - properties.left()).unwrap_or_default()
    }

    /// The properties from a place on that a walk came to; 0: all.
    #[doc(hidden)]
    #[inline]
    pub fn properties_from(&self, place: u32) -> Properties<'_> {
        match usize::try_from(place) {
            Ok(place @ 1..) => Properties::new(self.bytes.get(place..).unwrap_or_default()),
            _ => self.properties(),
        }
    }

    /// The value of that name.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row; the values of other properties are not looked at.
    pub fn get(&self, name: &str) -> Result<Option<ValueRef<'_>>> {
        self.properties().find(name)
    }

    /// The properties as owned values, in order.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn to_bag(&self) -> Result<Bag> {
        let mut bag = Vec::new();
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            bag.push((text_of(name)?.to_owned(), value.to_value()));
        }
        Ok(bag.into_iter().collect())
    }

    /// How many properties the row has beside keys and Timestamp.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn property_count(&self) -> Result<usize> {
        let mut properties = self.properties();
        let mut count = 0;
        while properties.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// The bytes that the service counts for the entity ("How the size of an entity is calculated").
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    ///
    /// ```
    /// # use entable::{Row, ValueRef};
    /// let row = Row::build("Sales", "223").with("Age", ValueRef::Int32(34))?.finish()?;
    /// assert_eq!(row.service_size()?, 4 + 2 * (5 + 3) + 8 + 2 * 3 + 4);
    /// # Ok::<(), entable::Error>(())
    /// ```
    pub fn service_size(&self) -> Result<usize> {
        let mut size = self.keys_size();
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            size += property_size(text_of(name)?, value);
        }
        Ok(size)
    }

    /// What the service counts for an entity without properties.
    fn keys_size(&self) -> usize {
        let (partition_key, row_key) = self.keys();
        4 + 2 * (limits::utf16_units(partition_key) + limits::utf16_units(row_key))
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("partition_key", &self.partition_key())
            .field("row_key", &self.row_key())
            .field("timestamp", &self.timestamp())
            .finish_non_exhaustive()
    }
}

pub(crate) fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("stored row is damaged: {what}"))
}

/// What the service counts for a property.
fn property_size(name: &str, value: ValueRef<'_>) -> usize {
    8 + 2 * limits::utf16_units(name) + value.service_size()
}

/// A property's name as text.
fn text_of(name: &[u8]) -> Result<&str> {
    from_utf8(name).map_err(|_| corrupt("a property's name is not UTF-8"))
}
