//! Generates the impls of a projection, which reads each field through the column of its name.

use crate::{model::Projection, names};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the impls of `FromRow`, `Projection` and `SetMember`, and of `ProjectionHeldBy` for partial copies.
pub(super) fn emit(projection: &Projection) -> TokenStream {
    let Some(of) = &projection.of else { return TokenStream::new() };
    let ident = &projection.ident;
    let selects = projection.fields.iter().map(|field| {
        let constant = &field.constant;
        quote! { _rt_ReadColumn::select(&<#of>::#constant, __family, &mut __names); }
    });
    // A field of another type than the entity's is shown where its type is written.
    let reads = projection.fields.iter().map(|field| {
        let (name, constant, ty) = (&field.ident, &field.constant, &field.ty);
        quote! {
            #name: <#ty as _rt::Projected<_>>::project(&<#of>::#constant, __row, __family)?
        }
    });
    let fields =
        projection.fields.iter().map(|field| names::type_spelling_field_name(&field.ident));
    quote! {
        #[automatically_derived]
        impl _rt_FromRow for #ident {
            fn columns(
                __family: _rt_Option<&'static _rt_Family>,
            ) -> _rt_Option<_rt::Vec<_rt_String>> {
                let _rt_Ok(__family) = _rt::given_family_or_primary::<Self>(__family) else {
                    return _rt_None;
                };
                let mut __names = _rt::Vec::new();
                #(#selects)*
                _rt_Some(__names)
            }

            fn from_row(__row: &_rt_Row) -> _rt_Result<Self> {
                let __family = _rt::given_family_or_primary::<Self>(_rt_None)?;
                <Self as _rt_FromRow>::from_copy(__row, __family)
            }

            fn read_with<__R>(
                __row: &_rt_Row,
                __family: &'static _rt_Family,
                _: _rt_u32,
                __wrap: impl _rt_FnOnce(Self) -> __R,
            ) -> _rt_Result<__R> {
                _rt_Ok(__wrap(Self { #(#reads),* }))
            }
        }

        #[automatically_derived]
        impl _rt::Projection for #ident {
            type Entity = #of;
        }

        #[automatically_derived]
        impl _rt::SetMember for #ident {
            const MEMBER: &'static _rt_Schema = _rt::projection_schema::<Self>();

            fn read_matched(__row: &_rt_Row, __matched: &_rt::RowMatch) -> _rt_Result<Self> {
                _rt::read_projection(__row, __matched)
            }
        }

        #[automatically_derived]
        impl<__M> _rt::ProjectionHeldBy<__M> for #ident
        where
            #(__M: _rt::HoldsField<#fields>,)*
        {
        }
    }
}
