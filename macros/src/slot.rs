//! Holds the value of a setting that may be given once, with the span of its name.

use proc_macro2::{Ident, Span};

/// The value of a setting that may be given once, such as `rename = ".."`.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    taken: Option<(Ident, T)>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { taken: None }
    }
}

impl<T> Slot<T> {
    /// Stores the value. Fails if the value is an error, or if one was stored before.
    pub(crate) fn set(&mut self, key: &Ident, value: syn::Result<T>) -> syn::Result<()> {
        if self.taken.is_some() {
            let message = format!("`{key}` is given twice, expected it once");
            return Err(syn::Error::new(key.span(), message));
        }
        self.taken = Some((key.clone(), value?));
        Ok(())
    }

    /// Returns the value, if the setting was given.
    pub(crate) fn get(&self) -> Option<&T> {
        self.taken.as_ref().map(|(_, value)| value)
    }

    /// Returns the span of the setting's name, if it was given.
    pub(crate) fn span(&self) -> Option<Span> {
        self.taken.as_ref().map(|(key, _)| key.span())
    }

    /// Returns whether the setting was given.
    pub(crate) fn is_set(&self) -> bool {
        self.taken.is_some()
    }
}
