//! Defines [`Ticks`], a time in steps of 100 ns as the service stores it.

use std::{fmt, str::FromStr};

use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

use super::InvalidValue;

/// A point in time, counted in ticks of 100 ns since 0001-01-01T00:00:00Z, as .NET counts them.
///
/// The service stores DateTime properties and Timestamps at this resolution. Finer times are cut to
/// it.
///
/// ```
/// use entable_core::Ticks;
///
/// let at: Ticks = "2014-08-22T00:50:32.25Z".parse()?;
/// assert_eq!(at.to_string(), "2014-08-22T00:50:32.25Z");
/// assert_eq!(Ticks::MAX.get() - at.get(), 2_519_936_321_677_499_999);
/// # Ok::<(), entable_core::ParseTicksError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(i64);

/// Ticks in one day.
const PER_DAY: i64 = 24 * 60 * 60 * Ticks::PER_SECOND;
/// The Julian day number of 0001-01-01.
const FIRST_DAY: i64 = 1_721_426;

impl Ticks {
    /// Ticks in one second.
    pub const PER_SECOND: i64 = 10_000_000;
    /// 0001-01-01T00:00:00Z, the earliest time.
    pub const MIN: Self = Self(0);
    /// 1601-01-01T00:00:00Z, the earliest time that a DateTime property can hold.
    pub const MIN_PROPERTY: Self = Self(504_911_232_000_000_000);
    /// 1970-01-01T00:00:00Z, where Unix time begins.
    pub const UNIX_EPOCH: Self = Self(621_355_968_000_000_000);
    /// 9999-12-31T23:59:59.9999999Z, the latest time.
    pub const MAX: Self = Self(3_155_378_975_999_999_999);

    /// Creates the time that is `ticks` after 0001-01-01. Returns `None` below zero and after the
    /// year 9999.
    pub const fn new(ticks: i64) -> Option<Self> {
        if ticks >= Self::MIN.0 && ticks <= Self::MAX.0 { Some(Self(ticks)) } else { None }
    }

    /// Returns the number of ticks since 0001-01-01.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns the ticks since the start of the current second, 0 to 9,999,999.
    pub(crate) const fn subsecond_ticks(self) -> i64 {
        self.0 % Self::PER_SECOND
    }

    /// Returns the time as text in whole seconds, such as `2024-01-31T12:00:00Z`. A fraction is cut off.
    ///
    /// ```
    /// use entable_core::Ticks;
    ///
    /// let time: Ticks = "2024-01-31T12:00:00.25Z".parse()?;
    /// assert_eq!(time.to_text_in_seconds(), "2024-01-31T12:00:00Z");
    /// # Ok::<(), entable_core::ParseTicksError>(())
    /// ```
    pub fn to_text_in_seconds(self) -> String {
        let text = self.to_string();
        match text.split_once('.') {
            Some((seconds, _)) => format!("{seconds}Z"),
            None => text,
        }
    }

    /// Returns the time that is `within` ticks after midnight UTC of `date`. Returns `None` outside
    /// the years 1 to 9999.
    pub(crate) fn from_date_and_ticks(date: Date, within: i64) -> Option<Self> {
        let days = i64::from(date.to_julian_day()) - FIRST_DAY;
        days.checked_mul(PER_DAY)?.checked_add(within).and_then(Self::new)
    }

    /// Returns the date that begins at this time. Fails if the time is not midnight UTC.
    pub(crate) fn date_at_midnight(self) -> Result<Date, InvalidValue> {
        let days = if self.0 % PER_DAY == 0 {
            i32::try_from(FIRST_DAY + self.0 / PER_DAY).ok()
        } else {
            None
        };
        days.and_then(|days| Date::from_julian_day(days).ok())
            .ok_or_else(|| InvalidValue::new(format!("expected a date at midnight, found {self}")))
    }

    /// Returns the time one tick later, or [`MAX`](Self::MAX) if this is the latest time.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 < Self::MAX.0 { Self(self.0 + 1) } else { self }
    }

    /// Returns [`MAX`](Self::MAX) minus this time. In ascending order of such values the newest time comes
    /// first.
    #[must_use]
    pub const fn inverted(self) -> Self {
        Self(Self::MAX.0 - self.0)
    }
}

impl TryFrom<OffsetDateTime> for Ticks {
    type Error = ParseTicksError;

    /// Converts a time, cut to 100 ns towards the past. Fails outside the years 1 to 9999.
    fn try_from(time: OffsetDateTime) -> Result<Self, ParseTicksError> {
        // `unix_timestamp` rounds towards the past, so the fraction of a second is never negative.
        let fraction = i64::from(time.nanosecond() / 100);
        let ticks = time.unix_timestamp().checked_mul(Self::PER_SECOND);
        let ticks = ticks.and_then(|ticks| ticks.checked_add(Self::UNIX_EPOCH.0 + fraction));
        ticks.and_then(Self::new).ok_or(ParseTicksError)
    }
}

impl From<Ticks> for OffsetDateTime {
    fn from(ticks: Ticks) -> Self {
        let since_epoch = ticks.0 - Ticks::UNIX_EPOCH.0;
        let second = Self::from_unix_timestamp(since_epoch.div_euclid(Ticks::PER_SECOND));
        let fraction = u32::try_from(since_epoch.rem_euclid(Ticks::PER_SECOND) * 100);
        // Ticks are in the years 1 to 9999, which `time` holds, so neither default is taken.
        let second = second.unwrap_or(Self::UNIX_EPOCH);
        second.replace_nanosecond(fraction.unwrap_or(0)).unwrap_or(second)
    }
}

impl fmt::Display for Ticks {
    /// Writes ISO 8601 as the service does, without trailing zeros in the fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = OffsetDateTime::from(*self);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        )?;
        let fraction = self.subsecond_ticks();
        if fraction != 0 {
            let digits = format!("{fraction:07}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that is not in the expected form, or of a time outside the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time between the years 1 and 9999 in the form `2014-08-22T00:50:32.1234567Z`")]
pub struct ParseTicksError;

impl FromStr for Ticks {
    type Err = ParseTicksError;

    /// Parses ISO 8601. Time of day, seconds and fraction may be missing. A missing zone means UTC;
    /// an offset is converted to UTC. A fraction has 1 to 9 digits and is cut to 7.
    fn from_str(text: &str) -> Result<Self, ParseTicksError> {
        parse(text).ok_or(ParseTicksError)
    }
}

fn parse(text: &str) -> Option<Ticks> {
    if !text.is_ascii() {
        return None;
    }
    let (date, clock) = match text.split_once('T') {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let mut date = date.splitn(3, '-');
    let date = Date::from_calendar_date(
        i32::from(digits(date.next()?, 4)?),
        Month::try_from(u8::try_from(digits(date.next()?, 2)?).ok()?).ok()?,
        digits(date.next()?, 2)?.try_into().ok()?,
    )
    .ok()?;
    let (time, fraction, offset) = match clock {
        Some(clock) => parse_clock(clock)?,
        None => (Time::MIDNIGHT, 0, UtcOffset::UTC),
    };
    let seconds = OffsetDateTime::new_in_offset(date, time, offset).unix_timestamp();
    let ticks =
        seconds.checked_mul(Ticks::PER_SECOND)?.checked_add(Ticks::UNIX_EPOCH.0 + fraction)?;
    Ticks::new(ticks)
}

/// Parses `hh:mm`, `hh:mm:ss` or `hh:mm:ss.fraction`, with or without a zone. Returns the time of
/// day, the ticks of the fraction and the offset.
fn parse_clock(text: &str) -> Option<(Time, i64, UtcOffset)> {
    let (clock, offset) = split_offset(text)?;
    let mut parts = clock.splitn(3, ':');
    let hour = digits(parts.next()?, 2)?.try_into().ok()?;
    let minute = digits(parts.next()?, 2)?.try_into().ok()?;
    let (second, fraction) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (digits(seconds, 2)?, 0),
            Some((seconds, fraction)) => (digits(seconds, 2)?, parse_fraction(fraction)?),
        },
    };
    Some((Time::from_hms(hour, minute, second.try_into().ok()?).ok()?, fraction, offset))
}

/// Parses a fraction of 1 to 9 digits, cut to 100 ns, as ticks.
fn parse_fraction(digits: &str) -> Option<i64> {
    let is_fraction = matches!(digits.len(), 1..=9) && digits.bytes().all(|b| b.is_ascii_digit());
    if is_fraction { format!("{digits:0<7}").get(..7)?.parse().ok() } else { None }
}

fn split_offset(rest: &str) -> Option<(&str, UtcOffset)> {
    if let Some(clock) = rest.strip_suffix('Z') {
        return Some((clock, UtcOffset::UTC));
    }
    // The caller has cut off the date, so a `-` of the date is not taken for an offset.
    let Some(at) = rest.rfind(['+', '-']) else { return Some((rest, UtcOffset::UTC)) };
    let (clock, offset) = rest.split_at_checked(at)?;
    let sign: i8 = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let hours = i8::try_from(digits(hours, 2)?).ok()?;
    let minutes = i8::try_from(digits(minutes, 2)?).ok()?;
    Some((clock, UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()?))
}

/// Parses a number of exactly `width` digits.
fn digits(text: &str, width: usize) -> Option<u16> {
    let is_number = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
