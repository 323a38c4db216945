//! Finds the indexes and lists that no pattern reads, among the types that the patterns use.

use std::fmt;

use super::{access_patterns::AccessPatterns, question::QuestionCall};
use crate::{entity::Schema, key::RowFamily};

/// The name in `allow(..)` that silences notes about indexes and lists that no pattern reads.
const UNREAD_INDEX: &str = "unread_index";

/// A remark about an index or list. It fails no check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The entity type.
    pub entity: String,
    /// The index or list.
    pub rows: String,
    /// The remark, and what to do.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.entity, self.text)
    }
}

impl AccessPatterns {
    /// Returns the indexes and lists that no pattern reads, of the types that the patterns use. Each write of an entity
    /// also writes its copies and lists. A `unique` index is useful even if nothing reads it, and gets no note.
    /// `#[table(allow(unread_index))]` silences the notes about a type.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    ///         index(ByName, row_key = "name_{last_name}_{id:06}"))]
    /// pub struct Employee { pub department: String, pub id: u32, pub last_name: String }
    ///
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "hire" write insert::<Employee>();
    /// }
    /// let notes = STAFF.notes();
    /// assert_eq!(notes.len(), 1);
    /// assert!(notes[0].to_string().starts_with("Employee: no pattern reads index `ByName`"));
    /// ```
    pub fn notes(&self) -> Vec<Note> {
        let patterns = self.patterns();
        let calls: Vec<&QuestionCall> =
            patterns.iter().flat_map(|pattern| &pattern.question.calls).collect();
        let mut notes = Vec::new();
        for schema in calls.iter().filter_map(|call| call.schema) {
            let is_read = |family: &RowFamily| {
                calls.iter().any(|call| {
                    call.family.is_some_and(|read| is_same(read, family))
                        && call.schema.is_none_or(|of| of.entity_type == schema.entity_type)
                })
            };
            for note in unread_row_notes(schema, is_read) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes
    }
}

fn is_same(one: &RowFamily, other: &RowFamily) -> bool {
    (one.name, one.marker) == (other.name, other.marker)
}

/// Returns a note for each index and list of the type that no pattern reads.
fn unread_row_notes(schema: &Schema, is_read: impl Fn(&RowFamily) -> bool) -> Vec<Note> {
    if schema.silenced_notes.contains(&UNREAD_INDEX) {
        return Vec::new();
    }
    let derived = schema.families.iter().filter(|family| !family.is_primary() && !family.unique);
    let unread = derived.filter(|family| !is_read(family));
    let note = |family: &RowFamily| {
        let kind = if family.is_list() { "list" } else { "index" };
        Note {
            entity: schema.entity_type.to_owned(),
            rows: family.name.to_owned(),
            text: format!(
                "no pattern reads {kind} `{}`, which each write maintains: add the question that it answers, remove it, or write `allow({UNREAD_INDEX})`",
                family.name
            ),
        }
    };
    unread.map(note).collect()
}
