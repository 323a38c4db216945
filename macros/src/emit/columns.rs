//! Columns: a constant for each field.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    codec::{json_codec, key_of, part_of},
    part,
    schema::family_constant,
};
use crate::model::{Entity, Field, Properties, Storage};

/// The columns of an entity.
pub(super) fn of_entity(entity: &Entity) -> TokenStream {
    let ident = &entity.ident;
    let columns =
        entity.fields.iter().enumerate().filter_map(|(at, field)| {
            key_column(entity, at, field).or_else(|| property_column(field))
        });
    quote! {
        #[automatically_derived]
        impl #ident { #(#columns)* }
    }
}

/// The columns of a struct that is flattened.
pub(super) fn of_properties(properties: &Properties) -> TokenStream {
    let ident = &properties.ident;
    let columns = properties.fields.iter().filter_map(property_column);
    quote! {
        #[automatically_derived]
        impl #ident { #(#columns)* }
    }
}

/// The column of a field that only the keys hold.
fn key_column(entity: &Entity, at: usize, field: &Field) -> Option<TokenStream> {
    let (in_row, part_at) = entity.key_source(at, field)?;
    let part = part_of(entity, in_row, part_at)?;
    let primary = entity.families.first()?;
    let constant = family_constant(primary);
    let (template, key_name, key) = key_of(in_row);
    let count = if in_row { &primary.row } else { &primary.partition }.parts().count();
    let texts = (0..count).map(|at| {
        if at == part_at {
            quote! { __text }
        } else {
            quote! { _ }
        }
    });
    let decode = part::decode(part, field, &quote! { __text });
    let encode = part::encode(part, &field.ty, &quote! { __value });
    let (vis, name, ty, property) = (&field.vis, &field.constant, &field.ty, &field.property);
    let doc = format!("The column of `{}`, which the keys hold.", field.name);
    Some(quote! {
        #[doc = #doc]
        #vis const #name: _rt::Column<Self, #ty, _rt::KeyOnly> = _rt::Column::key(
            #property,
            |__row, _| {
                let [#(#texts),*] = _rt::split_key::<#count>(&#constant.#template, #key_name, #key)?;
                #decode
            },
            _rt::KeyColumn {
                template: &#constant.#template,
                part: #part_at,
                encode: |__value, __out| #encode,
            },
        );
    })
}

fn property_column(field: &Field) -> Option<TokenStream> {
    let (vis, name, ty, property) = (&field.vis, &field.constant, &field.ty, &field.property);
    let doc = format!("The column of `{}`: property `{property}`.", field.name);
    Some(match &field.storage {
        Storage::Skipped | Storage::Extra => return None,
        Storage::Plain => quote! {
            #[doc = #doc]
            #vis const #name: _rt::Column<Self, #ty> =
                _rt::Column::property(#property, |__row, __name| {
                    _rt::read_stored(__row, __name, |__found| {
                        <#ty as _rt::Property>::from_stored(__found)
                    })
                });
        },
        Storage::Json => {
            let codec = json_codec(field);
            quote! {
                #[doc = #doc]
                #vis const #name: _rt::Column<Self, #ty, _rt::Json> =
                    _rt::Column::property(#property, #codec.read);
            }
        }
        Storage::Flattened(prefix) => {
            let doc =
                format!("The columns of `{}`, whose names begin with `{prefix}`.", field.name);
            quote! {
                #[doc = #doc]
                #vis const #name: _rt::Flattened<Self, #ty> = _rt::Flattened::new(#prefix);
            }
        }
    })
}
