//! Checks date forms such as `%Y%m%d`, whose text must sort in time order.

use super::forbidden;

/// The smallest unit of a date form.
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

/// The words of the other forms. In a date form, they would be text that a key contains.
const OTHER_FORMS: [&str; 4] = ["bucket", "desc", "hmac", "lower"];

/// Returns the word of another form in a date form.
fn other_form(form: &str) -> Option<&'static str> {
    let mut words = form.split(|c: char| !c.is_ascii_alphabetic());
    words.find_map(|word| OTHER_FORMS.into_iter().find(|other| *other == word))
}

/// Returns the smallest unit of a date form. Fails unless its units descend from the year without a gap, because
/// other texts do not sort in time order.
pub(super) fn fineness_of_form(form: &str) -> Result<Fineness, String> {
    if let Some(other) = other_form(form) {
        return Err(format!(
            "a date form cannot be combined with `{other}`, which is a form of its own: write `{{field:{other}}}` without units"
        ));
    }
    let mut expected = UNITS.iter();
    let mut finest = None;
    let mut chars = form.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            if let Some(why) = forbidden(c) {
                return Err(why);
            }
            if !c.is_ascii() {
                return Err(format!(
                    "a date form cannot contain `{c}`: use ASCII text between the units"
                ));
            }
            continue;
        }
        let found = chars.next().map_or_else(|| "%".to_owned(), |unit| format!("%{unit}"));
        match expected.next() {
            Some((unit, fineness)) if found == format!("%{unit}") => finest = Some(*fineness),
            Some((unit, _)) => {
                return Err(format!(
                    "expected `%{unit}`, found `{found}`: to sort by time, a date form must use the units of `%Y%m%d%H%M%S%f` in this order, with any text in between"
                ));
            }
            None => {
                return Err(format!(
                    "`%f` is the last unit of a date form, found `{found}` after it"
                ));
            }
        }
    }
    finest.ok_or_else(|| "a date form needs units, beginning with `%Y`".to_owned())
}
