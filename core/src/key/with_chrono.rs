//! Makes chrono's `DateTime<Utc>` and `NaiveDate` key parts (feature `chrono`).

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use super::{
    DatePart,
    time::{day, instant},
};

instant!(DateTime<Utc>, |ticks| Ok(ticks.into()));
day!(NaiveDate, |day| day.and_time(NaiveTime::MIN).and_utc(), |ticks| ticks.try_into());
