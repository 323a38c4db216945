//! Generates the implementation of `Message`: its name, its version, and how it is stored.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Message;

/// The impl of `Message`.
pub(super) fn emit(message: &Message) -> TokenStream {
    let Message { ident, name, version, .. } = message;
    quote! {
        #[automatically_derived]
        impl _rt::Message for #ident {
            const NAME: &'static _rt::str = #name;
            const VERSION: _rt::u32 = #version;
        }
    }
}
