//! What stands on a variant of an enum that is stored as text.

use syn::{Attribute, LitStr};

use super::entries;
use crate::{errors::Errors, spanned::Slot};

/// `#[table(..)]` on a variant.
#[derive(Debug, Default)]
pub(crate) struct VariantAttr {
    pub(crate) rename: Slot<LitStr>,
}

impl VariantAttr {
    /// Reads the attributes of a variant.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let taken = match entry.name().as_str() {
                "rename" => read.rename.set(&entry.key, entry.string()),
                _ => entry.unknown("variant", &["rename"]),
            };
            errors.take(taken);
        }
        read
    }
}
