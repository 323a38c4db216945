//! chrono's times (feature `chrono`).

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use super::{EdmCow, EdmType, EdmValue, InvalidValue, Ticks, ValueRef};

fn ticks_of(time: DateTime<Utc>) -> Option<Ticks> {
    let seconds = time.timestamp().checked_mul(10_000_000)?;
    let within = i64::from(time.timestamp_subsec_nanos() / 100).min(9_999_999);
    Ticks::new(seconds.checked_add(within)?.checked_add(Ticks::UNIX_EPOCH.get())?)
}

fn time_of(ticks: Ticks) -> Result<DateTime<Utc>, InvalidValue> {
    let since_epoch = ticks.get() - Ticks::UNIX_EPOCH.get();
    let nanos = u32::try_from(since_epoch.rem_euclid(10_000_000) * 100).unwrap_or(0);
    DateTime::from_timestamp(since_epoch.div_euclid(10_000_000), nanos)
        .ok_or_else(|| InvalidValue::new(format!("chrono has no time {ticks}")))
}

impl EdmValue for DateTime<Utc> {
    const EDM: EdmType = EdmType::DateTime;

    /// Cut to 100 ns; 1601 to 9999.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        match ticks_of(*self).filter(|ticks| *ticks >= Ticks::MIN_PROPERTY) {
            Some(ticks) => Ok(ValueRef::DateTime(ticks).into()),
            None => Err(InvalidValue::new(format!("{self} is not in the years 1601 to 9999"))),
        }
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        time_of(Ticks::from_edm(value)?)
    }
}

impl EdmValue for NaiveDate {
    const EDM: EdmType = EdmType::DateTime;

    /// Midnight, UTC.
    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        let midnight = self.and_time(NaiveTime::MIN).and_utc();
        midnight.to_edm().map(|value| EdmCow::Owned(value.into_value()))
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        let stored = DateTime::<Utc>::from_edm(value)?;
        if stored.time() != NaiveTime::MIN {
            return Err(InvalidValue::new(format!("expected a date at midnight, found {stored}")));
        }
        Ok(stored.date_naive())
    }
}
