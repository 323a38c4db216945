//! Times and dates in keys.

use time::{Date, OffsetDateTime, Time};

use super::{
    Descending, KeyPart, Ordered,
    date::{DatePart, Resolution, decode_date, encode_date},
    integer::push_padded,
};
use crate::edm::{InvalidValue, Ticks};

/// Digits of the largest count of ticks.
pub(super) const TICK_DIGITS: usize = 19;

/// Appends a count of ticks.
pub(super) fn encode_ticks(ticks: Ticks, out: &mut String) {
    push_padded(ticks.get().unsigned_abs(), TICK_DIGITS, out);
}

/// The ticks that [`encode_ticks`] wrote.
pub(super) fn decode_ticks(text: &str) -> Result<Ticks, InvalidValue> {
    let is_written = text.len() == TICK_DIGITS && text.bytes().all(|b| b.is_ascii_digit());
    let number = if is_written { text.parse().ok() } else { None };
    number.and_then(Ticks::new).ok_or_else(|| {
        let text = text.escape_debug();
        InvalidValue::new(format!("expected {TICK_DIGITS} digits of ticks, found `{text}`"))
    })
}

/// The forms that every time has: newest first, and the order of its keys.
macro_rules! sorted {
    ($($type:ty),*) => {
        $(
            impl Descending for $type {
                const WIDTH_DESCENDING: usize = super::time::TICK_DIGITS;

                fn encode_descending(&self, out: &mut String) -> Result<(), InvalidValue> {
                    super::time::encode_ticks(self.to_ticks()?.inverted(), out);
                    Ok(())
                }

                fn decode_descending(text: &str) -> Result<Self, InvalidValue> {
                    Self::from_ticks(super::time::decode_ticks(text)?.inverted())
                }
            }

            impl<const LAST: bool> Ordered<LAST> for $type {}
        )*
    };
}

#[cfg(feature = "chrono")]
pub(super) use sorted;

sorted!(OffsetDateTime, Date);

impl KeyPart for OffsetDateTime {
    const WIDTH: Option<usize> = Some(TICK_DIGITS);

    /// 19 digits of ticks since the year 1, cut to 100 ns.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        encode_ticks(self.to_ticks()?, out);
        Ok(())
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        Self::from_ticks(decode_ticks(text)?)
    }
}

impl DatePart for OffsetDateTime {
    const RESOLUTION: Resolution = Resolution::Tick;

    fn to_ticks(&self) -> Result<Ticks, InvalidValue> {
        Ticks::try_from(*self)
            .map_err(|_| InvalidValue::new(format!("{self} is not in the years 1 to 9999")))
    }

    fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue> {
        Ok(ticks.into())
    }
}

impl KeyPart for Date {
    const WIDTH: Option<usize> = Some(8);

    /// Year, month and day: `20140822`.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        encode_date(self, "%Y%m%d", out)
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        decode_date(text, "%Y%m%d")
    }
}

impl DatePart for Date {
    const RESOLUTION: Resolution = Resolution::Day;

    fn to_ticks(&self) -> Result<Ticks, InvalidValue> {
        OffsetDateTime::new_utc(*self, Time::MIDNIGHT).to_ticks()
    }

    fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue> {
        let time = OffsetDateTime::from(ticks);
        if time.time() != Time::MIDNIGHT {
            return Err(InvalidValue::new(format!("expected a date at midnight, found {time}")));
        }
        Ok(time.date())
    }
}
