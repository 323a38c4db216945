//! The value of a setting that may be given once, with the span of its name.

use proc_macro2::{Ident, Span};

/// The value of a setting that may be given once, such as `rename = ".."`.
#[derive(Debug)]
pub(crate) struct OnceSetting<T> {
    /// The setting's name. Kept even if the value is malformed, to avoid reporting the setting as missing.
    key: Option<Ident>,
    value: Option<T>,
    /// Whether a misspelt name means this setting, which is then not reported as missing.
    is_meant: bool,
}

impl<T> Default for OnceSetting<T> {
    fn default() -> Self {
        Self { key: None, value: None, is_meant: false }
    }
}

impl<T> OnceSetting<T> {
    /// Stores the value. Fails if the value is an error, or if the setting was given before.
    pub(crate) fn set_once(&mut self, key: &Ident, value: syn::Result<T>) -> syn::Result<()> {
        if self.key.is_some() {
            let message = format!("`{key}` is set twice; remove one");
            return Err(syn::Error::new(key.span(), message));
        }
        // Store the name before checking the value: a malformed value must not also be reported as a missing
        // setting.
        self.key = Some(key.clone());
        self.value = Some(value?);
        Ok(())
    }

    /// Records that a misspelt name means this setting. The setting then counts as given and is not reported as
    /// missing.
    pub(crate) fn mark_misspelt(&mut self) {
        self.is_meant = true;
    }

    /// Returns the value if the setting was given and is well formed.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Returns the span of the setting's name. Returns `None` if the setting was not given, or was misspelt.
    pub(crate) fn span(&self) -> Option<Span> {
        self.key.as_ref().map(Ident::span)
    }

    /// Returns whether the setting was given.
    pub(crate) fn is_set(&self) -> bool {
        self.key.is_some() || self.is_meant
    }

    /// Returns whether the setting was given with a malformed value or a misspelt name. Nothing can be derived from
    /// its value then.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.is_set() && self.value.is_none()
    }
}
