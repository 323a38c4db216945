//! Holds the value of a setting that may be given once, with the span of its name.

use proc_macro2::{Ident, Span};

/// The value of a setting that may be given once, such as `rename = ".."`.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    /// The setting's name. Kept for a malformed value too, so that the setting is not called missing.
    key: Option<Ident>,
    value: Option<T>,
    /// Whether a misspelt name means the setting: such a setting is not called missing.
    is_meant: bool,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { key: None, value: None, is_meant: false }
    }
}

impl<T> Slot<T> {
    /// Stores the value. Fails if the value is an error, or if the setting was given before.
    pub(crate) fn set_once(&mut self, key: &Ident, value: syn::Result<T>) -> syn::Result<()> {
        if self.key.is_some() {
            let message = format!("`{key}` is given twice, expected it once");
            return Err(syn::Error::new(key.span(), message));
        }
        // The name is kept before the value is looked at: a malformed value must not be reported as
        // a missing setting too.
        self.key = Some(key.clone());
        self.value = Some(value?);
        Ok(())
    }

    /// Notes that a misspelt name was meant as this setting, so that the setting counts as given and is
    /// not called missing.
    pub(crate) fn mark_misspelt(&mut self) {
        self.is_meant = true;
    }

    /// Returns the value, if the setting was given and its value is well formed.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Returns the span of the setting's name. Returns `None` if the setting was not given, and for a
    /// misspelt name.
    pub(crate) fn span(&self) -> Option<Span> {
        self.key.as_ref().map(Ident::span)
    }

    /// Returns whether the setting was given.
    pub(crate) fn is_set(&self) -> bool {
        self.key.is_some() || self.is_meant
    }

    /// Returns whether the setting was given with a malformed value or a misspelt name: what follows
    /// from its value is not known.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.is_set() && self.value.is_none()
    }
}
