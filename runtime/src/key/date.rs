//! Date forms: `{field:%Y%m%d}`.

use time::{Date, Month, OffsetDateTime, Time};

use super::{KeyPart, integer::push_padded};
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

    /// The unit that a form writes as `%` and that letter.
    const fn of_letter(letter: u8) -> Option<Self> {
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

    /// Digits of the unit in a key.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Year => 4,
            Self::Tick => 7,
            _ => 2,
        }
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

/// One piece of a date form.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece {
    /// An ASCII character that stands for itself.
    Literal(u8),
    /// A unit in digits.
    Unit(Resolution),
    /// Nothing that a form may hold.
    Unknown,
}

/// The first piece of a form, and what follows it.
pub(super) const fn next_piece(form: &[u8]) -> Option<(Piece, &[u8])> {
    match form {
        [] => None,
        [b'%', letter, rest @ ..] => match Resolution::of_letter(*letter) {
            Some(unit) => Some((Piece::Unit(unit), rest)),
            None => Some((Piece::Unknown, rest)),
        },
        [b'%' | 0x80.., rest @ ..] => Some((Piece::Unknown, rest)),
        [byte, rest @ ..] => Some((Piece::Literal(*byte), rest)),
    }
}

fn pieces(form: &str) -> impl Iterator<Item = Piece> {
    let mut rest = form.as_bytes();
    std::iter::from_fn(move || {
        let (piece, after) = next_piece(rest)?;
        rest = after;
        Some(piece)
    })
}

/// The resolution of a date form: its finest unit that has every coarser one before it.
pub const fn resolution_of(form: &str) -> Resolution {
    let mut finest = None;
    let mut rest = form.as_bytes();
    while let Some((piece, after)) = next_piece(rest) {
        rest = after;
        let Piece::Unit(unit) = piece else { continue };
        let expected = match finest {
            None => Resolution::Year as u8,
            Some(finest) => finest as u8 + 1,
        };
        if unit as u8 == expected {
            finest = Some(unit);
        }
    }
    match finest {
        Some(finest) => finest,
        None => Resolution::Year,
    }
}

/// Characters that a date form writes.
pub const fn date_width(form: &str) -> usize {
    let mut width = 0;
    let mut rest = form.as_bytes();
    while let Some((piece, after)) = next_piece(rest) {
        rest = after;
        width += match piece {
            Piece::Unit(unit) => unit.width(),
            Piece::Literal(_) | Piece::Unknown => 1,
        };
    }
    width
}

/// Appends a time in a date form.
///
/// # Errors
///
/// A time outside the years 1 to 9999.
///
/// ```
/// # use entable::key::{decode_date, encode_date};
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
    encode_ticks(value.to_ticks()?, form, out)
}

/// Appends ticks in a date form.
///
/// # Errors
///
/// A form that no template has.
pub fn encode_ticks(ticks: Ticks, form: &str, out: &mut String) -> Result<(), InvalidValue> {
    let time = OffsetDateTime::from(ticks);
    for piece in pieces(form) {
        let unit = match piece {
            Piece::Unit(unit) => unit,
            Piece::Literal(byte) => {
                out.push(char::from(byte));
                continue;
            }
            Piece::Unknown => return Err(unknown_form(form)),
        };
        let number = match unit {
            Resolution::Year => u64::from(time.year().unsigned_abs()),
            Resolution::Month => u64::from(u8::from(time.month())),
            Resolution::Day => u64::from(time.day()),
            Resolution::Hour => u64::from(time.hour()),
            Resolution::Minute => u64::from(time.minute()),
            Resolution::Second => u64::from(time.second()),
            Resolution::Tick => ticks.within_second().unsigned_abs(),
        };
        push_padded(number, unit.width(), out);
    }
    Ok(())
}

fn unknown_form(form: &str) -> InvalidValue {
    InvalidValue::new(format!(
        "`{form}` is not a date form: expected ASCII text and %Y, %m, %d, %H, %M, %S, %f"
    ))
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
    read_units(text, form).and_then(ticks_of).ok_or_else(|| {
        let text = text.escape_debug();
        InvalidValue::new(format!("expected a date in the form `{form}`, found `{text}`"))
    })
}

/// The numbers of a date: year, month, day, hour, minute, second, ticks; where the form has no such
/// unit, the first that there is.
type Units = [i64; 7];

/// The units of a text in a date form; `None` where it does not have the form.
pub(super) fn read_units(text: &str, form: &str) -> Option<Units> {
    let mut units: Units = [1, 1, 1, 0, 0, 0, 0];
    let mut rest = text.as_bytes();
    for piece in pieces(form) {
        rest = match piece {
            Piece::Literal(byte) => rest.strip_prefix(&[byte])?,
            Piece::Unknown => return None,
            Piece::Unit(unit) => {
                let (digits, after) = rest.split_at_checked(unit.width())?;
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

fn ticks_of([year, month, day, hour, minute, second, ticks]: Units) -> Option<Ticks> {
    let small = |number: i64| u8::try_from(number).ok();
    let month = Month::try_from(small(month)?).ok()?;
    let date = Date::from_calendar_date(year.try_into().ok()?, month, small(day)?).ok()?;
    Time::from_hms(small(hour)?, small(minute)?, small(second)?).ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    Ticks::in_day(date, seconds * Ticks::PER_SECOND + ticks)
}
