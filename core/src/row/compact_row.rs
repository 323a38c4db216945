//! Defines [`Row`], one stored entity.

use std::{
    borrow::Cow,
    fmt,
    str::from_utf8,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use super::{
    ETag, Location, PropertyReader, RowBuilder,
    build::{put_undecoded, undecoded_bytes},
    column_values::ColumnValues,
    columns::Columns,
    is_operation_id,
    read::{RawProperty, corrupt_row_error},
    row_bytes::{RowBytes, TIMESTAMP},
};
use crate::{
    edm::{Bag, EdmType, Ticks, Value, ValueRef},
    error::Result,
    key::sort_key_from_key_bytes,
    limits,
};

/// One stored entity: keys, Timestamp, ETag and properties. A row never changes.
///
/// ```
/// use entable_core::{Row, ValueRef};
///
/// let row = Row::build("Sales", "empid_000223").with("Age", ValueRef::Int32(34))?.finish()?;
/// assert_eq!(row.partition_key(), "Sales");
/// assert_eq!(row.get("Age")?, Some(ValueRef::Int32(34)));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Row {
    bytes: Bytes,
    /// The names and types of the properties, if the row shares them with others. `bytes` then has none.
    columns: Option<Arc<Columns>>,
    etag: Option<ETag>,
    /// Names of the properties that are stored encrypted, whatever the entity declares.
    // Not a slice: few rows have such names, and each row has this field.
    encrypted: Option<Arc<Vec<Box<str>>>>,
    /// The result of [`check`](Self::check) once it was made: the bytes that the row takes in a
    /// request.
    pub(super) checked: OnceLock<usize>,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.etag == other.etag
            && if self.has_form_of(other) {
                self.bytes == other.bytes
            } else {
                self.bytes().described() == other.bytes().described()
            }
    }
}

impl Eq for Row {}

impl Row {
    pub(super) fn from_unchecked(bytes: Bytes) -> Self {
        Self { bytes, columns: None, etag: None, encrypted: None, checked: OnceLock::new() }
    }

    pub(super) fn from_columns(bytes: Bytes, columns: &Arc<Columns>) -> Self {
        Self { columns: Some(columns.clone()), ..Self::from_unchecked(bytes) }
    }

    /// Returns whether equal bytes of both rows mean the same.
    fn has_form_of(&self, other: &Self) -> bool {
        let columns = |row: &Self| row.columns.as_ref().map(Arc::as_ptr);
        columns(self) == columns(other)
    }

    /// Starts to build a row with keys `partition_key` and `row_key`.
    pub fn build(partition_key: &str, row_key: &str) -> RowBuilder {
        RowBuilder::new(partition_key, row_key)
    }

    /// Creates a row from its stored bytes. Keys and header are checked now, properties when they
    /// are read.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged header and for an unknown format.
    #[inline]
    pub fn from_bytes(bytes: Bytes) -> Result<Self> {
        RowBytes::new(&bytes)?;
        Ok(Self::from_unchecked(bytes))
    }

    /// Copies borrowed bytes into a row that owns its bytes.
    ///
    /// ```
    /// use entable_core::{Row, row::RowBytes};
    ///
    /// let row = Row::build("Sales", "223").finish()?;
    /// let bytes = row.as_bytes();
    /// let bytes = RowBytes::new(&bytes)?;
    /// assert_eq!(Row::from_row_bytes(bytes), row);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn from_row_bytes(bytes: RowBytes<'_>) -> Self {
        Self::from_unchecked(bytes.described().into_owned().into())
    }

    /// Copies borrowed bytes into a row with only the selected properties. Properties that are not there
    /// stay absent.
    ///
    /// ```
    /// use entable_core::{Row, ValueRef, row::RowBytes};
    ///
    /// let mut row = Row::build("Sales", "223");
    /// row.put("Age", ValueRef::Int32(34));
    /// row.put("Name", ValueRef::String("Jones"));
    /// let row = row.finish()?;
    /// let selected = Row::from_selected_properties(RowBytes::new(&row.as_bytes())?, &["Age".to_owned()])?;
    /// assert_eq!((selected.get("Age")?, selected.get("Name")?), (Some(ValueRef::Int32(34)), None));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row. Values are not checked.
    pub fn from_selected_properties(bytes: RowBytes<'_>, names: &[String]) -> Result<Self> {
        let header = bytes.header_bytes();
        // Keys and Timestamp are in the header.
        let is_of_header =
            |name: &String| matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp");
        if names.iter().all(is_of_header) {
            return Ok(Self::from_unchecked(Bytes::copy_from_slice(header)));
        }
        // One allocation of the exact size: a row is held for long, and spare bytes with it.
        let mut length = header.len();
        bytes.each_selected_property(names, |property| length += undecoded_bytes(property))?;
        let mut selected = Vec::with_capacity(length);
        selected.extend_from_slice(header);
        bytes.each_selected_property(names, |property| put_undecoded(property, &mut selected))?;
        Ok(Self::from_unchecked(selected.into()))
    }

    /// Returns the row's bytes, as a store can keep them: with the names and types of the properties.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.bytes().described()
    }

    /// Returns the number of [`as_bytes`](Self::as_bytes).
    ///
    /// ```
    /// # use entable_core::Row;
    /// let row = Row::build("Sales", "223").finish()?;
    /// assert_eq!(row.byte_len(), row.as_bytes().len());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[inline]
    pub fn byte_len(&self) -> usize {
        let Some(columns) = &self.columns else { return self.bytes.len() };
        let bytes = self.bytes();
        let properties = ColumnValues::described_bytes(columns, bytes.property_bytes());
        bytes.header_bytes().len() + properties
    }

    /// Borrows the bytes of the row.
    #[inline]
    pub(crate) fn bytes(&self) -> RowBytes<'_> {
        RowBytes::from_checked(&self.bytes, self.columns.as_deref())
    }

    /// Returns PartitionKey and RowKey as bytes.
    ///
    /// ```
    /// use entable_core::Row;
    ///
    /// let row = Row::build("Sales", "223").finish()?;
    /// assert_eq!(row.key_bytes(), Some((&b"Sales"[..], &b"223"[..])));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[inline]
    pub fn key_bytes(&self) -> Option<(&[u8], &[u8])> {
        self.bytes().key_bytes()
    }

    /// Encodes the row's keys as bytes that sort in the service's order, as [`encode_sort_key`] does.
    ///
    /// ```
    /// # use entable_core::Row;
    /// let (first, second) = (Row::build("Sales", "9").finish()?, Row::build("Sales 2", "1").finish()?);
    /// assert!(first.sort_key() < second.sort_key());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// [`encode_sort_key`]: crate::key::encode_sort_key
    pub fn sort_key(&self) -> Vec<u8> {
        let (partition_key, row_key) = self.key_bytes().unwrap_or_default();
        sort_key_from_key_bytes(partition_key, row_key)
    }

    /// Returns PartitionKey and RowKey together, which is cheaper than one after the other.
    ///
    /// ```
    /// # use entable_core::Row;
    /// assert_eq!(Row::build("Sales", "223").finish()?.keys(), ("Sales", "223"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[inline]
    pub fn keys(&self) -> (&str, &str) {
        self.bytes().keys()
    }

    /// Returns the PartitionKey.
    #[inline]
    pub fn partition_key(&self) -> &str {
        self.bytes().partition_key()
    }

    /// Returns the RowKey.
    #[inline]
    pub fn row_key(&self) -> &str {
        self.bytes().row_key()
    }

    /// Returns when the row was last written, or `None` if it was not written yet.
    pub fn timestamp(&self) -> Option<Ticks> {
        self.bytes().timestamp()
    }

    /// Returns the row's ETag, or `None` if the row was not written yet.
    pub fn etag(&self) -> Option<ETag> {
        self.etag.clone().or_else(|| self.timestamp().map(ETag::from_timestamp))
    }

    /// Returns where the row was read.
    #[doc(hidden)]
    pub fn location_read_from(&self) -> Location {
        self.etag.as_ref().map(ETag::location_read_from).unwrap_or_default()
    }

    /// Returns the row with the ETag that the service gave it.
    #[must_use]
    pub fn with_etag(mut self, etag: ETag) -> Self {
        self.etag = Some(etag);
        self
    }

    /// Copies the row with another Timestamp and without a separate ETag.
    #[must_use]
    pub fn with_timestamp(&self, timestamp: Ticks) -> Self {
        let mut bytes = self.bytes.to_vec();
        if let Some(slot) = bytes.get_mut(TIMESTAMP) {
            slot.copy_from_slice(&timestamp.get().to_le_bytes());
        }
        Self { bytes: bytes.into(), etag: None, ..self.clone() }
    }

    /// Copies the row under other keys, without Timestamp and ETag.
    ///
    /// ```
    /// use entable_core::{Row, ValueRef};
    ///
    /// let mut row = Row::build("Sales", "223");
    /// row.put("Age", ValueRef::Int32(34));
    /// let moved = row.finish()?.with_keys("Travel", "1")?;
    /// assert_eq!((moved.keys(), moved.get("Age")?), (("Travel", "1"), Some(ValueRef::Int32(34))));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row, and the errors of [`RowBuilder::finish`](crate::RowBuilder::finish) for keys that no
    /// row can have.
    pub fn with_keys(&self, partition_key: &str, row_key: &str) -> Result<Self> {
        let mut row = RowBuilder::new(partition_key, row_key);
        let mut properties = self.properties();
        while let Some(property) = properties.next_undecoded()? {
            row.put_undecoded(property);
        }
        Ok(Self { encrypted: self.encrypted.clone(), ..row.finish()? })
    }

    /// Copies the row with these values in place of its own. A value whose property the row does not have
    /// is added.
    ///
    /// The copy has neither Timestamp nor ETag.
    ///
    /// ```
    /// use entable_core::{Row, ValueRef};
    ///
    /// let row = Row::build("Sales", "223").finish()?.with_values(&[("Age", 34.into())])?;
    /// assert_eq!(row.get("Age")?, Some(ValueRef::Int32(34)));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row, and the errors of [`RowBuilder::finish`](crate::RowBuilder::finish).
    pub fn with_values(&self, values: &[(&str, Value)]) -> Result<Self> {
        let (partition_key, row_key) = self.keys();
        let mut row = RowBuilder::new(partition_key, row_key);
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            let new = values.iter().find(|(property, _)| *property == name);
            row.put(name, new.map_or(value, |(_, new)| new.as_ref()));
        }
        for (name, value) in values {
            if self.get(name)?.is_none() {
                row.put(name, value.as_ref());
            }
        }
        Ok(Self { encrypted: self.encrypted.clone(), ..row.finish()? })
    }

    /// Marks the properties `names` as stored encrypted, and removes the mark from all other properties.
    /// Marks are kept in memory only: a write of the row encrypts the marked properties, even if nothing
    /// declares them encrypted.
    #[must_use]
    #[doc(hidden)]
    pub fn with_encrypted_names(mut self, names: impl IntoIterator<Item = Box<str>>) -> Self {
        let names: Vec<Box<str>> = names.into_iter().collect();
        self.encrypted = if names.is_empty() { None } else { Some(Arc::new(names)) };
        self
    }

    /// Copies the marks of encrypted properties from `before`, the row that this one replaces or is made
    /// from. Keeps the marks of this row if it has any.
    #[must_use]
    #[doc(hidden)]
    pub fn inherit_encrypted_names_of(mut self, before: &Self) -> Self {
        if self.encrypted.is_none() {
            self.encrypted.clone_from(&before.encrypted);
        }
        self
    }

    /// Returns the names of the properties that are marked as stored encrypted.
    #[doc(hidden)]
    pub fn encrypted_names(&self) -> &[Box<str>] {
        self.encrypted.as_deref().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether the property is marked as stored encrypted.
    #[doc(hidden)]
    pub fn has_encrypted_name(&self, name: &str) -> bool {
        self.encrypted_names().iter().any(|known| **known == *name)
    }

    /// Copies the row without Timestamp and ETag, as if it was not written yet.
    ///
    /// ```
    /// use entable_core::{Row, Ticks};
    ///
    /// let row = Row::build("Sales", "223").finish()?.with_timestamp(Ticks::UNIX_EPOCH);
    /// assert_eq!(row.without_timestamp_and_etag().etag(), None);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn without_timestamp_and_etag(self) -> Self {
        Self { etag: None, ..self.with_timestamp(Ticks::default()) }
    }

    /// Returns the bytes of keys and properties, without the Timestamp.
    fn content_bytes(&self) -> &[u8] {
        self.bytes.get(9..).unwrap_or_default()
    }

    /// Returns whether two rows have equal keys and properties. Timestamps, ETags, operation ids and
    /// the order of properties may differ, since a service can return properties in another order.
    ///
    /// ```
    /// use entable_core::{Row, Ticks};
    ///
    /// let row = Row::build("Sales", "223").finish()?;
    /// assert!(row.has_same_content(&row.with_timestamp(Ticks::UNIX_EPOCH)));
    /// assert!(!row.has_same_content(&Row::build("Sales", "224").finish()?));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn has_same_content(&self, other: &Self) -> bool {
        self.has_form_of(other) && self.content_bytes() == other.content_bytes()
            || self.key_bytes() == other.key_bytes()
                && self.sorted_properties() == other.sorted_properties()
    }

    /// Returns the properties sorted by name, without the id of the request that wrote the row. Stops at the
    /// first damaged property without an error.
    #[doc(hidden)]
    pub fn sorted_properties(&self) -> Vec<RawProperty<'_>> {
        let mut properties = self.properties();
        let mut sorted = Vec::with_capacity(16);
        while let Ok(Some((name, edm, value))) = properties.next_undecoded() {
            if edm != EdmType::Binary || !is_operation_id(name, ValueRef::Binary(value)) {
                sorted.push((name, edm, value));
            }
        }
        // The first eight bytes, as one number, distinguish most names and keep their byte order.
        let head = |name: &[u8]| {
            let mut head = [0; 8];
            head.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(head)
        };
        sorted.sort_unstable_by(|(one, ..), (other, ..)| {
            head(one).cmp(&head(other)).then_with(|| one.cmp(other))
        });
        sorted
    }

    /// Iterates over the properties in stored order.
    #[inline]
    pub fn properties(&self) -> PropertyReader<'_> {
        self.bytes().properties()
    }

    /// Returns the byte offset in this row that a reader of its properties has reached, for
    /// [`properties_from_offset`](Self::properties_from_offset). It is 0, the beginning, for a row that shares its columns.
    #[inline]
    #[doc(hidden)]
    pub fn byte_offset_of_reader(&self, properties: &PropertyReader<'_>) -> u32 {
        if self.columns.is_some() {
            return 0;
        }
        u32::try_from(self.bytes.len() - properties.bytes_left()).unwrap_or_default()
    }

    /// Iterates over the properties from the byte offset that another reader has reached. 0 means
    /// from the start.
    #[doc(hidden)]
    #[inline]
    pub fn properties_from_offset(&self, offset: u32) -> PropertyReader<'_> {
        match usize::try_from(offset) {
            Ok(offset @ 1..) => PropertyReader::new(self.bytes.get(offset..).unwrap_or_default()),
            _ => self.properties(),
        }
    }

    /// Puts the values of a row that shares its columns into the slots of their names. `names` is the caller's own static
    /// array. Its address identifies the caller, so names are compared only for the first row that it reads. Returns `false`, and
    /// changes nothing, if the row describes itself, for 255 names and more, and for the fifth array and later ones.
    ///
    /// ```
    /// # use entable_core::Row;
    /// static NAMES: [&str; 1] = ["Age"];
    /// let row = Row::build("Sales", "223").finish()?;
    /// assert!(!row.read_by_columns(&NAMES, &mut [None])?);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged value.
    pub fn read_by_columns<'r>(
        &'r self,
        names: &'static [&'static str],
        found: &mut [Option<ValueRef<'r>>],
    ) -> Result<bool> {
        let Some(values) = self.bytes().column_values() else { return Ok(false) };
        values.fill_slots(names, found)
    }

    /// Returns the value of the property `name`, or `None` if the row has no such property.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row. Values of other properties are not checked.
    pub fn get(&self, name: &str) -> Result<Option<ValueRef<'_>>> {
        self.bytes().get(name)
    }

    /// Copies the properties into a bag, in stored order.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn to_bag(&self) -> Result<Bag> {
        let mut bag = Vec::new();
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            bag.push((property_name_from_utf8(name)?.to_owned(), value.to_value()));
        }
        Ok(bag.into_iter().collect())
    }

    /// Returns the number of properties, not counting keys and Timestamp.
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

    /// Returns the number of bytes that the service counts for the entity ("How the size of an
    /// entity is calculated").
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    ///
    /// ```
    /// # use entable_core::{Row, ValueRef};
    /// let row = Row::build("Sales", "223").with("Age", ValueRef::Int32(34))?.finish()?;
    /// assert_eq!(row.service_size()?, 4 + 2 * (5 + 3) + 8 + 2 * 3 + 4);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn service_size(&self) -> Result<usize> {
        let mut size = self.service_size_of_keys();
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            size += service_size_of_property(property_name_from_utf8(name)?, value);
        }
        Ok(size)
    }

    /// Returns the number of bytes that the service counts for an entity without properties.
    fn service_size_of_keys(&self) -> usize {
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

/// Returns the number of bytes that the service counts for a property.
fn service_size_of_property(name: &str, value: ValueRef<'_>) -> usize {
    8 + 2 * limits::utf16_units(name) + value.service_size()
}

/// Returns a property's name as text.
///
/// # Errors
///
/// `is_corrupt` if the name is not UTF-8.
pub fn property_name_from_utf8(name: &[u8]) -> Result<&str> {
    from_utf8(name).map_err(|_| corrupt_row_error("a property's name is not UTF-8"))
}
