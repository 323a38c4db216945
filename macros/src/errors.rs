//! Where mistakes are gathered: all of one input are reported at once.

use std::fmt::Display;

use proc_macro2::Span;

/// The mistakes that were found so far.
#[derive(Debug, Default)]
#[must_use = "the mistakes have to be reported"]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
}

impl Errors {
    /// Adds a mistake.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    /// Adds a mistake at that place.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// The value, or its mistake kept for later.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(error);
                None
            }
        }
    }

    /// All mistakes as one error.
    pub(crate) fn finish(self) -> syn::Result<()> {
        let combined = self.found.into_iter().reduce(|mut all, next| {
            all.combine(next);
            all
        });
        combined.map_or(Ok(()), Err)
    }
}
