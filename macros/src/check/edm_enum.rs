//! Checks enums that are stored as text.

use std::collections::HashMap;

use crate::{errors::Errors, model::EdmEnum};

/// Reports two variants with the same text, which readers could not distinguish.
pub(super) fn report_equal_texts(edm_enum: &EdmEnum, errors: &mut Errors) {
    let mut seen = HashMap::new();
    let known = edm_enum.variants.iter().filter(|variant| !variant.is_text_lost);
    for variant in known.filter(|_| !edm_enum.is_case_lost) {
        if let Some(first) = seen.insert(variant.text.as_str(), &variant.ident) {
            let (ident, text) = (&variant.ident, &variant.text);
            let message = format!("`{first}` and `{ident}` are both stored as `{text}`");
            errors.add_at(variant.span, message);
        }
    }
}
