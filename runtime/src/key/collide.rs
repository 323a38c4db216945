//! Whether two families of rows can meet in one key; runs in const evaluation.
//!
//! Two templates are walked side by side, character class against character class, as two regular
//! expressions that ask for a common text. What the walk cannot tell apart counts as meeting, so
//! that an answer of `false` is a proof. Different literals at the front end it at once, which is
//! how most families differ.

use super::{
    Family, Form, Part, Segment, Template,
    date::{Piece, next_piece},
};
use crate::limits::is_forbidden_in_key;

/// Steps after which a proof is given up: const evaluation is slow, and the compiler warns when it
/// takes long.
const STEPS: u32 = 4000;

/// Whether a row of `a` and a row of `b` could have the same PartitionKey and RowKey.
pub const fn families_meet(a: &Family, b: &Family) -> bool {
    tables_meet(a.table, b.table)
        && templates_meet(&a.row, &b.row)
        && templates_meet(&a.partition, &b.partition)
}

/// Whether two families are in one table; names are the same in any case.
const fn tables_meet(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        (None, None) => true,
        _ => false,
    }
}

/// Whether a key of `a` could be a key of `b`. `false` is a proof; `true` may be wrong.
///
/// ```
/// # use entable::key::{Form, Part, Segment, Template, templates_meet};
/// const NAME: Segment = Segment::Part(Part::new("Name", Form::Plain, None));
/// const EMPLOYEE: Template = Template { text: "{name}_e", segments: &[NAME, Segment::Literal("_e")] };
/// const REVIEW: Template = Template { text: "{name}_r", segments: &[NAME, Segment::Literal("_r")] };
/// const ANY: Template = Template { text: "{name}", segments: &[NAME] };
///
/// const { assert!(!templates_meet(&EMPLOYEE, &REVIEW)) };
/// const { assert!(templates_meet(&EMPLOYEE, &ANY)) };
/// ```
pub const fn templates_meet(a: &Template, b: &Template) -> bool {
    let mut steps = STEPS;
    meet(Place::start(a), Place::start(b), &mut steps)
}

/// What a key holds at a place.
#[derive(Clone, Copy)]
enum Next {
    /// Nothing: the key is over.
    End,
    /// One character of this class.
    One(Class),
    /// Escaped text: any number of characters, up to this terminator.
    Text(Option<char>),
}

/// A class of characters.
#[derive(Clone, Copy)]
enum Class {
    This(char),
    Digit,
    /// A digit of an escape.
    Hex,
    /// A character of a token.
    Token,
    Any,
}

impl Class {
    const fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::This(a), Self::This(b)) => a == b,
            (Self::This(c), class) | (class, Self::This(c)) => class.holds(c),
            _ => true,
        }
    }

    const fn holds(self, c: char) -> bool {
        match self {
            Self::This(this) => this == c,
            Self::Digit => c.is_ascii_digit(),
            Self::Hex => is_hex(c),
            Self::Token => matches!(c, '0'..='9' | 'a'..='v'),
            Self::Any => true,
        }
    }

    /// Whether escaped text with that terminator can hold a character of the class.
    const fn meets_text(self, terminator: Option<char>) -> bool {
        let Self::This(c) = self else { return true };
        match terminator {
            // A terminator stands in the text only as a digit of an escape.
            Some(end) if end == c => is_hex(c),
            _ => !is_forbidden_in_key(c),
        }
    }
}

/// Whether the character is a digit of an escape, or the `A` of a wide one.
const fn is_hex(c: char) -> bool {
    matches!(c, '0'..='9' | 'A'..='F')
}

/// A place in the keys of a template.
#[derive(Clone, Copy)]
struct Place<'t> {
    segments: &'t [Segment],
    /// How far into the first segment: bytes of a literal, characters of a part of fixed width; in
    /// text, 1 after the `~` of an escape.
    at: usize,
}

impl<'t> Place<'t> {
    const fn start(template: &Template) -> Place<'static> {
        Place { segments: template.segments, at: 0 }.settled()
    }

    /// The same place, beyond segments that are over.
    const fn settled(self) -> Self {
        let mut place = self;
        while let [first, rest @ ..] = place.segments {
            let is_over = match first {
                Segment::Literal(text) => place.at >= text.len(),
                Segment::Part(Part { width: Some(width), .. }) => place.at >= *width,
                Segment::Part(_) => false,
            };
            if !is_over {
                break;
            }
            place = Self { segments: rest, at: 0 };
        }
        place
    }

    const fn next(self) -> Next {
        match self.segments {
            [] => Next::End,
            [Segment::Literal(text), ..] => Next::One(match char_at(text.as_bytes(), self.at) {
                Some((c, _)) => Class::This(c),
                None => Class::Any,
            }),
            [Segment::Part(part), rest @ ..] => match (part.width, self.at) {
                (Some(_), at) => Next::One(class_in(part.form, at)),
                (None, 0) => Next::Text(first_char(rest)),
                (None, _) => Next::One(Class::Hex),
            },
        }
    }

    /// The place after the one character that stands here.
    const fn after_one(self) -> Self {
        let at = match self.segments {
            [Segment::Literal(text), ..] => match char_at(text.as_bytes(), self.at) {
                Some((_, bytes)) => self.at + bytes,
                None => text.len(),
            },
            // The digit of an escape: back to the text.
            [Segment::Part(Part { width: None, .. }), ..] => 0,
            _ => self.at + 1,
        };
        Self { segments: self.segments, at }.settled()
    }

    /// The place in the same text after a character of that class.
    const fn after_text(self, class: Class) -> Self {
        let in_escape = matches!(class, Class::This('~'));
        Self { segments: self.segments, at: if in_escape { 1 } else { 0 } }
    }

    /// The place where the text here is over.
    const fn after_part(self) -> Self {
        match self.segments {
            [_, rest @ ..] => Self { segments: rest, at: 0 }.settled(),
            [] => self,
        }
    }
}

const fn meet(a: Place<'_>, b: Place<'_>, steps: &mut u32) -> bool {
    let (mut a, mut b) = (a, b);
    loop {
        if *steps == 0 {
            return true;
        }
        *steps -= 1;
        match (a.next(), b.next()) {
            (Next::End, Next::End) => return true,
            (Next::One(one), Next::One(other)) => {
                if !one.meets(other) {
                    return false;
                }
                (a, b) = (a.after_one(), b.after_one());
            }
            // Two texts go on together until one of them is over; the other then holds what ends it,
            // unless that ends the other too.
            (Next::Text(end), Next::Text(other)) => {
                if ends_both(end, other) {
                    a = a.after_part();
                } else if meet(a.after_part(), b, steps) {
                    return true;
                }
                b = b.after_part();
            }
            (Next::Text(_), Next::End) => a = a.after_part(),
            (Next::End, Next::Text(_)) => b = b.after_part(),
            (Next::Text(terminator), Next::One(class)) => {
                if !class.meets_text(terminator) {
                    a = a.after_part();
                } else if meet(a.after_part(), b, steps) {
                    return true;
                } else {
                    (a, b) = (a.after_text(class), b.after_one());
                }
            }
            (Next::One(_), Next::Text(_)) => (a, b) = (b, a),
            (Next::End, Next::One(_)) | (Next::One(_), Next::End) => return false,
        }
    }
}

/// Whether two texts are over at the same place: what ends one ends the other, and has the same
/// escapes in both.
const fn ends_both(a: Option<char>, b: Option<char>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a == b)
}

/// What a part of fixed width holds at a place.
const fn class_in(form: Form, at: usize) -> Class {
    match form {
        Form::Width(_) | Form::Descending | Form::Bucket(_) => Class::Digit,
        Form::Date(form) => class_in_date(form, at),
        // The type's own form: a type of the user's may write anything.
        Form::Hmac => Class::Token,
        Form::Plain | Form::Lower => Class::Any,
    }
}

const fn class_in_date(form: &str, at: usize) -> Class {
    let mut rest = form.as_bytes();
    let mut before = 0;
    while let Some((piece, after)) = next_piece(rest) {
        rest = after;
        let (width, class) = match piece {
            Piece::Literal(byte) => (1, Class::This(byte as char)),
            Piece::Unit(unit) => (unit.width(), Class::Digit),
            Piece::Unknown => return Class::Any,
        };
        before += width;
        if at < before {
            return class;
        }
    }
    Class::Any
}

/// The character that a literal begins with, if one comes next: what ends a text before it.
const fn first_char(segments: &[Segment]) -> Option<char> {
    match segments {
        [Segment::Literal(text), ..] => match char_at(text.as_bytes(), 0) {
            Some((c, _)) => Some(c),
            None => None,
        },
        _ => None,
    }
}

/// The character at a byte of a UTF-8 text, and its bytes.
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
