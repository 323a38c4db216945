//! Projections: each field is read through the column of its name.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Projection;

/// The impls of `FromRow` and `Projection`.
pub(super) fn emit(projection: &Projection) -> TokenStream {
    let Some(of) = &projection.of else { return TokenStream::new() };
    let ident = &projection.ident;
    let selects = projection.fields.iter().map(|field| {
        let constant = &field.constant;
        quote! { _rt::ReadColumn::select(&<#of>::#constant, &mut __names); }
    });
    // A field of another type than the entity's is shown where its type is written.
    let reads = projection.fields.iter().map(|field| {
        let (name, constant, ty) = (&field.ident, &field.constant, &field.ty);
        quote! {
            #name: <#ty as _rt::Projected<_>>::project(&<#of>::#constant, __row)?
        }
    });
    quote! {
        #[automatically_derived]
        impl _rt::FromRow for #ident {
            fn columns() -> _rt::Option<_rt::Vec<_rt::String>> {
                let mut __names = _rt::Vec::new();
                #(#selects)*
                _rt::Some(__names)
            }

            fn from_row(__row: &_rt::Row) -> _rt::Result<Self> {
                _rt::Ok(Self { #(#reads),* })
            }
        }

        #[automatically_derived]
        impl _rt::Projection for #ident {
            type Entity = #of;
        }
    }
}
