//! A message.

use proc_macro2::Ident;
use syn::{DeriveInput, LitStr, Path};

use super::{refuse_generics, runtime};
use crate::{attr::MessageAttr, errors::Errors, names};

/// A message of the user's own.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) ident: Ident,
    pub(crate) runtime: Path,
    /// What the message is called where it is stored.
    pub(crate) name: LitStr,
    pub(crate) version: u32,
}

impl Message {
    /// The message that the input declares.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "Message", errors);
        let attr = MessageAttr::read(&input.attrs, errors);
        let named = || LitStr::new(&names::unraw(&input.ident), input.ident.span());
        Self {
            ident: input.ident.clone(),
            runtime: runtime(&attr.runtime),
            name: attr.name.get().cloned().unwrap_or_else(named),
            version: attr.version.get().map_or(1, |(version, _)| *version),
        }
    }
}
