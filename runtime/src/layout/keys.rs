//! Compares the templates of keys.

use super::shape::{EntityShape, KeyTemplateShape, Piece, RowsShape, split_template};

/// How two templates differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyChange {
    Equal,
    /// Only names of fields differ, so that keys stay as they are. Holds the old and the new names.
    Renamed(Vec<(String, String)>),
    Other,
}

/// The layout of one version of an entity type before and after a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct OldAndNewEntity<'s> {
    pub(super) old: &'s EntityShape,
    pub(super) new: &'s EntityShape,
}

impl OldAndNewEntity<'_> {
    /// Compares two templates: they are equal, differ only in names of fields, or differ otherwise. A field
    /// counts as renamed if the old layout has no field of the new name, and the new layout has no field of the
    /// old name.
    pub(super) fn compare_key_templates(
        self,
        old: &KeyTemplateShape,
        new: &KeyTemplateShape,
    ) -> KeyChange {
        if old == new {
            return KeyChange::Equal;
        }
        let (was, is): (Vec<_>, Vec<_>) =
            (split_template(&old.template).collect(), split_template(&new.template).collect());
        // The template does not show the width of a plain part, which follows from the field's
        // type.
        if old.widths != new.widths || was.len() != is.len() {
            return KeyChange::Other;
        }
        let mut renamed = Vec::new();
        for (was, is) in was.into_iter().zip(is) {
            match (was, is) {
                (was, is) if was == is => {}
                (
                    Piece::Part { field: was, form: old_form },
                    Piece::Part { field: is, form: new_form },
                ) if old_form == new_form
                    && !self.old.has_property_or_key_field(is)
                    && !self.new.has_property_or_key_field(was) =>
                {
                    renamed.push((was.to_owned(), is.to_owned()));
                }
                _ => return KeyChange::Other,
            }
        }
        KeyChange::Renamed(renamed)
    }

    /// Returns whether two row families have equal keys, apart from names of fields.
    pub(super) fn has_equal_or_renamed_keys(self, old: &RowsShape, new: &RowsShape) -> bool {
        self.compare_key_templates(&old.partition, &new.partition) != KeyChange::Other
            && self.compare_key_templates(&old.row, &new.row) != KeyChange::Other
    }
}
