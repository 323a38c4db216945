//! Checks at compile time that properties of flattened structs do not have the names of other properties.

use super::ColumnSchema;
use crate::row::OPERATION_ID;

/// A property's name as a chain of pieces, last piece first.
#[derive(Clone, Copy)]
struct Name<'a> {
    before: Option<&'a Name<'a>>,
    text: &'a [u8],
}

impl Name<'_> {
    /// Removes the last byte of the name and returns it.
    const fn pop_byte(mut self) -> Option<(Self, u8)> {
        loop {
            match (self.text, self.before) {
                ([text @ .., last], _) => return Some((Self { text, ..self }, *last)),
                ([], Some(before)) => self = *before,
                ([], None) => return None,
            }
        }
    }

    const fn is_equal_name(mut self, mut other: Self) -> bool {
        // Names are compared backwards, because each piece refers to the piece before it.
        loop {
            match (self.pop_byte(), other.pop_byte()) {
                (None, None) => return true,
                (Some((one, a)), Some((two, b))) if a == b => (self, other) = (one, two),
                _ => return false,
            }
        }
    }
}

/// Returns how many of the properties that the columns store are called `name`.
const fn count_named(columns: &[ColumnSchema], before: Option<&Name<'_>>, name: Name<'_>) -> usize {
    let mut rest = columns;
    let mut found = 0;
    while let [column, after @ ..] = rest {
        let here = Name { before, text: column.name.as_bytes() };
        if !column.nested.is_empty() {
            found += count_named(column.nested, Some(&here), name);
        } else if column.stored && here.is_equal_name(name) {
            found += 1;
        }
        rest = after;
    }
    found
}

/// Fails the compilation with `message` if a property of a flattened struct has the name of another property
/// of its entity, of the discriminator `marker`, or of a system property.
#[doc(hidden)]
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_flattened(
    entity: &[ColumnSchema],
    marker: &str,
    prefix: &str,
    columns: &[ColumnSchema],
    message: &'static str,
) {
    let prefix = Name { before: None, text: prefix.as_bytes() };
    if !are_names_apart(entity, marker, &prefix, columns) {
        panic!("{}", message);
    }
}

const fn are_names_apart(
    entity: &[ColumnSchema],
    marker: &str,
    prefix: &Name<'_>,
    columns: &[ColumnSchema],
) -> bool {
    let mut rest = columns;
    while let [column, after @ ..] = rest {
        let name = Name { before: Some(prefix), text: column.name.as_bytes() };
        if !column.nested.is_empty() {
            if !are_names_apart(entity, marker, &name, column.nested) {
                return false;
            }
        // The entity's columns include the columns of the flattened struct, so one occurrence is the
        // name itself.
        } else if count_named(entity, None, name) > 1 || is_name_taken(name, marker) {
            return false;
        }
        rest = after;
    }
    true
}

const fn is_name_taken(name: Name<'_>, marker: &str) -> bool {
    let mut rest: &[&str] = &["PartitionKey", "RowKey", "Timestamp", OPERATION_ID, marker];
    while let [taken, after @ ..] = rest {
        if name.is_equal_name(Name { before: None, text: taken.as_bytes() }) {
            return true;
        }
        rest = after;
    }
    false
}
