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

use std::{fmt, str::from_utf8};

use bytes::Bytes;
use uuid::Uuid;

use crate::{
    edm::{EdmType, Ticks, Value, ValueRef},
    error::{Error, ErrorKind, Result, ServiceCode},
    limits,
};

const FORMAT: u8 = 1;
const HEADER: usize = 13;

/// The version of a row: opaque, sent back byte for byte as If-Match.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ETag(Version);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Version {
    Ticks(Ticks),
    Text(Box<str>),
}

impl ETag {
    /// The tag that the service derives from a Timestamp.
    pub const fn of(timestamp: Ticks) -> Self {
        Self(Version::Ticks(timestamp))
    }

    /// Whether the text is a weak ETag, the only kind that the service takes as If-Match.
    pub fn is_weak(&self) -> bool {
        match &self.0 {
            Version::Ticks(_) => true,
            Version::Text(text) => {
                text.strip_prefix("W/\"").is_some_and(|rest| rest.ends_with('"'))
            }
        }
    }
}

impl From<&str> for ETag {
    /// A tag as it came from the service.
    fn from(text: &str) -> Self {
        let ticks = text
            .strip_prefix("W/\"datetime'")
            .and_then(|rest| rest.strip_suffix("'\""))
            .and_then(|time| time.replace("%3A", ":").parse::<Ticks>().ok());
        match ticks {
            Some(ticks) if Self::of(ticks).to_string() == text => Self::of(ticks),
            _ => Self(Version::Text(text.into())),
        }
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Version::Ticks(ticks) => {
                let time = ticks.to_string().replace(':', "%3A");
                write!(f, "W/\"datetime'{time}'\"")
            }
            Version::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    bytes: Bytes,
    etag: Option<ETag>,
}

impl Row {
    /// A builder for the row with these keys.
    pub fn build(partition_key: &str, row_key: &str) -> RowBuilder {
        RowBuilder::new(partition_key, row_key)
    }

    /// A row from its bytes; keys and header are checked here, properties when they are read.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged header or an unknown format.
    pub fn from_bytes(bytes: Bytes) -> Result<Self> {
        let row = Self { bytes, etag: None };
        match row.bytes.first() {
            Some(&FORMAT) => {}
            Some(format) => return Err(corrupt(&format!("row format {format} is unknown"))),
            None => return Err(corrupt("the row is empty")),
        }
        let (partition_key, row_key) =
            row.key_bytes().ok_or_else(|| corrupt("the keys are cut"))?;
        if from_utf8(partition_key).is_err() || from_utf8(row_key).is_err() {
            return Err(corrupt("the keys are not UTF-8"));
        }
        Ok(row)
    }

    /// The bytes, as a store keeps them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn key_bytes(&self) -> Option<(&[u8], &[u8])> {
        let lengths = self.bytes.get(9..HEADER)?;
        let (partition, row) = lengths.split_at_checked(2)?;
        let partition = usize::from(u16::from_le_bytes(partition.try_into().ok()?));
        let row = usize::from(u16::from_le_bytes(row.try_into().ok()?));
        let keys = self.bytes.get(HEADER..HEADER + partition + row)?;
        keys.split_at_checked(partition)
    }

    /// The PartitionKey.
    pub fn partition_key(&self) -> &str {
        self.key_bytes().and_then(|(key, _)| from_utf8(key).ok()).unwrap_or_default()
    }

    /// The RowKey.
    pub fn row_key(&self) -> &str {
        self.key_bytes().and_then(|(_, key)| from_utf8(key).ok()).unwrap_or_default()
    }

    /// When the row was written last; `None` for one that was not written yet.
    pub fn timestamp(&self) -> Option<Ticks> {
        let ticks = self.bytes.get(1..9).and_then(|ticks| ticks.try_into().ok());
        ticks.map(i64::from_le_bytes).filter(|ticks| *ticks > 0).and_then(Ticks::new)
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
        if let Some(slot) = bytes.get_mut(1..9) {
            slot.copy_from_slice(&timestamp.get().to_le_bytes());
        }
        Self { bytes: bytes.into(), etag: None }
    }

    /// Keys and properties, without the version: equal for rows that hold the same.
    pub(crate) fn content(&self) -> &[u8] {
        self.bytes.get(9..).unwrap_or_default()
    }

    /// The properties, in the order in which they are stored.
    pub fn properties(&self) -> Properties<'_> {
        let keys = self.key_bytes().map_or(0, |(partition, row)| partition.len() + row.len());
        Properties { rest: self.bytes.get(HEADER + keys..).unwrap_or_default() }
    }

    /// The value of that name.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn get(&self, name: &str) -> Result<Option<ValueRef<'_>>> {
        let mut properties = self.properties();
        while let Some((found, value)) = properties.next()? {
            if found == name.as_bytes() {
                return Ok(Some(value));
            }
        }
        Ok(None)
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

    /// The bytes that the service counts for the entity.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn service_size(&self) -> Result<usize> {
        let keys = limits::utf16_units(self.partition_key()) + limits::utf16_units(self.row_key());
        let mut size = 4 + 2 * keys;
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            let units = from_utf8(name).map_or(name.len(), limits::utf16_units);
            size += 8 + 2 * units + value.service_size();
        }
        Ok(size)
    }

    /// Refuses the row where the service would.
    ///
    /// # Errors
    ///
    /// `is_too_large` and `is_invalid`, naming keys, property, limit and actual size.
    pub fn check(&self) -> Result<()> {
        let place = |error: Error| error.at_keys(self.partition_key(), self.row_key());
        limits::check_key("PartitionKey", self.partition_key()).map_err(place)?;
        limits::check_key("RowKey", self.row_key()).map_err(place)?;
        self.check_properties().map_err(place)
    }

    fn check_properties(&self) -> Result<()> {
        let mut properties = self.properties();
        let mut names: Vec<&str> = Vec::new();
        while let Some((name, value)) = properties.next()? {
            let name = from_utf8(name).map_err(|_| corrupt("a property's name is not UTF-8"))?;
            limits::check_property_name(name)?;
            check_value(value).map_err(|error| error.in_property(name))?;
            names.push(name);
        }
        if names.len() > limits::PROPERTIES {
            let message = format!(
                "the entity has {} properties, the limit is {} beside the system's three",
                names.len(),
                limits::PROPERTIES
            );
            return Err(Error::service(ServiceCode::TooManyProperties, message));
        }
        names.sort_unstable();
        if let Some([twice, _]) = names.windows(2).find(|pair| pair.first() == pair.last()) {
            let error = Error::service(
                ServiceCode::DuplicatePropertiesSpecified,
                "the property is given twice",
            );
            return Err(error.in_property(twice));
        }
        let size = self.service_size()?;
        if size > limits::ENTITY_BYTES {
            let message = format!(
                "the entity has {size} bytes, the limit is {}; \
                 keep large values in a blob and their address in the entity",
                limits::ENTITY_BYTES
            );
            return Err(Error::service(ServiceCode::EntityTooLarge, message));
        }
        Ok(())
    }
}

fn check_value(value: ValueRef<'_>) -> Result<()> {
    let (what, found, limit) = match value {
        ValueRef::String(text) => {
            ("UTF-16 units of text", limits::utf16_units(text), limits::STRING_UNITS)
        }
        ValueRef::Binary(bytes) => ("bytes", bytes.len(), limits::PROPERTY_BYTES),
        ValueRef::DateTime(ticks) if ticks < Ticks::MIN_PROPERTY => {
            let message = format!("{ticks} is before the year 1601");
            return Err(Error::service(ServiceCode::OutOfRangeInput, message));
        }
        _ => return Ok(()),
    };
    if found <= limit {
        return Ok(());
    }
    let message = format!("the property has {found} {what}, the limit is {limit}");
    Err(Error::service(ServiceCode::PropertyValueTooLarge, message))
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

/// A walk over a row's properties, name (UTF-8) and value.
#[derive(Debug, Clone)]
pub struct Properties<'a> {
    rest: &'a [u8],
}

impl<'a> Properties<'a> {
    /// The next property.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for bytes that are not a property.
    #[allow(clippy::should_implement_trait, reason = "fallible, and hot: no Option<Result<_>>")]
    pub fn next(&mut self) -> Result<Option<(&'a [u8], ValueRef<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        read_property(&mut self.rest).map(Some).ok_or_else(|| {
            self.rest = &[];
            corrupt("a property is cut or of an unknown type")
        })
    }
}

fn read_property<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], ValueRef<'a>)> {
    let name = usize::from(u16::from_le_bytes(array(rest)?));
    let [tag] = array(rest)?;
    let name = take(rest, name)?;
    let value = match EdmType::from_tag(tag)? {
        EdmType::Boolean => ValueRef::Boolean(array::<1>(rest)? != [0]),
        EdmType::Int32 => ValueRef::Int32(i32::from_le_bytes(array(rest)?)),
        EdmType::Int64 => ValueRef::Int64(i64::from_le_bytes(array(rest)?)),
        EdmType::Double => ValueRef::Double(f64::from_le_bytes(array(rest)?)),
        EdmType::DateTime => ValueRef::DateTime(Ticks::new(i64::from_le_bytes(array(rest)?))?),
        EdmType::Guid => ValueRef::Guid(Uuid::from_bytes(array(rest)?)),
        EdmType::String => ValueRef::String(from_utf8(counted(rest)?).ok()?),
        EdmType::Binary => ValueRef::Binary(counted(rest)?),
    };
    Some((name, value))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = usize::try_from(u32::from_le_bytes(array(rest)?)).ok()?;
    take(rest, count)
}

/// Writes a row, property by property.
#[derive(Debug, Clone)]
pub struct RowBuilder {
    bytes: Vec<u8>,
    overflow: Option<&'static str>,
}

impl RowBuilder {
    fn new(partition_key: &str, row_key: &str) -> Self {
        let mut bytes = Vec::with_capacity(256 + partition_key.len() + row_key.len());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&0_i64.to_le_bytes());
        let mut overflow = None;
        for key in [partition_key, row_key] {
            let length = u16::try_from(key.len()).unwrap_or_else(|_| {
                overflow = Some("a key");
                0
            });
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        if overflow.is_none() {
            bytes.extend_from_slice(partition_key.as_bytes());
            bytes.extend_from_slice(row_key.as_bytes());
        }
        Self { bytes, overflow }
    }

    /// Adds a property. Names are written as given: [`Row::check`] refuses a name that is written
    /// twice.
    pub fn put(&mut self, name: &str, value: ValueRef<'_>) {
        self.put_joined("", name, value);
    }

    /// Adds a property whose name is `prefix` and `name` together.
    pub fn put_joined(&mut self, prefix: &str, name: &str, value: ValueRef<'_>) {
        let Ok(length) = u16::try_from(prefix.len() + name.len()) else {
            self.overflow = Some("a property's name");
            return;
        };
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.push(value.edm_type() as u8);
        bytes.extend_from_slice(prefix.as_bytes());
        bytes.extend_from_slice(name.as_bytes());
        match value {
            ValueRef::Boolean(v) => bytes.push(u8::from(v)),
            ValueRef::Int32(v) => bytes.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Int64(v) => bytes.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Double(v) => bytes.extend_from_slice(&v.to_le_bytes()),
            ValueRef::DateTime(v) => bytes.extend_from_slice(&v.get().to_le_bytes()),
            ValueRef::Guid(v) => bytes.extend_from_slice(v.as_bytes()),
            ValueRef::String(v) => self.put_counted(v.as_bytes()),
            ValueRef::Binary(v) => self.put_counted(v),
        }
    }

    fn put_counted(&mut self, value: &[u8]) {
        match u32::try_from(value.len()) {
            Ok(length) => {
                self.bytes.extend_from_slice(&length.to_le_bytes());
                self.bytes.extend_from_slice(value);
            }
            Err(_) => self.overflow = Some("a property's value"),
        }
    }

    /// The builder with one more property.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large` for a name that the service refuses.
    pub fn with(mut self, name: &str, value: ValueRef<'_>) -> Result<Self> {
        limits::check_property_name(name)?;
        self.put(name, value);
        Ok(self)
    }

    /// The row.
    ///
    /// # Errors
    ///
    /// `is_too_large` for a key, name or value that no row could hold. The service's own limits are
    /// checked by [`Row::check`].
    pub fn finish(self) -> Result<Row> {
        match self.overflow {
            None => Ok(Row { bytes: self.bytes.into(), etag: None }),
            Some(what) => Err(Error::new(ErrorKind::TooLarge, format!("{what} is too large"))),
        }
    }

    /// The row as a store hands it out, written at that time.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn finish_at(mut self, timestamp: Ticks) -> Result<Row> {
        if let Some(slot) = self.bytes.get_mut(1..9) {
            slot.copy_from_slice(&timestamp.get().to_le_bytes());
        }
        self.finish()
    }
}

impl Row {
    /// The properties as owned values, in order.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    pub fn to_bag(&self) -> Result<crate::edm::Bag> {
        let mut all: Vec<(String, Value)> = Vec::new();
        let mut properties = self.properties();
        while let Some((name, value)) = properties.next()? {
            let name = from_utf8(name).map_err(|_| corrupt("a property's name is not UTF-8"))?;
            all.push((name.to_owned(), value.to_value()));
        }
        Ok(all.into_iter().collect())
    }
}
