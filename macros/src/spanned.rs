//! Values that know where they came from.

use proc_macro2::{Ident, Span};

/// The value of a key that may be given once.
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
    /// Takes the value; a second one is refused, whether or not the first was good.
    pub(crate) fn set(&mut self, key: &Ident, value: syn::Result<T>) -> syn::Result<()> {
        if self.taken.is_some() {
            let message = format!("`{key}` is given twice, expected it once");
            return Err(syn::Error::new(key.span(), message));
        }
        self.taken = Some((key.clone(), value?));
        Ok(())
    }

    /// The value, if it was given.
    pub(crate) fn get(&self) -> Option<&T> {
        self.taken.as_ref().map(|(_, value)| value)
    }

    /// Where its key stands, if it was given.
    pub(crate) fn span(&self) -> Option<Span> {
        self.taken.as_ref().map(|(key, _)| key.span())
    }

    /// Whether it was given.
    pub(crate) fn is_set(&self) -> bool {
        self.taken.is_some()
    }
}
