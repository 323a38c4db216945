//! Escapes in parts of variable width.
//!
//! `~` and two upper-case hex digits stand for: the forbidden characters, `~` itself, and the first
//! character of the literal that follows the part. Character by character, so that a prefix of the
//! text is a prefix of the key. A digit follows every `~`, so that no escaped text can begin like
//! the framework's own rows, `~e`.

use std::borrow::Cow;

use super::super::{edm::InvalidValue, limits::is_forbidden_in_key};

/// The character that starts an escape.
pub(crate) const ESCAPE: char = '~';

fn is_escaped(c: char, terminator: Option<char>) -> bool {
    c == ESCAPE || is_forbidden_in_key(c) || Some(c) == terminator
}

/// The text with its escapes, for a part that `terminator` ends.
pub fn escape(text: &str, terminator: Option<char>) -> String {
    let mut out = text.to_owned();
    escape_tail(&mut out, 0, terminator);
    out
}

/// Escapes what was written from `from` on.
pub(super) fn escape_tail(out: &mut String, from: usize, terminator: Option<char>) {
    let Some(tail) = out.get(from..) else { return };
    if !tail.contains(|c| is_escaped(c, terminator)) {
        return;
    }
    let tail = tail.to_owned();
    out.truncate(from);
    for c in tail.chars() {
        if is_escaped(c, terminator) {
            out.push_str(&format!("{ESCAPE}{:02X}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
}

/// The text without its escapes.
///
/// # Errors
///
/// An escape that [`escape`] does not write.
pub fn unescape(text: &str) -> Result<Cow<'_, str>, InvalidValue> {
    if !text.contains(ESCAPE) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split(ESCAPE);
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let escaped = piece
            .split_at_checked(2)
            .filter(|(hex, _)| hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')))
            .and_then(|(hex, rest)| Some((char::from(u8::from_str_radix(hex, 16).ok()?), rest)));
        let Some((c, rest)) = escaped else {
            return Err(InvalidValue::new(format!("key part `{text}` holds an unknown escape")));
        };
        out.push(c);
        out.push_str(rest);
    }
    Ok(Cow::Owned(out))
}
