//! Computes the upper bound of the keys that begin with a prefix.

use crate::limits::is_forbidden_in_key;

/// Returns the exclusive upper bound of the keys that begin with `prefix`, in the order of UTF-16
/// units. Returns `None` if no key is above them.
///
/// The bound is the prefix with its last character replaced by the next one. Last characters that
/// have no next one are removed before that.
///
/// The next character is the next one that a key may contain, so the bound is itself a valid key,
/// and no key lies between the two.
///
/// ```
/// # use entable_core::key::successor;
/// assert_eq!(successor("email_a").as_deref(), Some("email_b"));
/// assert_eq!(successor("empid_000123").as_deref(), Some("empid_000124"));
/// assert_eq!(successor("3.").as_deref(), Some("30")); // `/` is forbidden in keys
/// assert_eq!(successor(""), None);
/// ```
pub fn successor(prefix: &str) -> Option<String> {
    successor_of_allowed(prefix, |c| !is_forbidden_in_key(c))
}

/// Returns the exclusive upper bound of the texts that begin with `prefix`, as [`successor`] does for
/// keys. A property can hold every character, so none is skipped.
pub fn text_successor(prefix: &str) -> Option<String> {
    successor_of_allowed(prefix, |_| true)
}

fn successor_of_allowed(prefix: &str, is_allowed: fn(char) -> bool) -> Option<String> {
    let mut rest = prefix.to_owned();
    while let Some(last) = rest.pop() {
        let mut next = next_char(last);
        while let Some(forbidden) = next.filter(|c| !is_allowed(*c)) {
            next = next_char(forbidden);
        }
        if let Some(next) = next {
            rest.push(next);
            return Some(rest);
        }
    }
    None
}

/// Returns the next character in UTF-16 code unit order. Surrogate pairs sort between U+D7FF and U+E000.
fn next_char(c: char) -> Option<char> {
    match c {
        '\u{d7ff}' => Some('\u{10000}'),
        '\u{10ffff}' => Some('\u{e000}'),
        // This is the greatest UTF-16 unit. Surrogate pairs begin with lower units and sort before U+E000.
        '\u{ffff}' => None,
        // Only U+D7FF and U+10FFFF have a successor that is not a valid `char`.
        _ => char::from_u32(u32::from(c) + 1),
    }
}
