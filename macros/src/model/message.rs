//! Describes a struct with `#[derive(Message)]`.

use proc_macro2::Ident;
use syn::{DeriveInput, LitStr, Path};

use super::{refuse_generics, runtime_path};
use crate::{attr::MessageAttr, errors::Errors, names};

/// A struct that is sent as a message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) ident: Ident,
    pub(crate) runtime: Path,
    /// The name under which messages of this type are stored.
    pub(crate) name: LitStr,
    pub(crate) version: u32,
    /// Whether messages need a code: `Some(true)` for `authenticated`, `Some(false)` for
    /// `unauthenticated`, `None` without either.
    pub(crate) authenticated: Option<bool>,
    /// The time after which a message is not handled any more, in seconds.
    pub(crate) expires: Option<u64>,
}

impl Message {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "Message", errors);
        let attr = MessageAttr::read(&input.attrs, errors);
        let (yes, no) = (attr.authenticated.get().is_some(), attr.unauthenticated.get().is_some());
        if yes && no {
            let message = "a message is `authenticated` or `unauthenticated`, and this is both: leave one out";
            errors.add_at(input.ident.span(), message);
        }
        let named = || LitStr::new(&names::ident_text(&input.ident), input.ident.span());
        Self {
            ident: input.ident.clone(),
            runtime: runtime_path(&attr.runtime, input, errors),
            name: attr.name.get().cloned().unwrap_or_else(named),
            version: attr.version.get().map_or(1, |(version, _)| *version),
            authenticated: (yes || no).then_some(yes),
            expires: attr.expires.get().copied(),
        }
    }
}
