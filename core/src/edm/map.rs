//! Defines [`EdmValue`], the trait that maps a Rust type to one property type of the service.

use std::borrow::Cow;

use super::{EdmType, KeyOnlyValue, OutOfRangeSide, Value, ValueRef};
use crate::error::{Error, ErrorKind};

/// A type whose values are stored as one property.
///
/// entable implements it for Rust's scalars, text, bytes, times and identifiers. Implement it for
/// your own type to store that type as a property. An `Option` of such a type is a property that
/// may be absent.
///
/// `from_edm` has to read everything that `to_edm` writes. The verbs of one entity fail with `is_invalid` for
/// a value that their row would not give back; transactions and bulk writes do not read rows back.
///
/// ```
/// use entable_core::{EdmCow, EdmType, EdmValue, InvalidValue, ValueRef};
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
/// assert_eq!(Celsius::from_edm(ValueRef::Int32(21))?.0, 21.0, "widened without loss");
/// assert!(Celsius::from_edm(ValueRef::String("21")).is_err());
/// # Ok::<(), InvalidValue>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not a property type",
    note = "a property can be bool, an integer of up to 64 bits, f32, f64, String, Vec<u8>, bytes::Bytes, time::OffsetDateTime, time::Date, uuid::Uuid, an enum with #[derive(EdmEnum)] or an Option of one of these",
    note = "to store any serde type as text, write #[table(json)]; for a struct with #[derive(Properties)], write #[table(flatten)]; otherwise implement `entable::EdmValue`"
)]
pub trait EdmValue: Sized {
    /// The service's type of the property.
    const EDM: EdmType;
    /// The values of the service's type that [`from_edm`](Self::from_edm) reads. Empty means all of them, or
    /// unknown. Other forms: an integer type's name, for its range; `f32`, `date` and `decimal`; and
    /// `enum(a|b)` for these texts, where white space, `|`, `%` and control characters are percent-encoded,
    /// such as `%20`. Layouts compare this text.
    #[doc(hidden)]
    const VALUES: &'static str = "";

    /// Converts the value to its stored form, borrowed from `self` where possible.
    ///
    /// # Errors
    ///
    /// Fails if the service cannot hold the value, such as a `u64` above `i64::MAX`.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue>;

    /// Reads the value from its stored form.
    ///
    /// # Errors
    ///
    /// Fails if the stored value has another type or is out of the Rust type's range.
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue>;
}

/// A stored value that is either borrowed from a field or owned because it was converted.
#[derive(Debug, Clone)]
pub enum EdmCow<'a> {
    /// A value borrowed from the field.
    Borrowed(ValueRef<'a>),
    /// A value created by a conversion.
    Owned(Value),
}

impl EdmCow<'_> {
    /// Returns the value as a borrowed [`ValueRef`].
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.as_ref(),
        }
    }

    /// Returns the value as an owned [`Value`] and copies it if it is borrowed.
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

/// The error of a value that does not fit a property or key part. It says what was found and what
/// was expected, and does not name where.
///
/// The caller adds table, keys and property with [`into_write_error`](Self::into_write_error) or
/// [`into_read_error`](Self::into_read_error).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidValue {
    message: Cow<'static, str>,
    /// Whether the value lies below or above all values that fit, if the values have an order.
    side: Option<OutOfRangeSide>,
    /// The value itself, where a key may hold what a property cannot.
    beyond: Option<KeyOnlyValue>,
}

impl InvalidValue {
    /// Creates the error from a message. Start it in lower case and end it without a full stop.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), side: None, beyond: None }
    }

    /// Creates the error of a value that lies below or above all values that fit. Comparisons and
    /// ranges with such a value do not fail, since the side decides their result.
    pub fn out_of_range(side: OutOfRangeSide, message: impl Into<Cow<'static, str>>) -> Self {
        Self { side: Some(side), ..Self::new(message) }
    }

    /// Creates the error of a value that no property can hold and a key can.
    pub(crate) fn key_only_value_error(
        value: KeyOnlyValue,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { side: Some(value.out_of_range_side()), beyond: Some(value), ..Self::new(message) }
    }

    /// Returns the side on which the value lies outside the range, or `None` if the error has another cause.
    #[doc(hidden)]
    pub const fn out_of_range_side(&self) -> Option<OutOfRangeSide> {
        self.side
    }

    /// Returns the refused value if a key can hold it but no property can, such as a time before 1601. Returns
    /// `None` for any other error.
    #[doc(hidden)]
    pub const fn contained_key_only_value(&self) -> Option<KeyOnlyValue> {
        self.beyond
    }

    /// Creates the error of a stored value whose type differs from the field's.
    #[cold]
    pub fn wrong_type(expected: EdmType, found: EdmType) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    /// Replaces the message with a fixed text, because the message could quote the value of an
    /// encrypted field.
    #[must_use]
    pub fn redacted(self) -> Self {
        Self::new(
            "the value does not fit the field; the value is not shown because the field is encrypted",
        )
    }

    /// Converts this to the `Invalid` error of a write, naming the property.
    pub fn into_write_error(self, property: &str) -> Error {
        Error::new(ErrorKind::Invalid, self.message).in_property(property)
    }

    /// Converts this to the `Decode` error of a read, naming the property.
    pub fn into_read_error(self, property: &str) -> Error {
        Error::new(ErrorKind::Decode, self.message).in_property(property)
    }
}
