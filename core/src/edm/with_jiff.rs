//! Stores jiff's `Timestamp` and `civil::Date` as DateTime properties (feature `jiff`).

use jiff::{Timestamp, civil::Date};
use time::{Month, OffsetDateTime, Time};

use super::{
    EdmCow, EdmType, EdmValue, InvalidValue, ParseTicksError, Ticks, ValueRef,
    std_types::edm_datetime_from_ticks,
};

impl TryFrom<Timestamp> for Ticks {
    type Error = ParseTicksError;

    /// Converts a time, cut to 100 ns towards the past.
    fn try_from(time: Timestamp) -> Result<Self, ParseTicksError> {
        let since_epoch = time.as_nanosecond().div_euclid(100);
        let ticks = i64::try_from(since_epoch + i128::from(Self::UNIX_EPOCH.get()));
        ticks.ok().and_then(Self::new).ok_or(ParseTicksError)
    }
}

impl TryFrom<Ticks> for Timestamp {
    type Error = InvalidValue;

    /// Converts a time. Fails for the last 26 hours of the year 9999, which a `Timestamp` cannot hold.
    fn try_from(ticks: Ticks) -> Result<Self, InvalidValue> {
        let since_epoch = i128::from(ticks.get() - Ticks::UNIX_EPOCH.get()) * 100;
        Self::from_nanosecond(since_epoch).map_err(|_| {
            InvalidValue::new(format!("expected a time up to {}, found {ticks}", Self::MAX))
        })
    }
}

impl EdmValue for Timestamp {
    const EDM: EdmType = EdmType::DateTime;

    /// Cuts the time to 100 ns. Fails outside the years 1601 to 9999.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        edm_datetime_from_ticks(Ticks::try_from(*self).ok(), self)
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ticks::from_edm(value)?.try_into()
    }
}

impl TryFrom<Ticks> for Date {
    type Error = InvalidValue;

    /// Converts a time at midnight UTC to its date. Fails for any other time of day.
    fn try_from(ticks: Ticks) -> Result<Self, InvalidValue> {
        let date = ticks.date_at_midnight()?;
        let numbers = (i16::try_from(date.year()), i8::try_from(date.day()));
        let (Ok(year), Ok(day)) = numbers else { return Ok(Self::MAX) };
        // Both crates hold every day of the years 1 to 9999, so no fallback is taken.
        let month = i8::try_from(u8::from(date.month())).unwrap_or(1);
        Ok(Self::new(year, month, day).unwrap_or(Self::MAX))
    }
}

/// Returns the start of a date in UTC, or `None` if the date is outside `time`'s calendar.
pub(crate) fn midnight_of(date: Date) -> Option<OffsetDateTime> {
    let month = Month::try_from(u8::try_from(date.month()).ok()?).ok()?;
    let day = u8::try_from(date.day()).ok()?;
    let date = time::Date::from_calendar_date(i32::from(date.year()), month, day).ok()?;
    Some(OffsetDateTime::new_utc(date, Time::MIDNIGHT))
}

impl EdmValue for Date {
    const EDM: EdmType = EdmType::DateTime;
    const VALUES: &'static str = "date";

    /// Stores the date as midnight UTC.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        let ticks = midnight_of(*self).and_then(|time| Ticks::try_from(time).ok());
        edm_datetime_from_ticks(ticks, self)
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ticks::from_edm(value)?.try_into()
    }
}
