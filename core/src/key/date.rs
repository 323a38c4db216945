//! Encodes and decodes date forms: key parts such as `{field:%Y%m%d}`.

use time::{Date, Month, OffsetDateTime, Time};

use super::{KeyPart, integer::push_padded};
use crate::edm::{InvalidValue, Ticks};

/// The precision of a time or a date form, from year to 100 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// Exact to the year; `%Y` in a date form.
    Year,
    /// Exact to the month; `%m` in a date form.
    Month,
    /// Exact to the day, as `time::Date` is; `%d` in a date form.
    Day,
    /// Exact to the hour; `%H` in a date form.
    Hour,
    /// Exact to the minute; `%M` in a date form.
    Minute,
    /// Exact to the second; `%S` in a date form.
    Second,
    /// Exact to 100 ns, as `time::OffsetDateTime` is; `%f` (seven digits) in a date form.
    Tick,
}

impl Resolution {
    /// Returns whether a date form of this resolution can restore values of resolution `value`: whether
    /// the form is as fine as the values, or finer.
    pub const fn covers(self, value: Self) -> bool {
        self as u8 >= value as u8
    }

    /// Returns the unit that a date form writes as `%` followed by `letter`.
    const fn resolution_of_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'Y' => Self::Year,
            b'm' => Self::Month,
            b'd' => Self::Day,
            b'H' => Self::Hour,
            b'M' => Self::Minute,
            b'S' => Self::Second,
            b'f' => Self::Tick,
            _ => return None,
        })
    }

    /// Returns the number of digits that the unit takes in a key.
    pub(super) const fn own_digit_count(self) -> usize {
        match self {
            Self::Year => 4,
            Self::Tick => 7,
            _ => 2,
        }
    }
}

/// A time or date that a date form such as `{field:%Y%m%d}` can write into a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used with a date form",
    label = "not a date or time",
    note = "a date form such as `{{field:%Y%m%d}}` needs a field of type time::OffsetDateTime or time::Date"
)]
pub trait DatePart: KeyPart {
    /// How exact the type's values are.
    const RESOLUTION: Resolution;

    /// Converts the value to ticks.
    ///
    /// # Errors
    ///
    /// Fails outside the years 1 to 9999.
    fn to_ticks(&self) -> Result<Ticks, InvalidValue>;

    /// Creates the time `ticks`, or for a type of dates the date that begins at `ticks`.
    ///
    /// # Errors
    ///
    /// Fails if the type cannot hold that time. A type of dates holds only times at midnight UTC.
    fn from_ticks(ticks: Ticks) -> Result<Self, InvalidValue>;
}

/// One piece of a date form: a literal character, a unit such as `%Y`, or a piece that date forms do not
/// allow.
#[derive(Debug, Clone, Copy)]
pub(super) enum DatePiece {
    /// An ASCII character that stands for itself.
    Literal(u8),
    /// A unit, written as digits.
    Unit(Resolution),
    /// A piece that date forms do not allow.
    Unknown,
}

/// Splits the first piece off a date form and returns it with the rest, or `None` at the end.
pub(super) const fn next_date_piece(form: &[u8]) -> Option<(DatePiece, &[u8])> {
    match form {
        [] => None,
        [b'%', letter, rest @ ..] => match Resolution::resolution_of_letter(*letter) {
            Some(unit) => Some((DatePiece::Unit(unit), rest)),
            None => Some((DatePiece::Unknown, rest)),
        },
        // Only ASCII is accepted, where one byte is one character and the width of the part is known.
        [b'%' | 0x80.., rest @ ..] => Some((DatePiece::Unknown, rest)),
        [byte, rest @ ..] => Some((DatePiece::Literal(*byte), rest)),
    }
}

fn split_date_form(form: &str) -> impl Iterator<Item = DatePiece> {
    let mut rest = form.as_bytes();
    std::iter::from_fn(move || {
        let (piece, after) = next_date_piece(rest)?;
        rest = after;
        Some(piece)
    })
}

/// Returns the resolution of a date form: the finest unit that follows all coarser units in order. Returns `Year` if
/// the form has no year.
pub const fn resolution_of(form: &str) -> Resolution {
    let mut finest = None;
    let mut rest = form.as_bytes();
    while let Some((piece, after)) = next_date_piece(rest) {
        rest = after;
        let DatePiece::Unit(unit) = piece else { continue };
        let expected = match finest {
            None => Resolution::Year as u8,
            Some(finest) => finest as u8 + 1,
        };
        // A day without its month, or a month without its year, does not narrow the period.
        if unit as u8 == expected {
            finest = Some(unit);
        }
    }
    match finest {
        Some(finest) => finest,
        None => Resolution::Year,
    }
}

/// Returns the number of characters that a date form writes.
pub const fn date_width(form: &str) -> usize {
    let mut width = 0;
    let mut rest = form.as_bytes();
    while let Some((piece, after)) = next_date_piece(rest) {
        rest = after;
        width += match piece {
            DatePiece::Unit(unit) => unit.own_digit_count(),
            DatePiece::Literal(_) | DatePiece::Unknown => 1,
        };
    }
    width
}

/// Appends a time to `out` in a date form.
///
/// # Errors
///
/// Fails outside the years 1 to 9999.
///
/// ```
/// # use entable_core::key::{decode_date, encode_date};
/// use time::{Date, Month};
///
/// let date = Date::from_calendar_date(2014, Month::August, 22)?;
/// let mut month = String::new();
/// encode_date(&date, "%Y-%m", &mut month)?;
/// assert_eq!(month, "2014-08");
/// assert_eq!(decode_date::<Date>(&month, "%Y-%m")?.day(), 1); // the month's start
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_date<T: DatePart>(
    value: &T,
    form: &str,
    out: &mut String,
) -> Result<(), InvalidValue> {
    encode_ticks_in_form(value.to_ticks()?, form, out)
}

/// Appends ticks to `out` in a date form.
///
/// # Errors
///
/// Fails if `form` is not a valid date form.
pub fn encode_ticks_in_form(
    ticks: Ticks,
    form: &str,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let time = OffsetDateTime::from(ticks);
    for piece in split_date_form(form) {
        let unit = match piece {
            DatePiece::Unit(unit) => unit,
            DatePiece::Literal(byte) => {
                out.push(char::from(byte));
                continue;
            }
            DatePiece::Unknown => return Err(unknown_form(form)),
        };
        let number = match unit {
            // Ticks are in the years 1 to 9999, so no sign is lost.
            Resolution::Year => u64::from(time.year().unsigned_abs()),
            Resolution::Month => u64::from(u8::from(time.month())),
            Resolution::Day => u64::from(time.day()),
            Resolution::Hour => u64::from(time.hour()),
            Resolution::Minute => u64::from(time.minute()),
            Resolution::Second => u64::from(time.second()),
            Resolution::Tick => ticks.subsecond_ticks().unsigned_abs(),
        };
        push_padded(number, unit.own_digit_count(), out);
    }
    Ok(())
}

fn unknown_form(form: &str) -> InvalidValue {
    InvalidValue::new(format!(
        "`{form}` is not a date form: expected ASCII text and %Y, %m, %d, %H, %M, %S, %f"
    ))
}

/// Reads the start of the period that `text`, written in a date form, names.
///
/// # Errors
///
/// Fails if the form cannot have written `text`, or if the type cannot hold the start.
pub fn decode_date<T: DatePart>(text: &str, form: &str) -> Result<T, InvalidValue> {
    decode_period(text, form).and_then(T::from_ticks)
}

/// Reads the first tick of the period that `text`, written in a date form, names.
///
/// # Errors
///
/// Fails if the form cannot have written `text`.
pub fn decode_period(text: &str, form: &str) -> Result<Ticks, InvalidValue> {
    read_date_units(text, form).and_then(ticks_of).ok_or_else(|| {
        let text = text.escape_debug();
        InvalidValue::new(format!("expected a date in the form `{form}`, found `{text}`"))
    })
}

/// Year, month, day, hour, minute, second and ticks of a date. A unit that the form lacks has its
/// smallest value.
type DateUnits = [i64; 7];

/// Reads the units of `text`, written in a date form. Returns `None` if `text` does not have the
/// form.
pub(super) fn read_date_units(text: &str, form: &str) -> Option<DateUnits> {
    // Units that the form lacks have their first value, so the result is the period's beginning.
    let mut units: DateUnits = [1, 1, 1, 0, 0, 0, 0];
    let mut rest = text.as_bytes();
    for piece in split_date_form(form) {
        rest = match piece {
            DatePiece::Literal(byte) => rest.strip_prefix(&[byte])?,
            DatePiece::Unknown => return None,
            DatePiece::Unit(unit) => {
                let (digits, after) = rest.split_at_checked(unit.own_digit_count())?;
                let number = digits.iter().try_fold(0, |number, digit| {
                    digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
                });
                *units.get_mut(unit as usize)? = number?;
                after
            }
        };
    }
    rest.is_empty().then_some(units)
}

fn ticks_of([year, month, day, hour, minute, second, ticks]: DateUnits) -> Option<Ticks> {
    let small = |number: i64| u8::try_from(number).ok();
    let month = Month::try_from(small(month)?).ok()?;
    let date = Date::from_calendar_date(year.try_into().ok()?, month, small(day)?).ok()?;
    // Checks the ranges only: without it, minute 75 would count as a quarter past the next hour.
    Time::from_hms(small(hour)?, small(minute)?, small(second)?).ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    Ticks::from_date_and_ticks(date, seconds * Ticks::PER_SECOND + ticks)
}
