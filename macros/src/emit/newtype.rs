//! Generates the impls of a newtype: a struct that is stored as its only field.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Member, Type};

use crate::model::Newtype;

/// Returns the impls of `EdmValue`, `KeyPart` and the traits for the forms of key parts.
///
/// An impl applies only if the field's type implements the same trait. The lifetime `'__a` in the bounds of an impl is
/// unused. It makes the compiler check a bound where the impl is used instead of here.
pub(super) fn emit_newtype(newtype: &Newtype) -> TokenStream {
    let Some((member, ty)) = &newtype.field else { return TokenStream::new() };
    let ident = &newtype.ident;
    let forms = form_impls(ident, member, ty);
    quote! {
        #[automatically_derived]
        impl _rt::EdmValue for #ident
        where
            for<'__a> #ty: _rt::EdmValue,
        {
            const EDM: _rt::EdmType = <#ty as _rt::EdmValue>::EDM;
            const VALUES: &'static _rt_str = <#ty as _rt::EdmValue>::VALUES;

            fn to_edm(&self) -> _rt_Result<_rt::EdmCow<'_>, _rt::InvalidValue> {
                <#ty as _rt::EdmValue>::to_edm(&self.#member)
            }

            fn from_edm(__value: _rt_ValueRef<'_>) -> _rt_Result<Self, _rt::InvalidValue> {
                _rt_Ok(Self { #member: <#ty as _rt::EdmValue>::from_edm(__value)? })
            }
        }

        #[automatically_derived]
        impl _rt_KeyPart for #ident {
            const WIDTH: _rt_Option<_rt_usize> = <#ty as _rt_KeyPart>::WIDTH;

            fn encode(&self, __out: &mut _rt_String) -> _rt_Result<(), _rt::InvalidValue> {
                <#ty as _rt_KeyPart>::encode(&self.#member, __out)
            }

            fn decode(__text: &_rt_str) -> _rt_Result<Self, _rt::InvalidValue> {
                _rt_Ok(Self { #member: <#ty as _rt_KeyPart>::decode(__text)? })
            }
        }

        #forms
    }
}

/// Returns the impls for the forms of key parts: ranges, prefixes, widths, `desc` and dates.
fn form_impls(ident: &Ident, member: &Member, ty: &Type) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl<const __LAST: _rt::bool> _rt::Ordered<__LAST> for #ident
        where
            for<'__a> #ty: _rt::Ordered<__LAST>,
        {
        }

        #[automatically_derived]
        impl _rt_TextPart for #ident
        where
            for<'__a> #ty: _rt_TextPart,
        {
            fn as_text(&self) -> &_rt_str {
                <#ty as _rt_TextPart>::as_text(&self.#member)
            }
        }

        #[automatically_derived]
        impl _rt_FixedWidth for #ident
        where
            for<'__a> #ty: _rt_FixedWidth,
        {
            fn encode_zero_padded(
                &self,
                __width: _rt_usize,
                __out: &mut _rt_String,
            ) -> _rt_Result<(), _rt::InvalidValue> {
                <#ty as _rt_FixedWidth>::encode_zero_padded(&self.#member, __width, __out)
            }

            fn decode_width(__text: &_rt_str) -> _rt_Result<Self, _rt::InvalidValue> {
                _rt_Ok(Self { #member: <#ty as _rt_FixedWidth>::decode_width(__text)? })
            }
        }

        #[automatically_derived]
        impl _rt::Descending for #ident
        where
            for<'__a> #ty: _rt::Descending,
        {
            const WIDTH_DESCENDING: _rt_usize = <#ty as _rt::Descending>::WIDTH_DESCENDING;

            fn encode_descending(
                &self,
                __out: &mut _rt_String,
            ) -> _rt_Result<(), _rt::InvalidValue> {
                <#ty as _rt::Descending>::encode_descending(&self.#member, __out)
            }

            fn decode_descending(__text: &_rt_str) -> _rt_Result<Self, _rt::InvalidValue> {
                _rt_Ok(Self { #member: <#ty as _rt::Descending>::decode_descending(__text)? })
            }
        }

        #[automatically_derived]
        impl _rt::DatePart for #ident
        where
            for<'__a> #ty: _rt::DatePart,
        {
            const RESOLUTION: _rt::Resolution = <#ty as _rt::DatePart>::RESOLUTION;

            fn to_ticks(&self) -> _rt_Result<_rt::Ticks, _rt::InvalidValue> {
                <#ty as _rt::DatePart>::to_ticks(&self.#member)
            }

            fn from_ticks(__ticks: _rt::Ticks) -> _rt_Result<Self, _rt::InvalidValue> {
                _rt_Ok(Self { #member: <#ty as _rt::DatePart>::from_ticks(__ticks)? })
            }
        }
    }
}
