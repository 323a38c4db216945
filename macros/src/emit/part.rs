//! Parts of keys: how they are written and read, and how wide they are.

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
        Form::Date(form, _) => quote! { _rt::encode_date::<#ty>(#value, #form, __out) },
        Form::Lower => quote! {{
            _rt::lower(<#ty as _rt::TextPart>::as_text(#value), __out);
            _rt::Ok(())
        }},
        Form::Bucket(count) => quote! { _rt::encode_bucket::<#ty>(#value, #count, __out) },
    }
}

/// The field from the text of a part that gives it back.
pub(super) fn decode(part: &Part, field: &Field, text: &TokenStream) -> TokenStream {
    let (ty, name) = (&field.ty, &field.property);
    match &part.form {
        Form::Width(_) => quote! { _rt::read_width::<#ty>(#name, #text) },
        Form::Descending => quote! { _rt::read_descending::<#ty>(#name, #text) },
        Form::Date(form, _) => quote! { _rt::read_date::<#ty>(#name, #text, #form) },
        Form::Plain | Form::Lower | Form::Bucket(_) => {
            quote! { _rt::read_plain::<#ty>(#name, #text) }
        }
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
    }
}
