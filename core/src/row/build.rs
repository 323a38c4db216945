//! Builds rows property by property.

use super::{
    compact_row::Row,
    row_bytes::{FORMAT, TIMESTAMP},
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
        let bytes = Vec::with_capacity(256 + partition_key.len() + row_key.len());
        Self::begin(bytes, Ticks::default(), partition_key, row_key)
    }

    /// Writes the header and the keys of a row into an empty buffer.
    pub(super) fn begin(
        mut bytes: Vec<u8>,
        timestamp: Ticks,
        partition_key: &str,
        row_key: &str,
    ) -> Self {
        bytes.push(FORMAT);
        bytes.extend_from_slice(&timestamp.get().to_le_bytes());
        let mut overflow = None;
        for key in [partition_key, row_key] {
            let length = u16::try_from(key.len()).unwrap_or_else(|_| {
                // `finish` refuses the row, so its lengths need not fit its bytes any more.
                overflow = Some("a key has more than 65,535 bytes");
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

    /// Appends the bytes of properties from another row, without a check of their format or names.
    #[doc(hidden)]
    pub fn put_encoded_properties(&mut self, properties: &[u8]) {
        self.bytes.extend_from_slice(properties);
    }

    /// Reserves exactly this many bytes for properties. The row is then allocated once.
    #[doc(hidden)]
    pub fn reserve_bytes(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    /// Adds a property from the bytes in front of its value and those of its value.
    #[inline]
    pub(super) fn put_undecoded(&mut self, head: &[u8], value: &[u8], is_counted: bool) {
        self.bytes.extend_from_slice(head);
        if is_counted {
            self.put_counted(value);
        } else {
            self.bytes.extend_from_slice(value);
        }
    }

    #[cfg(test)]
    pub(super) fn spare_bytes(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
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
