//! Stores chrono's `DateTime<Utc>` and `NaiveDate` as DateTime properties (feature `chrono`).

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use super::{
    EdmCow, EdmType, EdmValue, InvalidValue, ParseTicksError, Ticks, ValueRef,
    std_types::edm_datetime_from_ticks,
};

impl TryFrom<DateTime<Utc>> for Ticks {
    type Error = ParseTicksError;

    /// Converts a time, cut to 100 ns towards the past. A leap second becomes the last 100 ns of
    /// the second before it.
    fn try_from(time: DateTime<Utc>) -> Result<Self, ParseTicksError> {
        // chrono counts a leap second as nanoseconds above 999,999,999 of the second before it.
        let within = i64::from(time.timestamp_subsec_nanos() / 100).min(Ticks::PER_SECOND - 1);
        let ticks = time
            .timestamp()
            .checked_mul(Ticks::PER_SECOND)
            .and_then(|ticks| ticks.checked_add(within)?.checked_add(Self::UNIX_EPOCH.get()));
        ticks.and_then(Self::new).ok_or(ParseTicksError)
    }
}

impl From<Ticks> for DateTime<Utc> {
    fn from(ticks: Ticks) -> Self {
        let since_epoch = ticks.get() - Ticks::UNIX_EPOCH.get();
        let nanos =
            u32::try_from(since_epoch.rem_euclid(Ticks::PER_SECOND) * 100).unwrap_or_default();
        // chrono holds all of the years 1 to 9999, so the default is never taken.
        Self::from_timestamp(since_epoch.div_euclid(Ticks::PER_SECOND), nanos).unwrap_or_default()
    }
}

impl EdmValue for DateTime<Utc> {
    const EDM: EdmType = EdmType::DateTime;

    /// Cuts the time to 100 ns. Fails outside the years 1601 to 9999.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        edm_datetime_from_ticks(Ticks::try_from(*self).ok(), self)
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ticks::from_edm(value).map(Self::from)
    }
}

impl TryFrom<Ticks> for NaiveDate {
    type Error = InvalidValue;

    /// Converts a time at midnight UTC to its date. Fails for any other time of day.
    fn try_from(ticks: Ticks) -> Result<Self, InvalidValue> {
        let day = ticks.date_at_midnight()?.to_julian_day();
        // chrono counts days from the day before 0001-01-01 and holds every day of `Ticks`.
        Ok(Self::from_num_days_from_ce_opt(day - 1_721_425).unwrap_or_default())
    }
}

impl EdmValue for NaiveDate {
    const EDM: EdmType = EdmType::DateTime;
    const VALUES: &'static str = "date";

    /// Stores the date as midnight UTC.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        let midnight = self.and_time(NaiveTime::MIN).and_utc();
        midnight.to_edm().map(|value| EdmCow::Owned(value.into_value()))
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        Ticks::from_edm(value)?.try_into()
    }
}
