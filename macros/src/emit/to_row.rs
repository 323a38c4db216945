//! Entities to rows: one row of one family.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    from_row::json_codec,
    key::{of_self, row_key},
    schema::family_constant,
};
use crate::{
    attr::Discriminator,
    model::{Entity, Family, Field, Storage},
};

/// Writes one row of a family: its keys, its type, and what it holds. `partition_key` makes
/// `__partition_key`.
pub(super) fn write(entity: &Entity, family: &Family, partition_key: &TokenStream) -> TokenStream {
    let constant = family_constant(family);
    let row_key = row_key(entity, family, of_self);
    let marker = match &entity.discriminator {
        Discriminator::Property(name) => Some(quote! {
            _rt::PropertyWriter::put_value(
                &mut __out,
                #name,
                _rt::ValueRef::String(#constant.marker),
            );
        }),
        Discriminator::RowKey => None,
    };
    let properties = entity
        .fields
        .iter()
        .enumerate()
        .filter(|(at, field)| {
            let held = family.holds.get(*at).copied().unwrap_or_default();
            let extra = held && field.storage == Storage::Extra;
            extra || entity.is_property(family, *at, field)
        })
        .map(|(_, field)| put(field, &quote! { &mut __out }));
    quote! {{
        #partition_key
        #row_key
        let mut __row = _rt::Row::build(&__partition_key, &__row_key);
        let mut __out = _rt::PropertyWriter::new(&mut __row);
        #marker
        #(#properties)*
        __row.finish()?
    }}
}

/// Writes one field of `self` to the property writer.
pub(super) fn put(field: &Field, out: &TokenStream) -> TokenStream {
    let (ident, name, ty) = (&field.ident, &field.property, &field.ty);
    match &field.storage {
        Storage::Skipped => TokenStream::new(),
        Storage::Plain => {
            let stored = quote! { <#ty as _rt::Property>::to_stored(&self.#ident) };
            let stored = super::redacted(field, stored);
            quote! { _rt::PropertyWriter::put_stored(#out, #name, #stored)?; }
        }
        Storage::Json => {
            let codec = json_codec(field);
            quote! { (#codec.put)(#out, #name, &self.#ident)?; }
        }
        Storage::Flattened(prefix) => {
            quote! {
                _rt::PropertyWriter::put_nested(#out, #prefix, |__out| {
                    <#ty as _rt::Properties>::write(&self.#ident, __out)
                })?;
            }
        }
        Storage::Extra => quote! {
            <#ty as _rt::PropertyBag>::each(&self.#ident, |__name, __value| {
                let __schema = <Self as _rt::TableEntity>::SCHEMA;
                _rt::PropertyWriter::put_extra(#out, __schema, __name, __value)
            })?;
        },
    }
}
