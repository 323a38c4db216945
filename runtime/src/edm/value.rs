//! A property's value, owned and borrowed.

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
    /// `true` or `false`.
    Boolean = 1,
    /// A 32-bit signed integer.
    Int32 = 2,
    /// A 64-bit signed integer.
    Int64 = 3,
    /// An IEEE 754 double.
    Double = 4,
    /// Text, at most 64 KiB as UTF-16.
    String = 5,
    /// UTC time at 100 ns, 1601 to 9999.
    DateTime = 6,
    /// A 128-bit identifier.
    Guid = 7,
    /// Bytes, at most 64 KiB.
    Binary = 8,
}

impl EdmType {
    /// The name on the wire, such as `Edm.Int32`.
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

    /// The type of that tag in a stored row.
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

/// A property's value.
///
/// ```
/// use entable::{EdmType, Value};
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

/// A property's value, borrowed from a row or a field.
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
    /// The same value, borrowed.
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

    /// Its type.
    pub fn edm_type(&self) -> EdmType {
        self.as_ref().edm_type()
    }
}

impl ValueRef<'_> {
    /// Its type.
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

    /// The same value, owned.
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

    /// Bytes that the service counts for it ("How the size of an entity is calculated").
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
    /// The Boolean, if it is one.
    as_bool: Boolean => bool, |v: &bool| *v;
    /// The Int32, if it is one.
    as_i32: Int32 => i32, |v: &i32| *v;
    /// The Int64, if it is one.
    as_i64: Int64 => i64, |v: &i64| *v;
    /// The Double, if it is one.
    as_f64: Double => f64, |v: &f64| *v;
    /// The String, if it is one.
    as_str: String => &str, String::as_str;
    /// The DateTime, if it is one.
    as_ticks: DateTime => Ticks, |v: &Ticks| *v;
    /// The Guid, if it is one.
    as_uuid: Guid => Uuid, |v: &Uuid| *v;
    /// The Binary, if it is one.
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
