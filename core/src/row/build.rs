//! Builds rows property by property.

use super::{
    compact_row::Row,
    read::RawProperty,
    row_bytes::{TIMESTAMP, header_of},
};
use crate::{
    edm::{Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    limits,
};

impl Row {
    /// Returns a row with empty keys and no properties. It replaces a value that cannot be stored as a row.
    #[doc(hidden)]
    pub fn without_keys() -> Self {
        Self::from_unchecked(RowBuilder::new("", "").bytes.into())
    }
}

/// Builds a row property by property, directly in its stored bytes.
#[derive(Debug, Clone)]
pub struct RowBuilder {
    bytes: Vec<u8>,
    overflow: Option<&'static str>,
}

impl RowBuilder {
    pub(super) fn new(partition_key: &str, row_key: &str) -> Self {
        let mut bytes = Vec::with_capacity(256 + partition_key.len() + row_key.len());
        let Some(header) = header_of(Ticks::default(), partition_key, row_key) else {
            // `finish` refuses the row, so it needs no keys any more.
            bytes.extend_from_slice(&header_of(Ticks::default(), "", "").unwrap_or_default());
            return Self { bytes, overflow: Some("a key has more than 65,535 bytes") };
        };
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(partition_key.as_bytes());
        bytes.extend_from_slice(row_key.as_bytes());
        Self { bytes, overflow: None }
    }

    /// Adds a property without a check of its name. [`Row::check`] refuses invalid names and names
    /// that are given twice.
    pub fn put(&mut self, name: &str, value: ValueRef<'_>) {
        self.put_prefixed("", name, value);
    }

    /// Adds a property whose name is `prefix` followed by `name`, without a check of the name.
    pub fn put_prefixed(&mut self, prefix: &str, name: &str, value: ValueRef<'_>) {
        let Ok(length) = u16::try_from(prefix.len() + name.len()) else {
            self.overflow = Some("a property's name has more than 65,535 bytes");
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

    /// Adds a property of another row as it is, without a check of its name and value.
    ///
    /// ```
    /// use entable_core::{EdmType, Row, ValueRef};
    ///
    /// let mut row = Row::build("Sales", "223");
    /// row.put_undecoded((b"Age", EdmType::Int32, &34_i32.to_le_bytes()));
    /// assert_eq!(row.finish()?.get("Age")?, Some(ValueRef::Int32(34)));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn put_undecoded(&mut self, property: RawProperty<'_>) {
        let (name, _, value) = property;
        if u16::try_from(name.len()).is_err() || u32::try_from(value.len()).is_err() {
            self.overflow =
                Some("a property's name has more than 65,535 bytes, or its value 4 GiB");
            return;
        }
        put_undecoded(property, &mut self.bytes);
    }

    /// Reserves exactly this many bytes for properties. The row is then allocated once.
    #[doc(hidden)]
    pub fn reserve_bytes(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    fn put_counted(&mut self, value: &[u8]) {
        match u32::try_from(value.len()) {
            Ok(length) => {
                self.bytes.extend_from_slice(&length.to_le_bytes());
                self.bytes.extend_from_slice(value);
            }
            Err(_) => self.overflow = Some("a property's value has 4 GiB or more"),
        }
    }

    /// Adds a property like [`put`](Self::put), but checks its name, and returns the builder.
    /// [`Row::check`] checks values and refuses names that are given twice.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large` for a name that the service refuses.
    pub fn with(mut self, name: &str, value: ValueRef<'_>) -> Result<Self> {
        limits::check_property_name(name)?;
        self.put(name, value);
        Ok(self)
    }

    /// Returns the row, without a Timestamp.
    ///
    /// # Errors
    ///
    /// `is_too_large` for a key, name or value that does not fit the row's format. [`Row::check`]
    /// checks the service's own, lower limits.
    pub fn finish(self) -> Result<Row> {
        match self.overflow {
            None => Ok(Row::from_unchecked(self.bytes.into())),
            Some(what) => {
                Err(Error::new(ErrorKind::TooLarge, format!("{what}, which no row can hold")))
            }
        }
    }

    /// Returns the row with a Timestamp, as a store returns it after a write.
    ///
    /// # Errors
    ///
    /// Fails like [`finish`](Self::finish).
    pub fn finish_at(mut self, timestamp: Ticks) -> Result<Row> {
        // `new` writes the whole header, so the slot is always there.
        if let Some(slot) = self.bytes.get_mut(TIMESTAMP) {
            slot.copy_from_slice(&timestamp.get().to_le_bytes());
        }
        self.finish()
    }
}

/// Appends a property of another row. Its name has at most 65,535 bytes, and its value less than 4 GiB.
pub(super) fn put_undecoded((name, edm, value): RawProperty<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.push(edm as u8);
    out.extend_from_slice(name);
    if edm.fixed_width().is_none() {
        out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
    }
    out.extend_from_slice(value);
}

/// Returns the bytes that [`put_undecoded`] appends.
pub(super) fn undecoded_bytes((name, edm, value): RawProperty<'_>) -> usize {
    let length = if edm.fixed_width().is_some() { 0 } else { size_of::<u32>() };
    size_of::<u16>() + 1 + name.len() + length + value.len()
}
