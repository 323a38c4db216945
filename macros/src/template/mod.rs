//! Parses key templates such as `empid_{id:06}`: literal text, and parts in braces.
//!
//! Works on text alone. Whether a field exists, and what its type supports, is checked later. Stable Rust has no
//! spans inside a literal, so a fault repeats the template with a caret under the place.

mod date;
mod lex;
mod parse;

use std::ops::Range;

pub(crate) use self::{date::Fineness, parse::parse};

/// A piece of a template.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Text that is in every key, with its range of characters in the template.
    Literal(String, Range<usize>),
    /// A field in braces.
    Part {
        /// The field's name.
        field: String,
        /// The form of the field in the key.
        form: Form,
        /// The range of characters in the template, including braces.
        place: Range<usize>,
    },
    /// Braces without a valid field name, which have a fault.
    Lost,
}

/// The form in which a part writes its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// `{f}`: the type's own form.
    Plain,
    /// `{f:06}`: decimal, padded with zeros to this width.
    Width(usize),
    /// `{f:desc}`: newest or largest first.
    Descending,
    /// `{f:%Y%m%d}`: a date form and its smallest unit.
    Date(String, Fineness),
    /// `{f:lower}`: text in lower case.
    Lower,
    /// `{f:bucket(16)}`: a hash of the field, less than this number.
    Bucket(u32),
    /// `{f:hmac}`: a keyed hash of the field.
    Hmac,
}

/// A mistake in a template, with its range of characters.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    place: Range<usize>,
}

impl Fault {
    /// Creates a fault at a range of characters.
    pub(crate) fn new(place: &Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), place: place.clone() }
    }

    /// Returns the message, then the template, then carets under the mistake.
    pub(crate) fn message_with_carets(&self, template: &str) -> String {
        let shown: String =
            template.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let before = " ".repeat(self.place.start);
        let carets = "^".repeat(self.place.len().max(1));
        format!("{}\n  \"{shown}\"\n   {before}{carets}", self.message)
    }
}

/// Returns why a literal must not contain the character, or `None` if it may.
fn forbidden(c: char) -> Option<String> {
    match c {
        '/' | '\\' | '#' | '?' => Some(format!("the service does not allow `{c}` in keys")),
        '~' => Some("`~` is reserved in keys: the library escapes characters with it".to_owned()),
        c if c.is_control() => Some(format!(
            "the service does not allow control characters such as `{}` in keys",
            c.escape_default()
        )),
        _ => None,
    }
}
