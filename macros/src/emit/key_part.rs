//! Parts of keys: how they are written and read, and how wide they are.
//!
//! The field's traits are named as `<Type as Trait>::item` throughout: what a type lacks is then
//! reported at the type, in the same words each time, and so once. They are called, not handed on:
//! a function that is only named is reported at the derive.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

use crate::{
    model::{Field, Part},
    template::Form,
};

/// Writes `value`, a reference to the field, to `__out`.
pub(super) fn encode(part: &Part, ty: &Type, value: &TokenStream) -> TokenStream {
    match &part.form {
        Form::Plain => quote! { <#ty as _rt::KeyPart>::encode(#value, __out) },
        Form::Width(width) => {
            quote! { <#ty as _rt::FixedWidth>::encode_width(#value, #width, __out) }
        }
        Form::Descending => quote! { <#ty as _rt::Descending>::encode_descending(#value, __out) },
        Form::Date(form, _) => quote! {
            _rt::write_date(<#ty as _rt::DatePart>::to_ticks(#value), #form, __out)
        },
        Form::Lower => quote! {{
            _rt::lower(<#ty as _rt::TextPart>::as_text(#value), __out);
            _rt::Ok(())
        }},
        Form::Bucket(count) => quote! {
            _rt::write_bucket_of(
                |__out| <#ty as _rt::KeyPart>::encode(#value, __out),
                #count,
                __out,
            )
        },
        Form::Hmac => quote! {
            _rt::push_token_placeholder(<#ty as _rt::EdmValue>::to_edm(#value), __out)
        },
    }
}

/// The field from the text of a part that gives it back.
pub(super) fn decode(part: &Part, field: &Field, text: &TokenStream) -> TokenStream {
    let (ty, name) = (&field.ty, &field.property);
    match &part.form {
        Form::Width(_) => quote! {
            _rt::read_part(#name, #text, |__text| <#ty as _rt::FixedWidth>::decode_width(__text))
        },
        Form::Descending => quote! {
            _rt::read_part(#name, #text, |__text| {
                <#ty as _rt::Descending>::decode_descending(__text)
            })
        },
        Form::Date(form, _) => quote! {
            _rt::read_part(#name, #text, |__text| {
                <#ty as _rt::DatePart>::from_ticks(_rt::decode_period(__text, #form)?)
            })
        },
        Form::Plain | Form::Lower | Form::Bucket(_) | Form::Hmac => quote! {
            _rt::read_plain(
                #name,
                #text,
                <#ty as _rt::KeyPart>::WIDTH,
                |__text| <#ty as _rt::KeyPart>::decode(__text),
            )
        },
    }
}

/// The part's form as data.
pub(super) fn form(part: &Part) -> TokenStream {
    match &part.form {
        Form::Plain => quote! { _rt::Form::Plain },
        Form::Width(width) => quote! { _rt::Form::Width(#width) },
        Form::Descending => quote! { _rt::Form::Descending },
        Form::Date(form, _) => quote! { _rt::Form::Date(#form) },
        Form::Lower => quote! { _rt::Form::Lower },
        Form::Bucket(count) => quote! { _rt::Form::Bucket(#count) },
        Form::Hmac => quote! { _rt::Form::Hmac },
    }
}

/// The part's width, where it always has one.
pub(super) fn width(part: &Part, ty: &Type) -> TokenStream {
    match &part.form {
        Form::Plain => quote! { <#ty as _rt::KeyPart>::WIDTH },
        Form::Width(width) => quote! { _rt::Some(#width) },
        Form::Descending => quote! { _rt::Some(<#ty as _rt::Descending>::WIDTH_DESCENDING) },
        Form::Date(form, _) => quote! { _rt::Some(_rt::date_width(#form)) },
        Form::Lower => quote! { _rt::None },
        Form::Bucket(count) => quote! { _rt::Some(_rt::bucket_width(#count)) },
        Form::Hmac => quote! { _rt::Some(_rt::TOKEN_WIDTH) },
    }
}
