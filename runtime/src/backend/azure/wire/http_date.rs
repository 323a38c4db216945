//! Parses the dates of HTTP headers.

use crate::{edm::Ticks, row::json::parse_usual_form};

/// Parses an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(in crate::backend::azure) fn parse_http_date(text: &str) -> Option<Ticks> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
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
