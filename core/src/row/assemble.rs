//! Makes rows from values that a store keeps apart from their names and types.

use super::{Row, RowBuilder, row_bytes::HEADER};
use crate::{
    edm::{EdmType, Ticks},
    error::Result,
};

/// The bytes of the length of a text or of bytes in a row.
const LENGTH: usize = 4;

/// A property without its value, as a row has it in front of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyHead {
    /// The length of the name, the type and the name.
    bytes: Box<[u8]>,
    edm: EdmType,
}

impl PropertyHead {
    /// Returns the head of a property, or `None` if no row can have the name.
    ///
    /// ```
    /// use entable_core::{EdmType, row::PropertyHead};
    ///
    /// assert!(PropertyHead::new("Age", EdmType::Int32).is_some());
    /// assert!(PropertyHead::new(&"x".repeat(70_000), EdmType::Int32).is_none());
    /// ```
    pub fn new(name: &str, edm: EdmType) -> Option<Self> {
        let length = u16::try_from(name.len()).ok()?;
        let bytes = [&length.to_le_bytes(), &[edm as u8][..], name.as_bytes()].concat().into();
        Some(Self { bytes, edm })
    }

    /// Returns the name of the property, in UTF-8.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::PropertyHead};
    /// let head = PropertyHead::new("Age", EdmType::Int32);
    /// assert_eq!(head.as_ref().map(PropertyHead::name), Some(&b"Age"[..]));
    /// ```
    #[inline]
    pub fn name(&self) -> &[u8] {
        self.bytes.get(3..).unwrap_or_default()
    }

    /// Returns the type of the property.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::PropertyHead};
    /// let head = PropertyHead::new("Age", EdmType::Int32);
    /// assert_eq!(head.map(|head| head.edm()), Some(EdmType::Int32));
    /// ```
    #[inline]
    pub const fn edm(&self) -> EdmType {
        self.edm
    }

    /// Returns the bytes that a property takes in a row if its value has `value_bytes`.
    ///
    /// ```
    /// # use entable_core::{EdmType, row::PropertyHead};
    /// let head = PropertyHead::new("Age", EdmType::Int32);
    /// assert_eq!(head.map(|head| head.bytes_with_value(4)), Some(2 + 1 + "Age".len() + 4));
    /// ```
    #[inline]
    pub const fn bytes_with_value(&self, value_bytes: usize) -> usize {
        let length = if self.edm.fixed_width().is_some() { 0 } else { LENGTH };
        self.bytes.len() + length + value_bytes
    }
}

/// Makes a row in one allocation of the exact size.
///
/// ```
/// use entable_core::{
///     EdmType, Error, Ticks, ValueRef,
///     row::{PropertyHead, RowAssembler},
/// };
///
/// let Some(head) = PropertyHead::new("Age", EdmType::Int32) else { return Ok(()) };
/// let bytes = head.bytes_with_value(4);
/// let mut row = RowAssembler::new("Sales", "223", Ticks::UNIX_EPOCH, bytes);
/// row.put(&head, &34_i32.to_le_bytes());
/// assert_eq!(row.finish()?.get("Age")?, Some(ValueRef::Int32(34)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct RowAssembler(RowBuilder);

impl RowAssembler {
    /// Starts a row whose properties take `property_bytes`, the sum of [`PropertyHead::bytes_with_value`].
    ///
    /// ```
    /// # use entable_core::{Ticks, row::RowAssembler};
    /// let row = RowAssembler::new("Sales", "223", Ticks::UNIX_EPOCH, 0).finish()?;
    /// assert_eq!(row.keys(), ("Sales", "223"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn new(
        partition_key: &str,
        row_key: &str,
        timestamp: Ticks,
        property_bytes: usize,
    ) -> Self {
        let keys = partition_key.len() + row_key.len();
        let bytes = Vec::with_capacity(HEADER + keys + property_bytes);
        Self(RowBuilder::begin(bytes, timestamp, partition_key, row_key))
    }

    /// Adds a property with the bytes of its value. Values are checked when they are read.
    ///
    /// ```
    /// # use entable_core::{EdmType, Ticks, row::{PropertyHead, RowAssembler}};
    /// let mut row = RowAssembler::new("Sales", "223", Ticks::UNIX_EPOCH, 0);
    /// PropertyHead::new("Yes", EdmType::Boolean).iter().for_each(|head| row.put(head, &[1]));
    /// assert_eq!(row.finish()?.property_count()?, 1);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[inline]
    pub fn put(&mut self, head: &PropertyHead, value: &[u8]) {
        self.0.put_undecoded(&head.bytes, value, head.edm.fixed_width().is_none());
    }

    /// Returns the row.
    ///
    /// ```
    /// # use entable_core::{Ticks, row::RowAssembler};
    /// let row = RowAssembler::new("Sales", "223", Ticks::UNIX_EPOCH, 0).finish()?;
    /// assert_eq!(row.keys(), ("Sales", "223"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`RowBuilder::finish`].
    pub fn finish(self) -> Result<Row> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edm::ValueRef;

    #[test]
    fn an_assembled_row_is_the_built_one() {
        let values = [("Name", ValueRef::String("Jones")), ("Age", ValueRef::Int32(34))];
        let mut built = Row::build("Sales", "223");
        values.iter().for_each(|(name, value)| built.put(name, *value));
        let built = built.finish_at(Ticks::UNIX_EPOCH).unwrap();
        let heads = values.map(|(name, value)| PropertyHead::new(name, value.edm_type()).unwrap());
        let bytes = heads[0].bytes_with_value(5) + heads[1].bytes_with_value(4);
        let mut row = RowAssembler::new("Sales", "223", Ticks::UNIX_EPOCH, bytes);
        row.put(&heads[0], b"Jones");
        row.put(&heads[1], &34_i32.to_le_bytes());
        assert_eq!(row.0.spare_bytes(), 0, "the row is allocated once");
        assert_eq!(row.finish().unwrap(), built);
    }
}
