//! Describes a struct with `#[derive(Message)]`.

use proc_macro2::Ident;
use syn::{Data, DeriveInput, LitStr};

use super::{CodeBlock, refuse_generics};
use crate::{
    attr::{self, MessageAttr},
    errors::Errors,
    names,
};

/// A struct that is sent as a message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) ident: Ident,
    pub(crate) block: CodeBlock,
    /// The type name in stored messages. Workers find the handler of a message by this name: `name = ".."`, or the name
    /// of the struct.
    pub(crate) name: LitStr,
    pub(crate) version: u32,
    /// Whether messages need an authenticity code: `Some(true)` for `authenticated`, `Some(false)` for
    /// `unauthenticated`, `None` without either.
    pub(crate) authenticated: Option<bool>,
    /// The time, in seconds, after which a message is no longer handled.
    pub(crate) expires: Option<u64>,
}

impl Message {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "Message", errors);
        let attr = MessageAttr::read(&input.attrs, errors);
        let (yes, no) = (attr.authenticated.get().is_some(), attr.unauthenticated.get().is_some());
        if let (true, Some(span)) = (yes, attr.unauthenticated.span()) {
            let message =
                "`authenticated` and `unauthenticated` cannot be combined: remove one of them";
            errors.add_at(span, message);
        }
        refuse_settings_inside(input, errors);
        let named = || LitStr::new(&names::ident_text(&input.ident), input.ident.span());
        Self {
            ident: names::generated_ident_of(&input.ident),
            block: CodeBlock::new(&attr.runtime, input, errors),
            name: attr.name.get().cloned().unwrap_or_else(named),
            version: attr.version.get().map_or(1, |(version, _)| *version),
            authenticated: (yes || no).then_some(yes),
            expires: attr.expires.get().copied(),
        }
    }
}

/// Reports settings on the fields and variants of a message, which serde writes.
fn refuse_settings_inside(input: &DeriveInput, errors: &mut Errors) {
    let hint = "serde serializes messages; write `#[serde(..)]`";
    let variants = match &input.data {
        Data::Enum(data) => data.variants.iter().collect(),
        Data::Struct(_) | Data::Union(_) => Vec::new(),
    };
    for variant in &variants {
        attr::refuse_settings(&variant.attrs, "a variant of a message", hint, errors);
    }
    let own_fields = match &input.data {
        Data::Struct(data) => Some(&data.fields),
        Data::Enum(_) | Data::Union(_) => None,
    };
    let fields = variants.iter().map(|variant| &variant.fields).chain(own_fields);
    for field in fields.flatten() {
        attr::refuse_settings(&field.attrs, "a field of a message", hint, errors);
    }
}
