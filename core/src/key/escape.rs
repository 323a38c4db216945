//! Escapes and unescapes the text of key parts of variable width.
//!
//! Three kinds of characters are escaped: those that the service forbids in keys, `~` itself, and
//! the terminator, which is the first character of the literal after the part. Characters below
//! U+00A0 become `~` and two upper-case hex digits; other terminators become `~A` and six. Each
//! character is escaped on its own, so a prefix of the text gives a prefix of the key. A digit or
//! `A` follows every `~`, so no escaped text begins like the framework's own rows, with `~e`.

use std::borrow::Cow;

use crate::{
    edm::InvalidValue,
    limits::{is_ascii_allowed_in_key, is_forbidden_in_key},
};

/// The character that starts an escape.
pub(super) const ESCAPE: char = '~';

/// The character after `~` that announces six digits, for characters from [`WIDE_FROM`] on.
const WIDE: char = 'A';
const WIDE_FROM: char = '\u{a0}';
const WIDE_DIGITS: usize = 6;
const DIGITS: usize = 2;

fn is_escaped(c: char, terminator: Option<char>) -> bool {
    c == ESCAPE || is_forbidden_in_key(c) || Some(c) == terminator
}

/// Escapes `text` for a part that the literal character `terminator` ends, or that ends the key
/// (`None`).
///
/// ```
/// # use entable_core::key::{escape, unescape};
/// assert_eq!(escape("R&D/Test_1", Some('_')), "R&D~2FTest~5F1");
/// assert_eq!(unescape("R&D~2FTest~5F1")?, "R&D/Test_1");
/// # Ok::<(), entable_core::InvalidValue>(())
/// ```
pub fn escape(text: &str, terminator: Option<char>) -> String {
    let mut out = text.to_owned();
    escape_from_offset(&mut out, 0, terminator);
    out
}

/// Escapes the text that starts at byte `from` of `out`, in position.
pub(super) fn escape_from_offset(out: &mut String, from: usize, terminator: Option<char>) {
    // Encoders only append to the text, so `from` lies within it.
    let Some(tail) = out.get(from..) else { return };
    // Most texts are ASCII, where a byte is a character.
    let any = if tail.is_ascii() {
        tail.bytes().any(|byte| is_escaped(char::from(byte), terminator))
    } else {
        tail.contains(|c| is_escaped(c, terminator))
    };
    if !any {
        return;
    }
    let tail = tail.to_owned();
    out.truncate(from);
    for c in tail.chars() {
        let code = u32::from(c);
        if !is_escaped(c, terminator) {
            out.push(c);
        } else if c < WIDE_FROM {
            out.push_str(&format!("{ESCAPE}{code:0DIGITS$X}"));
        } else {
            out.push_str(&format!("{ESCAPE}{WIDE}{code:0WIDE_DIGITS$X}"));
        }
    }
}

/// Reverses [`escape`].
///
/// # Errors
///
/// Fails on an escape that [`escape`] does not write.
pub fn unescape(text: &str) -> Result<Cow<'_, str>, InvalidValue> {
    // Parts are short: a byte loop is faster here than `str::find`, which prepares for long text.
    if text.bytes().all(|byte| char::from(byte) != ESCAPE) {
        return Ok(Cow::Borrowed(text));
    }
    let Some((before, mut rest)) = text.split_once(ESCAPE) else {
        return Ok(Cow::Borrowed(text));
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(before);
    loop {
        let Some((escaped, after)) = read_escape(rest) else {
            let text = text.escape_debug();
            return Err(InvalidValue::new(format!("key part `{text}` contains an unknown escape")));
        };
        out.push(escaped);
        match after.split_once(ESCAPE) {
            Some((before, after)) => {
                out.push_str(before);
                rest = after;
            }
            None => {
                out.push_str(after);
                return Ok(Cow::Owned(out));
            }
        }
    }
}

/// Reads the escape whose `~` is already read. Returns its character and the text after it.
fn read_escape(rest: &str) -> Option<(char, &str)> {
    let wide = rest.strip_prefix(WIDE);
    let (digits, after) = match wide {
        Some(rest) => rest.split_at_checked(WIDE_DIGITS)?,
        None => rest.split_at_checked(DIGITS)?,
    };
    if !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')) {
        return None;
    }
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    // Each character has one escape, so the other spelling of it is an error.
    (wide.is_some() == (c >= WIDE_FROM)).then_some((c, after))
}

/// Returns the length in bytes of the escaped text at the start of `key`: up to `terminator`, or the whole
/// key if that is `None`, as for the last part. Returns `None` if `terminator` does not follow, or if the
/// text holds an escape or a character that the writer of such a part never writes.
pub(super) fn escaped_prefix_length(key: &str, terminator: Option<char>) -> Option<usize> {
    // Nearly all text consists of plain characters, which need no further look.
    // No key may hold U+0000, so it can stand for the missing terminator.
    let end = terminator.unwrap_or('\0');
    let is_plain = |byte: u8| {
        is_ascii_allowed_in_key(byte) && !matches!(char::from(byte), c if c == ESCAPE || c == end)
    };
    let plain = key.bytes().position(|byte| !is_plain(byte)).unwrap_or(key.len());
    let mut rest = key.get(plain..)?;
    while let Some(c) = rest.chars().next() {
        // A terminator can also be a hex digit; the digits of an escape are skipped with it.
        if Some(c) == terminator {
            return Some(key.len() - rest.len());
        }
        let after = rest.get(c.len_utf8()..)?;
        rest = if c == ESCAPE {
            let (escaped, after) = read_escape(after)?;
            // The writer escapes no other characters. An escape of any other character would give one text two keys.
            is_escaped(escaped, terminator).then_some(after)?
        } else if is_forbidden_in_key(c) {
            return None;
        } else {
            after
        };
    }
    terminator.is_none().then_some(key.len())
}
