//! Defines property values, owned ([`Value`]) and borrowed ([`ValueRef`]), and their types.

use std::fmt;

use bytes::Bytes;
use uuid::Uuid;

use super::Ticks;

/// The eight property types of the service.
///
/// Source: "Understanding the Table Service Data Model", property types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EdmType {
    /// `true` or `false`, 1 byte.
    Boolean = 1,
    /// A signed integer of 32 bits.
    Int32 = 2,
    /// A signed integer of 64 bits.
    Int64 = 3,
    /// A floating-point number of 64 bits (IEEE 754).
    Double = 4,
    /// Text of at most 64 KiB, counted as UTF-16.
    String = 5,
    /// A UTC time in steps of 100 ns, from the year 1601 to the year 9999.
    DateTime = 6,
    /// An identifier of 128 bits (UUID).
    Guid = 7,
    /// At most 64 KiB of bytes.
    Binary = 8,
}

impl EdmType {
    /// Returns whether a property of this type is sent with an annotation of the type, because its JSON value
    /// alone does not show the type. A Double is always annotated, because some servers read `3.0` as an Int32.
    pub(crate) const fn needs_annotation(self) -> bool {
        !matches!(self, Self::Boolean | Self::Int32 | Self::String)
    }

    /// Returns the number of bytes that each value of this type takes in a stored row, or `None` for a String or Binary,
    /// whose length varies.
    ///
    /// ```
    /// use entable_core::EdmType;
    ///
    /// assert_eq!((EdmType::Guid.fixed_width(), EdmType::String.fixed_width()), (Some(16), None));
    /// ```
    #[inline]
    pub const fn fixed_width(self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Int32 => Some(4),
            Self::Int64 | Self::Double | Self::DateTime => Some(8),
            Self::Guid => Some(16),
            Self::String | Self::Binary => None,
        }
    }

    /// Returns the type's name in requests and responses, such as `Edm.Int32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "Edm.Boolean",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::String => "Edm.String",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
            Self::Binary => "Edm.Binary",
        }
    }

    /// Returns the type that a stored row marks with `tag`, or `None` for an unknown tag.
    #[inline]
    pub const fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag {
            1 => Self::Boolean,
            2 => Self::Int32,
            3 => Self::Int64,
            4 => Self::Double,
            5 => Self::String,
            6 => Self::DateTime,
            7 => Self::Guid,
            8 => Self::Binary,
            _ => return None,
        })
    }
}

impl fmt::Display for EdmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of one property, owned.
///
/// ```
/// use entable_core::{EdmType, Value};
///
/// let value = Value::from("Sales");
/// assert_eq!(value.as_str(), Some("Sales"));
/// assert_eq!(value.edm_type(), EdmType::String);
/// assert_eq!(Value::from(5_i64).as_i32(), None); // an Int64 is not an Int32
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Edm.Boolean
    Boolean(bool),
    /// Edm.Int32
    Int32(i32),
    /// Edm.Int64
    Int64(i64),
    /// Edm.Double
    Double(f64),
    /// Edm.String
    String(String),
    /// Edm.DateTime
    DateTime(Ticks),
    /// Edm.Guid
    Guid(Uuid),
    /// Edm.Binary
    Binary(Bytes),
}

/// The value of one property, borrowed from a row or a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// Edm.Boolean
    Boolean(bool),
    /// Edm.Int32
    Int32(i32),
    /// Edm.Int64
    Int64(i64),
    /// Edm.Double
    Double(f64),
    /// Edm.String
    String(&'a str),
    /// Edm.DateTime
    DateTime(Ticks),
    /// Edm.Guid
    Guid(Uuid),
    /// Edm.Binary
    Binary(&'a [u8]),
}

impl Value {
    /// Borrows the value.
    ///
    /// ```
    /// # use entable_core::{Value, ValueRef};
    /// assert_eq!(Value::from("Hall").as_ref(), ValueRef::String("Hall"));
    /// ```
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Boolean(v) => ValueRef::Boolean(*v),
            Self::Int32(v) => ValueRef::Int32(*v),
            Self::Int64(v) => ValueRef::Int64(*v),
            Self::Double(v) => ValueRef::Double(*v),
            Self::String(v) => ValueRef::String(v),
            Self::DateTime(v) => ValueRef::DateTime(*v),
            Self::Guid(v) => ValueRef::Guid(*v),
            Self::Binary(v) => ValueRef::Binary(v),
        }
    }

    /// Returns the type of the value.
    ///
    /// ```
    /// # use entable_core::{EdmType, Value};
    /// assert_eq!(Value::from(30).edm_type(), EdmType::Int32);
    /// assert_eq!(Value::from(30_i64).edm_type(), EdmType::Int64);
    /// ```
    pub fn edm_type(&self) -> EdmType {
        self.as_ref().edm_type()
    }

    /// Returns whether two values are stored alike. Doubles are compared by their bits, because `==` takes -0.0
    /// for 0.0 and a NaN for unequal to itself.
    ///
    /// ```
    /// use entable_core::Value;
    ///
    /// assert!(Value::Double(f64::NAN).is_stored_like(&Value::Double(f64::NAN)));
    /// assert!(!Value::Double(0.0).is_stored_like(&Value::Double(-0.0)));
    /// ```
    pub fn is_stored_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Double(one), Self::Double(other)) => one.to_bits() == other.to_bits(),
            (one, other) => one == other,
        }
    }
}

impl ValueRef<'_> {
    /// Returns the type of the value.
    pub fn edm_type(&self) -> EdmType {
        match self {
            Self::Boolean(_) => EdmType::Boolean,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::String(_) => EdmType::String,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }

    /// Copies the value into an owned [`Value`].
    pub fn to_value(&self) -> Value {
        match *self {
            Self::Boolean(v) => Value::Boolean(v),
            Self::Int32(v) => Value::Int32(v),
            Self::Int64(v) => Value::Int64(v),
            Self::Double(v) => Value::Double(v),
            Self::String(v) => Value::String(v.to_owned()),
            Self::DateTime(v) => Value::DateTime(v),
            Self::Guid(v) => Value::Guid(v),
            Self::Binary(v) => Value::Binary(Bytes::copy_from_slice(v)),
        }
    }

    /// Returns the number of bytes that the service counts for this value ("How the size of an
    /// entity is calculated").
    pub fn service_size(&self) -> usize {
        match self {
            Self::Boolean(_) => 1,
            Self::Int32(_) => 4,
            Self::Int64(_) | Self::Double(_) | Self::DateTime(_) => 8,
            Self::Guid(_) => 16,
            Self::String(v) => 4 + 2 * crate::limits::utf16_units(v),
            Self::Binary(v) => 4 + v.len(),
        }
    }
}

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident: $variant:ident => $type:ty, $get:expr;)*) => {
        impl Value {
            $($(#[$doc])* pub fn $name(&self) -> Option<$type> {
                match self { Self::$variant(v) => Some($get(v)), _ => None }
            })*
        }
    };
}

accessors! {
    /// Returns the value if it is a Boolean.
    as_bool: Boolean => bool, |v: &bool| *v;
    /// Returns the value if it is an Int32.
    as_i32: Int32 => i32, |v: &i32| *v;
    /// Returns the value if it is an Int64.
    as_i64: Int64 => i64, |v: &i64| *v;
    /// Returns the value if it is a Double.
    as_f64: Double => f64, |v: &f64| *v;
    /// Returns the text if the value is a String.
    as_str: String => &str, String::as_str;
    /// Returns the time if the value is a DateTime.
    as_ticks: DateTime => Ticks, |v: &Ticks| *v;
    /// Returns the UUID if the value is a Guid.
    as_uuid: Guid => Uuid, |v: &Uuid| *v;
    /// Returns the bytes if the value is a Binary.
    as_bytes: Binary => &[u8], AsRef::as_ref;
}

macro_rules! from {
    ($($type:ty => $variant:ident, $make:expr;)*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self { Self::$variant($make(value)) }
        })*
    };
}

from! {
    bool => Boolean, |v| v;
    i32 => Int32, |v| v;
    i64 => Int64, |v| v;
    f64 => Double, |v| v;
    String => String, |v| v;
    &str => String, ToOwned::to_owned;
    Ticks => DateTime, |v| v;
    Uuid => Guid, |v| v;
    Bytes => Binary, |v| v;
    Vec<u8> => Binary, Bytes::from;
}
