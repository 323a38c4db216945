//! Generates the code that writes and reads the parts of keys.
//!
//! Trait items of a field's type are always written as `<Type as Trait>::item`. The compiler then reports a missing
//! trait at the type and in the same words each time, and shows equal reports once. For the same reason, a trait
//! function that is passed as an argument has the span of the type.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use crate::{
    model::{Field, TemplatePart},
    names,
    template::Form,
};

/// Returns the path of an associated item, `<Type as Trait>::name`, for the field's type. It is passed as a function.
pub(super) fn type_as_trait_item(ty: &Type, of: &str, name: &str) -> TokenStream {
    // The compiler reports a missing impl both at the type and at the whole path. With the spans of the type's
    // first and last token, the two places are the same and yield one error.
    let (first, last) = names::type_ends(ty);
    let (of, name) = (names::runtime_item(of, first), Ident::new(name, last));
    quote_spanned! { first => <#ty as #of>::#name }
}

/// Returns the path of a function of the runtime to which an item of the type's trait is passed. The compiler also
/// reports a missing impl at the function. With the type's span, this is one error instead of two.
pub(super) fn runtime_function_at(ty: &Type, name: &str) -> TokenStream {
    let (first, last) = names::type_ends(ty);
    let name = Ident::new(name, last);
    quote_spanned! { first => _rt::#name }
}

/// Returns statements that write a part with the key writer `__key`. `value` is the field.
pub(super) fn write_part(part: &TemplatePart, ty: &Type, value: &TokenStream) -> TokenStream {
    match &part.form {
        Form::Plain => {
            let encode = type_as_trait_item(ty, "KeyPart", "encode");
            quote! { __key.put(&#value, #encode); }
        }
        Form::Width(width) => {
            let encode = type_as_trait_item(ty, "FixedWidth", "encode_zero_padded");
            quote! { __key.put_zero_padded(&#value, #width, #encode); }
        }
        Form::Descending => {
            let encode = type_as_trait_item(ty, "Descending", "encode_descending");
            quote! { __key.put(&#value, #encode); }
        }
        Form::Lower => {
            quote! { __key.put_lower(<#ty as _rt_TextPart>::as_text(&#value)); }
        }
        Form::Date(form, _) => quote! {
            let __written = _rt::write_date(
                <#ty as _rt::DatePart>::to_ticks(&#value),
                #form,
                __key.begin_part(),
            );
            __key.end_part(__written);
        },
        Form::Bucket(count) => quote! {
            let __written = <#ty as _rt_KeyPart>::encode(&#value, __key.begin_part());
            __key.end_bucket_part(__written, #count);
        },
        Form::Hmac => quote! {
            let __written = _rt::push_token_placeholder(
                <#ty as _rt::EdmValue>::to_edm(&#value),
                __key.begin_part(),
            );
            __key.end_part(__written);
        },
    }
}

/// Returns the call that sets a part of the keys in a `PathDraft` to one value. `value` is a reference to the
/// field's value.
pub(super) fn set_part_call(
    part: &TemplatePart,
    at: usize,
    ty: &Type,
    value: &TokenStream,
) -> TokenStream {
    match &part.form {
        Form::Plain => {
            let first = type_as_trait_item(ty, "KeyPart", "encode");
            quote! { .set_value_part(#at, #value, #first) }
        }
        Form::Width(width) => {
            let first = type_as_trait_item(ty, "FixedWidth", "encode_zero_padded");
            quote! { .set_padded_part(#at, #value, #width, #first) }
        }
        Form::Descending => {
            let first = type_as_trait_item(ty, "Descending", "encode_descending");
            quote! { .set_value_part(#at, #value, #first) }
        }
        Form::Date(form, _) => {
            quote! { .set_date_part(#at, <#ty as _rt::DatePart>::to_ticks(#value), #form) }
        }
        Form::Lower => quote! { .set_lowercase_part(#at, <#ty as _rt_TextPart>::as_text(#value)) },
        Form::Bucket(count) => {
            let first = type_as_trait_item(ty, "KeyPart", "encode");
            quote! { .set_bucket_part(#at, #value, #count, #first) }
        }
        Form::Hmac => quote! { .set_token_part(#at, <#ty as _rt::EdmValue>::to_edm(#value)) },
    }
}

/// Returns the call that sets a part of a path builder's draft to `__value`, an argument that converts to the
/// field's type.
pub(super) fn set_input_part_call(part: &TemplatePart, at: usize, ty: &Type) -> TokenStream {
    match &part.form {
        Form::Plain => {
            let first = type_as_trait_item(ty, "KeyPart", "encode");
            quote! { .set_input_part(#at, __value, #first) }
        }
        Form::Width(width) => {
            let first = type_as_trait_item(ty, "FixedWidth", "encode_zero_padded");
            quote! { .set_padded_input_part(#at, __value, #width, #first) }
        }
        Form::Descending => {
            let first = type_as_trait_item(ty, "Descending", "encode_descending");
            quote! { .set_input_part(#at, __value, #first) }
        }
        Form::Date(..) | Form::Lower | Form::Bucket(_) | Form::Hmac => {
            set_part_call(part, at, ty, &quote! { &_rt_Input::input(__value) })
        }
    }
}

/// Returns the call that limits a part of the keys in a `PathDraft` to the values in `__range`. Returns `None` if a
/// range of values does not correspond exactly to a range of keys.
pub(super) fn range_call(part: &TemplatePart, at: usize, field: &Field) -> Option<TokenStream> {
    let ty = &field.ty;
    let bounds = quote! { #at, __range };
    Some(match &part.form {
        Form::Plain => {
            let first = type_as_trait_item(ty, "KeyPart", "encode");
            quote! { .between(#bounds, #first) }
        }
        Form::Width(width) => {
            let first = type_as_trait_item(ty, "FixedWidth", "encode_zero_padded");
            quote! { .between_zero_padded(#bounds, #width, #first) }
        }
        Form::Descending => {
            let first = type_as_trait_item(ty, "Descending", "encode_descending");
            quote! { .between_descending(#bounds, #first) }
        }
        Form::Date(form, _) if part.is_read_back_exactly(field) => {
            let first = type_as_trait_item(ty, "DatePart", "to_ticks");
            quote! { .between_date(#bounds, #form, #first) }
        }
        Form::Date(..) | Form::Lower | Form::Bucket(_) | Form::Hmac => return None,
    })
}

/// Returns an expression that reads the field's value from `text`, the text of this key part. Only called for a
/// part from which the field can be read back without loss, and therefore never for `lower`, `bucket` or `hmac`.
pub(super) fn read_part(part: &TemplatePart, field: &Field, text: &TokenStream) -> TokenStream {
    let (ty, name) = (&field.ty, &field.property);
    match &part.form {
        Form::Width(_) => {
            let first = type_as_trait_item(ty, "FixedWidth", "decode_width");
            quote! { _rt_read_part(#name, #text, #first) }
        }
        Form::Descending => {
            let first = type_as_trait_item(ty, "Descending", "decode_descending");
            quote! { _rt_read_part(#name, #text, #first) }
        }
        Form::Date(form, _) => {
            let first = type_as_trait_item(ty, "DatePart", "from_ticks");
            quote! { _rt::read_date(#name, #text, #form, #first) }
        }
        Form::Plain | Form::Lower | Form::Bucket(_) | Form::Hmac => {
            let first = type_as_trait_item(ty, "KeyPart", "WIDTH");
            let second = type_as_trait_item(ty, "KeyPart", "decode");
            quote! { _rt_read_plain(#name, #text, #first, #second) }
        }
    }
}

/// Returns the function that reads the field from a lossless part, for a column.
pub(super) fn reader_function(part: &TemplatePart, field: &Field) -> TokenStream {
    let ty = &field.ty;
    match &part.form {
        Form::Width(_) => {
            let first = type_as_trait_item(ty, "FixedWidth", "decode_width");
            quote! { _rt_ReadFixed(#first) }
        }
        Form::Descending => {
            let first = type_as_trait_item(ty, "Descending", "decode_descending");
            quote! { _rt_ReadFixed(#first) }
        }
        Form::Date(..) => {
            let first = type_as_trait_item(ty, "DatePart", "from_ticks");
            quote! { _rt_ReadDate(#first) }
        }
        Form::Plain | Form::Lower | Form::Bucket(_) | Form::Hmac => {
            let first = type_as_trait_item(ty, "KeyPart", "decode");
            quote! { _rt_ReadPlain(#first) }
        }
    }
}

/// Returns the expression for the `Segment` of a key part, in the constant of the key's template.
pub(super) fn part_constant(part: &TemplatePart, field: &Field) -> TokenStream {
    let (name, ty) = (&field.property, &field.ty);
    let form = form_constant(part);
    let codec = |name: &str| {
        let span = names::type_span(ty);
        let name = names::runtime_item(name, span);
        quote_spanned! { span => #name::<#ty>() }
    };
    // A guard contains an item of the trait that the form requires, which makes the compiler report a type without
    // the trait. As an argument of a generic function, it would be reported twice.
    let (width, codec) = match &part.form {
        Form::Plain => (type_as_trait_item(ty, "KeyPart", "WIDTH"), codec("plain_codec")),
        Form::Width(width) => {
            let guard = type_as_trait_item(ty, "FixedWidth", "decode_width");
            (quote! { (#guard, _rt_Some(#width)).1 }, codec("zero_padded_codec"))
        }
        Form::Descending => {
            let width = type_as_trait_item(ty, "Descending", "WIDTH_DESCENDING");
            (quote! { _rt_Some(#width) }, codec("descending_codec"))
        }
        Form::Date(form, _) => {
            let guard = type_as_trait_item(ty, "DatePart", "RESOLUTION");
            (quote! { (#guard, _rt::width_of_date(#form)).1 }, codec("date_codec"))
        }
        Form::Lower => {
            let guard = type_as_trait_item(ty, "TextPart", "as_text");
            (quote! { (#guard, _rt_None).1 }, codec("lower_codec"))
        }
        Form::Bucket(count) => (quote! { _rt::width_of_bucket(#count) }, codec("bucket_codec")),
        Form::Hmac => (quote! { _rt_Some(_rt::TOKEN_WIDTH) }, codec("hmac_codec")),
    };
    let segment = match &part.form {
        Form::Date(..) if !part.is_read_back_exactly(field) => quote! { _rt::period_segment },
        _ => quote! { _rt_part_segment },
    };
    quote! { #segment(#name, #form, #width, #codec) }
}

/// Returns the part's form as a constant.
pub(super) fn form_constant(part: &TemplatePart) -> TokenStream {
    match &part.form {
        Form::Plain => quote! { _rt_Form::Plain },
        Form::Width(width) => quote! { _rt_Form::Width(#width) },
        Form::Descending => quote! { _rt_Form::Descending },
        Form::Date(form, _) => quote! { _rt_Form::Date(#form) },
        Form::Lower => quote! { _rt_Form::Lower },
        Form::Bucket(count) => quote! { _rt_Form::Bucket(#count) },
        Form::Hmac => quote! { _rt_Form::Hmac },
    }
}
