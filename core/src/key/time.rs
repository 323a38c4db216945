//! Makes times and dates key parts.

use time::{Date, OffsetDateTime, Time};

use super::{DatePart, integer::push_padded};
use crate::edm::{InvalidValue, Ticks};

/// Number of digits of the largest count of ticks.
pub(super) const TICK_DIGITS: usize = 19;

/// Appends a count of ticks to `out` as 19 digits.
pub(super) fn encode_ticks(ticks: Ticks, out: &mut String) {
    // Ticks are never negative, so no sign is lost.
    push_padded(ticks.get().unsigned_abs(), TICK_DIGITS, out);
}

/// Reads the ticks that [`encode_ticks`] wrote.
pub(super) fn decode_ticks(text: &str) -> Result<Ticks, InvalidValue> {
    let is_written = text.len() == TICK_DIGITS && text.bytes().all(|b| b.is_ascii_digit());
    let number = if is_written { text.parse().ok() } else { None };
    number.and_then(Ticks::new).ok_or_else(|| {
        let text = text.escape_debug();
        InvalidValue::new(format!("expected {TICK_DIGITS} digits of ticks, found `{text}`"))
    })
}

/// Implements the descending form and the order of keys for a time or date type.
macro_rules! sorted {
    ($type:ty) => {
        impl $crate::key::Descending for $type {
            const WIDTH_DESCENDING: usize = $crate::key::time::TICK_DIGITS;

            fn encode_descending(&self, out: &mut String) -> Result<(), $crate::edm::InvalidValue> {
                $crate::key::time::encode_ticks(self.to_ticks()?.inverted(), out);
                Ok(())
            }

            fn decode_descending(text: &str) -> Result<Self, $crate::edm::InvalidValue> {
                Self::from_ticks($crate::key::time::decode_ticks(text)?.inverted())
            }
        }

        impl<const LAST: bool> $crate::key::Ordered<LAST> for $type {}
    };
}

/// Implements the key traits for a type of points in time, given the time at given ticks.
macro_rules! instant {
    ($type:ty, |$ticks:ident| $time:expr) => {
        $crate::key::time::sorted!($type);

        impl $crate::key::KeyPart for $type {
            const WIDTH: Option<usize> = Some($crate::key::time::TICK_DIGITS);

            /// Writes 19 digits of ticks since the year 1, cut to 100 ns.
            fn encode(&self, out: &mut String) -> Result<(), $crate::edm::InvalidValue> {
                $crate::key::time::encode_ticks(self.to_ticks()?, out);
                Ok(())
            }

            fn decode(text: &str) -> Result<Self, $crate::edm::InvalidValue> {
                Self::from_ticks($crate::key::time::decode_ticks(text)?)
            }
        }

        impl $crate::key::DatePart for $type {
            const RESOLUTION: $crate::key::Resolution = $crate::key::Resolution::Tick;

            fn to_ticks(&self) -> Result<$crate::edm::Ticks, $crate::edm::InvalidValue> {
                $crate::edm::Ticks::try_from(*self).map_err(|_| {
                    let message = format!("{self} is not in the years 1 to 9999");
                    $crate::edm::InvalidValue::new(message)
                })
            }

            fn from_ticks($ticks: $crate::edm::Ticks) -> Result<Self, $crate::edm::InvalidValue> {
                $time
            }
        }
    };
}

/// Implements the key traits for a type of dates, given its midnight as a time and the date that
/// begins at given ticks.
macro_rules! day {
    ($type:ty, |$day:ident| $midnight:expr, |$ticks:ident| $date:expr) => {
        $crate::key::time::sorted!($type);

        impl $crate::key::KeyPart for $type {
            const WIDTH: Option<usize> = Some(8);

            /// Writes year, month and day, such as `20140822`.
            fn encode(&self, out: &mut String) -> Result<(), $crate::edm::InvalidValue> {
                $crate::key::encode_date(self, "%Y%m%d", out)
            }

            fn decode(text: &str) -> Result<Self, $crate::edm::InvalidValue> {
                $crate::key::decode_date(text, "%Y%m%d")
            }
        }

        impl $crate::key::DatePart for $type {
            const RESOLUTION: $crate::key::Resolution = $crate::key::Resolution::Day;

            fn to_ticks(&self) -> Result<$crate::edm::Ticks, $crate::edm::InvalidValue> {
                let $day = *self;
                $midnight.to_ticks()
            }

            fn from_ticks($ticks: $crate::edm::Ticks) -> Result<Self, $crate::edm::InvalidValue> {
                $date
            }
        }
    };
}

pub(super) use sorted;
#[cfg(any(feature = "chrono", feature = "jiff"))]
pub(super) use {day, instant};

instant!(OffsetDateTime, |ticks| Ok(ticks.into()));
day!(Date, |day| OffsetDateTime::new_utc(day, Time::MIDNIGHT), |ticks| ticks.date_at_midnight());
