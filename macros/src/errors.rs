//! Collects mistakes, to report all mistakes of one derive together.

use std::fmt::Display;

use proc_macro2::Span;

/// The mistakes found so far in the input of one derive.
#[derive(Debug, Default)]
#[must_use = "errors must be reported"]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
    /// Set if a part of the input could not be read. Anything that seems missing may be in it.
    is_incomplete: bool,
}

impl Errors {
    /// Adds a compile error.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    /// Adds a compile error with its span and message.
    pub(crate) fn add_at(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Adds a mistake that prevents the rest of an attribute, or the fields of the type, from being read.
    pub(crate) fn add_unreadable(&mut self, error: syn::Error) {
        self.mark_incomplete();
        self.push(error);
    }

    /// Records that something could not be read, for example because of a mistake that was added before.
    pub(crate) fn mark_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// Returns whether the type seems to have no fields (`count` is 0) only because something could not be read.
    pub(crate) fn may_have_unread_fields(&self, count: usize) -> bool {
        count == 0 && self.is_incomplete
    }

    /// Adds the mistake that something is missing. Adds nothing if the input was not read completely, because the
    /// missing thing may be in the unread rest.
    pub(crate) fn add_unless_incomplete(&mut self, span: Span, message: impl Display) {
        if !self.is_incomplete {
            self.add_at(span, message);
        }
    }

    /// Returns the value of `Ok`. Keeps the mistake of `Err` and returns `None`.
    pub(crate) fn take_ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(error);
                None
            }
        }
    }

    /// Returns all mistakes as one error, or `Ok` if there are none.
    pub(crate) fn into_result(self) -> syn::Result<()> {
        let combined = self.found.into_iter().reduce(|mut all, next| {
            all.combine(next);
            all
        });
        combined.map_or(Ok(()), Err)
    }
}
