//! Parses the times and ETags of rows in JSON. The parser is faster than the general one of [`Ticks`],
//! because a page contains a thousand of them.

use crate::{edm::Ticks, row::ETag};

/// Parses a time such as `2021-05-26T15:48:25.77957Z`. Other forms go to the general parser.
pub(crate) fn parse_time(text: &str) -> Option<Ticks> {
    parse_usual_form(text.as_bytes()).or_else(|| text.parse().ok())
}

/// Parses a time as the service writes it. Returns `None` for any other form.
pub fn parse_usual_form(text: &[u8]) -> Option<Ticks> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2] =
        *head
    else {
        return None;
    };
    let two = |a: u8, b: u8| Some(parse_digit(a)? * 10 + parse_digit(b)?);
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    let (month, day) = (two(m1, m2)?, two(d1, d2)?);
    let (hour, minute, second) = (two(h1, h2)?, two(n1, n2)?, two(s1, s2)?);
    if year < 1 || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if day < 1 || day > days_in(year, month) {
        return None;
    }
    let seconds = ((days_before(year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second;
    Ticks::new(seconds * 10_000_000 + parse_fraction(tail)?)
}

/// Parses what follows the seconds: up to seven digits and `Z`. Returns 100 ns ticks.
fn parse_fraction(tail: &[u8]) -> Option<i64> {
    let digits = match tail {
        [b'Z'] => return Some(0),
        [b'.', digits @ .., b'Z'] if (1..=7).contains(&digits.len()) => digits,
        _ => return None,
    };
    let mut value = 0;
    for at in 0..7 {
        // The service leaves out zeros at the end of a fraction.
        value = value * 10 + digits.get(at).map_or(Some(0), |byte| parse_digit(*byte))?;
    }
    Some(value)
}

fn parse_digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 0001-01-01 to the first of the month.
fn days_before(year: i64, month: i64) -> i64 {
    let before = year - 1;
    let leaps = before / 4 - before / 100 + before / 400;
    before * 365 + leaps + (1..month).map(|month| days_in(year, month)).sum::<i64>()
}

/// Returns whether the service derives this ETag from this Timestamp. A row then need not keep the ETag.
pub(crate) fn is_etag_of_timestamp(etag: &str, timestamp: &str) -> bool {
    let mut buffer = [0; LONGEST];
    derived_time(etag, &mut buffer).is_some_and(|time| time == timestamp.as_bytes())
}

/// Parses an ETag. Printing the result gives the text back byte for byte.
pub fn parse_etag(etag: &str) -> ETag {
    let mut buffer = [0; LONGEST];
    let ticks = derived_time(etag, &mut buffer).and_then(parse_usual_form);
    ticks.map_or_else(|| ETag::from(etag), ETag::from_timestamp)
}

/// Number of bytes of the longest time, `9999-12-31T23:59:59.9999999Z`.
const LONGEST: usize = 28;

/// Decodes the time inside an ETag `W/"datetime'..'"` into `buffer` and returns it. Returns `None` if the
/// ETag is not in the service's form, for example with a colon that is not encoded as `%3A`, or a fraction
/// that ends with a zero.
fn derived_time<'b>(etag: &str, buffer: &'b mut [u8; LONGEST]) -> Option<&'b [u8]> {
    let inner = etag.strip_prefix("W/\"datetime'")?.strip_suffix("'\"")?;
    let mut length = 0;
    for (at, part) in inner.split("%3A").enumerate() {
        let colon: &[u8] = if at > 0 { b":" } else { b"" };
        for byte in colon.iter().chain(part.as_bytes()) {
            *buffer.get_mut(length)? = *byte;
            length += 1;
        }
    }
    let time = buffer.get(..length)?;
    let encoded = !inner.contains(':');
    let fraction = time.get(19..)?;
    (encoded && (fraction == b"Z" || !fraction.ends_with(b"0Z"))).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_parser_agrees_with_the_general_one() {
        for text in [
            "2021-05-26T15:48:25.77957Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.9999999Z",
            "2000-02-29T12:00:00.0000001Z",
            "1900-02-28T23:59:59.1Z",
            "2024-12-31T00:00:00.0000000Z",
        ] {
            assert_eq!(parse_usual_form(text.as_bytes()), text.parse().ok(), "{text}");
            assert!(parse_usual_form(text.as_bytes()).is_some());
        }
        for text in [
            "",
            "Z",
            "1900-02-29T00:00:00Z",
            "2021-13-01T00:00:00Z",
            "2021-05-26T24:00:00Z",
            "2021-05-26T15:48:25",
            "2021-05-26T15:48:25.Z",
            "2021-05-26T15:48:25.12345678Z",
            "2021-05-26T15:48:25+02:00",
            "0000-01-01T00:00:00Z",
            "2021-05-26 15:48:25Z",
        ] {
            assert_eq!(parse_usual_form(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_time("2021-05-26T15:48:25+02:00"), "2021-05-26T13:48:25Z".parse().ok());
    }

    #[test]
    fn a_derived_version_is_recognised_byte_for_byte() {
        let at = "2021-05-26T15:48:25.77957Z";
        let etag = ETag::from_timestamp(at.parse().unwrap()).to_string();
        assert!(is_etag_of_timestamp(&etag, at));
        assert!(!is_etag_of_timestamp(&etag, "2021-05-26T15:48:25.7795700Z"));
        assert!(!is_etag_of_timestamp(
            "W/\"datetime'2021-05-26T15%3A48%3A25.7795700Z'\"",
            "2021-05-26T15:48:25.7795700Z"
        ));
        assert!(!is_etag_of_timestamp("W/\"x\"", at));
        assert!(!is_etag_of_timestamp(&etag, "2021-05-26T15:48:26.77957Z"));
        for text in [
            &etag,
            "W/\"datetime'2021-05-26T15%3A48%3A25.7795700Z'\"",
            "W/\"datetime'2021-05-26T15%3A48%3A25Z'\"",
            "W/\"datetime'2021-05-26T15:48:25Z'\"",
            "W/\"datetime'2021-05-26T15%3a48%3a25Z'\"",
            "W/\"datetime'2021-05-26T15%3A48%3A25.Z'\"",
            "W/\"datetime'soon'\"",
            "W/\"x\"",
            "",
        ] {
            assert_eq!(parse_etag(text).to_string(), text);
            assert_eq!(parse_etag(text), ETag::from(text));
        }
    }
}
