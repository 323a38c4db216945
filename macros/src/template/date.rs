//! Checks date forms such as `%Y%m%d`: only those whose text sorts as the times do are accepted.

use super::forbidden;

/// The smallest unit that a date form writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fineness {
    /// Written by `%Y`.
    Year,
    /// Written by `%m`.
    Month,
    /// Written by `%d`.
    Day,
    /// Written by `%H`.
    Hour,
    /// Written by `%M`.
    Minute,
    /// Written by `%S`.
    Second,
    /// Written by `%f`: 100 ns.
    Tick,
}

const UNITS: [(char, Fineness); 7] = [
    ('Y', Fineness::Year),
    ('m', Fineness::Month),
    ('d', Fineness::Day),
    ('H', Fineness::Hour),
    ('M', Fineness::Minute),
    ('S', Fineness::Second),
    ('f', Fineness::Tick),
];

/// Returns the smallest unit of a date form. Fails unless its units go from the year down without
/// a gap: other texts do not sort as the times do.
pub(super) fn fineness_of_form(form: &str) -> Result<Fineness, String> {
    let mut expected = UNITS.iter();
    let mut finest = None;
    let mut chars = form.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            if let Some(why) = forbidden(c) {
                return Err(why);
            }
            if !c.is_ascii() {
                return Err(format!("`{c}` in a date form, expected ASCII text between its units"));
            }
            continue;
        }
        let found = chars.next().map_or_else(|| "%".to_owned(), |unit| format!("%{unit}"));
        match expected.next() {
            Some((unit, fineness)) if found == format!("%{unit}") => finest = Some(*fineness),
            Some((unit, _)) => {
                return Err(format!(
                    "expected `%{unit}`, found `{found}`: a date form that sorts is a beginning of `%Y%m%d%H%M%S%f`, with text between"
                ));
            }
            None => return Err(format!("expected no more units, found `{found}`")),
        }
    }
    finest.ok_or_else(|| "expected `%Y`, found no unit".to_owned())
}
