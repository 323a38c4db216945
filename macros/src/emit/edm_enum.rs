//! Generates the implementations of `EdmEnum`, which stores an enum as text in a property or in a part of a key.

use crate::{model::EdmEnum, names};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the impls of `EdmValue` and `KeyPart`.
pub(super) fn emit_edm_enum(edm_enum: &EdmEnum) -> TokenStream {
    let ident = &edm_enum.ident;
    let text = text_functions(edm_enum);
    let texts: Vec<_> =
        edm_enum.variants.iter().map(|variant| escape_variant(&variant.text)).collect();
    let values = format!("enum({})", texts.join("|"));
    quote! {
        #text

        #[automatically_derived]
        impl _rt::EdmValue for #ident {
            const EDM: _rt::EdmType = _rt::EdmType::String;
            const VALUES: &'static _rt_str = #values;

            fn to_edm(&self) -> _rt_Result<_rt::EdmCow<'_>, _rt::InvalidValue> {
                _rt_Ok(_rt_From::from(_rt_ValueRef::String(__text(self))))
            }

            fn from_edm(__value: _rt_ValueRef<'_>) -> _rt_Result<Self, _rt::InvalidValue> {
                match __value {
                    _rt_ValueRef::String(__text) => __parse(__text),
                    __other => _rt_Err(_rt::InvalidValue::wrong_type(
                        _rt::EdmType::String,
                        _rt_ValueRef::edm_type(&__other),
                    )),
                }
            }
        }

        #[automatically_derived]
        impl _rt_KeyPart for #ident {
            const WIDTH: _rt_Option<_rt_usize> = _rt_None;

            fn encode(&self, __out: &mut _rt_String) -> _rt_Result<(), _rt::InvalidValue> {
                _rt_String::push_str(__out, __text(self));
                _rt_Ok(())
            }

            fn decode(__text: &_rt_str) -> _rt_Result<Self, _rt::InvalidValue> {
                __parse(__text)
            }
        }
    }
}

/// Returns a variant's text as one word without `|`. Whitespace, control characters, `|` and `%` are escaped,
/// such as `%20`.
fn escape_variant(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || matches!(c, '|' | '%') {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns the functions that convert variants to texts and back.
fn text_functions(edm_enum: &EdmEnum) -> TokenStream {
    let ident = &edm_enum.ident;
    let to_texts = edm_enum.variants.iter().map(|variant| {
        let (name, text) = (&variant.ident, &variant.text);
        quote! { #ident::#name => #text, }
    });
    let from_texts = edm_enum.variants.iter().map(|variant| {
        let (name, text) = (&variant.ident, &variant.text);
        quote! { #text => _rt_Ok(#ident::#name), }
    });
    let expected =
        names::join_alternatives(edm_enum.variants.iter().map(|variant| variant.text.as_str()));
    quote! {
        fn __text(__variant: &#ident) -> &'static _rt_str {
            match __variant {
                #(#to_texts)*
            }
        }

        fn __parse(__text: &_rt_str) -> _rt_Result<#ident, _rt::InvalidValue> {
            match __text {
                #(#from_texts)*
                _ => _rt_Err(_rt::unknown_variant_error(#expected, __text)),
            }
        }
    }
}
