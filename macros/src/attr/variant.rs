//! Reads `#[table(..)]` attributes of the variants of an enum with `#[derive(EdmEnum)]`.

use syn::{Attribute, LitStr};

use super::read_settings;
use crate::{errors::Errors, once_setting::OnceSetting};

/// Settings in `#[table(..)]` on a variant that is stored as text.
#[derive(Debug, Default)]
pub(crate) struct VariantAttr {
    pub(crate) rename: OnceSetting<LitStr>,
}

impl VariantAttr {
    /// Reads all `#[table(..)]` attributes of the variant.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let taken = match setting.name().as_str() {
                "rename" => read.rename.set_once(&setting.key, setting.string()),
                _ => {
                    if setting.guess_known_name(&["rename"]).is_some() {
                        read.rename.mark_misspelt();
                    }
                    setting.refuse_unknown("variant", &["rename"])
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}
