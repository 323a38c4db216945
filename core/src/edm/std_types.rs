//! Implements [`EdmValue`] for Rust's own types, times and UUIDs.

use std::fmt::Display;

use bytes::Bytes;
use time::{Date, OffsetDateTime, Time};
use uuid::Uuid;

use super::{EdmCow, EdmType, EdmValue, InvalidValue, KeyOnlyValue, Ticks, ValueRef};

/// Takes the payload of the expected variant, or returns the error that names both types.
macro_rules! expect {
    ($value:expr, $variant:ident) => {
        match $value {
            ValueRef::$variant(value) => value,
            other => return Err(InvalidValue::wrong_type(EdmType::$variant, other.edm_type())),
        }
    };
}

macro_rules! plain {
    ($($type:ty => $variant:ident;)*) => {
        $(impl EdmValue for $type {
            const EDM: EdmType = EdmType::$variant;
            #[inline]
            fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
                Ok(ValueRef::$variant(*self).into())
            }
            #[inline]
            fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
                Ok(expect!(value, $variant))
            }
        })*
    };
}

plain! {
    bool => Boolean;
    i32 => Int32;
    Uuid => Guid;
    Ticks => DateTime;
}

macro_rules! wide {
    ($($(#[$doc:meta])* $type:ty => $variant:ident;)*) => {
        $(impl EdmValue for $type {
            const EDM: EdmType = EdmType::$variant;
            #[inline]
            fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
                Ok(ValueRef::$variant(*self).into())
            }

            $(#[$doc])*
            #[inline]
            fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
                match value {
                    ValueRef::Int32(narrow) => Ok(Self::from(narrow)),
                    value => Ok(expect!(value, $variant)),
                }
            }
        })*
    };
}

wide! {
    /// Also reads an Int32, because other tools write it for small numbers and every Int32 fits.
    i64 => Int64;
    /// Also reads an Int32, because other tools write it for whole numbers and every Int32 fits.
    f64 => Double;
}

macro_rules! integers {
    ($($type:ty => $variant:ident($wide:ty);)*) => {
        $(impl EdmValue for $type {
            const EDM: EdmType = EdmType::$variant;
            const VALUES: &'static str = stringify!($type);
            #[inline]
            fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
                Ok(ValueRef::$variant(<$wide>::from(*self)).into())
            }
            #[inline]
            fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
                let stored = <$wide>::from_edm(value)?;
                Self::try_from(stored).map_err(|_| InvalidValue::new(format!(
                    "expected {} to {}, found {stored}", Self::MIN, Self::MAX
                )))
            }
        })*
    };
}

integers! {
    i8 => Int32(i32);
    i16 => Int32(i32);
    u8 => Int32(i32);
    u16 => Int32(i32);
    u32 => Int64(i64);
}

impl EdmValue for u64 {
    const EDM: EdmType = EdmType::Int64;
    const VALUES: &'static str = "u64";

    /// Fails for a number above the largest Int64.
    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        match i64::try_from(*self) {
            Ok(value) => Ok(ValueRef::Int64(value).into()),
            Err(_) => Err(InvalidValue::key_only_value_error(
                KeyOnlyValue::AboveInt64(*self),
                format!("{self} is above {}, the largest {}", i64::MAX, Self::EDM),
            )),
        }
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        let stored = i64::from_edm(value)?;
        Self::try_from(stored)
            .map_err(|_| InvalidValue::new(format!("expected 0 to {}, found {stored}", Self::MAX)))
    }
}

impl EdmValue for f32 {
    const EDM: EdmType = EdmType::Double;
    const VALUES: &'static str = "f32";

    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(ValueRef::Double(f64::from(*self)).into())
    }

    /// Rounds to the nearest `f32`. Fails if a finite stored value is out of the range of `f32`.
    #[allow(clippy::cast_possible_truncation)]
    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        let stored = f64::from_edm(value)?;
        let rounded = stored as Self;
        if rounded.is_infinite() && stored.is_finite() {
            return Err(InvalidValue::new(format!("expected an f32, found {stored}")));
        }
        Ok(rounded)
    }
}

impl EdmValue for String {
    const EDM: EdmType = EdmType::String;

    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(ValueRef::String(self).into())
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ok(expect!(value, String).to_owned())
    }
}

impl EdmValue for Vec<u8> {
    const EDM: EdmType = EdmType::Binary;

    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(ValueRef::Binary(self).into())
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ok(expect!(value, Binary).to_vec())
    }
}

impl EdmValue for Bytes {
    const EDM: EdmType = EdmType::Binary;

    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(ValueRef::Binary(self).into())
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ok(Self::copy_from_slice(expect!(value, Binary)))
    }
}

/// Converts a time to a DateTime property. Fails for a time before 1601, which only a key can hold, and
/// for `ticks` of `None`, which stands for a time outside the years 1 to 9999. `shown` is the time as the
/// error shows it.
pub(super) fn edm_datetime_from_ticks(
    ticks: Option<Ticks>,
    shown: &dyn Display,
) -> Result<EdmCow<'static>, InvalidValue> {
    let message = || format!("{shown} is not in the years 1601 to 9999");
    match ticks {
        Some(ticks) if ticks >= Ticks::MIN_PROPERTY => Ok(ValueRef::DateTime(ticks).into()),
        Some(ticks) => {
            Err(InvalidValue::key_only_value_error(KeyOnlyValue::Before1601(ticks), message()))
        }
        None => Err(InvalidValue::new(message())),
    }
}

impl EdmValue for OffsetDateTime {
    const EDM: EdmType = EdmType::DateTime;

    /// Converts the time to UTC and rounds it down to 100 ns. Fails for a time outside the years
    /// 1601 to 9999.
    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        edm_datetime_from_ticks(Ticks::try_from(*self).ok(), self)
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ok(expect!(value, DateTime).into())
    }
}

impl EdmValue for Date {
    const EDM: EdmType = EdmType::DateTime;
    const VALUES: &'static str = "date";

    /// Stores the date as midnight UTC.
    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        let midnight = OffsetDateTime::new_utc(*self, Time::MIDNIGHT);
        // The result may borrow from `midnight`, which ends here.
        midnight.to_edm().map(|value| EdmCow::Owned(value.into_value()))
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ticks::from_edm(value)?.date_at_midnight()
    }
}

impl EdmValue for Box<str> {
    const EDM: EdmType = EdmType::String;

    #[inline]
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(ValueRef::String(self).into())
    }

    #[inline]
    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ok(expect!(value, String).into())
    }
}
