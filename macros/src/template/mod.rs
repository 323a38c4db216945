//! The grammar of key templates: literal text and parts, `empid_{id:06}`.
//!
//! Purely text: which fields there are, and what their types can do, is for the later stages. Stable
//! Rust has no spans inside a literal, so a fault repeats the template with a caret under its place.

mod date;
mod lex;
mod parse;

use std::ops::Range;

pub(crate) use self::{date::Fineness, parse::parse};

/// A piece of a template.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Text that every key has at this place.
    Literal(String, Range<usize>),
    /// A field.
    Part {
        /// The field's name.
        field: String,
        /// How it is written.
        form: Form,
        /// Where it stands, braces included.
        place: Range<usize>,
    },
}

/// How a part writes its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// `{f}`
    Plain,
    /// `{f:06}`
    Width(usize),
    /// `{f:desc}`
    Descending,
    /// `{f:%Y%m%d}`
    Date(String, Fineness),
    /// `{f:lower}`
    Lower,
    /// `{f:bucket(16)}`
    Bucket(u32),
    /// `{f:hmac}`
    Hmac,
}

/// What is wrong with a template, and where: characters from its start.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    place: Range<usize>,
}

impl Fault {
    /// A fault at that place.
    pub(crate) fn new(place: &Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), place: place.clone() }
    }

    /// The message, the template and a caret line under the place.
    pub(crate) fn render(&self, template: &str) -> String {
        let shown: String =
            template.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let before = " ".repeat(self.place.start);
        let carets = "^".repeat(self.place.len().max(1));
        format!("{}\n  \"{shown}\"\n   {before}{carets}", self.message)
    }
}

/// Whether the service or the escapes forbid that character in a literal, and why.
fn forbidden(c: char) -> Option<String> {
    match c {
        '/' | '\\' | '#' | '?' => Some(format!("the service forbids `{c}` in keys")),
        '~' => Some("`~` is reserved: keys are escaped with it".to_owned()),
        c if c.is_control() => Some(format!(
            "the service forbids control characters such as `{}` in keys",
            c.escape_default()
        )),
        _ => None,
    }
}
