//! Columns: a constant for each field.

use proc_macro2::TokenStream;
use quote::quote;

use super::{from_row::json_codec, key_part};
use crate::{
    model::{Entity, Field, Properties, Storage},
    template::Form,
};

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

/// The column of a field that the keys of some rows give back.
fn key_column(entity: &Entity, at: usize, field: &Field) -> Option<TokenStream> {
    let mut reads: Vec<TokenStream> = Vec::new();
    let mut seen: Vec<&Form> = Vec::new();
    for family in entity.readable_families() {
        let Some((in_row, part_at)) = entity.key_source(family, at, field) else { continue };
        let key = if in_row { &family.row } else { &family.partition };
        let part = key.parts().nth(part_at)?;
        if seen.contains(&&part.form) {
            continue;
        }
        seen.push(&part.form);
        let form = key_part::form(part);
        let decode = key_part::decode(part, field, &quote! { __text });
        reads.push(quote! { #form => #decode, });
    }
    if reads.is_empty() {
        return None;
    }
    let (vis, name, ty, property) = (&field.vis, &field.constant, &field.ty, &field.property);
    let doc = format!("The column of `{}`, which keys hold.", field.name);
    Some(quote! {
        #[doc = #doc]
        #vis const #name: _rt::Column<Self, #ty> = _rt::Column::key(
            #property,
            |__row, __name| {
                _rt::read_stored(__row, __name, |__found| {
                    <#ty as _rt::Property>::from_stored(__found)
                })
            },
            |__part, __text| match __part.form {
                #(#reads)*
                _ => _rt::from_keys(_rt::None, #property),
            },
        );
    })
}

fn property_column(field: &Field) -> Option<TokenStream> {
    let (vis, name, ty, property) = (&field.vis, &field.constant, &field.ty, &field.property);
    let doc = format!("The column of `{}`: property `{property}`.", field.name);
    let kind = kind(field);
    Some(match &field.storage {
        Storage::Skipped | Storage::Extra => return None,
        Storage::Plain => {
            let read = super::redacted(
                field,
                quote! {
                    <#ty as _rt::Property>::from_stored(__found)
                },
            );
            quote! {
                #[doc = #doc]
                #vis const #name: _rt::Column<Self, #ty, #kind> =
                    _rt::Column::property(#property, |__row, __name| {
                        _rt::read_stored(__row, __name, |__found| #read)
                    });
            }
        }
        Storage::Json => {
            let codec = json_codec(field);
            quote! {
                #[doc = #doc]
                #vis const #name: _rt::Column<Self, #ty, #kind> =
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

/// What a filter can do with the column.
pub(super) fn kind(field: &Field) -> TokenStream {
    match (field.sealed(), field.token_property(), &field.storage) {
        (Some(_), Some(_), _) => quote! { _rt::Blind },
        (Some(_), None, _) => quote! { _rt::Encrypted },
        (None, _, Storage::Json) => quote! { _rt::Json },
        (None, _, _) => quote! { _rt::Plain },
    }
}
