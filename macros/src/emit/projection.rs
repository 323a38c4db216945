//! Generates the impls of a projection, which reads each field through the column with its name.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Path, spanned::Spanned};

use crate::{model::Projection, names};

/// Returns the impls of `FromRow`, `Projection` and `SetMember`, and of `ProjectionHeldBy` for partial copies.
pub(super) fn emit_projection(projection: &Projection) -> TokenStream {
    let Some(of) = &projection.of else { return TokenStream::new() };
    let ident = &projection.ident;
    let entity = checked_entity(projection, of);
    let selects = projection.fields.iter().map(|field| {
        let constant = &field.constant;
        quote! { _rt_ReadColumn::select(&__Entity::#constant, __family, &mut __names); }
    });
    // A mismatch with the type of the entity's field is reported where the type is written.
    let reads = projection.fields.iter().map(|field| {
        let (name, constant, ty) = (&field.ident, &field.constant, &field.ty);
        quote! {
            #name: _rt::ProjectedColumn(&__Entity::#constant).read_as::<#ty>(__row, __family)?
        }
    });
    let fields =
        projection.fields.iter().map(|field| names::type_spelling_field_name(&field.ident));
    quote! {
        #entity

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
            #[cfg(doc)]
            type Entity = #of;
            // The documentation shows the entity, and the compiler an error of its own type only once.
            #[cfg(not(doc))]
            type Entity = __Entity;
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

/// Returns the type alias `__Entity` for the projection's entity, and two constants that check the entity. They only
/// compile if the type is an entity, and if it stores each field of the projection in properties of its own.
///
/// The alias contains the constants as lengths of arrays. If one does not compile, the compiler treats the alias as an
/// error and reports nothing that follows from it, such as missing columns.
fn checked_entity(projection: &Projection, of: &Path) -> TokenStream {
    let is_entity = quote_spanned! { of.span() => _rt::check_is_entity::<#of>() };
    let fields = projection.fields.iter().map(|field| {
        let mut name = field.ident.clone();
        name.set_span(field.span);
        quote! { let _ = &__entity.#name; }
    });
    let columns = projection.fields.iter().map(|field| {
        let name = names::ident_text(&field.ident);
        let message = format!(
            "a projection cannot read `{name}`, because the entity does not store it in a property of its own: the field has `skip` or `extra`"
        );
        quote_spanned! { field.span =>
            _rt::assert_field_has_column(<__Of as _rt_TableEntity>::SCHEMA, #name, #message);
        }
    });
    quote! {
        const __IS_ENTITY: _rt_usize = #is_entity;
        type __Of = <[#of; __IS_ENTITY] as _rt::Array>::Element;
        const __HAS_FIELDS: _rt_usize = {
            let _ = |__entity: &__Of| { #(#fields)* };
            #(#columns)*
            0
        };
        type __Entity = <[__Of; __HAS_FIELDS] as _rt::Array>::Element;
    }
}
