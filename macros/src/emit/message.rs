//! Generates the implementation of `Message`: the message's name and version, its expiry, and
//! whether it must be authentic.

use crate::model::Message;
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the impl of `Message`.
pub(super) fn emit_message(message: &Message) -> TokenStream {
    let Message { ident, name, version, .. } = message;
    let authenticity = message.authenticated.map(|is_required| {
        let variant = if is_required { quote!(Required) } else { quote!(NotRequired) };
        quote! {
            const AUTHENTICITY: _rt::MessageAuthenticity = _rt::MessageAuthenticity::#variant;
        }
    });
    let expires = message.expires.map(|seconds| {
        quote! {
            const EXPIRES: ::core::option::Option<::core::time::Duration> =
                ::core::option::Option::Some(::core::time::Duration::from_secs(#seconds));
        }
    });
    quote! {
        #[automatically_derived]
        impl _rt::Message for #ident {
            const NAME: &'static _rt_str = #name;
            const VERSION: _rt_u32 = #version;
            #authenticity
            #expires
        }
    }
}
