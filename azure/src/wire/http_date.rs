//! Writes and parses the dates of HTTP headers.

use std::fmt;

use entable_core::{__runtime::row::json::parse_usual_form, edm::Ticks};
use time::{OffsetDateTime, UtcOffset};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Displays a time as an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpDate(pub(crate) OffsetDateTime);

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let time = self.0.to_offset(UtcOffset::UTC);
        let name = |names: &[&'static str], at: u8| names.get(usize::from(at)).copied();
        // There is a name for every day and month: the defaults are never taken.
        let day = name(&DAYS, time.weekday().number_days_from_monday()).unwrap_or_default();
        let month = name(&MONTHS, u8::from(time.month()) - 1).unwrap_or_default();
        let (hour, minute, second) = time.time().as_hms();
        let (date, year) = (time.day(), time.year());
        write!(f, "{day}, {date:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }
}

/// Returns a time as an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date_text(time: Ticks) -> String {
    HttpDate(time.into()).to_string()
}

/// Parses an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`. Returns `None` for another text.
pub fn parse_http_date(text: &str) -> Option<Ticks> {
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.strip_suffix(" GMT")?.split(' ');
    let (day, month) = (words.next()?, words.next()?);
    let (year, time) = (words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    parse_usual_form(format!("{year}-{month:02}-{day}T{time}Z").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_written() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 29 Feb 2024 00:00:00 GMT"] {
            let time = OffsetDateTime::from(parse_http_date(text).unwrap());
            assert_eq!(HttpDate(time).to_string(), text);
        }
    }

    #[test]
    fn http_dates_are_read() {
        let read = |text: &str| parse_http_date(text).map(|time| time.to_string());
        let text = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(read(text), "1994-11-06T08:49:37Z".parse::<Ticks>().ok().map(|t| t.to_string()));
        for text in
            ["", "06 Nov 1994", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
