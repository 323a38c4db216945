//! Decides at compile time whether two row families can have a key in common.
//!
//! The functions walk two templates side by side, one character class against the other, like two
//! regular expressions in search of a common text. `false` is a proof that no key fits both
//! templates; `true` can be wrong, because the walk gives up after a fixed number of steps.
//! Literals that differ at the start of a key, as most do, end the walk at once.

use super::{
    Form, RowFamily, Segment, Template, TemplatePart,
    date::{DatePiece, next_date_piece},
};
use crate::limits::is_forbidden_in_key;

/// Maximum number of steps. The walk then gives up and returns `true`. Const evaluation is slow, and the compiler warns
/// when it takes long.
const STEPS: u32 = 4000;

/// Returns whether a row of `a` and a row of `b` can have the same address: equal table,
/// PartitionKey and RowKey. `false` is a proof; `true` can be wrong.
pub const fn families_may_collide(a: &RowFamily, b: &RowFamily) -> bool {
    may_tables_be_equal(a.table, b.table)
        && templates_may_collide(&a.row, &b.row)
        && templates_may_collide(&a.partition, &b.partition)
}

/// Returns whether two row families are in one table of some store.
// Case does not count in names here: a declaration has to be right for stores of both rules.
const fn may_tables_be_equal(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        (None, None) => true,
        _ => false,
    }
}

/// Returns whether one text can be a key of both templates. `false` is a proof; `true` can be
/// wrong.
///
/// ```
/// # use entable_core::key::{Form, TemplatePart, Segment, Template, templates_may_collide};
/// const NAME: Segment = Segment::Part(TemplatePart::new("Name", Form::Plain, None));
/// const EMPLOYEE: Template = Template { text: "{name}_e", segments: &[NAME, Segment::Literal("_e")] };
/// const REVIEW: Template = Template { text: "{name}_r", segments: &[NAME, Segment::Literal("_r")] };
/// const ANY: Template = Template { text: "{name}", segments: &[NAME] };
///
/// const { assert!(!templates_may_collide(&EMPLOYEE, &REVIEW)) };
/// const { assert!(templates_may_collide(&EMPLOYEE, &ANY)) };
/// ```
pub const fn templates_may_collide(a: &Template, b: &Template) -> bool {
    let mut steps = STEPS;
    may_have_common_text(Position::start_of_template(a), Position::start_of_template(b), &mut steps)
}

/// The characters that a key can have at a [`Position`].
#[derive(Clone, Copy)]
enum NextChars {
    /// The key ends here.
    End,
    /// One character of this class.
    One(Class),
    /// Escaped text of any length, up to this terminator or to the end of the key.
    Text(Option<char>),
}

/// A class of characters that a key can have at one position.
#[derive(Clone, Copy)]
enum Class {
    This(char),
    Digit,
    /// A hex digit of an escape, or the `A` that starts a six-digit escape.
    Hex,
    /// A character of a blind token of a secret value.
    Token,
    Any,
}

impl Class {
    const fn shares_a_char(self, other: Self) -> bool {
        match (self, other) {
            (Self::This(a), Self::This(b)) => a == b,
            (Self::This(c), class) | (class, Self::This(c)) => class.holds_char(c),
            // Any two of the remaining classes have the digit 0 in common.
            _ => true,
        }
    }

    const fn holds_char(self, c: char) -> bool {
        match self {
            Self::This(this) => this == c,
            Self::Digit => c.is_ascii_digit(),
            Self::Hex => is_hex(c),
            Self::Token => matches!(c, '0'..='9' | 'a'..='v'),
            Self::Any => true,
        }
    }

    /// Returns whether escaped text that ends at `terminator` can contain a character of this
    /// class.
    const fn meets_text(self, terminator: Option<char>) -> bool {
        let Self::This(c) = self else { return true };
        match terminator {
            // The text escapes its own terminator, so this character can occur only as a hex digit.
            Some(end) if end == c => is_hex(c),
            _ => !is_forbidden_in_key(c),
        }
    }
}

/// Returns whether the character is a hex digit of an escape. This includes the `A` that starts a
/// six-digit escape.
const fn is_hex(c: char) -> bool {
    matches!(c, '0'..='9' | 'A'..='F')
}

/// A position in a template's keys: how many segments, and how much of the first of them, are left.
#[derive(Clone, Copy)]
struct Position<'t> {
    segments: &'t [Segment],
    /// Offset into the first segment: bytes of a literal, or characters of a part of fixed width.
    /// In escaped text, 1 directly after the `~` of an escape.
    at: usize,
}

impl<'t> Position<'t> {
    const fn start_of_template(template: &Template) -> Position<'static> {
        Position { segments: template.segments, at: 0 }.skip_finished()
    }

    /// Skips segments that are read to their end.
    const fn skip_finished(self) -> Self {
        let mut position = self;
        while let [first, rest @ ..] = position.segments {
            let is_over = match first {
                Segment::Literal(text) => position.at >= text.len(),
                Segment::Part(TemplatePart { width: Some(width), .. }) => position.at >= *width,
                Segment::Part(_) => false,
            };
            if !is_over {
                break;
            }
            position = Self { segments: rest, at: 0 };
        }
        position
    }

    const fn next(self) -> NextChars {
        match self.segments {
            [] => NextChars::End,
            [Segment::Literal(text), ..] => {
                NextChars::One(match char_at(text.as_bytes(), self.at) {
                    Some((c, _)) => Class::This(c),
                    None => Class::Any,
                })
            }
            [Segment::Part(part), rest @ ..] => match (part.width, self.at) {
                (Some(_), at) => NextChars::One(class_at_offset(part.form, at)),
                (None, 0) => NextChars::Text(first_char(rest)),
                (None, _) => NextChars::One(Class::Hex),
            },
        }
    }

    /// Moves past the one character at this position.
    const fn after_char(self) -> Self {
        let at = match self.segments {
            [Segment::Literal(text), ..] => match char_at(text.as_bytes(), self.at) {
                Some((_, bytes)) => self.at + bytes,
                None => text.len(),
            },
            // The hex digit of an escape was read: go on in the text.
            [Segment::Part(TemplatePart { width: None, .. }), ..] => 0,
            _ => self.at + 1,
        };
        Self { segments: self.segments, at }.skip_finished()
    }

    /// Stays in the escaped text after a character of `class`. After `~` a hex digit follows.
    const fn after_text(self, class: Class) -> Self {
        let in_escape = matches!(class, Class::This('~'));
        Self { segments: self.segments, at: if in_escape { 1 } else { 0 } }
    }

    /// Moves to the segment after the escaped text.
    const fn after_part(self) -> Self {
        match self.segments {
            [_, rest @ ..] => Self { segments: rest, at: 0 }.skip_finished(),
            [] => self,
        }
    }
}

const fn may_have_common_text(a: Position<'_>, b: Position<'_>, steps: &mut u32) -> bool {
    let (mut a, mut b) = (a, b);
    loop {
        if *steps == 0 {
            return true;
        }
        *steps -= 1;
        match (a.next(), b.next()) {
            (NextChars::End, NextChars::End) => return true,
            (NextChars::One(one), NextChars::One(other)) => {
                if !one.shares_a_char(other) {
                    return false;
                }
                (a, b) = (a.after_char(), b.after_char());
            }
            // Both texts go on until one of them ends. The other text then has to match what
            // follows the end, unless one terminator ends both.
            (NextChars::Text(end), NextChars::Text(other)) => {
                if ends_both(end, other) {
                    a = a.after_part();
                } else if may_have_common_text(a.after_part(), b, steps) {
                    return true;
                }
                b = b.after_part();
            }
            // A text may be empty, so what follows it decides.
            (NextChars::Text(_), NextChars::End) => a = a.after_part(),
            (NextChars::End, NextChars::Text(_)) => b = b.after_part(),
            (NextChars::Text(terminator), NextChars::One(class)) => {
                if !class.meets_text(terminator) {
                    a = a.after_part();
                } else if may_have_common_text(a.after_part(), b, steps) {
                    return true;
                } else {
                    (a, b) = (a.after_text(class), b.after_char());
                }
            }
            (NextChars::One(_), NextChars::Text(_)) => (a, b) = (b, a),
            (NextChars::End, NextChars::One(_)) | (NextChars::One(_), NextChars::End) => {
                return false;
            }
        }
    }
}

/// Returns whether two escaped texts end at one position because they have an equal terminator and
/// so equal escapes.
const fn ends_both(a: Option<char>, b: Option<char>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a == b)
}

/// Returns the class of the character at offset `at` of a part of fixed width.
const fn class_at_offset(form: Form, at: usize) -> Class {
    match form {
        Form::Width(_) | Form::Descending | Form::Bucket(_) => Class::Digit,
        Form::Date(form) => class_in_date(form, at),
        Form::Hmac => Class::Token,
        // A user's own type can write anything as its plain form.
        Form::Plain | Form::Lower => Class::Any,
    }
}

const fn class_in_date(form: &str, at: usize) -> Class {
    let mut rest = form.as_bytes();
    let mut before = 0;
    while let Some((piece, after)) = next_date_piece(rest) {
        rest = after;
        let (width, class) = match piece {
            DatePiece::Literal(byte) => (1, Class::This(byte as char)),
            DatePiece::Unit(unit) => (unit.own_digit_count(), Class::Digit),
            DatePiece::Unknown => return Class::Any,
        };
        before += width;
        if at < before {
            return class;
        }
    }
    Class::Any
}

/// Returns the first character if a literal comes next. It terminates a text before it.
const fn first_char(segments: &[Segment]) -> Option<char> {
    match segments {
        [Segment::Literal(text), ..] => match char_at(text.as_bytes(), 0) {
            Some((c, _)) => Some(c),
            None => None,
        },
        _ => None,
    }
}

/// Returns the character that starts at byte `at` of a UTF-8 text, and its length in bytes.
const fn char_at(text: &[u8], at: usize) -> Option<(char, usize)> {
    let Some((_, rest)) = text.split_at_checked(at) else { return None };
    let (code, bytes) = match rest {
        [a, ..] if *a < 0x80 => (*a as u32, 1),
        [a, b, ..] if *a < 0xe0 => (low(*a, 0x1f) << 6 | low(*b, 0x3f), 2),
        [a, b, c, ..] if *a < 0xf0 => (low(*a, 0x0f) << 12 | low(*b, 0x3f) << 6 | low(*c, 0x3f), 3),
        [a, b, c, d, ..] => {
            let high = low(*a, 0x07) << 18 | low(*b, 0x3f) << 12;
            (high | low(*c, 0x3f) << 6 | low(*d, 0x3f), 4)
        }
        _ => return None,
    };
    match char::from_u32(code) {
        Some(c) => Some((c, bytes)),
        None => None,
    }
}

const fn low(byte: u8, mask: u8) -> u32 {
    (byte & mask) as u32
}
