//! The trait that maps a Rust type onto one of the service's types.

use std::borrow::Cow;

use super::{EdmType, Value, ValueRef};
use crate::error::{Error, ErrorKind};

/// A type that is stored as one property.
///
/// Implemented for the scalars of Rust, text, bytes, times and identifiers; implement it for a type
/// of your own to store it as a property. `Option` of such a type is a property that may be absent.
///
/// ```
/// use entable::{EdmCow, EdmType, EdmValue, InvalidValue, ValueRef};
///
/// struct Celsius(f64);
///
/// impl EdmValue for Celsius {
///     const EDM: EdmType = EdmType::Double;
///     fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
///         Ok(ValueRef::Double(self.0).into())
///     }
///     fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
///         f64::from_edm(value).map(Celsius)
///     }
/// }
///
/// assert_eq!(Celsius::from_edm(ValueRef::Double(21.5))?.0, 21.5);
/// assert!(Celsius::from_edm(ValueRef::Int32(21)).is_err());
/// # Ok::<(), InvalidValue>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not a property type",
    note = "property types are bool, integers up to 64 bits, f32, f64, String, Vec<u8>, bytes::Bytes, time::OffsetDateTime, time::Date, uuid::Uuid, enums with #[derive(EdmEnum)] and Option of these",
    note = "write #[table(json)] to store any serde type as text, #[table(flatten)] for a struct with #[derive(Properties)], or implement `entable::EdmValue` for it"
)]
pub trait EdmValue: Sized {
    /// The type of the property.
    const EDM: EdmType;

    /// The value as it is stored, borrowed where that is possible.
    ///
    /// # Errors
    ///
    /// A value that the service cannot hold, such as a `u64` above `i64::MAX`.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue>;

    /// The value back from its stored form.
    ///
    /// # Errors
    ///
    /// A stored value of another type, or one that does not fit.
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue>;
}

/// A stored value that is borrowed from a field or made for the occasion.
#[derive(Debug, Clone)]
pub enum EdmCow<'a> {
    /// Borrowed.
    Borrowed(ValueRef<'a>),
    /// Made for the occasion.
    Owned(Value),
}

impl EdmCow<'_> {
    /// The value, borrowed.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.as_ref(),
        }
    }

    /// The value, owned.
    pub fn into_value(self) -> Value {
        match self {
            Self::Borrowed(value) => value.to_value(),
            Self::Owned(value) => value,
        }
    }
}

impl<'a> From<ValueRef<'a>> for EdmCow<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        Self::Borrowed(value)
    }
}

impl From<Value> for EdmCow<'_> {
    fn from(value: Value) -> Self {
        Self::Owned(value)
    }
}

/// A value that does not fit: what was found and what was expected, without its place.
///
/// The caller adds table, keys and property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidValue {
    message: Cow<'static, str>,
}

impl InvalidValue {
    /// A value that does not fit, and why: lower case, no full stop.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into() }
    }

    /// A stored value of another type than the field's.
    #[cold]
    pub fn wrong_type(expected: EdmType, found: EdmType) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    /// The same of a value that nobody may see: what was wrong with it could tell it.
    #[must_use]
    pub fn hushed(self) -> Self {
        Self::new(
            "the value does not fit the field; it is not shown, because the field is encrypted",
        )
    }

    /// The error of a write that meets this value.
    pub fn on_write(self, property: &str) -> Error {
        Error::new(ErrorKind::Invalid, self.message).in_property(property)
    }

    /// The error of a read that meets this value.
    pub fn on_read(self, property: &str) -> Error {
        Error::new(ErrorKind::Decode, self.message).in_property(property)
    }
}
