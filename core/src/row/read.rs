//! Reads a row's properties one after the other.

use std::str::from_utf8;

use uuid::Uuid;

use super::column_values::ColumnValues;
use crate::{
    edm::{EdmType, Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
};

/// Returns the error of a damaged row.
pub fn corrupt_row_error(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("stored row is damaged: {what}"))
}

/// A property whose value is not decoded: its name in UTF-8, its type and the bytes of its value. Numbers and times are in
/// little endian, a Guid in the order of its text, a text in UTF-8.
pub type RawProperty<'a> = (&'a [u8], EdmType, &'a [u8]);

/// Reads a row's properties in stored order: each name (UTF-8) and value.
#[derive(Debug, Clone)]
pub struct PropertyReader<'a> {
    /// The properties that are not read yet, of a row that describes itself.
    rest: &'a [u8],
    /// The values that are not read yet, of a row that shares its columns.
    values: Option<ColumnValues<'a>>,
}

impl<'a> PropertyReader<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, values: None }
    }

    #[inline]
    pub(super) fn of_columns(values: ColumnValues<'a>) -> Self {
        Self { rest: &[], values: Some(values) }
    }

    /// Reads the next property, or returns `None` at the end.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for bytes that are not a property.
    #[allow(clippy::should_implement_trait, reason = "fallible, and hot: no Option<Result<_>>")]
    // Always inlined, as are the functions that it calls: a value that is handed through memory costs as
    // much as reading it.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<(&'a [u8], ValueRef<'a>)>> {
        let Some(slot) = self.next_property()? else { return Ok(None) };
        let value = slot.decode_value().ok_or_else(|| self.damaged_error())?;
        Ok(Some((slot.name, value)))
    }

    /// Reads the next property without decoding its value, or returns `None` at the end. Also returns the type and the
    /// bytes of the value: numbers and times in little endian, a Guid in the order of its text, a text in UTF-8.
    ///
    /// ```
    /// use entable_core::{EdmType, Row, ValueRef};
    ///
    /// let row = Row::build("Sales", "223").with("Age", ValueRef::Int32(34))?.finish()?;
    /// let age = row.properties().next_undecoded()?;
    /// assert_eq!(age, Some((&b"Age"[..], EdmType::Int32, &[34, 0, 0, 0][..])));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_corrupt` for bytes that are not a property. The value is not checked.
    #[inline]
    pub fn next_undecoded(&mut self) -> Result<Option<RawProperty<'a>>> {
        Ok(self.next_property()?.map(|slot| (slot.name, slot.edm, slot.bytes)))
    }

    /// Returns the number of bytes that are not read yet.
    #[inline]
    pub(super) fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// Reads on to the property `name` and returns its value, or `None` if it does not follow.
    /// Values before it are not decoded.
    pub(super) fn find_property(mut self, name: &str) -> Result<Option<ValueRef<'a>>> {
        while let Some(slot) = self.next_property()? {
            if slot.name == name.as_bytes() {
                return slot.decode_value().map(Some).ok_or_else(|| self.damaged_error());
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn next_property(&mut self) -> Result<Option<UndecodedProperty<'a>>> {
        if self.rest.is_empty() {
            return Ok(self.values.as_mut().and_then(next_of_columns));
        }
        // A local variable stays in registers while the property is read, which the reader does not.
        let mut rest = self.rest;
        let property = UndecodedProperty::read_property(&mut rest);
        self.rest = rest;
        property.map(Some).ok_or_else(|| self.damaged_error())
    }

    /// Returns the error of a damaged property and ends the reading.
    #[cold]
    fn damaged_error(&mut self) -> Error {
        (self.rest, self.values) = (&[], None);
        corrupt_row_error(
            "a property is truncated, has an unknown type, or has a value that does not fit its type",
        )
    }
}

/// Takes the next property of a row that shares its columns.
// Not inlined: derived code reads such rows by slot.
#[inline(never)]
fn next_of_columns<'a>(values: &mut ColumnValues<'a>) -> Option<UndecodedProperty<'a>> {
    let (column, bytes) = values.take_next()?;
    Some(UndecodedProperty { name: column.name().as_bytes(), edm: column.edm(), bytes })
}

/// A property whose value is not decoded yet.
struct UndecodedProperty<'a> {
    name: &'a [u8],
    edm: EdmType,
    bytes: &'a [u8],
}

impl<'a> UndecodedProperty<'a> {
    #[inline(always)]
    fn read_property(rest: &mut &'a [u8]) -> Option<Self> {
        let name = usize::from(u16::from_le_bytes(take_array(rest)?));
        let [tag] = take_array(rest)?;
        let edm = EdmType::from_tag(tag)?;
        let name = take_bytes(rest, name)?;
        let size = match edm.fixed_width() {
            Some(width) => width,
            None => usize::try_from(u32::from_le_bytes(take_array(rest)?)).ok()?,
        };
        Some(Self { name, edm, bytes: take_bytes(rest, size)? })
    }

    /// Decodes the value. Returns `None` if the bytes do not fit the type.
    #[inline(always)]
    fn decode_value(&self) -> Option<ValueRef<'a>> {
        ValueRef::from_stored(self.edm, self.bytes)
    }
}

impl<'a> ValueRef<'a> {
    /// Decodes a value of type `edm` from the bytes that a stored row has for it. Returns `None` if they do not fit the
    /// type.
    ///
    /// ```
    /// use entable_core::{EdmType, ValueRef};
    ///
    /// let age = ValueRef::from_stored(EdmType::Int32, &[34, 0, 0, 0]);
    /// assert_eq!(age, Some(ValueRef::Int32(34)));
    /// assert_eq!(ValueRef::from_stored(EdmType::Int32, &[34]), None);
    /// ```
    #[inline(always)]
    pub fn from_stored(edm: EdmType, bytes: &'a [u8]) -> Option<Self> {
        Some(match edm {
            EdmType::Boolean => match bytes {
                [0] => ValueRef::Boolean(false),
                [1] => ValueRef::Boolean(true),
                _ => return None,
            },
            EdmType::Int32 => ValueRef::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            EdmType::Int64 => ValueRef::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            EdmType::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            EdmType::DateTime => {
                ValueRef::DateTime(Ticks::new(i64::from_le_bytes(bytes.try_into().ok()?))?)
            }
            EdmType::Guid => ValueRef::Guid(Uuid::from_bytes(bytes.try_into().ok()?)),
            EdmType::String => ValueRef::String(from_utf8(bytes).ok()?),
            EdmType::Binary => ValueRef::Binary(bytes),
        })
    }
}

#[inline]
fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

#[inline]
fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}
