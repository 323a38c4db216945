//! Times and dates in keys.

use time::{Date, Month, OffsetDateTime, Time};

use super::{Descending, KeyPart, Ordered};
use crate::edm::{InvalidValue, Ticks};

/// The finest unit of a time or of a date form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// `%Y`
    Year,
    /// `%m`
    Month,
    /// `%d`, and `time::Date`
    Day,
    /// `%H`
    Hour,
    /// `%M`
    Minute,
    /// `%S`
    Second,
    /// `%f` (seven digits), and `time::OffsetDateTime`
    Tick,
}

impl Resolution {
    /// Whether a form of this resolution gives back a value of that one.
    pub const fn covers(self, value: Self) -> bool {
        self as u8 >= value as u8
    }
}

/// A time that a date form can write: `{field:%Y%m%d}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no date form",
    label = "not a time",
    note = "`{{field:%Y%m%d}}` needs a time::OffsetDateTime or a time::Date"
)]
pub trait DatePart: KeyPart {
    /// How fine the type's values are.
    const RESOLUTION: Resolution;

    /// The time, in ticks.
    ///
    /// # Errors
    ///
    /// A time outside the years 1 to 9999.
    fn to_ticks(&self) -> Result<Ticks, InvalidValue>;

    /// The value that begins at that time.
    ///
    /// # Errors
    ///
    /// A time that the type cannot hold.
    fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue>;
}

/// The resolution of a date form.
pub const fn resolution_of(form: &str) -> Resolution {
    let mut finest = Resolution::Year;
    let mut rest = form.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if let (b'%', [unit, after @ ..]) = (first, after) {
            rest = after;
            finest = match unit {
                b'm' => Resolution::Month,
                b'd' => Resolution::Day,
                b'H' => Resolution::Hour,
                b'M' => Resolution::Minute,
                b'S' => Resolution::Second,
                b'f' => Resolution::Tick,
                _ => finest,
            };
        }
    }
    finest
}

/// Characters that a date form writes.
pub const fn date_width(form: &str) -> usize {
    let mut width = 0;
    let mut rest = form.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        width += 1;
        if let (b'%', [unit, after @ ..]) = (first, after) {
            rest = after;
            width += unit_width(*unit) - 1;
        }
    }
    width
}

const fn unit_width(unit: u8) -> usize {
    match unit {
        b'Y' => 4,
        b'f' => 7,
        _ => 2,
    }
}

/// Appends a time in a date form.
///
/// # Errors
///
/// A time outside the years 1 to 9999.
pub fn encode_date<T: DatePart>(
    value: &T,
    form: &str,
    out: &mut String,
) -> Result<(), InvalidValue> {
    encode_ticks(value.to_ticks()?, form, out)
}

/// Appends ticks in a date form.
///
/// # Errors
///
/// A form that no template has.
pub fn encode_ticks(ticks: Ticks, form: &str, out: &mut String) -> Result<(), InvalidValue> {
    let time = OffsetDateTime::from(ticks);
    let mut form = form.chars();
    while let Some(c) = form.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match form.next() {
            Some('Y') => out.push_str(&format!("{:04}", time.year())),
            Some('m') => out.push_str(&format!("{:02}", u8::from(time.month()))),
            Some('d') => out.push_str(&format!("{:02}", time.day())),
            Some('H') => out.push_str(&format!("{:02}", time.hour())),
            Some('M') => out.push_str(&format!("{:02}", time.minute())),
            Some('S') => out.push_str(&format!("{:02}", time.second())),
            Some('f') => out.push_str(&format!("{:07}", ticks.get() % 10_000_000)),
            _ => return Err(InvalidValue::new("unknown date form")),
        }
    }
    Ok(())
}

/// The start of the period that a date form names.
///
/// # Errors
///
/// A text that the form does not write.
pub fn decode_date<T: DatePart>(text: &str, form: &str) -> Result<T, InvalidValue> {
    decode_period(text, form).and_then(T::from_ticks)
}

/// The first tick of the period that a date form names.
///
/// # Errors
///
/// A text that the form does not write.
pub fn decode_period(text: &str, form: &str) -> Result<Ticks, InvalidValue> {
    let invalid = || InvalidValue::new(format!("expected a date `{form}`, found `{text}`"));
    let mut fields = [1_i64, 1, 1, 0, 0, 0, 0];
    let mut rest = text;
    let mut form_chars = form.chars();
    while let Some(c) = form_chars.next() {
        if c != '%' {
            rest = rest.strip_prefix(c).ok_or_else(invalid)?;
            continue;
        }
        let unit = form_chars.next().unwrap_or_default();
        let width = unit_width(u8::try_from(unit).unwrap_or_default());
        let (digits, after) = rest.split_at_checked(width).ok_or_else(invalid)?;
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let slot = "YmdHMSf".find(unit).and_then(|at| fields.get_mut(at)).ok_or_else(invalid)?;
        *slot = digits.parse().map_err(|_| invalid())?;
        rest = after;
    }
    let ticks = if rest.is_empty() { ticks_of(fields) } else { None };
    ticks.ok_or_else(invalid)
}

fn ticks_of([year, month, day, hour, minute, second, ticks]: [i64; 7]) -> Option<Ticks> {
    let small = |number: i64| u8::try_from(number).ok();
    let month = Month::try_from(small(month)?).ok()?;
    let date = Date::from_calendar_date(year.try_into().ok()?, month, small(day)?).ok()?;
    let time = Time::from_hms(small(hour)?, small(minute)?, small(second)?).ok()?;
    let whole = Ticks::try_from(OffsetDateTime::new_utc(date, time)).ok()?;
    Ticks::new(whole.get() + ticks)
}

macro_rules! key_of_ticks {
    ($($type:ty, $resolution:ident;)*) => {
        $(
            impl Descending for $type {
                const WIDTH_DESCENDING: usize = 19;

                fn encode_descending(&self, out: &mut String) -> Result<(), InvalidValue> {
                    out.push_str(&format!("{:019}", self.to_ticks()?.inverted().get()));
                    Ok(())
                }

                fn decode_descending(text: &str) -> Result<Self, InvalidValue> {
                    Self::from_ticks(decode_ticks(text)?.inverted())
                }
            }

            impl<const LAST: bool> Ordered<LAST> for $type {}
        )*
    };
}

fn decode_ticks(text: &str) -> Result<Ticks, InvalidValue> {
    let number = i64::decode_unsigned(text);
    number
        .and_then(Ticks::new)
        .ok_or_else(|| InvalidValue::new(format!("expected 19 digits of ticks, found `{text}`")))
}

trait Unsigned: Sized {
    fn decode_unsigned(text: &str) -> Option<Self>;
}

impl Unsigned for i64 {
    fn decode_unsigned(text: &str) -> Option<Self> {
        let fits = text.len() == 19 && text.bytes().all(|b| b.is_ascii_digit());
        if fits { text.parse().ok() } else { None }
    }
}

impl KeyPart for OffsetDateTime {
    const WIDTH: Option<usize> = Some(19);

    /// 19 digits of ticks since the year 1, cut to 100 ns.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        out.push_str(&format!("{:019}", self.to_ticks()?.get()));
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

key_of_ticks! {
    OffsetDateTime, Tick;
    Date, Day;
}

#[cfg(feature = "chrono")]
mod with_chrono {
    use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

    use super::*;

    impl KeyPart for DateTime<Utc> {
        const WIDTH: Option<usize> = Some(19);

        fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
            out.push_str(&format!("{:019}", self.to_ticks()?.get()));
            Ok(())
        }

        fn decode(text: &str) -> Result<Self, InvalidValue> {
            Self::from_ticks(decode_ticks(text)?)
        }
    }

    impl DatePart for DateTime<Utc> {
        const RESOLUTION: Resolution = Resolution::Tick;

        fn to_ticks(&self) -> Result<Ticks, InvalidValue> {
            let seconds = i128::from(self.timestamp());
            let within = i128::from((self.timestamp_subsec_nanos() / 100).min(9_999_999));
            let ticks = seconds * 10_000_000 + within + i128::from(Ticks::UNIX_EPOCH.get());
            i64::try_from(ticks)
                .ok()
                .and_then(Ticks::new)
                .ok_or_else(|| InvalidValue::new(format!("{self} is not in the years 1 to 9999")))
        }

        fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue> {
            let since_epoch = ticks.get() - Ticks::UNIX_EPOCH.get();
            let nanos = u32::try_from(since_epoch.rem_euclid(10_000_000) * 100).unwrap_or(0);
            Self::from_timestamp(since_epoch.div_euclid(10_000_000), nanos)
                .ok_or_else(|| InvalidValue::new(format!("chrono has no time {ticks}")))
        }
    }

    impl KeyPart for NaiveDate {
        const WIDTH: Option<usize> = Some(8);

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
            let time = DateTime::<Utc>::from_ticks(ticks)?;
            if time.time() != NaiveTime::MIN {
                return Err(InvalidValue::new(format!(
                    "expected a date at midnight, found {time}"
                )));
            }
            Ok(time.date_naive())
        }
    }

    key_of_ticks! {
        DateTime<Utc>, Tick;
        NaiveDate, Day;
    }
}
