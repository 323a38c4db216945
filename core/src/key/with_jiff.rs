//! Makes jiff's `Timestamp` and `civil::Date` key parts (feature `jiff`).

use jiff::{Timestamp, civil::Date};

use super::{
    DatePart,
    time::{day, instant},
};
use crate::edm::{InvalidValue, midnight_of};

instant!(Timestamp, |ticks| ticks.try_into());
day!(
    Date,
    |day| midnight_of(day)
        .ok_or_else(|| InvalidValue::new(format!("{day} is not in the years 1 to 9999")))?,
    |ticks| ticks.try_into()
);
