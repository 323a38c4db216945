//! chrono's times in keys (feature `chrono`).

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use super::{
    Descending, KeyPart, Ordered,
    date::{DatePart, Resolution, decode_date, encode_date},
    time::{TICK_DIGITS, decode_ticks, encode_ticks, sorted},
};
use crate::edm::{InvalidValue, Ticks};

sorted!(DateTime<Utc>, NaiveDate);

impl KeyPart for DateTime<Utc> {
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

impl DatePart for DateTime<Utc> {
    const RESOLUTION: Resolution = Resolution::Tick;

    fn to_ticks(&self) -> Result<Ticks, InvalidValue> {
        Ticks::try_from(*self)
            .map_err(|_| InvalidValue::new(format!("{self} is not in the years 1 to 9999")))
    }

    fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue> {
        Ok(ticks.into())
    }
}

impl KeyPart for NaiveDate {
    const WIDTH: Option<usize> = Some(8);

    /// Year, month and day: `20140822`.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        encode_date(self, "%Y%m%d", out)
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        decode_date(text, "%Y%m%d")
    }
}

impl DatePart for NaiveDate {
    const RESOLUTION: Resolution = Resolution::Day;

    fn to_ticks(&self) -> Result<Ticks, InvalidValue> {
        self.and_time(NaiveTime::MIN).and_utc().to_ticks()
    }

    fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue> {
        let time = DateTime::<Utc>::from(ticks);
        if time.time() != NaiveTime::MIN {
            return Err(InvalidValue::new(format!("expected a date at midnight, found {time}")));
        }
        Ok(time.date_naive())
    }
}
