//! Whether two families of rows can meet in one key; runs in const evaluation.
//!
//! Cheap tests first: most families differ in their literal prefix. What these cannot tell apart
//! counts as meeting, so that an answer of `false` is a proof.

use super::{Family, Form, Part, Segment, Template};

/// Whether a row of `a` and a row of `b` could have the same PartitionKey and RowKey.
pub const fn families_meet(a: &Family, b: &Family) -> bool {
    templates_meet(&a.row, &b.row) && templates_meet(&a.partition, &b.partition)
}

/// Whether a key of `a` could be a key of `b`.
pub const fn templates_meet(a: &Template, b: &Template) -> bool {
    if !prefixes_meet(a.literal_prefix().as_bytes(), b.literal_prefix().as_bytes()) {
        return false;
    }
    match (fixed_length(a.segments), fixed_length(b.segments)) {
        (Some(a_length), Some(b_length)) => {
            a_length == b_length && positions_meet(a.segments, b.segments, a_length)
        }
        (Some(length), None) => length >= least_length(b.segments),
        (None, Some(length)) => length >= least_length(a.segments),
        (None, None) => true,
    }
}

const fn prefixes_meet(a: &[u8], b: &[u8]) -> bool {
    let (mut a, mut b) = (a, b);
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
        if *first_a != *first_b {
            return false;
        }
        (a, b) = (rest_a, rest_b);
    }
    // A key that ends here and one that goes on are both covered by the longer prefix.
    true
}

/// Bytes of a key whose parts are all of fixed width and ASCII.
const fn fixed_length(segments: &[Segment]) -> Option<usize> {
    let mut rest = segments;
    let mut length = 0;
    while let [first, after @ ..] = rest {
        match first {
            Segment::Literal(text) => length += text.len(),
            Segment::Part(Part { width: Some(width), .. }) => length += *width,
            Segment::Part(_) => return None,
        }
        rest = after;
    }
    Some(length)
}

/// Bytes that the shortest key of the template has.
const fn least_length(segments: &[Segment]) -> usize {
    let mut rest = segments;
    let mut length = 0;
    while let [first, after @ ..] = rest {
        match first {
            Segment::Literal(text) => length += text.len(),
            Segment::Part(Part { width: Some(width), .. }) => length += *width,
            Segment::Part(_) => {}
        }
        rest = after;
    }
    length
}

/// What a fixed-width key can hold at a place.
#[derive(Clone, Copy)]
enum Place {
    Byte(u8),
    Digit,
    Anything,
}

const fn positions_meet(a: &[Segment], b: &[Segment], length: usize) -> bool {
    let mut at = 0;
    while at < length {
        let meet = match (place(a, at), place(b, at)) {
            (Place::Byte(a), Place::Byte(b)) => a == b,
            (Place::Byte(byte), Place::Digit) | (Place::Digit, Place::Byte(byte)) => {
                byte.is_ascii_digit()
            }
            _ => true,
        };
        if !meet {
            return false;
        }
        at += 1;
    }
    true
}

const fn place(segments: &[Segment], at: usize) -> Place {
    let (mut rest, mut at) = (segments, at);
    while let [first, after @ ..] = rest {
        match first {
            Segment::Literal(text) => {
                let mut bytes = text.as_bytes();
                while let [byte, after @ ..] = bytes {
                    if at == 0 {
                        return Place::Byte(*byte);
                    }
                    at -= 1;
                    bytes = after;
                }
            }
            Segment::Part(Part { width: Some(width), form, .. }) => {
                if at < *width {
                    return match form {
                        Form::Width(_) | Form::Descending | Form::Bucket(_) => Place::Digit,
                        _ => Place::Anything,
                    };
                }
                at -= *width;
            }
            Segment::Part(_) => return Place::Anything,
        }
        rest = after;
    }
    Place::Anything
}
