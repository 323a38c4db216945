//! Compares the templates of keys.

use super::{
    shape::{EntityShape, KeyTemplateShape, RowsShape, TemplatePiece, split_template},
    types::writes_other_key,
};
use crate::key::FamilyKind;

/// Returns the layout of the primaries of a type's version, or `None` if it has no such family.
pub(super) fn primary_layout(entity: &EntityShape) -> Option<&RowsShape> {
    entity.rows.iter().find(|rows| rows.kind == FamilyKind::Primary)
}

/// How two templates differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyChange {
    Equal,
    /// Only field names differ, so keys are unchanged. Holds the old and new names.
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
        let (was, is): (Vec<_>, Vec<_>) =
            (split_template(&old.template).collect(), split_template(&new.template).collect());
        // The template does not show the width of a plain part, which follows from the field's
        // type.
        if old.widths != new.widths
            || was.len() != is.len()
            || !self.key_type_changes(old, new).is_empty()
        {
            return KeyChange::Other;
        }
        let mut renamed = Vec::new();
        for (was, is) in was.into_iter().zip(is) {
            match (was, is) {
                (was, is) if was == is => {}
                (
                    TemplatePiece::Part { field: was, form: old_form },
                    TemplatePiece::Part { field: is, form: new_form },
                ) if old_form == new_form
                    // A token depends on the field's name.
                    && new_form != "hmac"
                    && !self.old.has_property_or_key_field(is)
                    && !self.new.has_property_or_key_field(was) =>
                {
                    renamed.push((was.to_owned(), is.to_owned()));
                }
                _ => return KeyChange::Other,
            }
        }
        if renamed.is_empty() { KeyChange::Equal } else { KeyChange::Renamed(renamed) }
    }

    /// Returns the type changes that make two templates write different keys, as text to append to the
    /// templates. Empty if there are none.
    pub(super) fn key_type_changes(self, old: &KeyTemplateShape, new: &KeyTemplateShape) -> String {
        let changed =
            old.template_parts().zip(new.template_parts()).filter_map(|((was, form), (is, _))| {
                let (old, new) = (self.old.type_of_key_part(was)?, self.new.type_of_key_part(is)?);
                writes_other_key(form, old, new)
                    .then(|| format!(", `{was}` was {old} and is {new}"))
            });
        changed.collect()
    }

    /// Returns whether the keys of stored primaries differ from those that the code writes.
    pub(super) fn has_other_primary_keys(self) -> bool {
        match (primary_layout(self.old), primary_layout(self.new)) {
            (Some(old), Some(new)) => !self.has_equal_or_renamed_keys(old, new),
            _ => false,
        }
    }

    /// Returns whether the field is in the primary's keys in the layout file, but not in the code.
    pub(super) fn is_key_field_that_moved(self, name: &str) -> bool {
        let holds = |entity: &EntityShape| {
            primary_layout(entity).is_some_and(|rows| {
                let keys = [&rows.partition, &rows.row];
                keys.into_iter().any(|key| key.template_parts().any(|(field, _)| field == name))
            })
        };
        holds(self.old) && !holds(self.new)
    }

    /// Returns whether two row families have equal keys, apart from names of fields.
    pub(super) fn has_equal_or_renamed_keys(self, old: &RowsShape, new: &RowsShape) -> bool {
        self.compare_key_templates(&old.partition, &new.partition) != KeyChange::Other
            && self.compare_key_templates(&old.row, &new.row) != KeyChange::Other
    }
}
